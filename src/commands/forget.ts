import { type Erased, type Forgotten, forgottenTables } from '../adapters/store/forget.ts'
import { readStoreConfig } from '../config/store.ts'
import { mask } from '../domain/ground/contact.ts'
import { counted } from '../domain/ground/format.ts'
import { InvalidInput } from '../domain/ground/operator-error.ts'
import {
  type ConfirmOptions,
  commandActor,
  confirm,
  type DryRunOptions,
  type Env,
  nothingChanged,
  print,
  withContext,
  yieldToServers,
} from './common.ts'

export async function forgetPerson(
  env: Env,
  text: string,
  { yes, dryRun }: ConfirmOptions & DryRunOptions,
): Promise<void> {
  const config = readStoreConfig(env)
  const recipient = config.contacts.phone(text) ?? config.contacts.email(text)
  if (!recipient) throw new InvalidInput(`The recipient ${config.contacts.faultOf(text)}`)
  yieldToServers()
  await withContext(env, async (context) => {
    if (dryRun) {
      const { erased, possibleRequests } = await context.countRecipient(recipient)
      for (const line of [`Would erase: ${erasedWords(erased)}.`, ...aboutPossible(possibleRequests)])
        print(line)
      print(nothingChanged)
      return
    }
    await confirm(`This erases all data of ${mask(recipient)}, and cannot be undone.`, { yes })
    for (const line of aboutForgotten(await context.forget(recipient, await commandActor(env)))) print(line)
    const { to } = recipient
    const accounts = await context.sessions.accounts()
    if (accounts.some(({ email }) => email === to)) {
      print(`Not erased: the account of the console. Remove it with \`otpost admin operator remove ${to}\`.`)
    }
  })
}

function aboutForgotten({ erased, possibleRequests, traces }: Forgotten): readonly string[] {
  return [
    `Erased: ${erasedWords(erased)}.`,
    ...aboutPossible(possibleRequests),
    aboutTraces[traces],
    'Not erased by this command: the server log (standard output), earlier backups and replicas, the records of providers, and records under a previous secret key that SECRET_KEY does not list.',
  ]
}

function erasedWords(erased: Erased): string {
  return [
    counted(erased.requests, 'request'),
    counted(erased.deliveries, 'delivery', 'deliveries'),
    counted(erased.deliveryReports, 'delivery report'),
    counted(erased.jobs, 'asynchronous message'),
    ...forgottenTables.map(({ name, called: [one, many] }) => counted(erased[name] ?? 0, one, many)),
  ].join(', ')
}

function aboutPossible(requests: number): readonly string[] {
  if (requests === 0) return []
  return [
    `Not erased: ${counted(requests, 'request')} with the same masked recipient and no stored identity (a /notify that sent nothing). They expire after DELIVERY_LOG_DAYS.`,
  ]
}

const aboutTraces: Readonly<Record<Forgotten['traces'], string>> = {
  nothing: 'The database file was rewritten. It contains no remains of the erased rows.',
  gaps: 'The erased rows are overwritten. Another process has the database open, so copies from earlier changes may remain in unused parts of the file. To remove them, run the command again with the server stopped.',
  server:
    'The rows are deleted. PostgreSQL removes their remains from its files at its next automatic VACUUM. Its WAL, standbys and archives keep theirs as long as you keep those.',
  log: 'The erased rows are overwritten in the database file, but another process keeps the write-ahead log from being reset. Run the command again later, or with the server stopped.',
}
