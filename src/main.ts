import { Command, CommanderError } from 'commander'
import { adminCommands } from './commands/admin.ts'
import { appCommands } from './commands/app.ts'
import { brandCommands } from './commands/brand.ts'
import { complain, exit, print } from './commands/common.ts'
import { careCommands } from './commands/data.ts'
import { readEnvFile } from './commands/env-file.ts'
import { healthCommands } from './commands/health.ts'
import { messageCommands } from './commands/messages.ts'
import { moveCommands } from './commands/move.ts'
import { requestCommands } from './commands/request.ts'
import { sandboxCommands } from './commands/sandbox.ts'
import { serveCommands } from './commands/serve.ts'
import { ConfigError } from './config/settings.ts'
import { versionLine } from './version.ts'

// The database, its log and the secret are for the operator's eyes only.
process.umask(0o077)

// Whoever reads the output of a command may have seen enough of it.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(exit.ok)
  complain(
    `standard output can not be written (${error.code}): what was asked may be done, and what it had to say is lost`,
  )
  process.exit(exit.failed)
})

try {
  await createProgram(process.env).parseAsync()
} catch (error) {
  process.exitCode = report(error)
}

/** What the process can do; commands load what they need when they are given, so that --help answers at once. */
function createProgram(env: NodeJS.ProcessEnv): Command {
  const program = new Command('otpost')
    .description('Verification codes and notifications by SMS and e-mail.')
    .option('-V, --version', 'tell the version, the commit it was built from, and its Bun')
    .on('option:version', () => {
      print(versionLine())
      throw new CommanderError(exit.ok, 'otpost.version', '')
    })
    .option('--env-file <file>', 'read settings from this file too; the environment goes before it', (file) =>
      readEnvFile(file, env),
    )
    // A binary is what an operator installs: it is in production unless whoever develops says so, in the file too.
    .hook('preAction', () => {
      // Set to nothing it is unset, as every setting.
      if (Bun.isStandaloneExecutable) env.NODE_ENV = env.NODE_ENV?.trim() || 'production'
    })
    .exitOverride()
    .showHelpAfterError('(--help shows what there is)')
    .addHelpText('after', '\nSettings are environment variables; the README lists them all.')
  serveCommands(program, env)
  healthCommands(program, env)
  sandboxCommands(program, env)
  brandCommands(program, env)
  requestCommands(program, env)
  appCommands(program, env)
  adminCommands(program, env)
  messageCommands(program, env)
  careCommands(program, env)
  moveCommands(program, env)
  return program
}

/** Tells the operator what went wrong, on standard error and without a stack; returns the exit code. */
function report(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exit.ok : exit.usage
  if (error instanceof ConfigError) {
    complain(['the settings can not be used:', ...error.problems.map((problem) => `  ${problem}`)].join('\n'))
    return exit.config
  }
  complain(error instanceof Error ? error.message : String(error))
  return exit.failed
}
