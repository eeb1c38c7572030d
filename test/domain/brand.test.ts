import { describe, expect, test } from 'bun:test'
import { Failure } from '../../src/domain/ground/failures.ts'
import { type AppScope, unscoped } from '../../src/domain/limits/scope.ts'
import { freshBrand } from '../../src/domain/operator/brands.ts'
import {
  approvedBrand,
  type Brand,
  type BrandStatus,
  type Brands,
  type BrandWithTexts,
  brandIdOf,
  brandProblems,
  isNamed,
  mayBecome,
  nameKey,
  notifyBrand,
} from '../../src/domain/texts/brand.ts'
import { newContext } from '../support/calls.ts'

function brand(properties: Partial<Brand> = {}): BrandWithTexts {
  return { ...freshBrand('acme'), displayName: 'Acme & Söhne', ...properties }
}

const known = [
  brand(),
  brand({ slug: 'new', displayName: 'New', status: 'pending' }),
  brand({ slug: 'old', displayName: 'Old', status: 'suspended' }),
]
const brands: Brands = {
  bySlug: async (slug) => known.find((each) => each.slug === slug),
  byName: async (name) => known.find((each) => nameKey(each.displayName) === name),
}

async function slugOrFailure(finding: Promise<Brand>): Promise<string> {
  return finding.then(
    ({ slug }) => slug,
    (error: unknown) => (error instanceof Failure ? error.kind : String(error)),
  )
}

describe('the status of a brand (design D8)', () => {
  const rows: readonly (readonly [BrandStatus, BrandStatus, boolean])[] = [
    ['pending', 'active', true],
    ['pending', 'suspended', false],
    ['active', 'suspended', true],
    ['active', 'pending', false],
    ['suspended', 'active', true],
    ['suspended', 'pending', false],
  ]
  test.each(rows)('from %s to %s: %p', (from, to, allowed) => {
    expect(mayBecome(from, to)).toBe(allowed)
  })
})

describe('brandId (design D7)', () => {
  const rows: readonly (readonly [unknown, string | undefined])[] = [
    ['acme', 'acme'],
    [' ACME\n', 'acme'],
    ['', undefined],
    ['  ', undefined],
    [null, undefined],
    [undefined, undefined],
    [7, undefined],
    [['acme'], undefined],
    [true, undefined],
  ]
  test.each(rows)('%p counts as %p', (value, slug) => {
    expect(brandIdOf(value)).toBe(slug)
  })
})

const anyApp = unscoped('shop')

describe('the brand of a scoped app (design D38)', () => {
  const app = { ...anyApp, brands: ['acme', 'old', 'new'] }
  const other = { ...anyApp, brands: ['globex'] }
  const rows: readonly (readonly [AppScope, unknown, unknown, string])[] = [
    [app, ' Acme ', undefined, 'acme'],
    [app, undefined, 'ACME & SÖHNE', 'acme'],
    [app, 'old', undefined, 'brand_suspended'],
    [app, 'new', undefined, 'brand_not_approved'],
    [app, undefined, undefined, 'brand_id_required'],
    [other, undefined, undefined, 'brand_id_required'],
    [other, 'acme', undefined, 'brand_not_approved'],
    [other, undefined, 'Acme & Söhne', 'brand_not_approved'],
    [other, undefined, 'acme', 'brand_not_approved'],
    [other, 'old', undefined, 'brand_not_approved'],
    [other, 'nobody', undefined, 'brand_not_approved'],
  ]
  test.each(rows)(
    'app %j, brandId %p, businessName %p: %s',
    async (scope, brandId, businessName, expected) => {
      const found = notifyBrand(brands, newContext(), brandId, businessName, scope)
      expect(await slugOrFailure(found)).toBe(expected)
      if (businessName !== undefined) return
      expect(await slugOrFailure(approvedBrand(brands, newContext(), { brandId }, scope))).toBe(expected)
    },
  )

  test('a brand that is not its own is answered like an unknown one, and is in the log', async () => {
    const context = newContext()
    const messageOf = (found: Promise<Brand>) => found.catch(({ kind, message }: Failure) => [kind, message])
    const suspended = await messageOf(approvedBrand(brands, context, { brandId: 'old' }, other))
    expect(context.brand).toBe('old')
    expect(suspended).toEqual(await messageOf(approvedBrand(brands, context, { brandId: 'nobody' }, other)))
  })
})

describe('the brand check of /otp (spec 3.3, 4.1)', () => {
  const rows: readonly (readonly [unknown, string])[] = [
    ['acme', 'acme'],
    [' Acme ', 'acme'],
    [undefined, 'brand_id_required'],
    ['', 'brand_id_required'],
    ['new', 'brand_not_approved'],
    ['nobody', 'brand_not_approved'],
    ['Acme & Söhne', 'brand_not_approved'],
    ['old', 'brand_suspended'],
  ]
  test.each(rows)('brandId %p: %s', async (brandId, expected) => {
    expect(await slugOrFailure(approvedBrand(brands, newContext(), { brandId }, anyApp))).toBe(expected)
  })
})

describe('the brand of an SMS on /notify (spec 4.4 rule 8, design D9)', () => {
  const rows: readonly (readonly [unknown, unknown, string])[] = [
    ['acme', undefined, 'acme'],
    ['acme', 'Old', 'acme'],
    [undefined, 'acme', 'acme'],
    [undefined, ' ACME & SÖHNE ', 'acme'],
    [undefined, 'ACME & SO\u0308HNE', 'acme'],
    ['', 'acme', 'acme'],
    [undefined, undefined, 'brand_id_required'],
    [undefined, '', 'brand_id_required'],
    [undefined, 3, 'brand_id_required'],
    [undefined, 'Nobody', 'brand_not_approved'],
    [undefined, 'New', 'brand_not_approved'],
    [undefined, 'Old', 'brand_suspended'],
    ['nobody', 'acme', 'brand_not_approved'],
    ['old', 'acme', 'brand_suspended'],
  ]
  test.each(rows)('brandId %p and businessName %p: %s', async (brandId, businessName, expected) => {
    expect(await slugOrFailure(notifyBrand(brands, newContext(), brandId, businessName, anyApp))).toBe(
      expected,
    )
  })

  const names: readonly (readonly [string, boolean])[] = [
    ['acme', true],
    ['Acme', true],
    ['acme & söhne', true],
    ['Acme & So\u0308hne', true],
    ['Acme & Co', false],
    ['', false],
  ]
  test.each(names)('%p matches the brand: %p', (name, named) => {
    expect(isNamed(brand(), name)).toBe(named)
  })
})

describe('a brand given by an operator', () => {
  const registered = { id: '1107', ids: {}, senderId: null, maxLength: 40 }
  const labelled = (properties: Partial<Brand>) => [JSON.stringify(properties), properties] as const

  const accepted: readonly Partial<Brand>[] = [
    {},
    { slug: 'a' },
    { slug: '0-9' },
    { slug: 'a'.repeat(63) },
    { displayName: 'x'.repeat(40) },
    { displayName: 'Pay \u0411\u0430\u043d\u043a' },
    { notifyTemplates: ['ORDER_PLACED', 'ORDER_DELIVERED', 'OUT_FOR_DELIVERY'] },
    { domain: 'shop.example.com' },
    { registrations: { LOGIN_OTP: registered, 'LOGIN_OTP:pt-BR': { ...registered, maxLength: 30 } } },
  ]
  test.each(accepted.map(labelled))('%s is valid', (_, properties) => {
    expect(brandProblems(brand(properties))).toEqual([])
  })

  const refused: readonly Partial<Brand>[] = [
    { slug: '' },
    { slug: '-a' },
    { slug: 'A' },
    { slug: 'a_b' },
    { slug: 'a b' },
    { slug: 'ä' },
    { slug: 'a'.repeat(64) },
    { displayName: '' },
    { displayName: 'x'.repeat(41) },
    { displayName: 'two\nlines' },
    { displayName: 'Ac\u202eme' },
    { displayName: 'HS\u0412\u0421 Bank' },
    { notifyTemplates: ['LOGIN_OTP'] },
    { notifyTemplates: ['constructor'] },
    { domain: '' },
    { domain: 'https://shop.example.com' },
    { domain: 'shop.example.com/path' },
    { domain: 'shop.example.com #123456' },
    ...['NOPE', 'constructor', 'NOPE:hi', 'LOGIN_OTP:', 'LOGIN_OTP:HI', 'LOGIN_OTP:hi:hi'].map((key) => ({
      registrations: { [key]: registered },
    })),
    ...[29, 41, 30.5, Number.NaN].map((maxLength) => ({
      registrations: { LOGIN_OTP: { ...registered, maxLength } },
    })),
  ]
  test.each(refused.map(labelled))('%s is reported as one problem', (_, properties) => {
    expect(brandProblems(brand(properties))).toHaveLength(1)
  })

  test('with several faults reports all of them', () => {
    expect(
      brandProblems(brand({ slug: '', displayName: '', notifyTemplates: ['X'], domain: '' })),
    ).toHaveLength(4)
  })
})

describe('a slug or name that no brand can have (design D7, D9)', () => {
  const lookedUp: string[] = []
  const watched: Brands = {
    bySlug: async (slug) => void lookedUp.push(slug),
    byName: async (name) => void lookedUp.push(name),
  }
  const long = 'x'.repeat(200_000)
  test.each([long, 'a'.repeat(64), '-acme', 'a_b', 'a b', 'acme\n!', 'é'])(
    '%#: is not looked up',
    async (slug) => {
      lookedUp.length = 0
      const finding = approvedBrand(watched, newContext(), { brandId: slug }, anyApp)
      expect(await slugOrFailure(finding)).toBe('brand_not_approved')
      expect(await slugOrFailure(notifyBrand(watched, newContext(), slug, undefined, anyApp))).toBe(
        'brand_not_approved',
      )
      expect(lookedUp).toEqual([])
    },
  )

  test('a businessName is looked up as a slug or a name, if its form allows', async () => {
    lookedUp.length = 0
    for (const name of ['acme', 'Acme & Söhne', long]) {
      expect(await slugOrFailure(notifyBrand(watched, newContext(), undefined, name, anyApp))).toBe(
        'brand_not_approved',
      )
    }
    expect(lookedUp).toEqual(['acme', 'acme', 'acme & söhne'])
  })

  test('names of 40 characters are found, even if their normalized form is longer', async () => {
    for (const character of ['é', '\u0958', 'İ', '\u{1d160}', '\u{10400}']) {
      const name = character.repeat(40)
      const own: Brands = {
        ...brands,
        byName: async (key) => (key === nameKey(name) ? brand({ displayName: name }) : undefined),
      }
      expect(brandProblems(brand({ displayName: name }))).toEqual([])
      expect(
        await slugOrFailure(notifyBrand(own, newContext(), undefined, name.normalize('NFD'), anyApp)),
      ).toBe('acme')
    }
  })
})
