import { describe, expect, test } from 'bun:test'
import { assert, constantFrom, property, string, uint8Array } from 'fast-check'
import { parsePrices } from '../../src/adapters/prices/csv.ts'

const header = 'prefix,currency,price'
const wide = `${header},provider`

function read(content: string | Uint8Array) {
  return parsePrices(
    new TextDecoder().decode(typeof content === 'string' ? new TextEncoder().encode(content) : content),
    ['sns', 'twilio'],
  )
}

describe('a price file', () => {
  const row = { prefix: '44', provider: null, priceMicros: 40_000, currency: 'EUR' }

  test.each([
    ['minimal', `${header}\n+44,EUR,0.04`],
    ['without +', `${header}\n44,EUR,0.04\n`],
    ['with BOM and CRLF', `\uFEFF${header}\r\n+44,EUR,0.04\r\n`],
    ['with CR', `${header}\r+44,EUR,0.04\r`],
    ['with quotation marks', `"prefix","currency","price"\n"+44","EUR","0.04"`],
    ['with semicolons', 'prefix;currency;price\n+44;EUR;0.04'],
    ['with decimal commas', 'prefix;currency;price\n+44;EUR;0,04'],
    ['with spaces', 'Prefix , Currency , Price\n +44 , eur , 0.040000 '],
    ['with blank lines', `\n  \n${header}\n\n,,\n+44,EUR,0.04\n\n`],
    ['with an empty provider', `${wide}\n+44,EUR,0.04,`],
    ['with a short row', `${wide}\n+44,EUR,0.04`],
  ])('%s is read', (_, text) => {
    expect(read(text)).toEqual({ rows: [row], problems: [] })
  })

  test('may have prices of several providers, and prices from 0 to 1000', () => {
    expect(read(`${wide}\n+44,EUR,0,Twilio\n+44,EUR,1000,sns\n+44,EUR,0.04`).rows).toEqual([
      { ...row, priceMicros: 0, provider: 'twilio' },
      { ...row, priceMicros: 1e9, provider: 'sns' },
      row,
    ])
  })

  const headerFault =
    'Line 1: The header row must be `prefix,currency,price` or `prefix,currency,price,provider`, separated by commas or semicolons.'
  const encodingFault = 'The line is not UTF-8 text. Save the file as CSV in UTF-8.'
  const prefixFault = '`prefix` must have 1 to 15 digits'
  const priceFault = '`price` must be a number from 0 to 1000'

  test.each<[string, string | Uint8Array, readonly string[]]>([
    ['empty', '', ['The file has no prices.']],
    ['with the header row only', header, ['The file has no prices.']],
    ['without header row', '+44,EUR,0.04\n+45,EUR,0.05', [headerFault]],
    ['with a quoted header line', `"${header}"\n"+44,EUR,0.04"`, [headerFault]],
    ['with tabs', 'prefix\tcurrency\tprice\n+44\tEUR\t0.04', [headerFault]],
    ['of another format', 'PK\x03\x04\x14\0\x06\0', [`Line 1: ${encodingFault}`]],
    ['in UTF-16', new Uint8Array(Buffer.from(`\uFEFF${header}\n`, 'utf16le')), [`Line 1: ${encodingFault}`]],
    [
      'in Latin-1',
      new Uint8Array(Buffer.from(`${header}\n+44,€,\xe9`, 'latin1')),
      [`Line 2: ${encodingFault}`],
    ],
    ['with NUL', `${header}\n+4\0,EUR,1\n+x,EUR,1`, [`Line 2: ${encodingFault}`, `Line 3: ${prefixFault}`]],
    [
      'with prefixes of other forms',
      `${header}\n=1+1,EUR,1\n="44",EUR,1\n4.4E+11,EUR,1\n0044,EUR,1\n+1234567890123456,EUR,1\n,EUR,1`,
      [2, 3, 4, 5, 6, 7].map((line) => `Line ${line}: ${prefixFault}`),
    ],
    [
      'with prices of other forms',
      `${header}\n1,EUR,-1\n1,EUR,1e2\n1,EUR,0.0000001\n1,EUR,1000.000001\n1,EUR,\n1,EUR,€1\n1,EUR,NaN`,
      [2, 3, 4, 5, 6, 7, 8].map((line) => `Line ${line}: ${priceFault}`),
    ],
    ['with separators of thousands', 'prefix;currency;price\n44;EUR;1,000', [`Line 2: ${priceFault}`]],
    [
      'with an unknown currency',
      `${header}\n44,units,1\n45,ABC,1`,
      ['Line 2: `currency`', 'Line 3: `currency`'],
    ],
    [
      'with two currencies',
      `${header}\n44,EUR,1\n45,USD,1\n46,EUR,1`,
      ['Line 3: `currency` must be EUR, as in line 2.'],
    ],
    [
      'with a prefix twice',
      `${wide}\n44,EUR,1\n44,EUR,1,sns\n+44,EUR,2\n44,EUR,1,sns`,
      ['Line 4: Line 2 has the same prefix.', 'Line 5: Line 3 has the same prefix and provider.'],
    ],
    [
      'with an unknown provider',
      `${wide}\n44,EUR,1,acme`,
      ['Line 2: `provider` must be empty or one of sns, twilio.'],
    ],
    [
      'with other numbers of fields',
      `${header}\n44,EUR\n45,EUR,1,sns\n46`,
      [
        'Line 2: The row must have 3 fields. It has 2.',
        'Line 3: The row must have 3',
        'Line 4: The row must have 3',
      ],
    ],
    [
      'with open quotation marks',
      `${header}\n"44,EUR,1\n45,EUR,"1"x\n46,EUR,1\n47,EUR,-1`,
      ['Line 2: A field in quotation marks', 'Line 3: A field in quotation marks', `Line 5: ${priceFault}`],
    ],
    [
      'with a million columns, and a huge field',
      `${header}\n${','.repeat(1e6)}\n44,EUR,${'9'.repeat(1e6)}\n${'"'.repeat(1e6)}`,
      [2, 3, 4].map((line) => `Line ${line}: The line has over 1000 characters.`),
    ],
    ['with a huge header row', `${header},`.repeat(1e5), ['Line 1: The line has over 1000 characters.']],
    [
      'with too many lines',
      `${header}\n${'\n'.repeat(200_000)}44,EUR,1`,
      ['The file has over 200000 lines.'],
    ],
    ['too large', new Uint8Array(20_000_001), ['The file has over 20 MB.']],
  ])('%s gets clear problems', (_, content, problems) => {
    const found = read(content)
    expect(found.rows).toEqual([])
    expect(found.problems.map((problem, index) => problem.slice(0, problems[index]?.length))).toEqual([
      ...problems,
    ])
  })

  test('of 200,000 lines is read', () => {
    const lines = Array.from({ length: 199_999 }, (_, index) => `+${1e6 + index},EUR,0.0751,twilio`)
    expect(read(`${wide}\n${lines.join('\n')}\n`).rows).toHaveLength(199_999)
  })

  test('of any content gives either rows or problems', () => {
    const parts = string({
      unit: constantFrom('"', ',', ';', '\n', '\r', '+', '4', '.', 'EUR', '\0', ' '),
      maxLength: 60,
    })
    assert(
      property(parts, (text) => {
        const { rows, problems } = read(`${header}\n${text}`)
        expect(rows.length > 0).not.toBe(problems.length > 0)
      }),
      { numRuns: 500 },
    )
    assert(
      property(uint8Array({ maxLength: 200 }), (bytes) => {
        expect(read(bytes).problems).not.toEqual([])
      }),
    )
  })
})
