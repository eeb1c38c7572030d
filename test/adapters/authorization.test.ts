import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { parseAuthorization } from '../../src/adapters/http/authorization.ts'

const base64 = (text: string) => Buffer.from(text).toString('base64')
const bearer = (token: string) => ({ scheme: 'bearer', token }) as const
const basic = (user: string, password: string) => ({ scheme: 'basic', user, password }) as const

test.each([
  [null, undefined],
  ['Bearer key-1', bearer('key-1')],
  ['bEARER   p@ss:w/o+r~d=  ', bearer('p@ss:w/o+r~d=')],
  [`Basic ${base64('shop:key')}`, basic('shop', 'key')],
  [`basic  ${base64('shop:a:b::')} `, basic('shop', 'a:b::')],
  [`BASIC ${base64('läden: ключ ')}`, basic('läden', ' ключ ')],
] as const)('%j is read', (header, expected) => {
  expect(parseAuthorization(header)).toEqual(expected)
})

test.each([
  '',
  'Bearer',
  'Bearer ',
  'Bearer a b',
  'Bearer\ta',
  'Bearer clé',
  'Bearer a, Bearer b',
  'Bearerkey',
  'Basic',
  'Basic ',
  'Basic shop:key',
  `Basic ${base64('shop')}`,
  `Basic ${base64(':key')}`,
  `Basic ${base64('shop:')}`,
  `Basic ${base64(':')}`,
  `Basic ${base64('shop:k\ney')}`,
  `Basic ${base64('sh\0op:key')}`,
  `Basic ${base64('shop:key').replace('=', '')}`,
  `Basic ${base64('shop:\u00fb\u00ff?').replaceAll('+', '-').replaceAll('/', '_')}`,
  `Basic ${Buffer.from('shop:clé', 'latin1').toString('base64')}`,
  `Basic ${base64('shop:key')}, Basic ${base64('shop:key')}`,
  `Digest ${base64('shop:key')}`,
  `ApiKey key`,
  base64('shop:key'),
])('%j is malformed', (header) => {
  expect(parseAuthorization(header)).toBe('malformed')
})

test('a header may have 512 characters for each part, and 6 KiB at most', () => {
  const [user, password] = ['ü'.repeat(512), '€'.repeat(512)]
  expect(parseAuthorization(`Basic ${base64(`${user}:${password}`)}`)).toEqual(basic(user, password))
  expect(parseAuthorization(`Bearer ${'a'.repeat(6137)}`)).toEqual(bearer('a'.repeat(6137)))
  expect(parseAuthorization(`Bearer ${'a'.repeat(6138)}`)).toBe('malformed')
})

test('any user and password that RFC 7617 allows are read as they were written', () => {
  const part = fc
    .string({ unit: 'grapheme', minLength: 1, maxLength: 64 })
    .filter((text) => !/\p{Cc}/u.test(text))
  const user = part.filter((text) => !text.includes(':'))
  fc.assert(
    fc.property(user, part, (user, password) => {
      expect(parseAuthorization(`Basic ${base64(`${user}:${password}`)}`)).toEqual(basic(user, password))
    }),
  )
})

test('any header is malformed, or is written again the same', () => {
  const payload = fc.oneof(fc.string(), fc.base64String(), fc.string().map(base64))
  fc.assert(
    fc.property(fc.constantFrom('Bearer ', 'Basic ', ''), payload, (scheme, payload) => {
      const read = parseAuthorization(scheme + payload)
      if (typeof read !== 'object') return
      const again = read.scheme === 'bearer' ? read.token : base64(`${read.user}:${read.password}`)
      expect(again).toBe(payload.trim())
    }),
  )
})
