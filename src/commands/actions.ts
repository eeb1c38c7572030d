import { Argument, type Command, Option } from 'commander'
import type { App } from '../app.ts'
import type { StoreConfig } from '../config/store.ts'
import type { Context } from '../context.ts'
import type { Actor } from '../domain/ground/audit.ts'
import { InvalidInput } from '../domain/ground/operator-error.ts'
import { incidentNames } from '../domain/health/incidents.ts'
import type { CheckedPrices } from '../domain/money/price-import.ts'
import type { Action, Group, Said } from '../domain/operator/action.ts'
import { type ActionPorts, actions } from '../domain/operator/actions.ts'
import type { Entered, Field, Written } from '../domain/operator/fields.ts'
import { lists } from '../domain/operator/reads.ts'
import { adviceWords, attributeOf, spelling } from './advice.ts'
import {
  commandActor,
  complain,
  confirm,
  confirmOption,
  destinationConfig,
  dryRunOption,
  type Env,
  fileText,
  nothingChanged,
  ownUrl,
  print,
  printListing,
  several,
  withApp,
  withContext,
} from './common.ts'

/** The command of each declared action that has none yet. */
export function actionCommands(program: Command, env: Env): void {
  for (const action of actions) {
    const group = groupCommand(program, action.group)
    if (!group.commands.some((command) => command.name() === action.verb)) actionCommand(program, env, action)
  }
}

/** The command of each declared list. */
export function listCommands(program: Command, env: Env): void {
  for (const { group, does, none, read } of lists)
    groupCommand(program, group)
      .command('list')
      .description(does)
      .option('--json', 'print JSON')
      .action(({ json }: { json?: true }) =>
        withContext(env, async (context, config) => {
          const ports = await actionPorts(context, config, env, await commandActor(env))
          await read(ports, (rows, listing) => printListing(json, rows, listing, none))
        }),
      )
}

/** `admin operator` is a command of `admin`. */
export function groupCommand(program: Command, { name, does }: Group): Command {
  return name
    .split(' ')
    .reduce(
      (parent, word) =>
        parent.commands.find((command) => command.name() === word) ?? parent.command(word).description(does),
      program,
    )
}

/** @param show what the command prints after the change */
export function actionCommand(
  program: Command,
  env: Env,
  action: Action<ActionPorts>,
  show: (said: Said, entered: Entered) => void | Promise<void> = printed,
): void {
  const command = groupCommand(program, action.group).command(action.verb).description(action.does)
  const fields = Object.entries(action.fields).filter(([, { hasNoOption }]) => !hasNoOption)
  for (const [name, field] of fields) addField(command, name, field)
  if (action.canAsk) command.addOption(confirmOption())
  if (action.hasDryRun) command.addOption(dryRunOption())
  if (action.note !== undefined) command.addHelpText('after', `\n${action.note}`)
  command.action(async () => {
    const options = command.opts<{ yes?: true; dryRun?: true }>()
    const given = command.registeredArguments.map(
      (argument, index) => [argument.name(), command.args[index]] as const,
    )
    const written = new Map<string, Written>([...Object.entries(options), ...given])
    const entered: Record<string, Written> = {}
    const fromInput: string[] = []
    for (const [name, field] of fields) {
      const value = written.get(attributeOf(name, field))
      const isText = field.isFile && typeof value === 'string'
      if (isText && value === '-') fromInput.push(spelling(name, field).replace(/ .*/, ''))
      if (fromInput.length > 1)
        throw new InvalidInput(`Only one of ${fromInput.join(' and ')} can be standard input.`)
      entered[name] = isText ? await fileText(value, field.isFile === 'long') : value
    }
    for (const [name, field] of fields) requireValid(name, field, entered[name])
    action.read(entered)
    const perform = async (context: Context, config: StoreConfig, app?: Sender) => {
      const said = await action.perform(
        await actionPorts(context, config, env, await commandActor(env), app),
        entered,
        {
          confirm: (question) => confirm(question.warning, { ...options, ...question }),
          isDryRun: options.dryRun ?? false,
        },
      )
      await show(said, entered)
      for (const { text, advice = [] } of said.warnings ?? [])
        complain(`${text} ${adviceWords(program, advice)}`.trimEnd())
      if (options.dryRun) print(nothingChanged)
      if (said.failure !== undefined) throw said.failure
    }
    if (action.sends(entered)) await withApp(env, (app, config) => perform(app.context, config, app))
    else await withContext(env, perform)
  })
}

/** @throws InvalidInput that names the option or argument */
export function requireValid(name: string, field: Field, written: Written): void {
  const as = spelling(name, field)
  try {
    // In a form, an empty control can mean the default. In a command it is an unset variable of the shell.
    const mayBeEmpty = field.isProse || (field.isFile && field.isFile !== 'secret')
    if (written === '' && field.kind === 'text' && !mayBeEmpty)
      throw new InvalidInput('It must not be empty.')
    field.read(written)
  } catch (error) {
    if (!(error instanceof InvalidInput) || written === undefined) throw error
    const what = as.startsWith('-') ? 'option' : 'argument'
    throw new InvalidInput(`${what} '${as}' is invalid. ${error.message}`)
  }
}

export function addField(command: Command, name: string, field: Field): void {
  const { help, choices, kind, isRequired, byDefault, off } = field
  const as = spelling(name, field)
  if (!as.startsWith('-')) {
    command.addArgument(withChoices(new Argument(as, help), choices))
    return
  }
  const option = new Option(as, kind === 'list' ? `${help}; ${several}` : help)
  if (kind === 'list') {
    option.argParser((text: string, before: unknown) => [
      ...(Array.isArray(before) ? before : []),
      ...text.split(','),
    ])
  } else withChoices(option, choices)
  if (byDefault !== undefined) option.default(byDefault)
  command.addOption(option.makeOptionMandatory(kind === 'text' && isRequired))
  if (off !== undefined) command.option(`--no-${option.name()}`, off)
}

/** For the help. The field itself rejects other values. */
function withChoices<Place extends Argument | Option>(place: Place, choices: Field['choices']): Place {
  if (choices) place.choices(Object.keys(choices)).argParser((text: string) => text)
  return place
}

/** What sends the messages of actions. */
type Sender = Pick<App, 'mailRequester'>

const noSender: Sender = {
  mailRequester: () => Promise.reject(new Error('This action does not send a message.')),
}

/** All that actions need. */
export async function actionPorts(
  context: Context,
  config: StoreConfig,
  env: Env,
  actor: Actor,
  { mailRequester } = noSender,
) {
  const { numbers } = await import('../adapters/phone/numbers.ts')
  return {
    ...config,
    ...context,
    ...context.acting(actor),
    ...numbers,
    ownUrl: () => ownUrl(env),
    parsePrices: (text: string) => pricesIn(env, text),
    mailRequester,
    mailUrl: async () => (await import('../config/config.ts')).readConsoleOrigins(env).publicUrl,
    smsOfWeek: () => context.eventLog.smsOfWeek(context.now()),
    countriesOfCodes: () => context.guardReader.countries(context.now()),
    routing: () => destinationConfig(env),
    providerNames: async () => (await import('../config/providers.ts')).catalogOf(env).names,
    incidents: async () => {
      const [{ readStored }, { readConfig }] = await Promise.all([
        import('../doctor/facts.ts'),
        import('../config/config.ts'),
      ])
      return incidentNames((await readStored(context, readConfig(env), await destinationConfig(env))).health)
    },
    guardMode: async () => (await destinationConfig(env)).guard,
  }
}

export async function pricesIn(env: Env, text: string): Promise<CheckedPrices> {
  const [{ parsePrices }, { catalogOf }] = await Promise.all([
    import('../adapters/prices/csv.ts'),
    import('../config/providers.ts'),
  ])
  return parsePrices(text, catalogOf(env).names)
}

function printed({ text, secret, row }: Said): void {
  const line = secret ?? (row ? JSON.stringify(row) : text)
  if (line !== '') print(line)
}
