import { advice, see } from '../ground/advice.ts'
import { canonicalTag } from '../ground/languages.ts'
import { InvalidInput, OperatorError } from '../ground/operator-error.ts'
import {
  type Brand,
  type BrandStatus,
  type Brands,
  type BrandWithTexts,
  brandProblems,
  brandStatuses,
  mayBecome,
  nameKey,
  ownTemplateKeys,
  registrationKeyProblems,
  registrationOf,
  type TemplateRegistration,
} from '../texts/brand.ts'
import { noTexts } from '../texts/brand-texts.ts'
import { action, type Group } from './action.ts'
import { type ChangePorts, change, type Decision, differences, refuse } from './changes.ts'
import { field, oneOf } from './fields.ts'

/** Undefined fields stay unchanged; in a new brand they get their defaults. */
export type BrandChange = { readonly [Field in keyof Omit<Brand, 'slug'>]?: Brand[Field] | undefined }

export async function putBrand(
  ports: ChangePorts,
  slugAsGiven: string,
  requested: BrandChange,
  how: { readonly mustBeNew?: boolean } = {},
): Promise<Brand> {
  const brandSlug = nameKey(slugAsGiven)
  const fresh = freshBrand(brandSlug)
  const fields = normalized(requested)
  const { brand } = await change(ports, { brandSlug }, ({ brand: current }) => {
    if (current && how.mustBeNew) throw new OperatorError(`Brand ${brandSlug} already exists.`)
    if (!current && requested.displayName === undefined) {
      // Report invalid fields first: a display name would not correct them.
      refuse(brandProblems({ ...fresh, ...fields, displayName: 'any' }), InvalidInput)
      throw new OperatorError(
        `Brand ${brandSlug} does not exist. A new brand needs a display name.`,
        advice`To create it, run ${see('brand put', { slug: brandSlug, name: 'NAME' })}.`,
      )
    }
    const brand = { ...fresh, ...current, ...fields }
    refuse(brandProblems(brand), InvalidInput)
    if (current && current.status !== brand.status) refuseTransition(current, brand.status)
    const action = current ? 'brand.changed' : 'brand.created'
    const details = differences(current ?? fresh, brand)
    const isSame = current && Object.keys(details).length === 0
    return { brand, entry: isSame ? null : { action, target: brandSlug, details } }
  })
  return brand
}

function normalized(requested: BrandChange): Partial<Brand> {
  const { displayName, domain, entityId, notifyTemplates, lang, color, dltAllowList } = requested
  const all = {
    ...requested,
    displayName: displayName?.trim(),
    domain: domain?.trim().toLowerCase() ?? domain,
    entityId: entityId?.trim() ?? entityId,
    notifyTemplates: notifyTemplates && [...new Set(notifyTemplates)],
    lang: lang && (canonicalTag(lang) ?? lang),
    color: color?.trim().toLowerCase() ?? color,
    dltAllowList: dltAllowList && [...new Set(dltAllowList.map(withoutPhoneSpaces))],
  }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined))
}

/** Spaces in a phone number do not count. */
function withoutPhoneSpaces(entry: string): string {
  return /^\+?[\d ()-]+$/.test(entry) ? entry.replaceAll(' ', '') : entry
}

/** With the defaults. */
export function freshBrand(slug: string): BrandWithTexts {
  return {
    slug,
    displayName: '',
    status: 'active',
    notifyTemplates: [],
    dltEnabled: false,
    loginIdEnabled: false,
    domain: null,
    entityId: null,
    registrations: {},
    lang: 'en',
    androidHash: null,
    logoUrl: null,
    color: null,
    dltAllowList: [],
    texts: noTexts,
  }
}

export function noBrand(slug: string): OperatorError {
  return new OperatorError(`Brand ${slug} does not exist.`, advice`${see('brand list')} lists the brands.`)
}

/** @throws OperatorError */
export async function requiredBrand(
  brands: Pick<Brands, 'bySlug'>,
  slugAsGiven: string,
): Promise<BrandWithTexts> {
  const slug = nameKey(slugAsGiven)
  const brand = await brands.bySlug(slug)
  if (brand) return brand
  throw noBrand(slug)
}

/** The slug. @throws OperatorError */
export async function existingBrand(brands: Pick<Brands, 'bySlug'>, slugAsGiven: string): Promise<string> {
  return (await requiredBrand(brands, slugAsGiven)).slug
}

async function changeBrand(
  ports: ChangePorts,
  slugAsGiven: string,
  decide: (current: BrandWithTexts) => { brand: Brand; entry: Decision['entry'] },
): Promise<Brand> {
  const brandSlug = nameKey(slugAsGiven)
  const { brand } = await change(ports, { brandSlug }, ({ brand: current }) => {
    if (!current) throw noBrand(brandSlug)
    return decide(current)
  })
  return brand
}

/**
 * `brand template`: undefined fields stay unchanged unless it `replaces`. Null removes the registration.
 * @param templateKey a template key, or `KEY:lang`
 */
export async function registerTemplate(
  ports: ChangePorts,
  slug: string,
  templateKey: string,
  requested: Partial<TemplateRegistration> | null,
  how: { readonly replaces?: boolean } = {},
): Promise<Brand> {
  return changeBrand(ports, slug, (current) => {
    const { [templateKey]: before, ...others } = current.registrations
    if (!before) refuse(registrationKeyProblems(templateKey, ownTemplateKeys(current)), InvalidInput)
    const {
      id = null,
      ids = {},
      senderId = null,
      maxLength = null,
    } = (how.replaces ? undefined : before) ?? {}
    const after = requested && {
      id: requested.id === undefined ? id : requested.id,
      ids: { ...ids, ...requested.ids },
      senderId: requested.senderId === undefined ? senderId : requested.senderId,
      maxLength: requested.maxLength === undefined ? maxLength : requested.maxLength,
    }
    const brand = { ...current, registrations: after ? { ...others, [templateKey]: after } : others }
    refuse(brandProblems(brand), InvalidInput)
    const changes = differences(registrationOf(current, templateKey), registrationOf(brand, templateKey))
    if (Object.keys(changes).length === 0) return { brand, entry: null }
    const details = { template: templateKey, ...changes }
    return { brand, entry: { action: 'brand.template', target: brand.slug, details } }
  })
}

export const brandGroup: Group = {
  name: 'brand',
  does: 'create, change and list brands',
  entries: 'brands',
  target: 'brand',
}

export const brandSetStatus = action(brandGroup, 'status', {
  role: 'operator',
  isSensitive: false,
  does: 'change the status of a brand: pending → active, active → suspended, suspended → active',
  fields: {
    slug: field(nameKey, { label: 'Brand', help: 'the brandId' }),
    status: field(oneOf('status', brandStatuses), { label: 'Status', help: 'the new status' }),
  },
  audit: { 'brand.status': 'Brand status changed' },
  form: { path: 'brands/{slug}/status', page: 'brands/{slug}' },
  run: (ports: ChangePorts, { slug, status }) =>
    changeBrand(ports, slug, (current) => {
      refuseTransition(current, status)
      const details = { status: `${current.status} → ${status}` }
      return {
        brand: { ...current, status },
        entry: { action: 'brand.status', target: current.slug, details },
      }
    }),
  said: ({ slug, status }) => `Brand ${slug} is ${status}.`,
})

export function brandStatus(value: string): BrandStatus {
  const status = brandStatuses.find((known) => known === value)
  if (!status)
    throw new InvalidInput(`Unknown status ${value}. The statuses are ${brandStatuses.join(', ')}.`)
  return status
}

function refuseTransition(brand: Brand, to: BrandStatus): void {
  if (mayBecome(brand.status, to)) return
  const next = brandStatuses.filter((status) => mayBecome(brand.status, status)).join(' or ')
  const refusal = brand.status === to ? `is already ${to}` : `is ${brand.status} and cannot become ${to}`
  throw new OperatorError(`Brand ${brand.slug} ${refusal}. It can become ${next}.`)
}

export const brandActions = [brandSetStatus]
