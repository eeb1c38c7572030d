import { instant, type Listing } from './listing.ts'
import type { EpochMs } from './time.ts'
export interface Actor {
  /** `token`: one of the management API, by its name. */
  readonly by: 'command' | 'console' | 'token'
  readonly name: string
}

/** A session of `otpost admin link` has no account. */
export function actorWords({ by, name }: Actor): string {
  return by === 'console' && !name.includes('@') ? `a sign-in link (${name})` : name
}

/** E-mails to the contact of an integration request: before it is sent, and its result. */
export const requestMailActions = ['request.mail', 'request.mailed', 'request.mail-failed'] as const

/** Contains no API key, code or recipient. */
export interface AuditEntry {
  readonly at: EpochMs
  readonly actor: Actor
  /** Such as `budget.set`: the group of what is changed, and what happened. */
  readonly action: string
  readonly target: string
  /** `before → after` for a changed field. */
  readonly details: Readonly<Record<string, string>>
}

export interface AuditRecord extends AuditEntry {
  readonly id: number
}

export interface AuditFilters {
  /** Of actions, before the dot. */
  readonly group?: string | undefined
  /** One of the group. */
  readonly action?: string | undefined
  /** `Actor.name`. */
  readonly actorName?: string | undefined
  readonly target?: string | undefined
  readonly withoutSignIns?: boolean | undefined
  readonly since?: EpochMs | undefined
  /** Exclusive. */
  readonly until?: EpochMs | undefined
}

export const signInActions: readonly string[] = ['console.link', 'console.login', 'console.logout']

export interface AuditReader {
  /** Latest first. */
  list(
    query: AuditFilters & {
      readonly before?: number | undefined
      /** The entries next to this one, not the latest. */
      readonly after?: number | undefined
      readonly actions?: readonly string[]
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

export const auditListing = {
  at: { title: 'Time', value: ({ at }) => instant(at) },
  by: { title: 'Operator', value: ({ actor }) => actorName(actor) },
  action: { title: 'Action', value: ({ action }) => action },
  target: { title: 'Target', value: ({ target }) => target },
  details: {
    title: 'Details',
    value: ({ details }) => details,
    text: ({ details }) => detailsInLine(details) || '-',
  },
} satisfies Listing<AuditRecord>

function detailsInLine(details: AuditRecord['details']): string {
  return Object.entries(details)
    .map(([name, value]) => `${name}: ${value.replaceAll('\n', ' ⏎ ')}`)
    .join(', ')
}
