import type { Command } from 'commander'
import { stringify } from 'yaml'
import { readConfigurationFile } from '../config/configuration-file.ts'
import type { StoreConfig } from '../config/store.ts'
import type { Context } from '../context.ts'
import { InvalidInput, OperatorError } from '../domain/ground/operator-error.ts'
import type { ActionPorts } from '../domain/operator/actions.ts'
import {
  type Configuration,
  configurationSchema,
  type Desired,
  differencesOf,
  keyOf,
  pricesDifference,
  pricesText,
  type Section,
  sections,
} from '../domain/operator/configuration.ts'
import type { StoredPorts } from '../domain/operator/dry-run.ts'
import type { Entered } from '../domain/operator/fields.ts'
import { priceImport } from '../domain/operator/money.ts'
import { actionPorts } from './actions.ts'
import { commandActor, type Env, fileText, print, withContext } from './common.ts'

// The configuration as one file (design D57): `apply`, `config export`, `config schema`, and CONFIG_FILE at the start of a server.

export function applyCommands(program: Command, env: Env): void {
  program
    .command('apply')
    .description(
      'make the configuration that of a YAML or JSON file, in one transaction; print each difference',
    )
    .argument('<file>', 'the file, as `otpost config export` writes it; - for standard input')
    .option('--dry-run', 'print the differences, and store nothing')
    .option(
      '--prune',
      'also remove what is stored and not in a list of the file; lists that the file leaves out stay',
    )
    .addHelpText(
      'after',
      '\nThe command reads the settings of the server. It creates no API keys: `otpost app issue` does.',
    )
    .action((file: string, options: { dryRun?: true; prune?: true }) =>
      withContext(env, async (context, config) => {
        const ports = await actionPorts(context, config, env, await commandActor(env))
        const desired =
          file === '-'
            ? readConfigurationFile('standard input', await fileText(file, true))
            : readConfigurationFile(file)
        const lines = await apply(context, ports, desired, options)
        for (const line of lines) print(line)
        if (lines.length === 0) print('No differences.')
        else if (options.dryRun) print('Nothing was changed.')
      }),
    )
  const config = program.command('config').description('the configuration as one file')
  config
    .command('schema')
    .description('print the JSON Schema of the file, for editors')
    .action(() => print(JSON.stringify(configurationSchema(), null, 2)))
  config
    .command('export')
    .description('print the configuration as YAML for `otpost apply`, without secrets and keys')
    .action(() =>
      withContext(env, async (context) => print(exported(await configurationIn(context)).trimEnd())),
    )
}

/** Ends the transaction of a dry run. */
class Undo {
  constructor(readonly lines: readonly string[]) {}
}

interface ApplyOptions {
  readonly dryRun?: boolean
  readonly prune?: boolean
  /** No one would see a secret that is shown once. */
  readonly hidesSecrets?: boolean
}

/** Returns the differences. @throws OperatorError with each rejection; nothing is stored then */
export async function apply(
  context: Context,
  ports: ActionPorts & StoredPorts,
  desired: Desired,
  { dryRun = false, prune = false, hidesSecrets = false }: ApplyOptions,
): Promise<readonly string[]> {
  try {
    return await context.atomically(async () => {
      const lines: string[] = []
      const rejected: string[] = []
      const attempt = async (what: string, work: () => Promise<readonly string[]>) => {
        try {
          lines.push(...(await work()))
        } catch (error) {
          if (!(error instanceof OperatorError)) throw error
          rejected.push(`${what}: ${error.message}`)
        }
      }
      const own = withApps(ports, desired)
      const { prices } = desired
      if (prices !== undefined && prices.trim() !== '') {
        await attempt('prices', async () => {
          const difference = pricesDifference(await ports.parsePrices(prices), await context.prices.rows())
          if (difference) await priceImport.perform(own, { prices })
          return difference ?? []
        })
      }
      for (const [section, entries] of desired.sections)
        for (const { action, entered, line, words, fault } of differencesOf(
          section,
          entries,
          await configurationIn(context),
          prune,
        ))
          await attempt(line === undefined ? words : `line ${line}`, async () => {
            if (fault !== undefined) throw new InvalidInput(fault)
            if (hidesSecrets && action.name === 'relay add' && entered.secret === undefined)
              throw new InvalidInput(
                'The relay needs a secretFile, since no one would see a secret that otpost makes.',
              )
            const { secret } = await action.perform(own, entered)
            const isShown = secret !== undefined && !dryRun && !hidesSecrets
            return [words, ...(isShown ? secret.split('\n').map((each) => `    ${each}`) : [])]
          })
      if (rejected.length > 0) throw new OperatorError(`Nothing was changed:\n${rejected.join('\n')}`)
      if (dryRun) throw new Undo(lines)
      return lines
    })
  } catch (error) {
    if (error instanceof Undo) return error.lines
    throw error
  }
}

/** Apps of the file need no key yet. */
function withApps<Ports extends ActionPorts>(ports: Ports, { sections: desired }: Desired): Ports {
  const named = [...desired].flatMap(([{ key }, entries]) =>
    key.includes('appId') ? entries.map(({ entered }) => String(entered.appId)) : [],
  )
  const { apps } = ports
  return { ...ports, apps: { ...apps, configured: [...apps.configured, ...named], list: () => apps.list() } }
}

/** CONFIG_FILE, at the start of a server. Returns the differences. @throws OperatorError */
export async function applyAtStart(env: Env, config: StoreConfig, file: string): Promise<readonly string[]> {
  const { openContext } = await import('../context.ts')
  const context = await openContext(config, { serves: true })
  try {
    const ports = await actionPorts(context, config, env, { by: 'command', name: 'serve' })
    return await apply(context, ports, readConfigurationFile(file), { hidesSecrets: true })
  } finally {
    await context.close()
  }
}

async function configurationIn({
  brands,
  policy,
  prices,
}: Pick<Context, 'brands' | 'policy' | 'prices'>): Promise<Configuration> {
  const [all, rows, priceRows] = await Promise.all([brands.list(), policy.rows(), prices.rows()])
  return { brands: all, rows, prices: priceRows }
}

/** As YAML. The same configuration is the same text. */
function exported(configuration: Configuration): string {
  const parts = sections.map((section) => {
    const entries = section.stored(configuration).map((entry) => withoutDefaults(section, entry))
    return [
      section.name,
      entries.sort((one, other) => (keyOf(section, one) < keyOf(section, other) ? -1 : 1)),
    ]
  })
  const prices = pricesText(configuration.prices)
  return stringify({ ...Object.fromEntries(parts), ...(prices && { prices }) })
}

/** Without what an entry that leaves a field out means too. */
function withoutDefaults({ set: { fields }, key }: Section, entry: Entered): Entered {
  const isDefault = (name: string) =>
    JSON.stringify(fields[name]?.read(entry[name])) === JSON.stringify(fields[name]?.read(undefined))
  const own = Object.entries(entry).filter(([name, written]) => {
    if (fields[name]?.isRequired || key.includes(name)) return written !== undefined && written !== false
    return written !== undefined && written !== '' && !isDefault(name)
  })
  return Object.fromEntries(own)
}
