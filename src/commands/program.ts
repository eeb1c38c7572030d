import { Command, CommanderError } from 'commander'
import { readEnvFile, readUsualEnvFile } from '../config/env-file.ts'
import { docsAt } from '../domain/ground/docs.ts'
import { versionLine } from '../version.ts'
import { actionCommands, listCommands } from './actions.ts'
import { adminCommands } from './admin.ts'
import { appCommands } from './app.ts'
import { applyCommands } from './apply.ts'
import { brandCommands } from './brand.ts'
import { exit, print } from './common.ts'
import { completionCommands } from './completion.ts'
import { careCommands } from './data.ts'
import { destinationCommands } from './destination.ts'
import { guardCommands } from './guard.ts'
import { healthCommands } from './health.ts'
import { messageCommands } from './messages.ts'
import { moneyCommands } from './money.ts'
import { moveCommands } from './move.ts'
import { providerCommands } from './provider.ts'
import { queueCommands } from './queue.ts'
import { requestCommands } from './request.ts'
import { sandboxCommands } from './sandbox.ts'
import { serveCommands } from './serve.ts'
import { settingsCommands } from './settings.ts'
import { testCommands } from './test-send.ts'
import { textCommands } from './text.ts'
import { whatIfCommands } from './whatif.ts'

/** Commands that do not use the settings of the server. */
const ownSettings: readonly string[] = ['demo', 'sandbox', 'completion', 'help']

/** Commands load their modules when they run, so that `--help` is fast. */
export function createProgram(env: NodeJS.ProcessEnv): Command {
  const program = new Command('otpost')
    .description('Send and verify codes, and send notifications, by SMS and e-mail.')
    .option('-V, --version', 'print the versions of otpost and Bun, and the commit')
    .on('option:version', () => {
      print(versionLine())
      throw new CommanderError(exit.ok, 'otpost.version', '')
    })
    .option(
      '--env-file <file>',
      'read settings from a file; environment variables take precedence',
      (file) => {
        readEnvFile(file, env)
        return file
      },
    )
    .hook('preAction', (_, command) => {
      const isNamed = program.opts<{ envFile?: string }>().envFile !== undefined
      if (!isNamed && !ownSettings.includes(command.name())) readUsualEnvFile(env)
      // The binary runs in production by default. An empty value counts as unset.
      if (Bun.isStandaloneExecutable) env.NODE_ENV = env.NODE_ENV?.trim() || 'production'
    })
    .exitOverride()
    .showHelpAfterError('(use --help for usage)')
    .addHelpText('after', `\nSettings are environment variables: see ${docsAt('settings.md')}.`)
    .helpCommand(false)
  serveCommands(program, env)
  healthCommands(program, env)
  settingsCommands(program, env)
  sandboxCommands(program, env)
  brandCommands(program, env)
  textCommands(program, env)
  testCommands(program, env)
  requestCommands(program, env)
  appCommands(program, env)
  destinationCommands(program, env)
  guardCommands(program, env)
  whatIfCommands(program, env)
  applyCommands(program, env)
  adminCommands(program, env)
  moneyCommands(program, env)
  messageCommands(program, env)
  providerCommands(program, env)
  queueCommands(program, env)
  listCommands(program, env)
  actionCommands(program, env)
  careCommands(program, env)
  moveCommands(program, env)
  completionCommands(program)
  helpCommands(program)
  return program
}

/** Unlike commander's own, also for a command of a group: `help brand put`. */
function helpCommands(program: Command): void {
  program
    .command('help')
    .description('print the help of a command')
    .argument('[command...]', 'the command, such as brand put')
    .action((words: readonly string[]) => {
      let command = program
      for (const word of words) {
        const found = command.commands.find((each) => each.name() === word)
        if (!found) program.error(`error: unknown command '${words.join(' ')}'`)
        command = found
      }
      command.help()
    })
}
