import type { Command } from 'commander'
import type { RestoreCommandOptions } from './backup.ts'
import { type ConfirmOptions, confirmOption, type DryRunOptions, dryRunOption, type Env } from './common.ts'

export function careCommands(program: Command, env: Env): void {
  program
    .command('backup')
    .description('write a checked copy of the SQLite database to a file while servers run')
    .argument('<file>', 'the backup file')
    .option('--force', 'replace an existing file')
    .action(async (file: string, options: { force?: true }) => {
      const { makeBackup } = await import('./backup.ts')
      await makeBackup(env, file, options.force ?? false)
    })
  program
    .command('restore')
    .description('replace the SQLite database with a backup; stop the server first')
    .argument('<file>', 'the backup file')
    .option('--force', 'also replace a damaged database')
    .addOption(confirmOption())
    .addOption(dryRunOption())
    .action(async (file: string, options: RestoreCommandOptions) => {
      const { restoreBackup } = await import('./backup.ts')
      await restoreBackup(env, file, options)
    })
  program
    .command('forget')
    .description('erase a recipient from all records while servers run')
    .argument('<recipient>', 'a phone number or an e-mail address')
    .addOption(confirmOption())
    .addOption(dryRunOption())
    .action(async (recipient: string, options: ConfirmOptions & DryRunOptions) => {
      const { forgetPerson } = await import('./forget.ts')
      await forgetPerson(env, recipient, options)
    })
  program
    .command('doctor')
    .description('check settings, files, database, clock and providers; sends and changes nothing')
    .option('--full', 'also check every page and index of the database, which is slow')
    .option('--json', 'print JSON')
    .action(async (options: { full?: true; json?: true }) => {
      const { runDoctor } = await import('./doctor.ts')
      process.exitCode = await runDoctor(program, env, {
        full: options.full ?? false,
        json: options.json ?? false,
      })
    })
}
