import { type TextRule, textProblem } from '../body.ts'
import {
  type Brand,
  type BrandStatus,
  type Brands,
  brandProblems,
  brandStatuses,
  mayBecome,
  nameKey,
  registrationOf,
  type TemplateRegistration,
} from '../brands/brand.ts'
import type { IntegrationRequestRecord } from '../integration/integration.ts'
import { isAppId } from '../otp/credentials.ts'
import type { ApiKey, Clock, Secrets } from '../ports.ts'
import type { Actor, AuditEntry } from './audit.ts'

/** A change that is not possible; the message says why and what to do. */
export class OperatorError extends Error {
  override readonly name = 'OperatorError'
}

export interface BrandStore extends Brands {
  /** By slug. */
  list(): Promise<readonly Brand[]>
}

/** Instants are epoch milliseconds. */
export interface AppKey {
  /** `unknown` for keys created before it was stored. */
  readonly lastFour: string
  readonly createdAt: number
  readonly revokedAt: number | null
  /** To the minute; null: never, or before it was stored. */
  readonly lastUsedAt: number | null
}

/** It has at least one key, which may be revoked. */
export interface IssuedApp {
  readonly appId: string
  /** Of its first key. */
  readonly createdAt: number
  /** Of its last key; null while one is active. */
  readonly revokedAt: number | null
  readonly keys: readonly AppKey[]
}

export interface AppStore {
  /** By appId, with revoked ones. */
  list(): Promise<readonly IssuedApp[]>
}

export interface RequestQuery {
  readonly isPending?: boolean
  readonly limit?: number
  readonly offset?: number
}

export interface IntegrationRequestStore {
  /** The latest first. */
  list(query?: RequestQuery): Promise<readonly IntegrationRequestRecord[]>
  pendingCount(): Promise<number>
  get(id: string): Promise<IntegrationRequestRecord | undefined>
}

export interface ChangeTarget {
  readonly brandSlug?: string
  readonly appId?: string
  readonly requestId?: string
}

export interface CurrentState {
  readonly brand: Brand | undefined
  /** Of the app, with revoked ones, in the order of creation. */
  readonly keys: readonly AppKey[]
  readonly request: IntegrationRequestRecord | undefined
}

export interface Decision {
  readonly brand?: Brand
  readonly newKey?: Omit<ApiKey, 'key'>
  /** By their last four characters. */
  readonly revokedKeys?: readonly string[]
  readonly verdict?: Pick<IntegrationRequestRecord, 'reason' | 'appId' | 'brandSlug'> & {
    status: 'approved' | 'rejected'
  }
  /** Null: nothing changes. */
  readonly entry: Pick<AuditEntry, 'action' | 'target' | 'details'> | null
}

export interface OperatorStore {
  /**
   * Calls `decide` with the current state, and stores its decision and audit entry in one atomic step. `decide` must be
   * synchronous and may be called twice; when it throws, nothing is stored.
   */
  change<D extends Decision>(
    about: ChangeTarget,
    by: { readonly actor: Actor; readonly now: number },
    decide: (current: CurrentState) => D,
  ): Promise<D>
  /** Adds an audit entry for a change made elsewhere. */
  note(entry: AuditEntry): Promise<void>
}

export interface OperatorPorts {
  readonly operator: OperatorStore
  readonly secrets: Pick<Secrets, 'newApiKey'>
  readonly now: Clock
  readonly actor: Actor
}

function change<D extends Decision>(
  { operator, actor, now }: Omit<OperatorPorts, 'secrets'>,
  about: ChangeTarget,
  decide: (current: CurrentState) => D,
): Promise<D> {
  return operator.change(about, { actor, now: now() }, decide)
}

type BrandPorts = Omit<OperatorPorts, 'secrets'>

/** Undefined fields stay as they are, or have their default in a new brand. */
export type BrandChange = { readonly [Field in keyof Omit<Brand, 'slug'>]?: Brand[Field] | undefined }

/** `brand put`: creates or changes a brand. */
export async function putBrand(
  ports: BrandPorts,
  slugAsGiven: string,
  asked: BrandChange,
  how: { readonly mustBeNew?: boolean } = {},
): Promise<Brand> {
  const brandSlug = nameKey(slugAsGiven)
  const said = normalized(asked)
  const { brand } = await change(ports, { brandSlug }, ({ brand: current }) => {
    if (current && how.mustBeNew) throw new OperatorError(`there is a brand ${brandSlug} already`)
    if (!current && asked.displayName === undefined) {
      // First the problems that a name would not solve.
      requireSound({ ...freshBrand(brandSlug), ...said, displayName: 'any' })
      throw new OperatorError(`brand ${brandSlug} does not exist yet: give it a name with --name`)
    }
    const brand: Brand = { ...freshBrand(brandSlug), ...current, ...said }
    requireSound(brand)
    if (current && current.status !== brand.status) refuseTransition(current, brand.status)
    const action = current ? ('brand.changed' as const) : ('brand.created' as const)
    const details = differences(current ?? freshBrand(brandSlug), brand)
    const isSame = current && Object.keys(details).length === 0
    return { brand, entry: isSame ? null : { action, target: brandSlug, details } }
  })
  return brand
}

function normalized({
  displayName,
  domain,
  entityId,
  notifyTemplates,
  ...rest
}: BrandChange): Partial<Brand> {
  const all = {
    ...rest,
    displayName: displayName?.trim(),
    domain: domain?.trim().toLowerCase() ?? domain,
    entityId: entityId?.trim() ?? entityId,
    notifyTemplates: notifyTemplates && [...new Set(notifyTemplates)],
  }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined))
}

export function freshBrand(slug: string): Brand {
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
  }
}

function requireSound(brand: Brand): void {
  const problems = brandProblems(brand)
  if (problems.length > 0) throw new OperatorError(problems.join('\n'))
}

/** `before → after` of each changed field. */
function differences<T extends object>(before: T, after: T): Record<string, string> {
  const details: Record<string, string> = {}
  for (const [field, value] of Object.entries(after)) {
    const [was, is] = [inWords((before as Record<string, unknown>)[field]), inWords(value)]
    if (was !== is) details[field] = `${was} → ${is}`
  }
  return details
}

function inWords(value: unknown): string {
  if (value === null || value === undefined || value === '') return '-'
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** `brand template`: undefined fields stay as they are unless it `replaces`; null removes the registration. */
export async function registerTemplate(
  ports: BrandPorts,
  slugAsGiven: string,
  templateKey: string,
  asked: Partial<TemplateRegistration> | null,
  how: { readonly replaces?: boolean } = {},
): Promise<Brand> {
  const brandSlug = nameKey(slugAsGiven)
  const { brand } = await change(ports, { brandSlug }, ({ brand: current }) => {
    if (!current) throw new OperatorError(`there is no brand ${brandSlug}: see otpost brand list`)
    const { [templateKey]: before, ...others } = current.registrations
    const { id = null, ids = {}, senderId = null } = (how.replaces ? undefined : before) ?? {}
    const after = asked && {
      id: asked.id === undefined ? id : asked.id,
      ids: { ...ids, ...asked.ids },
      senderId: asked.senderId === undefined ? senderId : asked.senderId,
    }
    const brand: Brand = { ...current, registrations: after ? { ...others, [templateKey]: after } : others }
    requireSound(brand)
    const changes = differences(registrationOf(current, templateKey), registrationOf(brand, templateKey))
    const details = { template: templateKey, ...changes }
    const isSame = Object.keys(changes).length === 0
    return {
      brand,
      entry: isSame ? null : { action: 'brand.template' as const, target: brandSlug, details },
    }
  })
  return brand
}

/** `brand status`: the transitions of design D8. */
export async function setBrandStatus(
  ports: BrandPorts,
  slugAsGiven: string,
  status: BrandStatus,
): Promise<Brand> {
  const brandSlug = nameKey(slugAsGiven)
  const { brand } = await change(ports, { brandSlug }, ({ brand: current }) => {
    if (!current) throw new OperatorError(`there is no brand ${brandSlug}: see otpost brand list`)
    refuseTransition(current, status)
    const brand: Brand = { ...current, status }
    const details = { status: `${current.status} → ${status}` }
    return { brand, entry: { action: 'brand.status' as const, target: brandSlug, details } }
  })
  return brand
}

export function brandStatus(value: string): BrandStatus {
  const status = brandStatuses.find((known) => known === value)
  if (!status) throw new OperatorError(`unknown status ${value}: it is one of ${brandStatuses.join(', ')}`)
  return status
}

function refuseTransition(brand: Brand, to: BrandStatus): void {
  if (mayBecome(brand.status, to)) return
  const next = brandStatuses.filter((status) => mayBecome(brand.status, status)).join(' or ')
  const refusal = brand.status === to ? `is ${to} already` : `is ${brand.status} and can't become ${to}`
  throw new OperatorError(`brand ${brand.slug} ${refusal}; it can become ${next}`)
}

/** One in use, and one to change over to. */
const mostKeys = 2

function isLive({ revokedAt }: AppKey): boolean {
  return revokedAt === null
}

function listed(keys: readonly AppKey[]): string {
  return keys.map(({ lastFour }) => lastFour).join(' and ')
}

function requireAppId(appId: string): void {
  if (!isAppId(appId))
    throw new OperatorError('an appId is 1 to 64 visible characters, without spaces and colons')
}

function addKey(newKey: ApiKey, keys: readonly AppKey[]): Omit<ApiKey, 'key'> {
  const { key: _, ...kept } = newKey
  // Probability 1 in 14 million.
  if (keys.some(({ lastFour }) => lastFour === kept.lastFour)) {
    throw new OperatorError('the new key ends as an older one does: ask for it again')
  }
  return kept
}

/** `app issue`: resolves to the new key, which is not stored. */
export async function issueApp(ports: OperatorPorts, appId: string): Promise<string> {
  requireAppId(appId)
  const made = ports.secrets.newApiKey()
  await change(ports, { appId }, ({ keys }) => ({
    newKey: firstKey(appId, made, keys),
    entry: { action: 'app.issued' as const, target: appId, details: { key: made.lastFour } },
  }))
  return made.key
}

function firstKey(appId: string, made: ApiKey, keys: readonly AppKey[]): Omit<ApiKey, 'key'> {
  if (keys.some(isLive)) {
    throw new OperatorError(
      `app ${appId} has a key already: give it a second one with otpost app rotate ${appId}, or revoke it first with otpost app revoke ${appId}`,
    )
  }
  return addKey(made, keys)
}

/** `app rotate`: resolves to a second key; the first stays active until it is revoked. */
export async function rotateApp(ports: OperatorPorts, appId: string): Promise<string> {
  const made = ports.secrets.newApiKey()
  await change(ports, { appId }, ({ keys }) => {
    const live = keys.filter(isLive)
    if (live.length === 0) {
      throw new OperatorError(
        `app ${appId} has no key to go on with: issue one with otpost app issue ${appId}`,
      )
    }
    if (live.length >= mostKeys) {
      throw new OperatorError(
        `app ${appId} has two keys already, ending in ${listed(live)}: revoke the one that is not used any more with otpost app revoke-key ${appId} LAST4`,
      )
    }
    const details = { key: made.lastFour, beside: listed(live) }
    return {
      newKey: addKey(made, keys),
      entry: { action: 'app.rotated' as const, target: appId, details },
    }
  })
  return made.key
}

/** `app revoke-key`: resolves to the number of keys left. */
export async function revokeKey(
  ports: Omit<OperatorPorts, 'secrets'>,
  appId: string,
  ending: string,
): Promise<number> {
  const { left } = await change(ports, { appId }, ({ keys }) => {
    const live = keys.filter(isLive)
    const [key] = live.filter(({ lastFour }) => ending !== '' && lastFour === ending.slice(-lastFour.length))
    if (!key) {
      throw new OperatorError(
        live.length === 0
          ? `there is no app ${appId} with a key: see otpost app list`
          : `app ${appId} has no key that ends in ${ending.slice(-4)}: its keys end in ${listed(live)}`,
      )
    }
    return {
      revokedKeys: [key.lastFour],
      left: live.length - 1,
      entry: { action: 'app.key-revoked' as const, target: appId, details: { key: key.lastFour } },
    }
  })
  return left
}

/**
 * `app revoke`: revokes every key of an app.
 *
 * @param configured the known apps of APP_CREDENTIALS
 * @returns a warning about a key in APP_CREDENTIALS
 */
export async function revokeApp(
  ports: Omit<OperatorPorts, 'secrets'>,
  appId: string,
  configured: readonly string[] = [],
): Promise<string | undefined> {
  const worksStill = configured.includes(appId)
    ? `the key of ${appId} in APP_CREDENTIALS goes on working: take it out there, and restart the server`
    : undefined
  await change(ports, { appId }, ({ keys }) => {
    const live = keys.filter(isLive)
    if (live.length === 0) {
      throw new OperatorError(worksStill ?? `there is no app ${appId} with a key: see otpost app list`)
    }
    return {
      revokedKeys: live.map(({ lastFour }) => lastFour),
      entry: { action: 'app.revoked' as const, target: appId, details: { keys: listed(live) } },
    }
  })
  return worksStill
}

export interface Approval {
  /** The app's key, which is not stored. */
  readonly key: string
  readonly brand: Brand
  /** An existing brand is not changed. */
  readonly brandExisted: boolean
}

/** `request approve`: creates the app and, unless it exists, the brand. */
export async function approveRequest(
  ports: OperatorPorts,
  idAsGiven: string,
  { appId, brandSlug: slugAsGiven }: { readonly appId: string; readonly brandSlug: string },
): Promise<Approval> {
  requireAppId(appId)
  const requestId = requestIdOf(idAsGiven)
  const brandSlug = nameKey(slugAsGiven)
  const made = ports.secrets.newApiKey()
  const { brand, brandExisted } = await change(
    ports,
    { requestId, appId, brandSlug },
    ({ request, brand: current, keys }) => {
      const { brandName } = requirePending(requestId, request)
      const brand = current ?? { ...freshBrand(brandSlug), displayName: brandName }
      requireSound(brand)
      return {
        brand,
        brandExisted: current !== undefined,
        newKey: firstKey(appId, made, keys),
        verdict: { status: 'approved' as const, reason: null, appId, brandSlug },
        entry: {
          action: 'request.approved' as const,
          target: requestId,
          details: {
            app: appId,
            key: made.lastFour,
            brand: brandSlug,
            ...(current ? { brandExisted: 'yes' } : {}),
          },
        },
      }
    },
  )
  return { key: made.key, brand, brandExisted }
}

const reasonRule: TextRule = { max: 500, lines: 'many' }

/** `request reject` */
export async function rejectRequest(
  ports: Omit<OperatorPorts, 'secrets'>,
  idAsGiven: string,
  reasonAsGiven: string,
): Promise<void> {
  const requestId = requestIdOf(idAsGiven)
  const reason = reasonAsGiven.trim()
  const problem = reason === '' ? undefined : textProblem('the reason', reason, reasonRule)
  if (problem !== undefined) throw new OperatorError(problem)
  await change(ports, { requestId }, ({ request }) => {
    requirePending(requestId, request)
    return {
      verdict: { status: 'rejected' as const, reason: reason || null, appId: null, brandSlug: null },
      entry: {
        action: 'request.rejected' as const,
        target: requestId,
        // Without the applicant and the reason, so that they can be forgotten.
        details: {},
      },
    }
  })
}

/** People paste it with spaces around it or in capitals. */
export function requestIdOf(text: string): string {
  return text.trim().toLowerCase()
}

function requirePending(
  requestId: string,
  request: IntegrationRequestRecord | undefined,
): IntegrationRequestRecord {
  if (!request) throw new OperatorError(`there is no request ${requestId}: see otpost request list`)
  if (request.status === 'pending') return request
  throw new OperatorError(`request ${requestId} is ${request.status} already`)
}

/** Such as `acme-shop` for `Acme Shop!`; may be empty. */
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
