import { Argument, type Command, Option } from 'commander'
import {
  type Brand,
  brandStatuses,
  registrationOf,
  type TemplateRegistration,
} from '../domain/brands/brand.ts'
import { templateKeys } from '../domain/messages/templates.ts'
import {
  type BrandChange,
  brandStatus,
  OperatorError,
  putBrand,
  registerTemplate,
  setBrandStatus,
} from '../domain/operator/operator.ts'
import { commandActor, type Env, print, printTable, withContext, yesNo } from './common.ts'

/** `otpost brand …` */
export function brandCommands(program: Command, env: Env): void {
  const brand = program.command('brand').description('create, change and list brands')
  brand
    .command('put')
    .description(
      'create a brand, active unless --status says otherwise, or change the given properties of one',
    )
    .argument('<slug>', 'what callers send as brandId')
    .option('--name <name>', 'display name, as messages show it')
    .addOption(new Option('--status <status>', 'its status').choices(brandStatuses))
    .option('--notify <keys>', 'templates enabled on /notify, separated by commas; "" for none', commaList)
    .option('--dlt', 'use the registered-template route, as OTP_SMS_MODE says')
    .option('--no-dlt', 'use the plain route only')
    .option('--login-id', 'name the loginId of a caller in OTP messages')
    .option('--no-login-id', 'leave the loginId out')
    .option('--domain <host>', 'end OTP messages with the line that lets browsers fill the code in (WebOTP)')
    .option('--no-domain', 'leave that line out')
    .option('--entity <id>', 'its id as a principal entity, for template routes (India: DLT)')
    .option('--no-entity', 'forget that id')
    .action((slug: string, options: BrandOptions) =>
      withContext(env, async (context) => {
        const ports = context.acting(await commandActor(env))
        print(JSON.stringify(brandRow(await putBrand(ports, slug, changeOf(options)))))
      }),
    )
  brand
    .command('list')
    .description('list the brands')
    .option('--json', 'as a JSON array')
    .action((options: { json?: true }) =>
      withContext(env, async ({ brands }) =>
        printTable(options.json, (await brands.list()).map(brandRow), [
          ['BRAND', (row) => row.brandId],
          ['STATUS', (row) => row.status],
          ['NAME', (row) => row.displayName],
          ['NOTIFY', (row) => row.notifyTemplates.join(',') || '-'],
          ['DLT', (row) => yesNo(row.dltEnabled)],
          ['LOGIN-ID', (row) => yesNo(row.loginIdEnabled)],
          ['DOMAIN', (row) => row.domain ?? '-'],
        ]),
      ),
    )
  brand
    .command('template')
    .description('set how a template of a brand is registered with carriers and providers')
    .argument('<slug>')
    .addArgument(new Argument('<key>', 'the template').choices(templateKeys))
    .option(
      '--id <id>',
      'its id there; NAME=ID for one that only this provider uses; may be repeated',
      collect,
      [],
    )
    .option('--sender <sender>', 'the sender id (header) it is registered under')
    .option('--remove', 'forget the registration')
    .action((slug: string, key: string, options: TemplateOptions) =>
      withContext(env, async (context) => {
        const ports = context.acting(await commandActor(env))
        const { providerNames } = await import('../adapters/sms/index.ts')
        const changed = await registerTemplate(ports, slug, key, registrationChange(options, providerNames))
        print(JSON.stringify({ brandId: changed.slug, key, ...registrationOf(changed, key) }))
      }),
    )
  brand
    .command('status')
    .description('pending → active, active → suspended, suspended → active')
    .argument('<slug>')
    .addArgument(new Argument('<status>').choices(brandStatuses))
    .action((slug: string, status: string) =>
      withContext(env, async (context) => {
        const changed = await setBrandStatus(
          context.acting(await commandActor(env)),
          slug,
          brandStatus(status),
        )
        print(`${changed.slug} is ${changed.status}`)
      }),
    )
}

interface TemplateOptions {
  id: readonly string[]
  sender?: string
  remove?: true
}

/** What was said of a template's registration; null: that it is to be forgotten. */
function registrationChange(
  { id, sender, remove }: TemplateOptions,
  providers: readonly string[],
): Partial<TemplateRegistration> | null {
  const says = id.length > 0 || sender !== undefined
  if (remove && says) throw new OperatorError('--remove forgets the registration: give nothing else with it')
  if (remove) return null
  if (!says) throw new OperatorError('say what to change: --id, --sender or --remove')
  const ids: Record<string, string> = {}
  let own: string | undefined
  for (const each of id) {
    const [, provider, providersId = ''] = /^([^=]*)=(.*)$/.exec(each) ?? []
    const known = provider === undefined ? own : ids[provider]
    if (known !== undefined)
      throw new OperatorError(`--id is given twice${provider ? ` for ${provider}` : ''}`)
    if (provider === undefined) own = each
    else if (providers.includes(provider)) ids[provider] = providersId
    else throw new OperatorError(`there is no provider ${provider}; there are ${providers.join(', ')}`)
  }
  return {
    ids,
    ...(own === undefined ? {} : { id: own }),
    ...(sender === undefined ? {} : { senderId: sender }),
  }
}

function collect(value: string, before: readonly string[]): readonly string[] {
  return [...before, value]
}

interface BrandOptions {
  name?: string
  status?: string
  notify?: string[]
  dlt?: boolean
  loginId?: boolean
  domain?: string | false
  entity?: string | false
}

function changeOf({ name, status, notify, dlt, loginId, domain, entity }: BrandOptions): BrandChange {
  return {
    displayName: name,
    status: status === undefined ? undefined : brandStatus(status),
    notifyTemplates: notify,
    dltEnabled: dlt,
    loginIdEnabled: loginId,
    domain: domain === false ? null : domain,
    entityId: entity === false ? null : entity,
  }
}

/** A brand as it is listed: by the name that callers use for it. */
function brandRow({ slug, ...brand }: Brand) {
  return { brandId: slug, ...brand }
}

function commaList(text: string): string[] {
  return text
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '')
}
