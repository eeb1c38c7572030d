import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Argument, Command, Option } from 'commander'
import { shippedFiles } from '../src/adapters/sms/file/shipped/index.ts'
import { exitStatuses, several } from '../src/commands/common.ts'
import { createProgram } from '../src/commands/program.ts'
import { allSettings } from '../src/config/all-settings.ts'
import type { Setting } from '../src/config/setting.ts'
import { capitalized } from '../src/domain/ground/format.ts'
import { actions } from '../src/domain/operator/actions.ts'
import { generated, page, table } from './pages.ts'
import { providerPages } from './provider-pages.ts'

// `bun run docs` writes the reference pages of settings, commands and provider files from what declares them.

const root = join(import.meta.dir, '..')

/** The generated pages and their text. */
export function referencePages(): Readonly<Record<string, string>> {
  return {
    'docs/settings.md': settingsPage(allSettings),
    'docs/commands.md': commandsPage(createProgram({})),
    ...providerPages(shippedFiles),
  }
}

function settingsPage(settings: readonly Setting[]): string {
  const groups = Map.groupBy(settings, ({ group }) => group)
  return page(
    '# Settings',
    generated,
    'For operators. This page lists every environment variable that otpost reads, with its default and allowed values. Without a default, it is unset.',
    'otpost reads the environment at start, reports all problems together, and exits with status 78. An empty value counts as unset.',
    'It also reads a file in the form of `EnvironmentFile` of systemd: that of `--env-file`, else of `OTPOST_ENV_FILE`, else `/etc/otpost/otpost.env`. Environment variables take precedence.',
    '`otpost doctor` checks the settings. The console shows their values under Settings, except those of secrets.',
    ...[...groups].flatMap(([group, members]) => [
      `## ${group}`,
      ...(notes[group] === undefined ? [] : [notes[group]]),
      members
        .map(
          (setting) =>
            `- \`${setting.name}\`${setting.secret ? ' (secret)' : ''}: ${setting.meaning}${defaultOf(setting)}${allowedIn(setting)}`,
        )
        .join('\n'),
    ]),
  )
}

/** Links from a heading to the page that explains its subject. */
const notes: Readonly<Record<string, string>> = {
  Database:
    'A setting whose meaning begins with "PostgreSQL:" applies only if `DATABASE_URL` is `postgres://`. [TLS to the database](postgres.md#tls-to-the-database) has the parameters of that URL.',
  'Codes and limits': '[Limits](limits.md) explains each limit.',
  Messages: 'See [Connect a provider](providers/README.md).',
  Webhook: 'See [webhook](providers/webhook.md).',
  Kannel: 'See [Kannel](providers/kannel.md).',
  Twilio: 'See [Twilio](providers/twilio.md).',
  Vonage: 'See [Vonage](providers/vonage.md).',
  MSG91: 'See [MSG91](providers/msg91.md).',
  AWS: 'Used if `SMS_PLAIN` or `SMS_TEMPLATE` names `sns` or `aws-sms`. otpost supports access keys only, not IAM roles or profiles, and does not renew temporary keys.',
  'AWS SNS': 'See [AWS SNS](providers/sns.md).',
  'AWS End User Messaging SMS': 'See [AWS End User Messaging SMS](providers/aws-sms.md).',
  WhatsApp: 'See [WhatsApp](providers/whatsapp.md).',
  Telegram: 'See [Telegram](providers/telegram.md).',
  'Twilio voice': 'See [Twilio voice](providers/twilio-voice.md).',
  'Vonage voice': 'See [Vonage voice](providers/vonage-voice.md).',
  'E-mail': 'See [SMTP](providers/smtp.md).',
  Metrics: 'See [Metrics](metrics.md).',
  Tracing: 'otpost supports these variables of the OpenTelemetry specification.',
  Retention:
    'otpost keeps the statistics of the overview for 400 days and outbox messages for one day. No setting changes these two.',
}

function defaultOf(setting: Setting): string {
  const { unset } = setting
  if (unset === 'unset') return ''
  if (unset !== undefined)
    return unset.startsWith('unset') ? ` ${capitalized(unset)}.` : ` Default: ${unset}.`
  if (setting.default === undefined) return ' Required.'
  return ` Default: \`${setting.default === false ? 0 : setting.default}\`.`
}

function allowedIn(setting: Setting): string {
  if (setting.default === false || setting.format === 'text') return ''
  if ('choices' in setting) return ` Values: ${setting.choices.map((choice) => `\`${choice}\``).join(', ')}.`
  return ` Values: ${'min' in setting ? `${grouped(setting.min)} to ${grouped(setting.max)}` : setting.format}.`
}

function grouped(count: number): string {
  return count.toLocaleString('en-US')
}

function commandsPage(program: Command): string {
  const top = visibleCommands(program)
  const shared = sharedIn(top)
  return page(
    '# Commands',
    generated,
    'For operators. This page lists every command of `otpost`. The option `--help` of a command prints the same, and notes.',
    'Give each command the [settings](settings.md) of the server, which uses a change from its next request on. From source, write `bun src/main.ts` instead of `otpost`.',
    [
      '- "Several": repeat the option, or separate the values by commas.',
      '- "Audit": the entries in the [audit log](events.md#audit-log). The [console](console.md) changes the same.',
      '- "Confirmed": the console asks for a confirmation. "Role": who may do it there, if not every operator.',

      '- `app revoke`, `forget`, `guard block` (of a whole country) and `restore` ask for a confirmation at a terminal. In a script, such a `guard block` requires `--yes`.',
    ].join('\n'),
    '## Global options',
    visibleOptions(program).map(described).join('\n'),
    '## Exit statuses',
    table(
      ['status', 'meaning'],
      Object.values(exitStatuses).map(({ code, meaning }) => [String(code), meaning]),
    ),
    '## Options of several commands',
    'A command with "Also" has these arguments and options with this meaning.',
    [...shared.values()].join('\n'),
    ...top.flatMap((command) => commandSection(command, '##', shared)),
  )
}

function visibleCommands(command: Command): readonly Command[] {
  return command
    .createHelp()
    .visibleCommands(command)
    .filter((each) => each.name() !== 'help')
}

/** The line of each argument and option that several commands have alike, by its name. */
function sharedIn(commands: readonly Command[]): ReadonlyMap<string, string> {
  const lines = Map.groupBy(allOf(commands).flatMap(parametersOf).map(described), (line) => line)
  const shared = [...lines]
    .filter(([, { length }]) => length > 1)
    .sort(([, one], [, other]) => one.length - other.length)
  return new Map(shared.map(([line]) => [nameIn(line), line] as const).toSorted())
}

function allOf(commands: readonly Command[]): readonly Command[] {
  return commands.flatMap((command) => [command, ...allOf(visibleCommands(command))])
}

/** Of a command that changes what a form of the console changes alike. */
function actionWords(command: Command): readonly string[] {
  const action = actions.find(({ name }) => fullName(command) === `otpost ${name}`)
  if (!action) return []
  const { role, confirmation, audit } = action
  const asks = { no: '', yes: 'Confirmed. ', 'for some values': 'Confirmed for some values. ' }
  const who = role === 'operator' ? '' : `Role ${role}. `
  const entries = Object.keys(audit).map((key) => `\`${key}\``)
  return [`${who}${asks[confirmation]}Audit: ${entries.join(', ')}.`]
}

function commandSection(
  command: Command,
  heading: string,
  shared: ReadonlyMap<string, string>,
): readonly string[] {
  const subcommands = visibleCommands(command)
  const title = `${heading} ${fullName(command)}`
  if (subcommands.length > 0) {
    return [title, ...subcommands.flatMap((each) => commandSection(each, `${heading}#`, shared))]
  }
  return [
    usage(command) === '' ? title : `${heading} \`${fullName(command)} ${usage(command)}\``,
    sentence(command.description()),
    ...actionWords(command),
    ...parameters(command, shared),
  ]
}

function fullName(command: Command): string {
  return command.parent ? `${fullName(command.parent)} ${command.name()}` : command.name()
}

/** What the command requires, as commander writes it. Empty: nothing. */
function usage(command: Command): string {
  return [
    ...command.registeredArguments.map((argument) =>
      argument.required ? `<${argument.name()}>` : `[${argument.name()}]`,
    ),
    ...visibleOptions(command)
      .filter(({ mandatory }) => mandatory)
      .map(({ flags }) => flags),
  ].join(' ')
}

function visibleOptions(command: Command): readonly Option[] {
  return command.options.filter(({ hidden }) => !hidden)
}

function parametersOf(command: Command): readonly (Argument | Option)[] {
  return [...command.registeredArguments, ...visibleOptions(command)]
}

/** What no other command has alike, then the names of the others. */
function parameters(command: Command, shared: ReadonlyMap<string, string>): readonly string[] {
  const [own, also] = [new Set<string>(), new Set<string>()]
  for (const line of parametersOf(command).map(described)) {
    const name = nameIn(line)
    if (shared.get(name) !== line) own.add(line)
    // The heading has the arguments.
    else if (name.startsWith('-')) also.add(name)
  }
  return [
    ...(own.size === 0 ? [] : [[...own].join('\n')]),
    ...(also.size === 0 ? [] : [`Also: ${[...also].map((name) => `\`${name}\``).join(', ')}.`]),
  ]
}

/** Its line in a list. */
function described(parameter: Argument | Option): string {
  const isOption = 'flags' in parameter
  const name = isOption ? parameter.flags : `<${parameter.name()}>`
  const { description, argChoices: choices, defaultValue } = parameter
  const isShown = ['string', 'number'].includes(typeof defaultValue) && defaultValue !== ''
  return [
    `- \`${name}\`: ${sentence(description.replace(`; ${several}`, ' (several)'))}`,
    ...(choices ? [`Values: ${choices.map((choice) => `\`${choice}\``).join(', ')}.`] : []),
    ...(isOption && isShown ? [`Default: \`${defaultValue}\`.`] : []),
  ].join(' ')
}

/** The name of an argument or option in its line, without that of the value. */
function nameIn(line: string): string {
  return line.match(/^- `([^ `]+)/)?.[1] ?? line
}

/** Help texts begin in lower case and have no full stop, as usual in a terminal. */
function sentence(text: string): string {
  if (text === '') return ''
  return /[.!?]$/.test(text) ? capitalized(text) : `${capitalized(text)}.`
}

if (import.meta.main) {
  for (const [path, text] of Object.entries(referencePages())) writeFileSync(join(root, path), text)
}
