import { describe, expect, test } from 'bun:test'
import { changesAfterApproval, resemblances } from '../../src/domain/operator/approval-limits.ts'
import { freshBrand } from '../../src/domain/operator/brands.ts'

const noApprovalLimits = { perMinute: '', countries: '', budget: '', period: 'day' }
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
    ['Paypall', ['The name looks like that of the brand paypal (PayPal).']],
    ['Paypel', ['The name looks like that of the brand paypal (PayPal).']],
    ['Acne', []],
    ['Раyраl', ['The name looks like that of the brand paypal (PayPal).']],
    ['Acme Inc', ['The name looks like that of the brand acme (Acme).']],
    ['ACME Co., Ltd.', ['The name looks like that of the brand acme (Acme).']],
    ['acme-gmbh', ['The name looks like that of the brand acme (Acme).']],
    ['Pay-Pall S.A.R.L.', ['The name looks like that of the brand paypal (PayPal).']],
    ['Co', []],
  ] as const)('%s resembles %p', (brandName, sentences) => {
    expect(resemblances({ brandName, companyName: 'Globex' }, brands)).toEqual([...sentences])
  })

  test('is of a company whose own name resembles a brand, and a brand has its legal form', () => {
    const initech = { ...freshBrand('initech'), displayName: 'Initech Inc.' }
    expect(resemblances({ brandName: 'Sign in', companyName: 'Initech LLC' }, [initech])).toEqual([
      'The name of the company looks like that of the brand initech (Initech Inc.).',
    ])
  })
})

describe('the limits of an approval', () => {
  const app = { appId: 'web', brandSlug: 'Web' }
  const changesOf = (written: object) =>
    changesAfterApproval({ ...noApprovalLimits, ...app, ...written }, brands, isCountry).map(
      ([{ name }, entered]) => [name, entered],
    )

  test('are optional', () => {
    expect(changesOf({})).toEqual([])
  })

  test('are changes: what is allowed before what is blocked', () => {
    const written = { perMinute: '60', countries: 'gb, de GB', budget: '20.50', period: 'month' }
    expect(changesOf(written)).toEqual([
      ['app set', { appId: 'web', perMinute: '60' }],
      ['budget set', { scope: 'app:web', period: 'month', amount: '20.50', stops: true }],
      ['destination set', { rule: 'GB', action: 'allow', brand: 'web' }],
      ['destination set', { rule: 'DE', action: 'allow', brand: 'web' }],
      ['destination set', { rule: '*', action: 'block', brand: 'web' }],
    ])
  })

  test.each([
    [{ perMinute: '0' }, 'The calls per minute must be a whole number'],
    [{ countries: 'GB, Wales' }, 'The countries must be codes such as GB: WALES is none.'],
    [{ budget: 'much' }, 'amount'],
  ])('%p is rejected', (wrong, message) => {
    expect(() => changesOf(wrong)).toThrow(message)
  })

  test('do not change the countries of a brand that exists', () => {
    const toAcme = { ...app, brandSlug: 'Acme' }
    const set = () =>
      changesAfterApproval({ ...noApprovalLimits, ...toAcme, countries: 'GB' }, brands, isCountry)
    expect(set).toThrow('The brand acme exists.')
  })
})
