import type { EpochMs } from './time.ts'
export interface Actor {
  readonly by: 'command' | 'console'
  readonly name: string
}

export type AuditAction =
  | 'brand.created'
  | 'brand.changed'
  | 'brand.status'
  | 'brand.template'
  | 'text.set'
  | 'text.removed'
  | 'message.tested'
  | 'app.issued'
  | 'app.changed'
  | 'app.rotated'
  | 'app.key-revoked'
  | 'app.revoked'
  | 'app.webhook-set'
  | 'app.webhook-removed'
  | 'app.event-sent'
  | 'destination.set'
  | 'destination.removed'
  | 'guard.set'
  | 'guard.removed'
  | 'review-number.added'
  | 'review-number.removed'
  | 'review-number.used'
  | 'price.imported'
  | 'budget.set'
  | 'budget.lifted'
  | 'budget.removed'
  | 'queue.retried'
  | 'queue.cancelled'
  | 'request.approved'
  | 'request.rejected'
  | (typeof requestMailActions)[number]
  | 'console.link'
  | 'console.login'
  | 'console.logout'
  | 'console.session-revoked'
  | 'operator.invited'
  | 'operator.reset'
  | 'operator.role'
  | 'operator.removed'
  | 'operator.password-set'
  | 'operator.app-set'
  | 'operator.recovery-codes-renewed'
  | 'operator.passkey-added'
  | 'operator.passkey-removed'
  | 'data.forgotten'
  | 'data.restored'

/** E-mails to the contact of an integration request: before it is sent, and its result. */
export const requestMailActions = ['request.mail', 'request.mailed', 'request.mail-failed'] as const

/** Contains no API key, code or recipient. */
export interface AuditEntry {
  readonly at: EpochMs
  readonly actor: Actor
  readonly action: AuditAction
  readonly target: string
  /** `before → after` for a changed field. */
  readonly details: Readonly<Record<string, string>>
}

export interface AuditRecord extends AuditEntry {
  readonly id: number
}

/** Of actions, before the dot. */
export const auditGroups = {
  app: 'apps and keys',
  brand: 'brands',
  text: 'texts',
  destination: 'destination rules',
  guard: 'guard prefixes',
  budget: 'budgets',
  price: 'prices',
  request: 'integration requests',
  queue: 'queue',
  message: 'test messages',
  'review-number': 'review numbers',
  operator: 'accounts',
  console: 'sign-ins and sessions',
  data: 'data',
} as const

export type AuditGroup = keyof typeof auditGroups

export interface AuditFilters {
  readonly group?: AuditGroup | undefined
  /** `Actor.name`. */
  readonly actorName?: string | undefined
  readonly target?: string | undefined
  readonly withoutSignIns?: boolean | undefined
}

export const signInActions: readonly AuditAction[] = ['console.link', 'console.login', 'console.logout']

export interface AuditReader {
  /** Latest first. */
  list(
    query: AuditFilters & {
      readonly before?: number | undefined
      /** The entries next to this one, not the latest. */
      readonly after?: number | undefined
      readonly since?: EpochMs
      readonly actions?: readonly AuditAction[]
      readonly limit: number
    },
  ): Promise<readonly AuditRecord[]>
}

/** The audit log has no reasons of rejections, so that `otpost forget` can delete them. */
export function withReasons(
  records: readonly AuditRecord[],
  requests: { get(id: string): Promise<{ readonly reason: string | null } | undefined> },
): Promise<readonly AuditRecord[]> {
  return Promise.all(
    records.map(async (record) => {
      if (record.action !== 'request.rejected') return record
      const reason = (await requests.get(record.target))?.reason
      return reason ? { ...record, details: { reason } } : record
    }),
  )
}

export function actorName({ by, name }: Actor): string {
  return `${by} ${name}`
}
