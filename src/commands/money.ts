import { readFileSync } from 'node:fs'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { OperatorError } from '../domain/ground/operator-error.ts'
import { formatMicros } from '../domain/money/amounts.ts'
import { type BudgetStatus, budgetPeriods, budgetStatuses } from '../domain/money/budgets.ts'
import { durationIn } from '../domain/operator/fields.ts'
import {
  amountIn,
  checkPrice,
  defaultAlertAt,
  liftBudget,
  percentagesIn,
  removeBudget,
  setBudget,
  storePrices,
} from '../domain/operator/money.ts'
import {
  complain,
  type Env,
  isoTime,
  phoneDigits,
  policyPorts,
  print,
  printTable,
  several,
  withContext,
  yesNo,
} from './common.ts'

const scopeMeaning = 'server, brand:SLUG, app:APPID or country:CC'

interface SetOptions {
  per: string
  amount: string
  alert?: string
  stop: boolean
}

export function moneyCommands(program: Command, env: Env): void {
  const budget = program.command('budget').description('limit what SMS cost in a day or a month')
  budget
    .command('set')
    .description('create or replace the budget of a scope')
    .argument('<scope>', scopeMeaning)
    .addOption(
      new Option('--per <period>', 'the calendar period, in UTC')
        .choices(budgetPeriods)
        .makeOptionMandatory(),
    )
    .requiredOption('--amount <amount>', 'the amount, in the currency of the prices', checked(amountIn))
    .option(
      '--alert <percentages>',
      `the percentages of the amount that send an alert; ${several}; "" for none; default ${defaultAlertAt}`,
      (text: string, before?: string) =>
        checked(percentagesIn)(before === undefined ? text : `${before},${text}`),
    )
    .option('--no-stop', 'reject no messages: only count and send alerts')
    .addHelpText(
      'after',
      '\nA budget with the same period and currency keeps what was spent. Otherwise it counts from now.',
    )
    .action(
      (scope: string, { per: period, amount, alert: alertAt = defaultAlertAt, stop: stops }: SetOptions) =>
        withContext(env, async (context) => {
          const set = await setBudget(await policyPorts(context, env), {
            scope,
            period,
            amount,
            alertAt,
            stops,
          })
          print(`Budget ${set.scope}: ${formatMicros(set.amountMicros, set.currency)} per ${set.period}.`)
        }),
    )
  budget
    .command('list')
    .description('list the budgets, with what was spent and what remains')
    .option('--json', 'print a JSON array')
    .action(({ json }: { json?: true }) =>
      withContext(env, async ({ policy, budgets, now: clock }) => {
        const now = clock()
        const all = (await policy.rows()).budgets
        const rows = (await budgetStatuses(budgets, all, now)).map(budgetRow)
        if (rows.length === 0 && !json) {
          complain('There are no budgets: the cost of SMS is not limited.')
          return
        }
        printTable(json, rows, [
          ['SCOPE', (row) => row.scope],
          ['PER', (row) => row.per],
          ['AMOUNT', (row) => `${row.amount} ${row.currency}`],
          ['SPENT', (row) => String(row.spent)],
          ['REMAINING', (row) => String(row.remaining)],
          ['FORECAST', (row) => String(row.forecast ?? '-')],
          ['RESETS AT', (row) => row.resetsAt],
          ['ALERTS', (row) => row.alerts.join(',') || '-'],
          ['STOPS', (row) => yesNo(row.stops)],
          ['LIFTED UNTIL', (row) => row.liftedUntil ?? '-'],
        ])
      }),
    )
  budget
    .command('lift')
    .description('do not reject messages because of a budget for a time; they are still counted')
    .argument('<scope>', scopeMeaning)
    .requiredOption(
      '--for <duration>',
      'such as 30m, 12h or 7d, at most 366d; 0m ends the lift',
      checked(durationIn),
    )
    .action((scope: string, { for: duration }: { for: string }) =>
      withContext(env, async (context) => {
        const lifted = await liftBudget(await policyPorts(context, env), scope, duration)
        const until = lifted.liftedUntil
        print(
          until === null
            ? `Budget ${lifted.scope} is not lifted.`
            : `Budget ${lifted.scope} is lifted until ${isoTime(until)}.`,
        )
      }),
    )
  budget
    .command('remove')
    .description('remove the budget of a scope')
    .argument('<scope>', scopeMeaning)
    .action((scope: string) =>
      withContext(env, async (context) => {
        const removed = await removeBudget(await policyPorts(context, env), scope)
        print(`Removed the budget ${removed.scope}.`)
      }),
    )
  const price = program.command('price').description('import what SMS cost, and look up a price')
  price
    .command('import')
    .description('store the prices of a CSV file, unless a line of it is wrong')
    .argument(
      '<file>',
      'the CSV file with the header row prefix,currency,price or prefix,currency,price,provider',
    )
    .action((file: string) =>
      withContext(env, async (context) => {
        const [{ parsePrices }, { providerNames }] = await Promise.all([
          import('../adapters/prices/csv.ts'),
          import('../adapters/sms/index.ts'),
        ])
        const checkedPrices = parsePrices(contentOf(file), providerNames)
        const { count, currency, inUnits } = await storePrices(await policyPorts(context, env), checkedPrices)
        print(`Imported ${count} ${count === 1 ? 'price' : 'prices'} in ${currency}.`)
        if (inUnits.length > 0)
          complain(
            `These budgets still count in units of the built-in prices: ${inUnits.join(', ')}. To count in ${currency}, set them again with \`otpost budget set\`.`,
          )
      }),
    )
  price
    .command('check')
    .description('print the price of one SMS segment to a phone number, through each provider')
    .argument('<number>', 'a phone number as in API requests')
    .option('--json', 'print JSON')
    .action((number: string, { json }: { json?: true }) => printPrice(env, number, json))
}

async function printPrice(env: Env, number: string, json: true | undefined): Promise<void> {
  const [{ destinationOf }, { formatPhone }, { readDestinationConfig }] = await Promise.all([
    import('../adapters/phone/destination.ts'),
    import('../adapters/phone/format.ts'),
    import('../config/destinations.ts'),
  ])
  await withContext(env, async (context, { contacts }) => {
    const digits = phoneDigits(contacts, number)
    const { plain, template } = readDestinationConfig(env).routes
    const { currency, prices } = checkPrice(await context.prices.rows(), digits, [...plain, ...template])
    const { country } = destinationOf(digits)
    const rows = prices.map(({ provider, prefix, priceMicros }) => ({
      provider,
      prefix: prefix === null ? null : `+${prefix}`,
      price: priceMicros / 1e6,
    }))
    if (json) {
      const [{ prefix = null, price = 0 } = {}] = rows
      print(JSON.stringify({ number: `+${digits}`, country, currency, prefix, price, providers: rows }))
      return
    }
    print(`${formatPhone(digits)}: ${country ?? 'no country'}. Price of one segment in ${currency}:`)
    printTable(undefined, rows, [
      ['PROVIDER', (row) => row.provider ?? '-'],
      ['PREFIX', (row) => row.prefix ?? 'unknown: the dearest price'],
      ['PRICE', (row) => String(row.price)],
    ])
  })
}

function budgetRow({ budget, ...status }: BudgetStatus) {
  const { scope, period, amountMicros, currency, alertAt, stops, liftedUntil } = budget
  const { spentMicros, remainingMicros, forecastMicros, resetsAt } = status
  return {
    scope,
    per: period,
    amount: amountMicros / 1e6,
    currency,
    spent: spentMicros / 1e6,
    remaining: remainingMicros / 1e6,
    forecast: forecastMicros === null ? null : forecastMicros / 1e6,
    resetsAt: isoTime(resetsAt),
    alerts: alertAt,
    stops,
    liftedUntil: liftedUntil === null ? null : isoTime(liftedUntil),
  }
}

/** A wrong value is a usage error. The operator function reads the text again. */
function checked(read: (text: string) => unknown): (text: string) => string {
  return (text) => {
    try {
      read(text)
      return text
    } catch (error) {
      if (error instanceof OperatorError) throw new InvalidArgumentError(error.message)
      throw error
    }
  }
}

function contentOf(file: string): Uint8Array {
  try {
    return readFileSync(file)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? ` (${error.code})` : ''
    throw new OperatorError(`${file} cannot be read${code}.`)
  }
}
