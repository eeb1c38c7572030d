import type { Command, Option } from 'commander'
import { providerNames } from '../../src/adapters/sms/index.ts'
import { readConfig } from '../../src/config/config.ts'

// Calls of the program, and its settings.

/**
 * Returns the problem of a call of the program. Undefined for a correct call.
 *
 * @param isWhole false for a mention such as `app issue`, which may lack operands
 */
export function problemOfCall(
  program: Command,
  args: readonly string[],
  isWhole: boolean,
): string | undefined {
  let command = program
  const operands: string[] = []
  for (let at = 0; at < args.length; at++) {
    const word = args[at] ?? ''
    if (/^--?[a-z]/i.test(word)) {
      const [flag = ''] = word.split('=')
      if (['--help', '-h', '--version', '-V'].includes(flag)) return undefined
      const option = command.options.find(({ long, short }) => flag === long || flag === short)
      if (!option) return `${nameOf(command)} has no option ${flag}`
      if (takesValue(option) && !word.includes('=')) at++
      continue
    }
    const next = operands.length === 0 ? command.commands.find((each) => each.name() === word) : undefined
    if (next) command = next
    else if (command.commands.length > 0) return `${nameOf(command)} has no command ${word}`
    else operands.push(word)
  }
  if (command.commands.length > 0) return isWhole ? `${nameOf(command)} needs a command` : undefined
  const { registeredArguments: wanted } = command
  const least = wanted.filter(({ required }) => required).length
  const most = wanted.some(({ variadic }) => variadic) ? Number.POSITIVE_INFINITY : wanted.length
  if (operands.length > most) return `${nameOf(command)} takes ${most} operands, not ${operands.join(' ')}`
  if (isWhole && operands.length < least) return `${nameOf(command)} needs ${least} operands`
  return undefined
}

function takesValue({ required, optional }: Option): boolean {
  return required || optional
}

function nameOf(command: Command): string {
  return command.parent ? `${nameOf(command.parent)} ${command.name()}` : command.name()
}

/** Every environment variable that the server reads, over all providers. */
export function settingNames(): ReadonlySet<string> {
  const names = new Set<string>()
  /** An environment that records which names the server reads. */
  const asked = (given: Readonly<Record<string, string>>, other: string | undefined) =>
    new Proxy<Record<string, string | undefined>>(
      { ...given },
      {
        get: (env, name) => {
          if (typeof name !== 'string') return undefined
          names.add(name)
          return env[name] ?? other
        },
      },
    )
  for (const double of providerNames) {
    for (const [route, mode] of [
      ['SMS_PLAIN', 'plain'],
      ['SMS_TEMPLATE', 'template'],
    ] as const) {
      // Some values determine which other variables are read: so once with none set, once with all.
      for (const other of [undefined, 'x']) {
        const given = {
          [route]: double,
          OTP_SMS_MODE: mode,
          OTEL_SDK_DISABLED: 'false',
          OTEL_TRACES_EXPORTER: 'otlp',
          OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318',
          OTEL_TRACES_SAMPLER: 'traceidratio',
          SMTP_URL: 'smtp://127.0.0.1',
          NODE_ENV: 'production',
        }
        try {
          readConfig(asked(given, other))
        } catch {
          // Only the names matter here.
        }
      }
    }
  }
  return names
}
