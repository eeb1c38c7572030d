import {
  type Brand,
  type BrandStatus,
  type Brands,
  brandProblems,
  brandStatuses,
  mayBecome,
  nameKey,
  type TemplateRegistration,
} from './brand.ts'
import { isAppId } from './credentials.ts'
import type { Clock, Secrets } from './ports.ts'

/** What an operator asked for can't be done; the message says why and what to do. */
export class OperatorError extends Error {
  override readonly name = 'OperatorError'
}

/** The brands as the operator keeps them. */
export interface BrandBook extends Brands {
  /** By slug. */
  list(): Promise<readonly Brand[]>
  /**
   * Stores what `change` makes of a brand, or of its absence, in one atomic step; resolves to that. `change` must be
   * synchronous; when it throws, nothing is stored.
   */
  edit(slug: string, change: (current: Brand | undefined) => Brand): Promise<Brand>
}

/** An issued application as it is listed. */
export interface IssuedApp {
  readonly appId: string
  /** Epoch milliseconds. */
  readonly createdAt: number
  readonly revokedAt: number | null
}

/** The applications as the operator keeps them. */
export interface AppBook {
  /** By appId, revoked ones included. */
  list(): Promise<readonly IssuedApp[]>
  /** Keeps the hash of a new key; false, and nothing is changed, while the app has a key that is not revoked. */
  issue(appId: string, keySha256: string, now: number): Promise<boolean>
  /** False when there is no such app, or it was revoked before. */
  revoke(appId: string, now: number): Promise<boolean>
}

/** What an operator says of a brand; what is left out stays, or takes its default in a new brand. */
export type BrandChange = { readonly [Field in keyof Omit<Brand, 'slug'>]?: Brand[Field] | undefined }

/** `brand put`: makes a brand, active unless told otherwise, or changes one. */
export function putBrand(brands: BrandBook, slugAsGiven: string, change: BrandChange): Promise<Brand> {
  const slug = nameKey(slugAsGiven)
  const said = Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined))
  return brands.edit(slug, (current) => {
    if (!current && change.displayName === undefined) {
      throw new OperatorError(`brand ${slug} does not exist yet: give it a name with --name`)
    }
    const fresh: Brand = {
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
    const brand: Brand = { ...fresh, ...current, ...said }
    const problems = brandProblems(brand)
    if (problems.length > 0) throw new OperatorError(problems.join('\n'))
    if (current && current.status !== brand.status) refuseTransition(current, brand.status)
    return brand
  })
}

/**
 * `brand template`: says how a template of a brand is registered with carriers and vendors. What is left out stays; null
 * forgets the registration.
 */
export function registerTemplate(
  brands: BrandBook,
  slugAsGiven: string,
  templateKey: string,
  change: Partial<TemplateRegistration> | null,
): Promise<Brand> {
  const slug = nameKey(slugAsGiven)
  return brands.edit(slug, (current) => {
    if (!current) throw new OperatorError(`there is no brand ${slug}: see otpost brand list`)
    const { [templateKey]: before, ...others } = current.registrations
    const { id = null, ids = {}, senderId = null } = before ?? {}
    const after = change && {
      id: change.id ?? id,
      ids: { ...ids, ...change.ids },
      senderId: change.senderId ?? senderId,
    }
    const brand: Brand = {
      ...current,
      registrations: after ? { ...others, [templateKey]: after } : others,
    }
    const problems = brandProblems(brand)
    if (problems.length > 0) throw new OperatorError(problems.join('\n'))
    return brand
  })
}

/** `brand status`: moves a brand to a status by the transitions of design D8. */
export function setBrandStatus(brands: BrandBook, slugAsGiven: string, status: BrandStatus): Promise<Brand> {
  const slug = nameKey(slugAsGiven)
  return brands.edit(slug, (current) => {
    if (!current) throw new OperatorError(`there is no brand ${slug}: see otpost brand list`)
    refuseTransition(current, status)
    return { ...current, status }
  })
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

export interface AppPorts {
  readonly apps: AppBook
  readonly secrets: Pick<Secrets, 'newApiKey'>
  readonly now: Clock
}

/** `app issue`: resolves to the new key, which exists nowhere else. */
export async function issueApp({ apps, secrets, now }: AppPorts, appId: string): Promise<string> {
  if (!isAppId(appId)) {
    throw new OperatorError('an appId is 1 to 64 visible characters without a colon')
  }
  const { key, sha256 } = secrets.newApiKey()
  if (await apps.issue(appId, sha256, now())) return key
  throw new OperatorError(`app ${appId} has a key already: revoke it first with otpost app revoke ${appId}`)
}

/** `app revoke`: the key of the app stops working. */
export async function revokeApp({ apps, now }: Omit<AppPorts, 'secrets'>, appId: string): Promise<void> {
  if (await apps.revoke(appId, now())) return
  throw new OperatorError(`there is no app ${appId} with a key: see otpost app list`)
}
