import { CommanderError } from 'commander'
import { adviceWords } from './commands/advice.ts'
import { complain, exit } from './commands/common.ts'
import { createProgram } from './commands/program.ts'
import { placesOfSettings } from './config/setting-source.ts'
import { ConfigError } from './config/settings.ts'
import { InvalidInput, OperatorError } from './domain/ground/operator-error.ts'

// Only the operator may read the database, its log and the secret key.
process.umask(0o077)

// A reader of the output may exit early, such as `head`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(exit.ok)
  complain(
    `Standard output cannot be written (${error.code}). The command may have finished, but its output is lost.`,
  )
  process.exit(exit.failed)
})

const program = createProgram(process.env)

try {
  await program.parseAsync()
} catch (error) {
  process.exitCode = report(error)
}

/** Writes to standard error, without a stack. Returns the exit code. */
function report(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exit.ok : exit.usage
  if (error instanceof ConfigError) {
    const lines = [...error.problems, ...placesOfSettings(process.env)]
    complain(['Invalid settings:', ...lines.map((line) => `  ${line}`)].join('\n'))
    return exit.config
  }
  const message = error instanceof Error ? error.message : String(error)
  const next = error instanceof OperatorError ? adviceWords(program, error.advice) : ''
  complain([message, next].filter(Boolean).join(' '))
  return error instanceof InvalidInput ? exit.usage : exit.failed
}
