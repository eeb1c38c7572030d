import type { Effect } from '../../domain/limits/effects.ts'
import type { LimitCount, Subject } from '../../domain/limits/limits.ts'
import type { Code, State } from '../../domain/otp/state.ts'
import type { Row } from './database.ts'

export type RecordRow = Row<'codesAndLimits'>

export interface RecordUpdate {
  readonly stored: RecordRow
  readonly current: RecordRow
}

/** What a row's counter grew by. Undefined: the row is of another window or code than the stored one. */
export function incrementOf({ stored, current }: RecordUpdate) {
  if (current.count !== null && stored.count !== null && current.expiresAt === stored.expiresAt) {
    return { counter: 'count', by: current.count - stored.count } as const
  }
  if (current.attempts !== null && stored.attempts !== null && current.codeId === stored.codeId) {
    return { counter: 'attempts', by: current.attempts - stored.attempts } as const
  }
  return undefined
}

export interface RecordChanges {
  readonly inserts: readonly RecordRow[]
  readonly updates: readonly RecordUpdate[]
  readonly deletes: readonly Pick<RecordRow, 'subject' | 'name'>[]
  readonly effects: readonly Effect[]
}

interface Slot {
  stored: RecordRow | undefined
  current: RecordRow | undefined
}

/** Reads each subject of a transaction once, and writes each row once. */
export class Records implements State {
  private readonly subjects = new Map<string, Map<string, Slot>>()
  private readonly changed = new Set<Slot>()
  private readonly effects: Effect[] = []

  /** @param load returns a subject's stored rows, expired ones included */
  constructor(private readonly load: (subject: string) => readonly RecordRow[]) {}

  limit(subject: Subject, name: string, now: number): LimitCount | undefined {
    let found: LimitCount | undefined
    for (const key of subject) {
      const { current } = this.slot(key, name)
      if (!current || current.expiresAt <= now || current.count === null) continue
      const { count, expiresAt } = current
      found = found
        ? { count: found.count + count, expiresAt: Math.max(found.expiresAt, expiresAt) }
        : { count, expiresAt }
    }
    return found
  }

  setLimit(subject: Subject, name: string, limit: LimitCount | undefined): void {
    this.set(subject, name, limit && limitRow(subject[0], name, limit))
  }

  code(subject: Subject, brandSlug: string, now: number): Code | undefined {
    let newest: Code | undefined
    for (const key of subject) {
      const { current } = this.slot(key, codeName(brandSlug))
      const code = current && codeIn(current)
      if (code && code.expiresAt > now && (!newest || newest.createdAt < code.createdAt)) newest = code
    }
    return newest
  }

  setCode(subject: Subject, brandSlug: string, code: Code | undefined): void {
    const name = codeName(brandSlug)
    this.set(subject, name, code && codeRow(subject[0], name, code))
  }

  write(effect: Effect): void {
    this.effects.push(effect)
  }

  changes(): RecordChanges {
    const inserts: RecordRow[] = []
    const updates: RecordUpdate[] = []
    const deletes: RecordRow[] = []
    for (const { stored, current } of this.changed) {
      if (!stored && current) inserts.push(current)
      else if (stored && current) updates.push({ stored, current })
      else if (stored) deletes.push(stored)
    }
    for (const rows of [inserts, deletes]) rows.sort(byKey)
    updates.sort((a, b) => byKey(a.current, b.current))
    return { inserts, updates, deletes, effects: this.effects }
  }

  private slot(subject: string, name: string): Slot {
    let rows = this.subjects.get(subject)
    if (!rows) {
      rows = new Map(this.load(subject).map((row) => [row.name, { stored: row, current: row }]))
      this.subjects.set(subject, rows)
    }
    let slot = rows.get(name)
    if (!slot) {
      slot = { stored: undefined, current: undefined }
      rows.set(name, slot)
    }
    return slot
  }

  /** Deletes the record under previous keys. */
  private set(subject: Subject, name: string, row: RecordRow | undefined): void {
    for (const key of subject) {
      const slot = this.slot(key, name)
      const current = key === row?.subject ? row : undefined
      if (slot.current === current) continue
      slot.current = current
      this.changed.add(slot)
    }
  }
}

function codeName(brandSlug: string): string {
  return `code:${brandSlug}`
}

function codeIn(row: RecordRow): Code | undefined {
  const { codeId: id, codeHash: hash, attempts, createdAt, expiresAt, provider, providerMessageId } = row
  if (id === null || hash === null || attempts === null || createdAt === null) return undefined
  return { id, hash, attempts, createdAt, expiresAt, provider, providerMessageId }
}

// Not spread: a send creates up to nine rows.

function codeRow(subject: string, name: string, code: Code): RecordRow {
  const { id: codeId, hash: codeHash, attempts, createdAt, expiresAt, provider, providerMessageId } = code
  return {
    subject,
    name,
    count: null,
    codeId,
    codeHash,
    attempts,
    createdAt,
    expiresAt,
    provider,
    providerMessageId,
  }
}

function limitRow(subject: string, name: string, { count, expiresAt }: LimitCount): RecordRow {
  return {
    subject,
    name,
    count,
    codeId: null,
    codeHash: null,
    attempts: null,
    createdAt: null,
    expiresAt,
    provider: null,
    providerMessageId: null,
  }
}

function byKey(a: RecordRow, b: RecordRow): number {
  if (a.subject !== b.subject) return a.subject < b.subject ? -1 : 1
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0
}
