import type { Actor, AuditEntry, AuditRecord } from '../ground/audit.ts'
import { OperatorError } from '../ground/operator-error.ts'
import type { ApiKey, Secrets } from '../ground/ports.ts'
import type { Clock, EpochMs } from '../ground/time.ts'
import type { IntegrationRequestRecord } from '../integration/integration.ts'
import type { AppScope } from '../limits/scope.ts'
import type { Brand, BrandList, Brands, BrandWithTexts } from '../texts/brand.ts'
import type { BrandDraft, BrandText, DeclaredVariable, TextTarget } from '../texts/brand-texts.ts'

export type BrandStore = Brands & BrandList

export interface AppKey {
  /** `unknown` for keys created before it was stored. */
  readonly lastFour: string
  readonly createdAt: EpochMs
  readonly revokedAt: EpochMs | null
  /** To the minute. Null: never, or before it was stored. */
  readonly lastUsedAt: EpochMs | null
  /** The network of that use: a /24 or /48. */
  readonly lastUsedFrom: string | null
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

export interface KeyOwners {
  /** The app that an API key is or was of. */
  ownerOf(apiKey: string): Promise<KeyOwner | undefined>
}

export interface KeyOwner {
  readonly appId: string
  /** Null: it is in APP_CREDENTIALS. */
  readonly key: AppKey | null
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
  readonly saveDraft?: BrandDraft
  readonly removeDraft?: TextTarget
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

export function change<D extends Decision>(
  { operator, actor, now }: ChangePorts,
  about: ChangeTarget,
  decide: (current: CurrentState) => D,
): Promise<D> {
  return operator.change(about, { actor, now: now() }, decide)
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

export function inWords(value: unknown): string {
  if (value === null || value === undefined || value === '') return '-'
  return typeof value === 'string' ? value : JSON.stringify(value)
}
