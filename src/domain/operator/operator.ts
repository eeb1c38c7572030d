import type { Actor, AuditEntry, AuditRecord } from '../ground/audit.ts'
import { textProblem } from '../ground/body.ts'
import { canonicalTag } from '../ground/languages.ts'
import { InvalidInput, OperatorError } from '../ground/operator-error.ts'
import type { ApiKey, Secrets } from '../ground/ports.ts'
import { type Clock, dayMs, type EpochMs, parseDuration } from '../ground/time.ts'
import type { IntegrationRequestRecord } from '../integration/integration.ts'
import { isAppId } from '../limits/credentials.ts'
import { type AppOperation, type AppScope, isUnscoped, operationsOf, unscoped } from '../limits/scope.ts'
import {
  type Brand,
  type BrandList,
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
import { type BrandText, type DeclaredVariable, noTexts, type TextTarget } from '../texts/brand-texts.ts'

export type BrandStore = Brands & BrandList

export interface AppKey {
  /** `unknown` for keys created before it was stored. */
  readonly lastFour: string
  readonly createdAt: EpochMs
  readonly revokedAt: EpochMs | null
  /** To the minute. Null: never, or before it was stored. */
  readonly lastUsedAt: EpochMs | null
}

export interface IssuedApp extends Pick<AppKey, 'createdAt' | 'revokedAt'> {
  readonly appId: string
  /** At least one; revoked keys included. */
  readonly keys: readonly AppKey[]
}

export interface AppStore {
  /** Includes revoked apps. */
  list(): Promise<readonly IssuedApp[]>
}

export interface IntegrationRequestStore {
  list(query?: {
    readonly isPending?: boolean
    readonly limit?: number
    readonly offset?: number
  }): Promise<readonly IntegrationRequestRecord[]>
  pendingCount(): Promise<number>
  get(id: string): Promise<IntegrationRequestRecord | undefined>
}

type ChangeTarget = Readonly<Partial<Record<'brandSlug' | 'appId' | 'requestId', string>>>

interface CurrentState {
  readonly brand: BrandWithTexts | undefined
  /** The slugs of all brands. */
  readonly brandSlugs: readonly string[]
  readonly keys: readonly AppKey[]
  readonly scope: AppScope | undefined
  readonly request: IntegrationRequestRecord | undefined
  /** The latest audit entry about an e-mail to its contact. */
  readonly lastMail: Pick<AuditRecord, 'id' | 'at' | 'action'> | undefined
}

export interface Decision {
  readonly brand?: Brand
  /** Of the brand of the `ChangeTarget`. */
  readonly saveText?: BrandText
  readonly removeText?: TextTarget
  /** Replaces the variables of a template. */
  readonly declare?: { readonly templateKey: string; readonly variables: readonly DeclaredVariable[] }
  readonly newKey?: Omit<ApiKey, 'key'>
  readonly scope?: AppScope
  readonly revokedKeys?: readonly string[]
  readonly verdict?: Pick<IntegrationRequestRecord, 'reason' | 'appId' | 'brandSlug'> & {
    status: 'approved' | 'rejected'
  }
  readonly entry: Pick<AuditEntry, 'action' | 'target' | 'details'> | null
}

export interface OperatorStore {
  /** Atomic. `decide` must be synchronous and may run twice; if it throws, nothing is stored. */
  change<D extends Decision>(
    about: ChangeTarget,
    by: { readonly actor: Actor; readonly now: number },
    decide: (current: CurrentState) => D,
  ): Promise<D>
  note(entry: AuditEntry): Promise<void>
}

export interface OperatorPorts {
  readonly operator: OperatorStore
  readonly secrets: Pick<Secrets, 'newApiKey'>
  readonly now: Clock
  readonly actor: Actor
}

export type ChangePorts = Omit<OperatorPorts, 'secrets'>

function change<D extends Decision>(
  { operator, actor, now }: ChangePorts,
  about: ChangeTarget,
  decide: (current: CurrentState) => D,
): Promise<D> {
  return operator.change(about, { actor, now: now() }, decide)
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
  const fields = normalized(requested)
  const { brand } = await change(ports, { brandSlug }, ({ brand: current }) => {
    if (current && how.mustBeNew) throw new OperatorError(`Brand ${brandSlug} already exists.`)
    if (!current && requested.displayName === undefined) {
      // Report invalid fields first: --name would not correct them.
      refuse(brandProblems({ ...fresh, ...fields, displayName: 'any' }), InvalidInput)
      throw new OperatorError(
        `Brand ${brandSlug} does not exist. To create it, add --name with its display name.`,
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

/** @throws OperatorError if there are problems */
export function refuse(problems: readonly string[], Refusal = OperatorError): void {
  if (problems.length > 0) throw new Refusal(problems.join('\n'))
}

export function differences(before: object, after: object): Record<string, string> {
  const earlier = new Map<string, unknown>(Object.entries(before))
  const later = new Map<string, unknown>(Object.entries(after))
  const pairs = [...new Set([...earlier.keys(), ...later.keys()])].map((field) => {
    return [field, inWords(earlier.get(field)), inWords(later.get(field))] as const
  })
  const changed = pairs.filter(([, was, is]) => was !== is)
  return Object.fromEntries(changed.map(([field, was, is]) => [field, `${was} → ${is}`]))
}

function inWords(value: unknown): string {
  if (value === null || value === undefined || value === '') return '-'
  return typeof value === 'string' ? value : JSON.stringify(value)
}

export function noBrand(slug: string): OperatorError {
  return new OperatorError(`Brand ${slug} does not exist. \`otpost brand list\` lists the brands.`)
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

const longestMs = 366 * dayMs

/** In milliseconds. @throws OperatorError */
export function durationIn(text: string, leastMs = 0): number {
  const ms = parseDuration(text)
  if (ms !== undefined && ms >= leastMs && ms <= longestMs) return ms
  throw new InvalidInput('The duration must be such as 30m, 12h or 7d, and at most 366d.')
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

export async function setBrandStatus(ports: ChangePorts, slug: string, status: BrandStatus): Promise<Brand> {
  return changeBrand(ports, slug, (current) => {
    refuseTransition(current, status)
    const details = { status: `${current.status} → ${status}` }
    return {
      brand: { ...current, status },
      entry: { action: 'brand.status', target: current.slug, details },
    }
  })
}

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

const maxKeys = 2

function activeKeys(keys: readonly AppKey[]): readonly AppKey[] {
  return keys.filter(({ revokedAt }) => revokedAt === null)
}

function listed(keys: readonly AppKey[]): string {
  return keys.map(({ lastFour }) => lastFour).join(' and ')
}

function requireAppId(appId: string): void {
  if (!isAppId(appId))
    throw new InvalidInput('The appId must be 1 to 64 visible ASCII characters without spaces and colons.')
}

function addKey({ key: _, ...newKey }: ApiKey, keys: readonly AppKey[]): Omit<ApiKey, 'key'> {
  if (keys.some(({ lastFour }) => lastFour === newKey.lastFour)) {
    throw new OperatorError(
      'The new key ended with the same four characters as an earlier key, so no key was created. Try again.',
    )
  }
  return newKey
}

/** Undefined fields stay unchanged (design D38). */
export interface ScopeChange {
  /** Slugs as given. Empty: every brand. */
  readonly brands?: readonly string[] | undefined
  readonly operations?: readonly AppOperation[] | undefined
  /** 1 to 999,999. Null: GLOBAL_LIMIT_PER_MINUTE. */
  readonly perMinute?: number | null | undefined
}

/** @param brandSlugs the slugs of all brands */
function changedScope(
  before: AppScope,
  { brands, operations, perMinute }: ScopeChange,
  brandSlugs: readonly string[],
): AppScope {
  const slugs = brands && [...new Set(brands.map(nameKey))].sort()
  const unknown = slugs?.filter((slug) => !brandSlugs.includes(slug)) ?? []
  if (unknown.length > 0) {
    const subject = unknown.length === 1 ? 'Brand' : 'Brands'
    const verb = unknown.length === 1 ? 'does' : 'do'
    throw new OperatorError(
      `${subject} ${unknown.join(', ')} ${verb} not exist. \`otpost brand list\` lists the brands.`,
    )
  }
  if (operations?.length === 0) {
    throw new InvalidInput('An app needs at least one operation: otp or notify.')
  }
  if (perMinute != null && !(Number.isInteger(perMinute) && perMinute >= 1 && perMinute <= 999_999)) {
    throw new InvalidInput('The calls per minute must be a whole number from 1 to 999999.')
  }
  return {
    appId: before.appId,
    brands: slugs ?? before.brands,
    allowsOtp: operations?.includes('otp') ?? before.allowsOtp,
    allowsNotify: operations?.includes('notify') ?? before.allowsNotify,
    perMinute: perMinute === undefined ? before.perMinute : perMinute,
  }
}

export function scopeSentence(scope: AppScope): string {
  const { brands, allow, perMinute } = scopeWords(scope)
  return `Scope of ${scope.appId}: brands ${brands}; operations ${allow}; calls per minute ${perMinute}.`
}

/** As the audit log has it. */
function scopeWords(scope: AppScope) {
  return {
    brands: scope.brands.join(', ') || 'any',
    allow: operationsOf(scope).join(', '),
    perMinute: scope.perMinute === null ? 'default' : String(scope.perMinute),
  }
}

/**
 * `app issue`. The returned key is not stored. An app whose keys are all revoked keeps its earlier scope, as far as
 * `requested` does not change it.
 */
export async function issueApp(
  ports: OperatorPorts,
  appId: string,
  requested: ScopeChange = {},
): Promise<{ readonly key: string; readonly scope: AppScope; readonly hadScope: boolean }> {
  requireAppId(appId)
  const apiKey = ports.secrets.newApiKey()
  const { scope, hadScope } = await change(ports, { appId }, ({ keys, brandSlugs, scope: before }) => {
    const scope = changedScope(before ?? unscoped(appId), requested, brandSlugs)
    const details = { key: apiKey.lastFour, ...(isUnscoped(scope) ? {} : scopeWords(scope)) }
    return {
      newKey: firstKey(appId, apiKey, keys),
      scope,
      hadScope: before !== undefined,
      entry: { action: 'app.issued', target: appId, details },
    }
  })
  return { key: apiKey.key, scope, hadScope }
}

/**
 * `app set`.
 * @param configured the apps in APP_CREDENTIALS
 */
export async function setApp(
  ports: ChangePorts,
  appId: string,
  requested: ScopeChange,
  configured: readonly string[],
): Promise<AppScope> {
  const { scope } = await change(ports, { appId }, ({ keys, brandSlugs, scope: before }) => {
    if (keys.length === 0 && !configured.includes(appId) && !before) {
      throw new OperatorError(
        `App ${appId} does not exist: it has no key here and is not in APP_CREDENTIALS. \`otpost app list\` lists the apps.`,
      )
    }
    const was = before ?? unscoped(appId)
    const scope = changedScope(was, requested, brandSlugs)
    const details = differences(scopeWords(was), scopeWords(scope))
    const isSame = Object.keys(details).length === 0
    return { scope, entry: isSame ? null : { action: 'app.changed', target: appId, details } }
  })
  return scope
}

function firstKey(appId: string, apiKey: ApiKey, keys: readonly AppKey[]): Omit<ApiKey, 'key'> {
  if (activeKeys(keys).length > 0) {
    throw new OperatorError(
      `App ${appId} already has a key. Create a second key with \`otpost app rotate ${appId}\`, or revoke the first with \`otpost app revoke ${appId}\`.`,
    )
  }
  return addKey(apiKey, keys)
}

/** `app rotate`: returns a second key. The first stays active until it is revoked. */
export async function rotateApp(ports: OperatorPorts, appId: string): Promise<string> {
  const apiKey = ports.secrets.newApiKey()
  await change(ports, { appId }, ({ keys }) => {
    const active = activeKeys(keys)
    if (active.length === 0) {
      throw new OperatorError(
        `App ${appId} has no active key. Create one with \`otpost app issue ${appId}\`.`,
      )
    }
    if (active.length >= maxKeys) {
      throw new OperatorError(
        `App ${appId} already has two keys, ending in ${listed(active)}. Revoke the unused one with \`otpost app revoke-key ${appId} LAST4\`.`,
      )
    }
    const details = { key: apiKey.lastFour, beside: listed(active) }
    return { newKey: addKey(apiKey, keys), entry: { action: 'app.rotated', target: appId, details } }
  })
  return apiKey.key
}

/** `app revoke-key`: returns the number of active keys left. */
export async function revokeKey(ports: ChangePorts, appId: string, ending: string): Promise<number> {
  const { left } = await change(ports, { appId }, ({ keys }) => {
    const active = activeKeys(keys)
    const key = active.find(({ lastFour }) => ending !== '' && lastFour === ending.slice(-lastFour.length))
    if (!key) {
      throw new OperatorError(
        active.length === 0
          ? `App ${appId} has no active key. \`otpost app list\` lists the apps.`
          : `App ${appId} has no active key that ends in ${ending.slice(-4)}. Its keys end in ${listed(active)}.`,
      )
    }
    return {
      revokedKeys: [key.lastFour],
      left: active.length - 1,
      entry: { action: 'app.key-revoked', target: appId, details: { key: key.lastFour } },
    }
  })
  return left
}

/** @returns a warning if APP_CREDENTIALS also has a key of the app */
export async function revokeApp(
  ports: ChangePorts,
  appId: string,
  configured: readonly string[] = [],
): Promise<string | undefined> {
  const warning = configured.includes(appId)
    ? `The key of ${appId} in APP_CREDENTIALS is still valid. Remove it from APP_CREDENTIALS, and restart the server.`
    : undefined
  await change(ports, { appId }, ({ keys }) => {
    const active = activeKeys(keys)
    if (active.length === 0) {
      throw new OperatorError(
        warning ?? `App ${appId} has no active key. \`otpost app list\` lists the apps.`,
      )
    }
    return {
      revokedKeys: active.map(({ lastFour }) => lastFour),
      entry: { action: 'app.revoked', target: appId, details: { keys: listed(active) } },
    }
  })
  return warning
}

/**
 * `request approve`: creates the app, scoped to the brand (design D38), and, if missing, the brand. The returned key is
 * not stored.
 */
export async function approveRequest(
  ports: OperatorPorts,
  idAsGiven: string,
  { appId, brandSlug: slugAsGiven }: { readonly appId: string; readonly brandSlug: string },
): Promise<{ readonly key: string; readonly brand: Brand; readonly brandExisted: boolean }> {
  requireAppId(appId)
  const requestId = requestIdOf(idAsGiven)
  const brandSlug = nameKey(slugAsGiven)
  const apiKey = ports.secrets.newApiKey()
  const target = { requestId, appId, brandSlug }
  const { brand, brandExisted } = await change(ports, target, ({ request, brand: current, keys, scope }) => {
    const { brandName } = requirePending(requestId, request)
    const brand = current ?? { ...freshBrand(brandSlug), displayName: brandName }
    refuse(brandProblems(brand), InvalidInput)
    const existed = current ? { brandExisted: 'yes' } : {}
    const details = { app: appId, key: apiKey.lastFour, brand: brandSlug, ...existed }
    return {
      brand,
      brandExisted: current !== undefined,
      newKey: firstKey(appId, apiKey, keys),
      scope: { ...(scope ?? unscoped(appId)), brands: [brandSlug] },
      verdict: { status: 'approved', reason: null, appId, brandSlug },
      entry: { action: 'request.approved', target: requestId, details },
    }
  })
  return { key: apiKey.key, brand, brandExisted }
}

export async function rejectRequest(
  ports: ChangePorts,
  idAsGiven: string,
  reasonAsGiven: string,
): Promise<void> {
  const requestId = requestIdOf(idAsGiven)
  const reason = reasonAsGiven.trim() || null
  const problem = reason && textProblem('The reason', reason, { max: 500, lines: 'many' })
  if (problem) throw new InvalidInput(problem)
  await change(ports, { requestId }, ({ request }) => {
    requirePending(requestId, request)
    return {
      verdict: { status: 'rejected', reason, appId: null, brandSlug: null },
      // The applicant and the reason are left out, so that `forget` can delete them.
      entry: { action: 'request.rejected', target: requestId, details: {} },
    }
  })
}

export function requestIdOf(text: string): string {
  return text.trim().toLowerCase()
}

export function noRequest(requestId: string): OperatorError {
  return new OperatorError(`Request ${requestId} does not exist. \`otpost request list\` lists the requests.`)
}

function requirePending(
  requestId: string,
  request: IntegrationRequestRecord | undefined,
): IntegrationRequestRecord {
  if (!request) throw noRequest(requestId)
  if (request.status === 'pending') return request
  throw new OperatorError(`Request ${requestId} is already ${request.status}.`)
}

/** `acme-shop` for `Acme Shop!`; may be empty. */
export function suggestedSlug(name: string): string {
  return name
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/\p{M}/gu, '')
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, 40)
    .replace(/-+$/, '')
}
