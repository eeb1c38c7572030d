import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { createSecrets, isHashOf } from '../../src/adapters/crypto/secrets.ts'
import { regionalTag } from '../../src/domain/ground/languages.ts'
import { currencies } from '../../src/domain/ground/words.ts'
import { type Binding, boundCode, boundHash, otherParts, readBinding } from '../../src/domain/otp/binding.ts'
import { partFlags } from '../../src/domain/request/request-context.ts'
import { amountIn, isolated } from '../../src/domain/texts/transaction.ts'

// Design D55: a code verifies only with the purpose and the transaction with which it was sent.

const [oldKey, newKey] = ['the-old-secret-of-32-bytes-or-more', 'the-new-secret-of-32-bytes-or-more']
const secrets = createSecrets(newKey)
const owner = { brandSlug: 'acme', channel: 'SMS', to: '12025550143' } as const
const id = '019b796d-d600-7256-a391-52604e6fc76b'
const [keyed] = secrets.keyedCodes(owner, '493027')

const read = (body: object) => readBinding({ ...body }, () => false)
/** The hash of the code, and those of the parts. */
function hashesOf(binding: Binding, { by = secrets, requestId = id } = {}) {
  const [hash = '', ...partHashes] = boundHash(by, requestId, keyed, binding).split(' ')
  return { hash, partHashes }
}

// Few values, so that pairs are often equal, and values that look like the encoding of others.
const purpose = fc.option(fc.constantFrom('a', 'b', 'ab', 'null', 'inr', 'a-b', 'a_b'), { nil: undefined })
const value = fc.tuple(fc.constantFrom(0, 1, 10, 105, 1050), fc.integer({ min: 0, max: 3 }))
const payee = fc.oneof(
  fc.constantFrom(
    'a',
    'b',
    'INR',
    'null',
    'a","',
    '\\a',
    '"a"',
    '1","INR","b',
    '10.5',
    'a b',
    '\u00e9',
    'e\u0301',
  ),
  fc
    .string({ minLength: 1, maxLength: 5 })
    .filter((text) => !/[\p{Cc}\p{Cf}]/u.test(text) && /[\p{L}\p{N}]/u.test(text)),
)
/** `[105, 1]` is 10.5. */
const transaction = fc.option(fc.record({ value, currency: fc.constantFrom('INR', 'USD', 'EUR'), payee }), {
  nil: undefined,
})
const bound = fc.record({ purpose, transaction })
type Bound = typeof bound extends fc.Arbitrary<infer Value> ? Value : never

function written({ value: [digits, decimals] }: NonNullable<Bound['transaction']>, zeros = 0): string {
  const text = String(digits).padStart(decimals + 1 + zeros, '0')
  const [whole, fraction] = [text.slice(0, text.length - decimals), text.slice(text.length - decimals)]
  return decimals === 0 ? text : `${whole}.${fraction.padEnd(Math.min(3, decimals + zeros), '0')}`
}

function bindingOf({ purpose, transaction }: Bound, { zeros = 0, inLowerCase = false } = {}): Binding {
  return read({
    purpose,
    transaction: transaction && {
      amount: written(transaction, zeros),
      currency: inLowerCase ? transaction.currency.toLowerCase() : transaction.currency,
      payee: transaction.payee,
    },
  })
}

/** By the values themselves, not by their text. */
function differing(one: Bound, other: Bound): string[] {
  const parts = ({ purpose, transaction }: Bound) => [
    purpose,
    transaction && transaction.value[0] / 10 ** transaction.value[1],
    transaction?.currency,
    transaction?.payee,
  ]
  const [ones, others] = [parts(one), parts(other)]
  return partFlags.filter((_, index) => ones[index] !== others[index])
}

test('two purposes and transactions share a code exactly if they are equal by value, and each part that differs is named', () => {
  fc.assert(
    fc.property(bound, bound, fc.nat(2), fc.boolean(), (sent, given, zeros, inLowerCase) => {
      const [one, other] = [bindingOf(sent), bindingOf(given, { zeros, inLowerCase })]
      const differ = differing(sent, given)
      const { hash, partHashes } = hashesOf(one)
      expect(isHashOf(hash, id, boundCode(keyed, other))).toBe(differ.length === 0)
      const stored = partHashes.length === 0 ? undefined : { id, partHashes }
      expect<readonly string[]>(otherParts(secrets, other, stored)).toEqual(differ)
    }),
    { numRuns: 2000 },
  )
})

test('a code for nothing has the hash alone, without purpose and transaction', () => {
  expect(hashesOf({})).toEqual({ hash: secrets.saltedHash(id, keyed), partHashes: [] })
})

test('the hashes of parts show neither values nor, of two codes, which are equal; a previous key still finds them', () => {
  const binding = read({ purpose: 'pay', transaction: { amount: '1', currency: 'INR', payee: 'a' } })
  const by = createSecrets(oldKey)
  const { partHashes } = hashesOf(binding, { by })
  expect(partHashes.join(' ')).toMatch(/^[\w-]{6}( [\w-]{6}){3}$/)
  for (const other of [hashesOf(binding), hashesOf(binding, { by, requestId: `${id}0` })])
    for (const hash of partHashes) expect(other.partHashes).not.toContain(hash)
  const rotated = createSecrets(newKey, oldKey)
  expect(otherParts(rotated, binding, { id, partHashes })).toEqual([])
  const others = ['other-amount', 'other-currency', 'other-payee'] as const
  expect(otherParts(rotated, { purpose: 'pay' }, { id, partHashes })).toEqual([...others])
})

test.each([
  ['en', '1250', 'INR', '1,250.00'],
  ['en', '1250.5', 'JPY', '1,250.5'],
  ['en', '1250', 'JPY', '1,250'],
  ['en', '0.125', 'USD', '0.125'],
  ['en', '7', 'KWD', '7.000'],
  ['hi', '1250000', 'INR', '12,50,000.00'],
  ['de', '1250000', 'EUR', '1.250.000,00'],
  ['fr', '1250', 'EUR', '1 250,00'],
  ['ar', '999999999999.999', 'KWD', '999,999,999,999.999'],
  ['es', '1250', 'EUR', '1250,00'],
  ['es-MX', '1250', 'MXN', '1,250.00'],
  ['de-CH', '1250', 'CHF', "1'250.00"],
  ['en-IN', '1250000', 'INR', '12,50,000.00'],
])('in %s, %s %s is %s', (lang, amount, currency, expected) => {
  expect(amountIn(lang, { amount, currency, payee: 'x' })).toBe(expected)
})

test.each([
  ['{{otp}} is your code for {{payee}}.', 'شركة المياه', true],
  ['{{otp}} is your code for {{payee}}.', 'Acme שלום', true],
  ['{{otp}} is your code for {{payee}}.', 'पानी', false],
  ['{{otp}} is your code for {{payee}}.', 'City Water', false],
  ['رمز {{payee}}: {{otp}}', 'City Water', true],
  ['رمز {{payee}}: {{otp}}', 'شركة 7', false],
  ['Ramz {{payee}}: {{otp}}', 'City Water', false],
])('in %s, the payee %s is between isolates: %p', (text, payee, isOther) => {
  const { payee: shown } = isolated({ amount: '1', currency: 'INR', payee }, text)
  expect(shown).toBe(isOther ? `\u2068${payee}\u2069` : payee)
})

test.each([
  ['es', 'es-MX', 'en', 'es-MX'],
  ['de', 'fr-FR,de-CH', 'en', 'de-CH'],
  ['en', 'sw', 'en-IN', 'en-IN'],
  ['en', 'sw-KE', 'hi', 'en'],
  ['pt-BR', 'pt-BR', 'en', 'pt-BR'],
])(
  'numbers in a text in %s, requested %s, of a brand in %s, are those of %s',
  (text, lang, brand, expected) => {
    expect(regionalTag(text, lang, brand)).toBe(expected)
  },
)

test('currencies are known ones in use', () => {
  const known = new Set(Intl.supportedValuesOf('currency'))
  expect([...currencies].filter((each) => !known.has(each))).toEqual([])
  expect(currencies.size).toBe(164)
})
