import { expect, test } from 'bun:test'
import {
  csvOf,
  csvRow,
  logUrl,
  mostExported,
  readLogQuery,
  timeText,
  unknownIn,
} from '../../src/adapters/console/deliveries/query.ts'

test('a CSV cell is never a formula, and quotes what separates cells', () => {
  expect(csvRow(['a', null, undefined, 12, -3, 'LOGIN_OTP'])).toBe('a,,,12,-3,LOGIN_OTP\r\n')
  for (const start of ['=', '+', '-', '@', '\t', '\r', '\n', '\0', ' =', '＝']) {
    expect(csvRow([`${start}1+1`])).toBe(`"'${start}1+1"\r\n`)
  }
  expect(csvRow(['a,b', 'say "no"', 'two\nlines'])).toBe('"a,b","say ""no""","two\nlines"\r\n')
})

test('a CSV cell has no formula for a spreadsheet that separates cells at ; or tab', () => {
  for (const start of ['=', '+', '-', '@', ' =', '"=', '＝']) {
    for (const separator of [';', '\t']) {
      const row = csvRow(['x', `a${separator}${start}1+1`])
      // Such a spreadsheet splits the line without regard to quotation marks after a comma.
      for (const cell of row.slice(0, -2).split(separator).slice(1))
        expect(cell.replaceAll(/^[\s"]+/g, '')).toStartWith("'")
    }
  }
  expect(csvRow(['a;b', 'a; b', 'a;1', '10;-3'])).toBe(`"a;b","a; b","a;1","10;'-3"\r\n`)
})

test('a URL has the filters of its list, and the page reads the same filters from it', () => {
  const filters = {
    statuses: ['rejected', 'retryable'],
    provider: 'a&b',
    app: 'shop',
    channel: 'SMS',
    country: 'GB',
    lang: 'pt-BR',
    errorClass: 'account',
    since: Date.UTC(2026, 0, 1),
    until: Date.UTC(2026, 0, 1, 0, 0, 1, 5),
  } as const
  const url = logUrl('deliveries', { ...filters, call: 'verify' })
  expect(url).toBe(
    '/admin/deliveries?status=rejected&status=temporary-failure&provider=a%26b&app=shop&channel=SMS&country=GB&lang=pt-BR&error=account&from=2026-01-01T00%3A00Z&until=2026-01-01T00%3A00%3A01.005Z',
  )
  const read = Object.entries(readLogQuery(new URL(url, 'http://a').searchParams))
  expect(Object.fromEntries(read.filter(([, value]) => value !== undefined))).toEqual(filters)
  expect(logUrl('calls', { ...filters, call: 'verify' })).toStartWith(
    '/admin/calls?call=verify&provider=a%26b&app=shop',
  )
})

test('unknown values of a URL are left out, and named', () => {
  const query = 'status=lost&channel=FAX&error=x&call=constructor&from=2026-13-01T00:00&request=1&app=+'
  const read = readLogQuery(new URLSearchParams(query))
  expect(Object.values(read).filter((value) => value !== undefined)).toEqual([])
  const known = '&result=success&recipient=h&status=delivered&before=x&brand='
  expect(unknownIn(new URLSearchParams(`${query}&statsu=delivered${known}`))).toEqual([
    'status=lost',
    'channel=FAX',
    'error=x',
    'call=constructor',
    'from=2026-13-01T00:00',
    'request=1',
    'statsu=delivered',
  ])
})

test('a brand and a country are found in any case', () => {
  expect(readLogQuery(new URLSearchParams('brand=+Acme&country=gb'))).toMatchObject({
    brand: 'acme',
    country: 'GB',
  })
})

test('a time has no seconds that are zero', () => {
  expect([0, 60_000, 1000, 1].map(timeText)).toEqual([
    '1970-01-01T00:00',
    '1970-01-01T00:01',
    '1970-01-01T00:00:01',
    '1970-01-01T00:00:00.001',
  ])
})

test('a CSV file ends after 10,000 rows, and says so', async () => {
  const numbers = (all: number) =>
    csvOf<number>({ number: (row) => row }, async ({ before, limit }) => {
      const first = before?.attempt ?? 0
      // As few as a search of rare rows finds.
      const rows = Array.from({ length: Math.min(limit, 900, all - first) }, (_, index) => first + index)
      const attempt = first + rows.length
      return { rows, next: attempt === all ? null : { requestId: '', attempt, at: 0 } }
    })
  const linesOf = async (all: number) => (await Array.fromAsync(numbers(all))).join('').split('\r\n')
  expect(await linesOf(3)).toEqual(['number', '0', '1', '2', ''])
  expect(await linesOf(mostExported)).toHaveLength(mostExported + 2)
  const cut = await linesOf(mostExported + 1)
  expect(cut).toHaveLength(mostExported + 3)
  expect(cut.at(-2)).toStartWith('"More rows match.')
})
