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

/** What an operator asked for can't be done; the message says why and what to do. */
export class OperatorError extends Error {
  override readonly name = 'OperatorError'
}

/** The brands as the operator sees them. */
export interface BrandStore extends Brands {
  /** By slug. */
  list(): Promise<readonly Brand[]>
}

/** A key of an application as it is listed; instants are epoch milliseconds. */
export interface AppKey {
  /** How it ends; `unknown` for one from before this was kept. */
  readonly lastFour: string
  readonly createdAt: number
  readonly revokedAt: number | null
  /** To the minute; null: never, or not since this is kept. */
  readonly lastUsedAt: number | null
}

/** An issued application: it has at least one key, which may be revoked. */
export interface IssuedApp {
  readonly appId: string
  /** When its first key was made. */
  readonly createdAt: number
  /** When its last key was revoked; null while one works. */
  readonly revokedAt: number | null
  /** In the order in which they were made. */
  readonly keys: readonly AppKey[]
}

/** The applications as the operator sees them. */
export interface AppStore {
  /** By appId, revoked ones included. */
  list(): Promise<readonly IssuedApp[]>
}

export interface RequestQuery {
  readonly isPending?: boolean
  readonly limit?: number
  /** How many are passed over before. */
  readonly offset?: number
}

/** The integration requests as the operator sees them. */
export interface IntegrationRequestStore {
  /** The latest first; the last `limit` of those that wait for a decision, or that have been decided, or all. */
  list(query?: RequestQuery): Promise<readonly IntegrationRequestRecord[]>
  /** How many wait for a decision. */
  pendingCount(): Promise<number>
  get(id: string): Promise<IntegrationRequestRecord | undefined>
}

/** What a change is about, by the names that tell it. */
export interface ChangeTarget {
  readonly brandSlug?: string
  readonly appId?: string
  readonly requestId?: string
}

/** What is kept of a matter when it is decided. */
export interface CurrentState {
  readonly brand: Brand | undefined
  /** Of the application, revoked ones included, in the order in which they were made. */
  readonly keys: readonly AppKey[]
  readonly request: IntegrationRequestRecord | undefined
}

/** What is to become of a matter, and how the audit log tells it. */
export interface Decision {
  readonly brand?: Brand
  readonly newKey?: Omit<ApiKey, 'key'>
  /** Keys of the application that stop working, by their ends. */
  readonly revokedKeys?: readonly string[]
  readonly verdict?: Pick<IntegrationRequestRecord, 'reason' | 'appId' | 'brandSlug'> & {
    status: 'approved' | 'rejected'
  }
  /** Null: nothing is to change after all. */
  readonly entry: Pick<AuditEntry, 'action' | 'target' | 'details'> | null
}

/** Where operators change things. */
export interface OperatorStore {
  /**
   * Lets `decide` judge a matter as it is, and stores what it decides together with its entry of the audit log, in one
   * atomic step; resolves to that. `decide` must be synchronous and may be called twice; when it throws, nothing is
   * stored.
   */
  change<D extends Decision>(
    about: ChangeTarget,
    by: { readonly actor: Actor; readonly now: number },
    decide: (current: CurrentState) => D,
  ): Promise<D>
  /** Adds to the audit log what was done elsewhere. */
  note(entry: AuditEntry): Promise<void>
}

/** What the use cases of an operator need; `actor` is who asks. */
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

/** What an operator says of a brand; what is left out stays, or takes its default in a new brand. */
export type BrandChange = { readonly [Field in keyof Omit<Brand, 'slug'>]?: Brand[Field] | undefined }

/** `brand put`: makes a brand, active unless told otherwise, or changes one. */
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
      // First what no name would mend.
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

/** What an operator says of a brand, without what is left out and without spaces that were typed around it. */
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

/** A brand of which nothing has been said yet. */
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

/** Each field that was changed, as `before → after`. */
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

/**
 * `brand template`: says how a template of a brand is registered with carriers and vendors. What is left out stays, unless
 * it replaces what was there; null forgets the registration.
 */
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

/** `brand status`: moves a brand to a status by the transitions of design D8. */
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

/** A status in the operator's words. */
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

/** How many keys of an application work at a time: one in use, and one to change over to. */
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

/** A new key that no other of the application's is mistaken for. */
function addKey(newKey: ApiKey, keys: readonly AppKey[]): Omit<ApiKey, 'key'> {
  const { key: _, ...kept } = newKey
  // One in fourteen million; asking again makes another.
  if (keys.some(({ lastFour }) => lastFour === kept.lastFour)) {
    throw new OperatorError('the new key ends as an older one does: ask for it again')
  }
  return kept
}

/** `app issue`: resolves to the new key, which exists nowhere else. */
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

/** `app rotate`: resolves to a second key, which works beside the first until that is revoked. */
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

/** `app revoke-key`: the key of the app that ends like this stops working; resolves to how many go on working. */
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
 * `app revoke`: every key of the app stops working, but for one in the setting APP_CREDENTIALS.
 *
 * @param configured the apps of that setting, as far as it is known here
 * @returns what to say of a key that goes on working; undefined: there is none
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

/** What approval of a request made. */
export interface Approval {
  /** The app's key, which exists nowhere else. */
  readonly key: string
  readonly brand: Brand
  /** Whether the brand was there before, and was left as it was. */
  readonly brandExisted: boolean
}

/** `request approve`: makes the brand, unless there is one, and the app, in one step. */
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

/** `request reject`; the reason is kept for the operator. */
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
        // Who asked, and why not, is told by the request alone: it may speak of a person, who may want to be forgotten.
        details: {},
      },
    }
  })
}

/** The id of a request in its normal form: people paste it with spaces around it, or in capitals. */
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

/** An appId or slug that suggests itself for a name, such as `acme-shop` for `Acme Shop!`; may be empty. */
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
