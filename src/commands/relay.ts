import type { Command } from 'commander'
import { relayGroup } from '../domain/operator/relays.ts'
import { relayListing } from '../domain/policy/relay.ts'
import { groupCommand } from './actions.ts'
import { type Env, ownUrl, printListing, withContext } from './common.ts'

export function relayCommands(program: Command, env: Env): void {
  groupCommand(program, relayGroup)
    .command('list')
    .description('list the relays with their URLs')
    .option('--json', 'print JSON')
    .action((options: { json?: true }) =>
      withContext(env, async ({ policy }) => {
        const { relays } = await policy.rows()
        printListing(options.json, relays, relayListing(await ownUrl(env)), 'There are no relays.')
      }),
    )
}
