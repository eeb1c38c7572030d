import type { Command } from 'commander'
import type { Env } from './common.ts'
import type { MoveOptions } from './move-data.ts'

export function moveCommands(program: Command, env: Env): void {
  program
    .command('move')
    .description('copy all data from an SQLite file to an empty PostgreSQL database; stop the server first')
    .requiredOption('--from <url>', 'the SQLite file, such as file:data/otpost.db')
    .option('--to <url>', 'the empty PostgreSQL database, instead of DATABASE_URL')
    .option('--keep', 'do not rename the SQLite file to .moved-TIME')
    .option('--force', 'also copy if SECRET_KEY may differ')
    .action(async (options: MoveOptions) => {
      const { runMove } = await import('./move-data.ts')
      await runMove(env, options)
    })
}
