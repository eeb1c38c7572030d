import type { BucketRow } from '../../../src/domain/guard/bucket.ts'
import {
  Guard,
  type GuardedPhone,
  type GuardedSend,
  type GuardMode,
} from '../../../src/domain/guard/guard.ts'
import type { GuardPrefix, GuardStore } from '../../../src/domain/guard/store.ts'
import type { CountryHistory } from '../../../src/domain/guard/thresholds.ts'

export const minuteMs = 60_000
export const hourMs = 60 * minuteMs
export const dayMs = 24 * hourMs

/** A country that no test sends to. */
export const home = 'XH'

export class MemoryGuardStore implements GuardStore {
  readonly rows = new Map<string, BucketRow>()
  readonly entries = new Map<string, GuardPrefix>()
  history: readonly CountryHistory[] = [
    { country: home, bestDay: 0, inFortnight: 10_000, inDay: 0, inHour: 0 },
  ]
  /** Set while the store fails. */
  fault: Error | undefined
  /** Of each call of `saveBuckets`. */
  readonly savedCounts: number[] = []
  historyReads = 0

  async saveBuckets(rows: readonly BucketRow[]): Promise<void> {
    if (this.fault) throw this.fault
    this.savedCounts.push(rows.length)
    for (const row of rows) this.rows.set(`${row.kind} ${row.key} ${row.node}`, row)
  }

  async bucketsSince(since: number, exceptNode: string): Promise<readonly BucketRow[]> {
    return [...this.rows.values()].filter(
      ({ kind, node, updatedAt }) => kind !== 'flagged' && node !== exceptNode && updatedAt >= since,
    )
  }

  async saveBlocks(blocks: readonly GuardPrefix[]): Promise<void> {
    for (const block of blocks) this.entries.set(`${block.prefix} ${block.by}`, block)
  }

  async prefixes(): Promise<readonly GuardPrefix[]> {
    return [...this.entries.values()]
  }

  async isVerified(): Promise<boolean> {
    return false
  }

  async verifiedHistory(): Promise<readonly CountryHistory[]> {
    this.historyReads++
    return this.history
  }
}

/** To a number of LV, unless it says otherwise. */
type TestSend = Partial<GuardedPhone & Omit<GuardedSend, 'phone'>> & { readonly to: string }

/** A guard with a clock that tests move. */
export class TestGuard {
  readonly guard: Guard
  readonly warnings: string[] = []

  constructor(
    readonly clock = { now: Date.UTC(2030, 0, 1) },
    readonly store = new MemoryGuardStore(),
    { mode = 'deny', node = 'one' }: { mode?: GuardMode; node?: string } = {},
  ) {
    const log = { info() {}, error() {}, warn: (_: object, message: string) => this.warnings.push(message) }
    this.guard = new Guard({ store, now: () => clock.now, log, mode: () => mode, node })
    // Otherwise the first verified code would make its country home.
    for (let code = 0; code < 500; code++) this.verify({ to: '', country: home })
  }

  enter({ to, country = 'LV', isAllowedCountry = false, ...send }: TestSend) {
    const phone = { to, country, isAllowedCountry }
    return this.guard.enter({ recipient: to, phone, ip: null, device: null, isTrustedUser: false, ...send })
  }

  verify({ to, country = 'LV' }: Pick<TestSend, 'to' | 'country'>): void {
    this.guard.verified({ recipient: to, phone: { to, country } })
  }

  /** The bucket that denies a code, or `passes`. */
  verdict(send: TestSend): string {
    const pass = this.enter(send)
    pass.confirm()
    return pass.verdict?.bucket ?? 'passes'
  }

  /** The verdicts on one code each. */
  verdicts(sends: readonly TestSend[]): string[] {
    return sends.map((send) => this.verdict(send))
  }
}

/** `count` numbers of one prefix of 10,000 numbers. */
export function ofPrefix(prefix: string, count: number, first = 0): string[] {
  return Array.from({ length: count }, (_, at) => `${prefix}${String(first + at).padStart(4, '0')}`)
}

/** `count` numbers that have different prefixes. */
export function ofCountry(callingCode: string, count: number, first = 0): string[] {
  return Array.from({ length: count }, (_, at) => `${callingCode}${String(first + at).padStart(5, '0')}0000`)
}

/** A moment after the exchange that a code started. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** `passes` n times, then the names. */
export function passesThen(count: number, ...then: string[]): string[] {
  return [...Array<string>(count).fill('passes'), ...then]
}
