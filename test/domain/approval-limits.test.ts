import { describe, expect, test } from 'bun:test'
import {
  noApprovalLimits,
  readApprovalLimits,
  resemblances,
} from '../../src/domain/operator/approval-limits.ts'
import { freshBrand } from '../../src/domain/operator/brands.ts'

const isCountry = (code: string) => ['GB', 'DE'].includes(code)
const brands = [
  { ...freshBrand('acme'), displayName: 'Acme' },
  { ...freshBrand('paypal'), displayName: 'PayPal' },
]

describe('a requested brand name', () => {
  test.each([
    ['Globex', []],
    ['acme', ['The name is that of the brand acme (Acme). The app would send messages in its name.']],
    ['Acrne', ['The name looks like that of the brand acme (Acme).']],
    ['PayPa1', ['The name looks like that of the brand paypal (PayPal).']],
    ['Paypall', ['The name differs in one letter from that of the brand paypal (PayPal).']],
    ['Paypel', ['The name differs in one letter from that of the brand paypal (PayPal).']],
    ['Acne', []],
    [
      'Раyраl',
      [
        'The brand name mixes letters of several alphabets, such as Latin and Cyrillic, in one word.',
        'The name looks like that of the brand paypal (PayPal).',
      ],
    ],
  ] as const)('%s resembles %p', (name, sentences) => {
    expect(resemblances(name, brands)).toEqual([...sentences])
  })
})

describe('the limits of an approval', () => {
  test('are optional', () => {
    const none = { perMinute: undefined, countries: [], budget: undefined }
    expect(readApprovalLimits(noApprovalLimits, isCountry)).toEqual(none)
  })

  test('are read as people write them', () => {
    const written = { perMinute: ' 60 ', countries: 'gb, de GB', budget: '20.50', period: 'month' }
    expect(readApprovalLimits(written, isCountry)).toEqual({
      perMinute: 60,
      countries: ['GB', 'DE'],
      budget: { period: 'month', amount: '20.50' },
    })
  })

  test.each([
    [{ perMinute: '0' }, 'The calls per minute must be a whole number'],
    [{ countries: 'GB, Wales' }, 'The countries must be codes such as GB: WALES is none.'],
    [{ budget: 'much' }, 'amount'],
  ])('%p is rejected', (wrong, message) => {
    expect(() => readApprovalLimits({ ...noApprovalLimits, ...wrong }, isCountry)).toThrow(message)
  })
})
