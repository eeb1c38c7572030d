import type { Command } from 'commander'
import { rowOf } from '../domain/ground/listing.ts'
import { priceListOf } from '../domain/money/relative-prices.ts'
import { providerNames } from '../domain/operator/destinations.ts'
import { checkPrice, priceGroup, priceListing } from '../domain/operator/money.ts'
import { groupCommand } from './actions.ts'
import { destinationConfig, type Env, phoneDigits, print, printListing, withContext } from './common.ts'

export function moneyCommands(program: Command, env: Env): void {
  groupCommand(program, priceGroup)
    .command('check')
    .description(
      'print the price of one SMS segment, WhatsApp or Telegram message, or call to a phone number, through each provider',
    )
    .argument('<number>', 'a phone number as in API requests')
    .option('--json', 'print JSON')
    .action((number: string, { json }: { json?: true }) => printPrice(env, number, json))
}

async function printPrice(env: Env, number: string, json: true | undefined): Promise<void> {
  const { numbers } = await import('../adapters/phone/numbers.ts')
  await withContext(env, async (context, { contacts }) => {
    const digits = phoneDigits(contacts, number)
    const { country, kind } = numbers.destinationOf(digits)
    const providers = providerNames((await destinationConfig(env)).routes)
    const { currency, prices } = checkPrice(priceListOf(await context.prices.rows()), digits, kind, providers)
    if (json) {
      const rows = prices.map((row) => rowOf(priceListing, row))
      const [{ prefix = null, price = 0 } = {}] = rows
      print(JSON.stringify({ number: `+${digits}`, country, currency, prefix, price, providers: rows }))
      return
    }
    print(
      `${numbers.formatPhone(digits)}: ${country ?? 'no country'}. Price of one segment, message or call in ${currency}:`,
    )
    printListing(undefined, prices, priceListing)
  })
}
