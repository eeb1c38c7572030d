import { createHash, timingSafeEqual } from 'node:crypto'
import type { Command } from 'commander'
import { stringify } from 'yaml'
import type { Config } from '../config/config.ts'
import { readConfigurationFile } from '../config/configuration-file.ts'
import { ConfigError } from '../config/settings.ts'
import type { Context } from '../context.ts'
import { InvalidInput, OperatorError } from '../domain/ground/operator-error.ts'
import type { ActionPorts } from '../domain/operator/actions.ts'
import {
  type Configuration,
  configurationSchema,
  type Desired,
  type Difference,
  differencesOf,
  keyOf,
  meaning,
  pricesText,
  type Section,
  sections,
} from '../domain/operator/configuration.ts'
import type { StoredPorts } from '../domain/operator/dry-run.ts'
import type { Entered } from '../domain/operator/fields.ts'
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
      'also remove what is stored and not in a list of the file, and give fields that an entry leaves out their defaults; lists that the file leaves out stay',
    )
    .addHelpText(
      'after',
      '\nThe command reads the settings of the server. It creates no API keys: `otpost app issue` does.',
    )
    .action((file: string, options: { dryRun?: true; prune?: true }) =>
      withContext(env, async (context, config) => {
        const ports = await actionPorts(context, config, env, await commandActor(env))
        const [name, text] = file === '-' ? ['standard input', await fileText(file, true)] : [file]
        const desired = readConfigurationFile(name, await ports.providerNames(), text)
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
      const own = withApps(ports, desired)
      const differences = differencesOf(desired, await configurationIn(context), prune)
      const printed = new Map<Difference, readonly string[]>()
      const attempt = async ({ action, entered, first, words, fault }: Difference) => {
        if (fault !== undefined) throw new InvalidInput(fault)
        const needs = {
          'relay add': 'The relay needs a secretFile',
          'app webhook': 'The webhook needs a secret',
        }[action.name]
        if (hidesSecrets && needs && words.startsWith('+') && entered.secret === undefined)
          throw new InvalidInput(
            `${needs}, since no one would see one that otpost makes at the start of a server. \`otpost apply\` with this file prints it: run it before the start.`,
          )
        if (first) await action.perform(own, first).catch(ignored)
        const { secret } = await action.perform(own, entered)
        const isShown = secret !== undefined && !dryRun && !hidesSecrets
        return [...(words && [words]), ...(isShown ? secret.split('\n').map((each) => `    ${each}`) : [])]
      }
      // Some need others, such as a text to be removed, whose brand still enables it.
      for (let left = differences; left.length > 0; ) {
        const rejected = new Map<Difference, string>()
        for (const difference of left)
          try {
            printed.set(difference, await attempt(difference))
          } catch (error) {
            if (!(error instanceof OperatorError)) throw error
            const { line, words } = difference
            rejected.set(difference, `${line === undefined ? words : `line ${line}`}: ${error.message}`)
          }
        if (rejected.size === left.length)
          throw new OperatorError(`Nothing was changed:\n${[...rejected.values()].join('\n')}`)
        left = [...rejected.keys()]
      }
      const lines = differences.flatMap((each) => printed.get(each) ?? [])
      if (dryRun) throw new Undo(lines)
      return lines
    })
  } catch (error) {
    if (error instanceof Undo) return error.lines
    throw error
  }
}

/** What follows has the reason. */
function ignored(error: unknown): void {
  if (!(error instanceof OperatorError)) throw error
}

/** Apps of the file need no key yet. */
function withApps<Ports extends ActionPorts>(ports: Ports, { sections: desired }: Desired): Ports {
  const named = [...desired].flatMap(([{ key }, entries]) =>
    key.includes('appId') ? entries.map(({ entered }) => String(entered.appId)) : [],
  )
  const { apps } = ports
  return { ...ports, apps: { ...apps, configured: [...apps.configured, ...named], list: () => apps.list() } }
}

/** CONFIG_FILE, at the start of a server. Returns the differences. @throws ConfigError. If the file has a fault, there is no new database */
export async function applyAtStart(env: Env, config: Config, file: string): Promise<readonly string[]> {
  try {
    const desired = readConfigurationFile(file, config.catalog.names)
    const { openContext } = await import('../context.ts')
    const context = await openContext(config, { serves: true })
    try {
      const ports = await actionPorts(context, config, env, { by: 'command', name: 'serve' })
      return await apply(context, ports, desired, { hidesSecrets: true })
    } finally {
      await context.close()
    }
  } catch (error) {
    throw error instanceof OperatorError ? new ConfigError([`CONFIG_FILE: ${error.message}`]) : error
  }
}

async function configurationIn({
  brands,
  policy,
  prices,
  sealing,
}: Pick<Context, 'brands' | 'policy' | 'prices' | 'sealing'>): Promise<Configuration> {
  const [all, rows, priceRows] = await Promise.all([brands.list(), policy.rows(), prices.rows()])
  const isSecretOf = (name: string, secret: string) => {
    const { sealedSecret = '' } = rows.relays.find((each) => each.name === name) ?? {}
    const sha256 = (text: string) => createHash('sha256').update(text).digest()
    return timingSafeEqual(sha256(sealing.unseal(sealedSecret, name)?.text ?? ''), sha256(secret))
  }
  return { brands: all, rows, prices: priceRows, isSecretOf }
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

/** Without what the defaults say. */
function withoutDefaults({ fields, defaults }: Section, entry: Entered): Entered {
  const own = Object.entries(entry).filter(([name, written]) =>
    name in defaults
      ? meaning(fields, name, entry) !== meaning(fields, name, defaults)
      : written !== undefined && written !== false && written !== '',
  )
  return Object.fromEntries(own)
}
