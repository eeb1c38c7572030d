import type { EpochMs } from '../time.ts'
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

export interface AuditReader {
  list(query: {
    readonly before?: number
    readonly since?: EpochMs
    readonly target?: string
    readonly actions?: readonly AuditAction[]
    readonly limit: number
  }): Promise<readonly AuditRecord[]>
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
