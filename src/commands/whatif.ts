import { type Command, Option } from 'commander'
import { InvalidInput, OperatorError } from '../domain/ground/operator-error.ts'
import type { GuardMode } from '../domain/guard/guard.ts'
import { modeWords } from '../domain/guard/mode.ts'
import { PriceList } from '../domain/money/prices.ts'
import { priceListOf } from '../domain/money/relative-prices.ts'
import { mobilePrices, whatIf, whatIfRow, whatIfTables, whatIfWords } from '../domain/operator/whatif.ts'
import { pricesIn } from './actions.ts'
import {
  destinationConfig,
  type Env,
  fileText,
  instant,
  list,
  print,
  printListing,
  several,
  wholeNumber,
  withContext,
  yieldToServers,
} from './common.ts'

interface WhatIfOptions {
  since: string
  guard?: GuardMode
  countries?: readonly string[]
  phoneHour?: number
  prices?: string
  json?: true
}

export function whatIfCommands(program: Command, env: Env): void {
  program
    .command('whatif')
    .description('print what other settings would have denied of the codes in the event log, and saved')
    .option('--since <duration>', 'only later codes: 30m, 12h, 7d, or a time such as 2026-11-21T14:00Z', '7d')
    .addOption(new Option('--guard <mode>', 'the mode of the guard').choices(Object.keys(modeWords)))
    .option('--countries <codes>', `SMS_COUNTRIES, such as IN,GB; ${several}`, list)
    .option('--phone-hour <count>', 'PHONE_LIMIT_PER_HOUR', wholeNumber)
    .option('--prices <file>', 'the prices of a file for `otpost price import`; - for standard input')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nSettings that are left out are those of the server. Nothing is changed.')
    .action((options: WhatIfOptions) => printWhatIf(env, options))
}

async function printWhatIf(env: Env, { since, prices, json, ...given }: WhatIfOptions): Promise<void> {
  const { numbers } = await import('../adapters/phone/numbers.ts')
  const countries = given.countries?.map((code) => code.toUpperCase())
  if (countries && (countries.length === 0 || !countries.every(numbers.isCountry)))
    throw new InvalidInput(
      '--countries must be country codes of two letters, separated by commas, such as IN,GB.',
    )
  const pricesOf = (list: PriceList) => mobilePrices(list, numbers.exampleOf)
  const priced = prices === undefined ? undefined : pricesOf(await listIn(env, prices))
  yieldToServers()
  await withContext(env, async (context) => {
    const server = await destinationConfig(env)
    const inForce = pricesOf(priceListOf(await context.prices.rows()))
    const found = await whatIf(
      context,
      { ...server, prices: inForce },
      { ...given, countries, prices: priced },
      { since: instant(since, context.now()) },
    )
    if (json) {
      print(JSON.stringify(whatIfRow(found)))
      return
    }
    for (const line of whatIfWords(found)) print(line)
    if (found.total.requests === 0) return
    for (const { rows, listing } of Object.values(whatIfTables(found))) {
      print('')
      printListing(undefined, rows, listing)
    }
    print('\nWhat the log does not say:')
    for (const line of found.unknown) print(`- ${line}`)
  })
}

/** @throws OperatorError with each problem */
async function listIn(env: Env, file: string): Promise<PriceList> {
  const { rows, problems } = await pricesIn(env, await fileText(file, true))
  if (problems.length > 0) throw new OperatorError(`The prices cannot be read.\n${problems.join('\n')}`)
  return new PriceList(rows)
}
