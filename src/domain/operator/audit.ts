/** Who changes something: a command, with the user of the operating system, or a session of the console. */
export interface Actor {
  readonly by: 'command' | 'console'
  /** The name of the user, or the beginning of the session's id. */
  readonly name: string
}

/** What an operator may change. */
export type AuditAction =
  | 'brand.created'
  | 'brand.changed'
  | 'brand.status'
  | 'brand.template'
  | 'app.issued'
  | 'app.rotated'
  | 'app.key-revoked'
  | 'app.revoked'
  | 'request.approved'
  | 'request.rejected'
  | 'console.link'
  | 'console.login'
  | 'console.logout'
  | 'console.session-revoked'
  | 'data.forgotten'
  | 'data.restored'

/** One change: who, what, when. No key, no code, no recipient. */
export interface AuditEntry {
  /** Epoch milliseconds. */
  readonly at: number
  readonly actor: Actor
  readonly action: AuditAction
  /** What was changed: a brand's slug, an appId, the id of a request or session. */
  readonly target: string
  /** What it was about, field by field, as JSON shows it; `before → after` where a field was changed. */
  readonly details: Readonly<Record<string, string>>
}

/** An entry as it is read: numbered in the order in which they were made. */
export interface AuditRecord extends AuditEntry {
  readonly id: number
}

/** The latest entries first: `limit` of them, before an id where one is given. */
export interface AuditQuery {
  readonly before?: number
  readonly since?: number
  readonly limit: number
}

/** The audit log as it is read; whoever changes something writes it in the same step. */
export interface AuditReader {
  list(query: AuditQuery): Promise<readonly AuditRecord[]>
}

/** Who it was, in a word. */
export function actorName({ by, name }: Actor): string {
  return `${by} ${name}`
}
