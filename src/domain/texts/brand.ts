import { type Body, textFault } from '../ground/body.ts'
import { Failure } from '../ground/failures.ts'
import { canonicalTag, wrongTag } from '../ground/languages.ts'
import type { Registration } from '../ground/providers.ts'
import { lookalikeKey, scriptFault } from '../ground/words.ts'
import { type AppScope, mayUseBrand } from '../limits/scope.ts'
import type { RequestContext } from '../request/request-context.ts'
import { type BrandTexts, registeredTarget } from './brand-texts.ts'
import { notifyTemplateKeys, templateKeys, templateOf } from './templates.ts'

export const brandStatuses = ['pending', 'active', 'suspended'] as const
export type BrandStatus = (typeof brandStatuses)[number]

export interface Brand {
  /** The brandId that callers send, in lower case. */
  readonly slug: string
  readonly displayName: string
  readonly status: BrandStatus
  readonly notifyTemplates: readonly string[]
  /** Sends SMS on the registered-template route if OTP_SMS_MODE allows it (design D14). */
  readonly dltEnabled: boolean
  /** Adds the caller's loginId to OTP messages (design D13). */
  readonly loginIdEnabled: boolean
  readonly domain: string | null
  /** Principal entity ID (India's DLT). */
  readonly entityId: string | null
  /** By `registrationKeyOf`. `KEY` is the text in `lang`. */
  readonly registrations: Readonly<Record<string, TemplateRegistration>>
  /** Of its texts without a language; BCP 47, in canonical form (design D47). */
  readonly lang: string
  /** The 11 characters by which Android finds the SMS of its app (SMS Retriever). */
  readonly androidHash: string | null
  /** In e-mails; https. */
  readonly logoUrl: string | null
  /** The page to which a link in the e-mails of codes leads; https. Null: they have no link. */
  readonly linkUrl: string | null
  /** Of e-mails, as `#rrggbb`. */
  readonly color: string | null
  /** URLs and phone numbers that its registered texts may contain (India's DLT). */
  readonly dltAllowList: readonly string[]
}

export interface BrandWithTexts extends Brand {
  readonly texts: BrandTexts
}

export type TemplateRegistration = Omit<Registration, 'entityId'>

/** @param templateKey a template key, or `KEY:lang` */
export function registrationOf(
  { entityId, registrations }: Pick<Brand, 'entityId' | 'registrations'>,
  templateKey: string,
): Registration {
  const own = Object.hasOwn(registrations, templateKey) ? registrations[templateKey] : undefined
  if (!own) return { id: null, ids: {}, senderId: null, maxLength: null, entityId }
  return { ...own, entityId }
}

type Found = BrandWithTexts | undefined

export interface Brands {
  bySlug(slug: string): Found | Promise<Found>
  /** Compares `nameKey`. Active brands take precedence, then the lowest slug. */
  byName(nameKey: string): Found | Promise<Found>
}

export interface BrandList {
  /** The same array until something changes. */
  list(): Promise<readonly BrandWithTexts[]>
}

/** The comparable form of a slug or display name (design D7, D9). Longer texts are returned unchanged. */
export function nameKey(name: string): string {
  const trimmed = name.trim()
  return trimmed.length > longestName ? trimmed : trimmed.normalize('NFC').toLowerCase()
}

/** In UTF-16 units: a 40-character name has at most 240 in any Unicode form. */
const longestName = 256

const slugPattern = /^[a-z0-9][a-z0-9-]{0,62}$/

export function brandIdOf(value: unknown): string | undefined {
  const slug = typeof value === 'string' ? nameKey(value) : ''
  return slug === '' ? undefined : slug
}

/**
 * The brand check of /otp/* (spec 4.1, 5): brand_id_required, brand_not_approved, brand_suspended. A brand that is not
 * the app's is not approved (design D38).
 */
export async function approvedBrand(
  brands: Brands,
  context: RequestContext,
  body: Body,
  app: AppScope,
): Promise<BrandWithTexts> {
  const slug = brandIdOf(body.brandId)
  if (slug === undefined) throw new Failure('brand_id_required')
  return approved(context, app, await bySlug(brands, slug))
}

function bySlug(brands: Brands, slug: string): Found | Promise<Found> {
  return slugPattern.test(slug) ? brands.bySlug(slug) : undefined
}

function byName(brands: Brands, name: string): Found | Promise<Found> {
  return name.length <= longestName ? brands.byName(name) : undefined
}

/** The brand check of /notify (spec 4.4 rule 8, design D9): brandId, or else variables.businessName. */
export async function notifyBrand(
  brands: Brands,
  context: RequestContext,
  brandId: unknown,
  businessName: unknown,
  app: AppScope,
): Promise<BrandWithTexts> {
  const slug = brandIdOf(brandId)
  if (slug !== undefined) return approved(context, app, await bySlug(brands, slug))
  const name = brandIdOf(businessName)
  if (!name)
    throw new Failure(
      'brand_id_required',
      'brandId or variables.businessName is required. GET /platform/brands lists the active brands.',
    )
  return approved(context, app, (await bySlug(brands, name)) ?? (await byName(brands, name)))
}

export function isNamed(brand: Brand, businessName: string): boolean {
  const name = nameKey(businessName)
  return name === brand.slug || name === nameKey(brand.displayName)
}

/**
 * Whether an app that is limited to brands uses the display name of another brand, of any status, in a spelling that
 * looks like it.
 */
export function isNameOfOther(
  brands: BrandList,
  app: AppScope,
  brand: Brand,
  businessName: unknown,
): boolean | Promise<boolean> {
  if (app.brands.length === 0 || typeof businessName !== 'string') return false
  const name = lookalikeKey(businessName)
  if (name === lookalikeKey(brand.displayName)) return false
  return brands.list().then((all) => lookalikeKeysOf(all).has(name))
}

const lookalikeKeys = new WeakMap<readonly Brand[], ReadonlySet<string>>()

function lookalikeKeysOf(brands: readonly Brand[]): ReadonlySet<string> {
  const known = lookalikeKeys.get(brands)
  if (known) return known
  const keys = new Set(brands.map(({ displayName }) => lookalikeKey(displayName)))
  lookalikeKeys.set(brands, keys)
  return keys
}

/**
 * The log line of a rejected request names the brand too. The answer does not say whether a brand exists that the app
 * may not use.
 */
function approved(context: RequestContext, app: AppScope, brand: Found): BrandWithTexts {
  if (brand) context.brand = brand.slug
  if (!brand || !mayUseBrand(app, brand.slug) || brand.status === 'pending') {
    throw new Failure('brand_not_approved', app.brands.length === 0 ? undefined : notOfApp)
  }
  if (brand.status === 'suspended') throw new Failure('brand_suspended')
  return brand
}

const notOfApp =
  'Brand is not registered or not approved. This app may use only the brands that the operator of this server has set for it.'

export function mayBecome(from: BrandStatus, to: BrandStatus): boolean {
  return to === (from === 'active' ? 'suspended' : 'active')
}

export function brandProblems(brand: BrandWithTexts): string[] {
  const problems: string[] = []
  if (!slugPattern.test(brand.slug)) {
    problems.push('The slug must have 1 to 63 characters of a-z, 0-9 and "-", and must not begin with "-".')
  }
  for (const fault of [textFault(brand.displayName, { max: 40 }), scriptFault(brand.displayName)]) {
    if (fault !== undefined) problems.push(`The name ${fault}`)
  }
  const own = ownTemplateKeys(brand)
  const known = [...notifyTemplateKeys, ...own]
  const unknown = brand.notifyTemplates.filter((key) => !known.includes(key))
  if (unknown.length > 0) {
    problems.push(
      `Unknown template for /notify: ${unknown.join(', ')}. The templates are ${known.join(', ')}.`,
    )
  }
  if (brand.domain !== null && !hostName.test(brand.domain)) {
    problems.push('The domain must be a host name without scheme and path, such as shop.example.com.')
  }
  if (brand.entityId !== null && !registeredId.test(brand.entityId)) {
    problems.push(`The entity id must be ${registeredIdInWords}.`)
  }
  if (canonicalTag(brand.lang) !== brand.lang) {
    problems.push(wrongTag)
  }
  if (brand.androidHash !== null && !/^[A-Za-z0-9+/]{11}$/.test(brand.androidHash)) {
    problems.push('The Android app hash must be 11 characters: letters, digits, + and /.')
  }
  if (brand.logoUrl !== null && !isHttpsUrl(brand.logoUrl)) {
    problems.push(
      'The logo must be an https URL of at most 500 characters, such as https://example.com/logo.png.',
    )
  }
  if (brand.linkUrl !== null && (!isHttpsUrl(brand.linkUrl) || /[#{}]/.test(brand.linkUrl))) {
    problems.push(
      'The link must be an https URL of at most 500 characters without #, such as https://example.com/code.',
    )
  }
  if (brand.color !== null && !/^#[0-9a-f]{6}$/.test(brand.color)) {
    problems.push('The color must be # and six hexadecimal digits, such as #0b57d0.')
  }
  problems.push(...allowListProblems(brand.dltAllowList))
  for (const [key, registration] of Object.entries(brand.registrations)) {
    problems.push(...registrationProblems(key, registration, own))
  }
  return problems
}

function isHttpsUrl(text: string): boolean {
  return /^https:\/\/[^\s"'<>\\]{1,492}$/.test(text) && URL.canParse(text) && new URL(text).username === ''
}

const longestAllowList = 100

function allowListProblems(allowList: readonly string[]): string[] {
  if (allowList.length > longestAllowList) {
    return [`The DLT allow-list has at most ${longestAllowList} entries.`]
  }
  return allowList
    .filter((entry) => !/^[!-~]{3,200}$/.test(entry))
    .map((entry) => `${JSON.stringify(entry)} is no URL or phone number of 3 to 200 characters.`)
}

/** At least two labels. The last one is not a number, as in an IPv4 address. */
const hostName =
  /^(?=.{1,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+(?![0-9]+$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/

/** Safe in headers and form fields of providers. */
const registeredId = /^[A-Za-z0-9._-]{1,64}$/
const registeredIdInWords = '1 to 64 letters, digits and . _ -'

/** Templates that exist because the brand has a text of them. */
export function ownTemplateKeys({ texts }: Pick<BrandWithTexts, 'texts'>): readonly string[] {
  return [...new Set(texts.all.map(({ templateKey }) => templateKey))].filter((key) => !templateOf(key))
}

/** @param own as `ownTemplateKeys` returns them */
export function registrationKeyProblems(registrationKey: string, own: readonly string[]): string[] {
  const { templateKey: key, lang } = registeredTarget(registrationKey)
  if (!templateOf(key) && !own.includes(key)) {
    return [`Unknown template ${key}. The templates are ${[...templateKeys, ...own].join(', ')}.`]
  }
  if (lang === undefined || canonicalTag(lang) === lang) return []
  return [`${lang} is not a BCP 47 tag, such as hi or pt-BR.`]
}

function registrationProblems(
  registrationKey: string,
  { id, ids, senderId, maxLength }: TemplateRegistration,
  own: readonly string[],
): string[] {
  const problems = registrationKeyProblems(registrationKey, own)
  if (maxLength !== null && !(Number.isInteger(maxLength) && maxLength >= 30 && maxLength <= 40)) {
    problems.push('The greatest length of a value must be a whole number from 30 to 40.')
  }
  const { whatsapp, ...others } = ids
  if (whatsapp !== undefined && !/^[a-z0-9_]{1,512}$/.test(whatsapp)) {
    problems.push('The template name of WhatsApp must be 1 to 512 lower-case letters, digits and _.')
  }
  if ([id, ...Object.values(others)].some((each) => each !== null && !registeredId.test(each))) {
    problems.push(`The template id must be ${registeredIdInWords}.`)
  }
  if (senderId !== null && !/^\+?[A-Za-z0-9]{1,15}$/.test(senderId)) {
    problems.push('The sender id must be 1 to 15 letters and digits, such as ACMEIN, or a phone number.')
  }
  return problems
}
