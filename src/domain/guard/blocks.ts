import { isFromBeforeStep } from '../ground/ports.ts'
import { type EpochMs, hourMs } from '../ground/time.ts'
import type { GuardPrefix, GuardStore } from './store.ts'

/** A prefix that the guard blocks (design D41). */
export interface Block {
  createdAt: EpochMs
  expiresAt: EpochMs
  /** Codes of the prefix that were verified since; each allows one more. */
  verified: number
  /** Whether the prefix is of a home country, and this process blocked it. */
  readonly isHome: boolean
  isSaved: boolean
}

export const blockMs = 12 * hourMs

/** Of one process, exchanged with the others. */
export class Blocks {
  private byPrefix = new Map<string, Block>()
  private isSaving = false

  constructor(
    private readonly store: Pick<GuardStore, 'saveBlocks'>,
    private readonly reportFault: (error: unknown) => void,
  ) {}

  find(prefix: string, now: EpochMs): Block | undefined {
    const block = this.byPrefix.get(prefix)
    if (block && block.expiresAt <= now) {
      this.byPrefix.delete(prefix)
      return undefined
    }
    return block
  }

  /** Prefixes of home countries that are blocked. */
  homesAt(now: EpochMs): number {
    let count = 0
    for (const { isHome, expiresAt } of this.byPrefix.values()) if (isHome && expiresAt > now) count++
    return count
  }

  block(prefix: string, isHome: boolean, now: EpochMs): void {
    if (this.find(prefix, now)) return
    const expiresAt = now + blockMs
    this.byPrefix.set(prefix, { createdAt: now, expiresAt, verified: 0, isHome, isSaved: false })
    // A crash before the next exchange must not end it.
    if (!this.isSaving) void this.saveNew()
  }

  /** Blocks that begin meanwhile are saved by the next call, or by the next exchange. */
  private async saveNew(): Promise<void> {
    this.isSaving = true
    try {
      await this.save()
    } catch (error) {
      this.reportFault(error)
    }
    this.isSaving = false
  }

  async save(): Promise<void> {
    const unsaved = [...this.byPrefix].filter(([, { isSaved }]) => !isSaved)
    if (unsaved.length === 0) return
    await this.store.saveBlocks(
      unsaved.map(([prefix, { createdAt, expiresAt }]) => ({
        prefix,
        by: 'guard',
        action: 'block',
        createdAt,
        expiresAt,
      })),
    )
    for (const [, block] of unsaved) block.isSaved = true
  }

  /**
   * @param readAt before the entries were read; they may lack later blocks
   * @returns prefixes whose block an operator has ended
   */
  apply(entries: readonly GuardPrefix[], readAt: EpochMs): readonly string[] {
    const blocks = new Map(
      [...this.byPrefix].filter(([, { isSaved, createdAt }]) => !isSaved || createdAt >= readAt),
    )
    for (const { prefix, by, createdAt, expiresAt } of entries) {
      if (by === 'operator' || blocks.has(prefix)) continue
      const known = this.byPrefix.get(prefix)
      // Keep the object: a pass may refer to it.
      const isSame = known?.expiresAt === expiresAt
      const read = { createdAt, expiresAt, verified: 0, isHome: known?.isHome ?? false, isSaved: true }
      blocks.set(prefix, isSame ? known : read)
    }
    for (const block of blocks.values()) {
      if (!isFromBeforeStep(block.createdAt, readAt)) continue
      block.expiresAt = readAt + Math.min(blockMs, block.expiresAt - block.createdAt)
      block.createdAt = readAt
      block.isSaved = false
    }
    const ended = [...this.byPrefix].filter(
      ([prefix, { expiresAt }]) => expiresAt > readAt && !blocks.has(prefix),
    )
    this.byPrefix = blocks
    return ended.map(([prefix]) => prefix)
  }
}

/** What operators allow and block, by prefix. */
export class OperatorPrefixes {
  private entries: readonly GuardPrefix[] = []
  private byPrefix = new Map<string, GuardPrefix>()
  /** Longest first. */
  private lengths: readonly number[] = []

  constructor(private readonly store: Pick<GuardStore, 'saveBlocks'>) {}

  /** Cheap if the array is the same as before. @param entries those of the guard are ignored */
  apply(entries: readonly GuardPrefix[]): void {
    if (entries === this.entries) return
    this.entries = entries
    const byOperator = entries.filter(({ by }) => by === 'operator')
    this.byPrefix = new Map(byOperator.map((entry) => [entry.prefix, entry]))
    this.lengths = [...new Set(byOperator.map(({ prefix }) => prefix.length))].sort((a, b) => b - a)
  }

  /** The longest prefix of the number. */
  of(digits: string, now: EpochMs): GuardPrefix | undefined {
    for (const length of this.lengths) {
      const entry = this.byPrefix.get(digits.slice(0, length))
      if (entry && entry.expiresAt > now) return entry
    }
    return undefined
  }

  /** An entry from before the clock was set back begins again, so that it keeps its length. */
  async renew(entries: readonly GuardPrefix[], now: EpochMs): Promise<void> {
    const renewed = entries
      .filter(({ by, createdAt }) => by === 'operator' && isFromBeforeStep(createdAt, now))
      .map((entry) => ({ ...entry, createdAt: now, expiresAt: now + entry.expiresAt - entry.createdAt }))
    if (renewed.length > 0) await this.store.saveBlocks(renewed)
    // Another process may have renewed an entry that this one has read before.
    for (const entry of [...entries, ...renewed]) {
      const known = this.byPrefix.get(entry.prefix)
      if (entry.by === 'operator' && known && isFromBeforeStep(known.createdAt, now))
        this.byPrefix.set(entry.prefix, entry)
    }
  }
}
