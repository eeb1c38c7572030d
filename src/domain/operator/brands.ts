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
import { noTexts, registrationKeyOf } from '../texts/brand-texts.ts'
import { action, type Group } from './action.ts'
import { type ChangePorts, change, type Decision, differences, refuse } from './changes.ts'
import {
  change as changed,
  changeList,
  type Entered,
  field,
  flag,
  type InputOf,
  oneOf,
  optional,
  removable,
  text,
  toggle,
  trimmed,
  unique,
  wholeNumber,
} from './fields.ts'

export interface BrandPorts extends ChangePorts {
  readonly providerNames: () => Promise<readonly string[]>
}

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
  const fields = given(requested)
  const { brand } = await change(ports, { brandSlug }, ({ brand: current }) => {
    if (current && how.mustBeNew) throw new OperatorError(`Brand ${brandSlug} already exists.`)
    if (!current && requested.displayName === undefined) {
      // Report invalid fields first: a display name would not correct them.
      refuse(brandProblems({ ...fresh, ...fields, displayName: 'any' }), InvalidInput)
      throw new OperatorError(
        `Brand ${brandSlug} does not exist. A new brand needs a display name.`,
        advice`To create it, run ${see('brand put', { slug: brandSlug, displayName: 'NAME' })}.`,
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

/** Without what stays unchanged. */
export function given(requested: BrandChange): Partial<Brand> {
  return Object.fromEntries(Object.entries(requested).filter(([, value]) => value !== undefined))
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
    linkUrl: null,
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

export const brandGroup: Group = {
  name: 'brand',
  does: 'create, change and list brands',
  entries: 'brands',
  target: 'brand',
}

function lowerCase(written: string): string {
  return trimmed(written).toLowerCase()
}

function canonical(tag: string): string {
  return canonicalTag(tag) ?? tag
}

const registeredFold = 'Registered templates: for DLT in India and for providers’ own template IDs'

const brandFields = {
  displayName: changed(trimmed, {
    label: 'Name',
    as: '--name <name>',
    help: 'the display name in messages',
    hint: 'Shown in messages. At most 40 characters.',
    placeholder: 'Example Shop',
    max: 40,
    isProse: true,
    isRequiredInForm: true,
  }),
  status: optional(oneOf('status', brandStatuses), {
    label: 'Status',
    as: '--status <status>',
    help: 'the status',
  }),
  domain: removable(lowerCase, {
    label: 'Domain',
    as: '--domain <host>',
    help: 'the web site on which browsers fill in the code (WebOTP)',
    off: 'remove that web site',
    placeholder: 'shop.example.com',
  }),
  androidHash: removable(text, {
    label: 'Android app hash',
    as: '--android-hash <hash>',
    help: 'the app hash of SMS Retriever',
    off: 'remove the app hash',
    placeholder: 'FA+9qCX9VSu',
    max: 11,
  }),
  lang: changed((tag) => canonical(tag || freshBrand('').lang), {
    label: 'Language',
    as: '--lang <tag>',
    help: 'the language of its texts, such as hi; a new brand has en',
    hint: 'Of messages whose request has no `lang`: a BCP 47 tag, such as hi or pt-BR.',
    placeholder: 'en',
    max: 64,
  }),
  notifyTemplates: changeList(unique, {
    label: 'Notify templates',
    as: '--notify <keys>',
    help: 'the templates enabled on /notify, or "" for none',
  }),
  loginIdEnabled: toggle({
    label: 'Include the login ID',
    as: '--login-id',
    help: 'include the loginId of the request in OTP messages',
    hint: 'If a request has `loginId`, the message names that login.',
    off: 'omit the loginId',
    legend: 'Codes',
  }),
  logoUrl: removable(text, {
    label: 'Logo',
    as: '--logo <url>',
    help: 'an image at the top of its e-mails; an https URL',
    off: 'remove the image',
    max: 500,
    fold: 'E-mails: logo, color and link',
  }),
  linkUrl: removable(text, {
    label: 'Page of the link',
    as: '--link <url>',
    help: 'the page to which a link in the e-mails of codes leads, with the code after #; an https URL',
    off: 'send no link',
    max: 500,
    fold: 'E-mails: logo, color and link',
  }),
  color: removable(lowerCase, {
    label: 'Color',
    as: '--color <color>',
    help: 'the color of its e-mails, such as #0b57d0',
    hint: '',
    off: 'remove the color',
    placeholder: '#0b57d0',
    max: 7,
    fold: 'E-mails: logo, color and link',
  }),
  dltEnabled: toggle({
    label: 'Use the registered-template route',
    as: '--dlt',
    help: 'use the registered-template (DLT) route to Indian numbers',
    hint: 'Requires `OTP_SMS_MODE` template or hybrid. Enter the template IDs on the page of each text.',
    off: 'use the direct route only',
    fold: registeredFold,
  }),
  entityId: removable(trimmed, {
    label: 'Entity ID',
    as: '--entity <id>',
    help: 'the principal entity id (DLT)',
    off: 'remove the principal entity id',
    max: 64,
    fold: registeredFold,
  }),
  dltAllowList: changeList((entries) => unique(entries.map(withoutPhoneSpaces)), {
    label: 'Registered URLs and phone numbers',
    as: '--dlt-allow <list>',
    help: 'the URLs and phone numbers that the entity has registered, or "" for none',
    hint: 'One per line. Registered texts may contain only these (DLT allow-list).',
    rows: 3,
    fold: registeredFold,
  }),
}

export const brandPut = action(brandGroup, 'put', {
  role: 'operator',
  isSensitive: false,
  does: 'create a brand (active unless --status is given), or change these properties',
  fields: {
    slug: field(nameKey, {
      label: 'Slug',
      help: 'the brandId in API requests',
      hint: 'Apps send it as `brandId`. Allowed: a-z, 0-9 and -. You cannot change it later.',
      max: 63,
    }),
    ...brandFields,
    mustBeNew: flag({
      label: 'New',
      as: '',
      help: 'reject the change if the brand exists',
      hasNoOption: true,
    }),
  },
  audit: { 'brand.created': 'Brand created', 'brand.changed': 'Brand changed' },
  form: { path: 'brands', page: 'brands/{slug}', isPartial: true },
  run: (ports: ChangePorts, { slug, mustBeNew, ...fields }) => putBrand(ports, slug, fields, { mustBeNew }),
  said: (brand, { mustBeNew }) => ({
    text: mustBeNew
      ? `Created the brand ${brand.slug}. It is ${brand.status}.`
      : 'Saved. Takes effect immediately.',
    row: brandRow(brand),
  }),
})

/** As its fields. */
export function brandEntries(brand: Brand): Entered {
  const { displayName, lang, notifyTemplates, loginIdEnabled, dltEnabled, dltAllowList } = brand
  return {
    ...{ displayName, lang, notifyTemplates, loginIdEnabled, dltEnabled, dltAllowList },
    domain: brand.domain ?? '',
    entityId: brand.entityId ?? '',
    androidHash: brand.androidHash ?? '',
    logoUrl: brand.logoUrl ?? '',
    linkUrl: brand.linkUrl ?? '',
    color: brand.color ?? '',
  }
}

/** As in JSON. */
export function brandRow({ slug, texts: _, ...brand }: Brand & { readonly texts?: unknown }) {
  return { brandId: slug, ...brand }
}

const templateFields = {
  ids: changeList(idsIn, {
    label: 'Template IDs',
    as: '--id <id>',
    help: 'the registered id; PROVIDER=ID for that of one provider',
    hint: 'One per line: the ID for all providers without their own, and PROVIDER=ID for each other.',
    rows: 3,
  }),
  senderId: removable(text, {
    label: 'Sender',
    as: '--sender <sender>',
    help: 'the sender id (header) of the registration',
  }),
  maxLength: removable(wholeNumber('greatest length of a value', 30, 40), {
    label: 'Greatest length of a value',
    as: '--max-length <characters>',
    help: 'the greatest length of a value, 30 (without it) to 40',
    hint: 'Characters of a variable, 30 to 40.',
    placeholder: '30',
    max: 2,
  }),
}

export const brandTemplate = action(brandGroup, 'template', {
  role: 'operator',
  isSensitive: false,
  does: 'store the ids of a registered template',
  fields: {
    slug: field(nameKey, { label: 'Brand', help: 'the brandId' }),
    key: field(text, { label: 'Template', help: 'the template: a built-in one, or one of the brand' }),
    lang: optional(canonical, {
      label: 'Language',
      as: '--lang <tag>',
      help: "the language of the text; the default is the brand's",
    }),
    ...templateFields,
    remove: flag({ label: 'Remove', as: '--remove', help: 'remove the registration' }),
    replaces: flag({
      label: 'Replace',
      as: '',
      help: 'replace the registration; otherwise, what is not given stays',
      hasNoOption: true,
    }),
  },
  audit: { 'brand.template': 'Template registered' },
  form: { path: 'brands/{slug}/templates/{key}', page: 'brands/{slug}/texts' },
  run: async (ports: BrandPorts, { slug, key: template, lang, remove, replaces, ...given }) => {
    const key = registrationKeyOf(template, lang)
    const requested = registrationIn(given, await ports.providerNames())
    const isEmpty = Object.values(given).every(
      (each) => each == null || (Array.isArray(each) && !each.length),
    )
    if (remove && !isEmpty)
      throw new InvalidInput('A registration that is removed has no ID, sender or length.')
    if (isEmpty && !remove && !replaces)
      throw new InvalidInput(
        'Nothing to change. Give an ID, a sender or a length, or remove the registration.',
      )
    const brand = await changeBrand(ports, slug, (current) => {
      const { [key]: before, ...others } = current.registrations
      if (!before) refuse(registrationKeyProblems(key, ownTemplateKeys(current)), InvalidInput)
      const kept = (replaces ? undefined : before) ?? { id: null, ids: {}, senderId: null, maxLength: null }
      const after = { ...kept, ...requested, ids: { ...kept.ids, ...requested.ids } }
      const brand = { ...current, registrations: remove ? others : { ...others, [key]: after } }
      refuse(brandProblems(brand), InvalidInput)
      const changes = differences(registrationOf(current, key), registrationOf(brand, key))
      if (Object.keys(changes).length === 0) return { brand, entry: null }
      const details = { template: key, ...changes }
      return { brand, entry: { action: 'brand.template', target: brand.slug, details } }
    })
    return { key, brand }
  },
  said: ({ key, brand }, { remove }) => ({
    text: `${remove ? 'Removed' : 'Saved'} the registration of ${key}.`,
    row: { brandId: brand.slug, key, ...registrationOf(brand, key) },
  }),
})

/** In one order. */
function idsIn(written: readonly string[]): readonly string[] {
  return written.map((each) => each.split('=').map(trimmed).join('=')).toSorted()
}

/** @throws InvalidInput */
function registrationIn(
  { ids: given = [], senderId, maxLength }: InputOf<typeof templateFields>,
  providers: readonly string[],
): Partial<TemplateRegistration> {
  const ids = new Map<string, string>()
  for (const each of given) {
    const [, name = '', id = each] = /^([^=]*)=(.*)$/.exec(each) ?? []
    if (ids.has(name)) throw new InvalidInput(`The id is given twice${name && ` for ${name}`}.`)
    if (each.includes('=') && !providers.includes(name))
      throw new InvalidInput(`Unknown provider ${name}. The providers are ${providers.join(', ')}.`)
    ids.set(name, id)
  }
  const id = ids.get('')
  ids.delete('')
  return {
    ids: Object.fromEntries(ids),
    ...(id !== undefined && { id }),
    ...(senderId !== undefined && { senderId }),
    ...(maxLength !== undefined && { maxLength }),
  }
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

function refuseTransition(brand: Brand, to: BrandStatus): void {
  if (mayBecome(brand.status, to)) return
  const next = brandStatuses.filter((status) => mayBecome(brand.status, status)).join(' or ')
  const refusal = brand.status === to ? `is already ${to}` : `is ${brand.status} and cannot become ${to}`
  throw new OperatorError(`Brand ${brand.slug} ${refusal}. It can become ${next}.`)
}

export const brandActions = [brandPut, brandTemplate, brandSetStatus]
