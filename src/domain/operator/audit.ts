/** A user of the operating system at a command, or a console session. */
export interface Actor {
  readonly by: 'command' | 'console'
  /** The user, or the beginning of the session's id. */
  readonly name: string
}

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

/** No key, no code, no recipient. */
export interface AuditEntry {
  /** Epoch milliseconds. */
  readonly at: number
  readonly actor: Actor
  readonly action: AuditAction
  /** A brand's slug, an appId, the id of a request or session. */
  readonly target: string
  /** `before → after` for a changed field. */
  readonly details: Readonly<Record<string, string>>
}

export interface AuditRecord extends AuditEntry {
  readonly id: number
}

export interface AuditReader {
  /** The latest `limit` entries, before an id where one is given. */
  list(query: {
    readonly before?: number
    readonly since?: number
    readonly limit: number
  }): Promise<readonly AuditRecord[]>
}

export function actorName({ by, name }: Actor): string {
  return `${by} ${name}`
}
