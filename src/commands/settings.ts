import type { Command } from 'commander'
import { sourceWords } from '../config/setting-source.ts'
import { type Env, printTable } from './common.ts'

export function settingsCommands(program: Command, env: Env): void {
  program
    .command('settings')
    .description('list the settings in effect and their sources; secrets are masked')
    .option('--json', 'print a JSON array; the value of a secret is null')
    .action(async ({ json }: { json?: true }) => {
      const { readConfig } = await import('../config/config.ts')
      const rows = readConfig(env).inForce.map(({ meaning: _, ...row }) => row)
      printTable(json, rows, [
        ['SETTING', ({ name }) => name],
        ['VALUE', ({ value }) => (value === null ? '(secret)' : value || '-')],
        ['SOURCE', sourceWords],
      ])
    })
}
