import { describe, expect, test } from 'bun:test'
import { assert, constantFrom, integer, option, property, record, string, uniqueArray } from 'fast-check'
import parsePhoneNumber from 'libphonenumber-js/max'
import { destinationOf } from '../../src/adapters/phone/destination.ts'
import { formatMicros, sumWords } from '../../src/domain/money/amounts.ts'
import { checkPrices, importProblems } from '../../src/domain/money/price-import.ts'
import { PriceList, type PriceRow } from '../../src/domain/money/prices.ts'
import { priceListOf, relativePrices } from '../../src/domain/money/relative-prices.ts'
import { budgetSet } from '../../src/domain/operator/money.ts'

const row = (prefix: string, price: number, provider: string | null = null, currency = 'EUR'): PriceRow => ({
  prefix,
  provider,
  priceMicros: Math.round(price * 1e6),
  currency,
})

describe('price of a segment', () => {
  const list = new PriceList([
    row('44', 0.04),
    row('4479', 0.05),
    row('1', 0.01),
    row('44', 0.03, 'twilio'),
    row('882', 2, 'twilio'),
    row('447', 0.06, 'vonage'),
  ])

  test.each([
    ['447911123456', null, '4479', 0.05],
    ['441481123456', null, '44', 0.04],
    ['447911123456', 'sns', '4479', 0.05],
    // The provider's price for the same prefix comes first; a longer general prefix comes before it.
    ['441481123456', 'twilio', '44', 0.03],
    ['447911123456', 'twilio', '4479', 0.05],
    ['447811123456', 'vonage', '447', 0.06],
    ['447811123456', 'twilio', '44', 0.03],
    ['12025550123', 'vonage', '1', 0.01],
    // Unknown: the dearest price of the provider and the general ones.
    ['37120000000', null, null, 0.05],
    ['37120000000', 'twilio', null, 2],
    ['37120000000', 'vonage', null, 0.06],
    ['4', null, null, 0.05],
  ])('of %s through %s is that of %s', (digits, provider, prefix, price) => {
    expect(list.find(digits, 'ordinary', provider)).toEqual({ prefix, priceMicros: price * 1e6 })
  })

  test.each([
    ['vonage', 0.06],
    ['twilio', 2],
  ])('of a kind of number that may cost more is the dearest: through %s %p', (provider, price) => {
    const dearest = { prefix: null, priceMicros: price * 1e6 }
    for (const kind of ['premium-rate', 'shared-cost', 'pager', 'satellite', 'personal', 'uan'] as const)
      expect(list.find('447012345678', kind, provider)).toEqual(dearest)
    expect(list.find('447012345678', 'unknown', provider).prefix).not.toBeNull()
  })

  test('without general prices is the dearest of all for a provider without prices', () => {
    const own = new PriceList([row('44', 0.03, 'twilio'), row('44', 0.07, 'vonage')])
    expect(own.perSegment('447911123456', 'ordinary', 'sns')).toBe(70_000)
    expect(own.perSegment('447911123456', 'ordinary', null)).toBe(70_000)
    expect(own.perSegment('371', 'ordinary', 'twilio')).toBe(30_000)
  })

  test('equals that of a scan of all rows', () => {
    const prefixes = string({ unit: constantFrom('1', '2', '3'), minLength: 1, maxLength: 5 })
    const providers = option(constantFrom('a', 'b'))
    const rows = uniqueArray(
      record({ prefix: prefixes, provider: providers, priceMicros: integer({ min: 0, max: 1e9 }) }),
      { minLength: 1, maxLength: 40, selector: (it) => `${it.prefix} ${it.provider}` },
    )
    const digits = string({ unit: constantFrom('1', '2', '3'), minLength: 1, maxLength: 8 })
    assert(
      property(rows, digits, providers, (some, number, provider) => {
        const known = some.map((it) => ({ ...it, currency: 'EUR' }))
        expect(new PriceList(known).perSegment(number, 'ordinary', provider)).toBe(
          scan(known, number, provider),
        )
      }),
      { numRuns: 500 },
    )
  })

  function scan(rows: readonly PriceRow[], digits: string, provider: string | null): number {
    const usable = rows.filter((it) => it.provider === null || it.provider === provider)
    const hasGeneral = rows.some((it) => it.provider === null)
    const isOwn = provider !== null && rows.some((it) => it.provider === provider)
    const [best] = usable
      .filter(({ prefix }) => digits.startsWith(prefix))
      .sort((a, b) => b.prefix.length - a.prefix.length || (a.provider === null ? 1 : -1))
    if (best) return best.priceMicros
    return Math.max(...(hasGeneral || isOwn ? usable : rows).map(({ priceMicros }) => priceMicros))
  }

  test('needs rows of one currency', () => {
    expect(() => new PriceList([])).toThrow()
    expect(() => new PriceList([row('44', 1), row('45', 1, null, 'USD')])).toThrow()
  })
})

describe('relative prices', () => {
  const units = (digits: string, kind = destinationOf(digits).kind) =>
    relativePrices.perSegment(digits, kind, null) / 1e6

  test.each([
    ['447400123456', 1],
    // +44 7911 12 is Guernsey.
    ['447911123456', 2],
    ['447781123456', 2],
    ['12025550123', 1],
    ['18765550123', 7],
    ['16585550123', 7],
    ['37120000000', 2],
    ['77010000000', 10],
    ['6281234567890', 12],
    // A personal number of a country that costs 1; toll-free as ordinary.
    ['447012345678', 12],
    ['448001234567', 1],
    // Satellites, other global services, and no plan at all.
    ['870772001234', 12],
    ['881612345678', 12],
    ['882161234567', 12],
    ['883510012345', 12],
    ['999123456789', 12],
  ])('%s costs %i', (digits, expected) => {
    expect(units(digits)).toBe(expected)
  })

  test('are the same for every number of a country that shares a calling code', () => {
    const prices = new Map<string, Set<number>>()
    const numbers = [
      ...Array.from({ length: 800 }, (_, index) => `1${index + 200}2345678`),
      ...Array.from({ length: 10_000 }, (_, index) => `447${String(index).padStart(4, '0')}12345`),
    ]
    for (const digits of numbers) {
      const country = parsePhoneNumber(`+${digits}`)?.country
      if (country) prices.set(country, (prices.get(country) ?? new Set()).add(units(digits, 'ordinary')))
    }
    expect([...prices].filter(([, { size }]) => size > 1)).toEqual([])
    expect(['US', 'GB', 'GG', 'JE', 'IM', 'JM', 'DO'].map((it) => prices.get(it)?.has(1))).toEqual([
      true,
      true,
      false,
      false,
      false,
      false,
      false,
    ])
  })

  test('are in force until prices are imported', () => {
    expect(priceListOf([])).toBe(relativePrices)
    expect(priceListOf([row('44', 0.04)]).currency).toBe('EUR')
  })
})

describe('import', () => {
  const group = (provider: string | null, count: number) => ({ provider, currency: 'EUR', count })
  const current = [group(null, 2), group('twilio', 1), group('vonage', 1)]

  test('accepts prices of some providers in the currency of the others', () => {
    const next = [row('46', 0.06), row('46', 0.05, 'twilio')]
    expect(importProblems(current, next)).toEqual([])
  })

  test('must have the currency of the prices that stay', () => {
    const all = [null, 'twilio', 'vonage'].map((provider) => row('1', 0.01, provider, 'USD'))
    expect(importProblems(current, all)).toEqual([])
    expect(importProblems([], all)).toEqual([])
    expect(importProblems(current, all.slice(0, 1))).toEqual([
      'The file has prices in USD, but prices that stay are in EUR: twilio, vonage. All prices must have one currency. Add rows that replace these prices.',
    ])
    expect(importProblems(current, all.slice(1))[0]).toContain('rows without a provider')
  })

  test('needs prices, and stores at most 200,000', () => {
    expect(importProblems(current, [])).toEqual(['The file has no prices.'])
    const many = Array.from({ length: 199_999 }, (_, index) => row(String(100_000 + index), 1, 'sns'))
    expect(importProblems([group(null, 1)], many)).toEqual([])
    expect(importProblems([group(null, 2)], many)[0]).toStartWith('The import would store 200001')
  })

  test('reports each bad line, and the number of those after the hundredth', () => {
    const fields = ['x', 'EURO', '-1', 'acme']
    const records = [
      { line: 1, fields: ['Prefix', 'Currency', 'Price', 'Provider'] },
      ...Array.from({ length: 150 }, (_, index) => ({ line: index + 2, fields })),
    ]
    const { rows, problems } = checkPrices(records, ['sns', 'twilio'])
    expect(rows).toEqual([])
    expect(problems).toHaveLength(101)
    expect(problems.at(-1)).toBe('50 more lines are invalid.')
    expect(problems[0]).toBe(
      'Line 2: `prefix` must have 1 to 15 digits and start with the country code, such as +447. `currency` must be a currency code of three letters, such as EUR. `price` must be a number from 0 to 1000, with at most 6 decimals and without a separator of thousands, such as 250, 99.50 or 99,50. `provider` must be empty or one of sns, twilio.',
    )
  })
})

describe('amounts', () => {
  test.each([
    [12_340_000, 'EUR', '12.34 EUR'],
    [75_000, 'EUR', '0.075 EUR'],
    [12_500_000, 'EUR', '12.50 EUR'],
    [40_000_000, 'units', '40 units'],
    [1_000_000, 'units', '1 unit'],
    [0, 'JPY', '0 JPY'],
    [1, 'EUR', '0.000001 EUR'],
    [-1_500_000, 'EUR', '-1.50 EUR'],
    [1e15, 'EUR', '1000000000 EUR'],
  ])('%i in %s are %s', (micros, currency, text) => {
    expect(formatMicros(micros, currency)).toBe(text)
  })

  test.each([
    [497_700, '0.4977 EUR'],
    [7_550, '0.0075 EUR'],
    [500_000, '0.50 EUR'],
    [19_999_999, '19.99 EUR'],
    [20_000_000, '20 EUR'],
  ])('%i is shown as the sum %s', (micros, text) => {
    expect(sumWords(micros, 'EUR')).toBe(text)
  })

  test.each([
    '',
    '0',
    '0.000000',
    '-1',
    '+1',
    '1e3',
    '1,500',
    '1.',
    '.5',
    '1.0000001',
    '1000000000.000001',
    '0x10',
    '١',
  ])('%p is no amount', (text) => {
    expect(() => budgetSet.fields.amount.read(text)).toThrow('The amount must be')
  })

  test('are read as they are printed', () => {
    assert(
      property(integer({ min: 1, max: 1e15 }), (micros) => {
        expect(budgetSet.fields.amount.read(formatMicros(micros, 'EUR').replace(' EUR', ''))).toBe(micros)
      }),
      { numRuns: 500 },
    )
    expect(budgetSet.fields.amount.read(' 1000000000 ')).toBe(1e15)
  })
})
