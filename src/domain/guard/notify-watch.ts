import type { Log } from '../ground/ports.ts'
import { type Clock, dayMs, type EpochMs, hourMs, minuteMs } from '../ground/time.ts'

// Whether an app sends SMS notifications to countries and number ranges to which it did not send as many before.

/** SMS notifications of an app to a country. */
export interface NotifiedCounts {
  /** The most in one of the 14 days before today. */
  readonly bestDay: number
  readonly inDay: number
  readonly inHour: number
}

export interface NotifiedHistory extends NotifiedCounts {
  readonly app: string
  /** ISO 3166-1, or that of numbers of no country. */
  readonly country: string
}

export interface NotifiedSms {
  /** E.164 digits. */
  readonly to: string
  readonly country: string
}

/** What request traces and metrics say. */
export const surgeFlags = ['notify-country', 'notify-range'] as const
export type SurgeFlag = (typeof surgeFlags)[number]

/** The first of an app and a country in a day. */
export interface Surge extends NotifiedCounts {
  readonly country: string
  /** E.164 digits without the last four, if only the number range has too many. */
  readonly range: string | null
}

/** Fewer in a day, or to a number range in an hour, are never too many. */
const most = 20

export function isCountrySurge({ bestDay, inDay, inHour }: NotifiedCounts): boolean {
  return inDay > Math.max(most, 3 * bestDay) || inHour > Math.max(most, 1.5 * bestDay)
}

/** @param others of the same app in the same hour */
export function isRangeSurge(
  { inHour, bestHour }: { readonly inHour: number; readonly bestHour: number },
  others: { readonly messages: number; readonly ranges: number },
): boolean {
  const average = others.ranges === 0 ? 0 : others.messages / others.ranges
  return inHour > Math.max(most, 3 * bestHour, 10 * average)
}

interface Range {
  hour: EpochMs
  inHour: number
  /** Of earlier hours. */
  bestHour: number
}

interface WatchPorts {
  /** Of every app, written by all processes. */
  readonly history: (now: EpochMs) => Promise<readonly NotifiedHistory[]>
  readonly report: (appId: string, surges: readonly Surge[]) => Promise<void>
  readonly now: Clock
  readonly log: Log
}

const none: NotifiedCounts = { bestDay: 0, inDay: 0, inHour: 0 }
const historyIntervalMs = minuteMs
/** Between two reports about an app. */
const reportIntervalMs = 10 * minuteMs
const mostRanges = 50_000

/**
 * Counts in memory, and reads every minute what all processes have sent to each country. Each process counts number ranges of its own,
 * since the statistics do not have them.
 */
export class NotifyWatch {
  /** By country and app. Undefined: not read yet. */
  private history: ReadonlyMap<string, NotifiedCounts> | undefined
  private readAt = Number.NEGATIVE_INFINITY
  private reading: Promise<void> | undefined
  /** By country and app: messages since `readAt`. */
  private since = new Map<string, number>()
  /** By app and range. */
  private readonly ranges = new Map<string, Range>()
  /** By app. */
  private readonly hours = new Map<string, { readonly hour: EpochMs; messages: number; ranges: number }>()
  /** By country and app: the day of the latest surge. */
  private readonly days = new Map<string, number>()
  /** By app: not reported yet. */
  private readonly found = new Map<string, Surge[]>()
  private readonly reportedAt = new Map<string, EpochMs>()

  constructor(private readonly ports: WatchPorts) {}

  /** Waits only for the first history. */
  async ready(): Promise<void> {
    const elapsedMs = this.ports.now() - this.readAt
    if (elapsedMs >= historyIntervalMs || elapsedMs < 0) {
      this.reading ??= this.read().finally(() => {
        this.reading = undefined
      })
    }
    if (!this.history) await this.reading
  }

  /** Resolves when no history is being read. */
  async idle(): Promise<void> {
    await this.reading
  }

  /** Undefined: not known. */
  bestDay(app: string, country: string): number | undefined {
    return this.history && (this.history.get(`${country} ${app}`) ?? none).bestDay
  }

  /** Counts messages that no limit rejected. */
  add(app: string, messages: readonly NotifiedSms[]): ReadonlySet<SurgeFlag> {
    const now = this.ports.now()
    const flags = new Set<SurgeFlag>()
    for (const [country, all] of Map.groupBy(messages, (each) => each.country)) {
      const key = `${country} ${app}`
      const since = (this.since.get(key) ?? 0) + all.length
      this.since.set(key, since)
      const { bestDay, inDay, inHour } = this.history?.get(key) ?? none
      const counts = { bestDay, inDay: inDay + since, inHour: inHour + since }
      const ranges = all.map(({ to }) => to.slice(0, -4)).filter((range) => this.addRange(app, range, now))
      const isSurge = this.history !== undefined && isCountrySurge(counts)
      if (isSurge) flags.add('notify-country')
      else if (ranges.length > 0) flags.add('notify-range')
      else continue
      const day = Math.floor(now / dayMs)
      if (this.days.get(key) === day) continue
      this.days.set(key, day)
      this.keep(app, [{ country, range: isSurge ? null : (ranges[0] ?? null), ...counts }])
    }
    return flags
  }

  /** Call it every second. */
  async tick(): Promise<void> {
    const now = this.ports.now()
    for (const [app, surges] of this.found) {
      const elapsedMs = now - (this.reportedAt.get(app) ?? Number.NEGATIVE_INFINITY)
      if (elapsedMs >= 0 && elapsedMs < reportIntervalMs) continue
      this.found.delete(app)
      this.reportedAt.set(app, now)
      await this.ports.report(app, surges).catch((err: unknown) => {
        this.keep(app, surges)
        this.ports.log.error(
          { err },
          'an alert about notifications could not be stored; otpost will try again',
        )
      })
    }
  }

  private keep(app: string, surges: readonly Surge[]): void {
    this.found.set(app, [...(this.found.get(app) ?? []), ...surges])
  }

  /** Whether the range has too many. */
  private addRange(app: string, range: string, now: EpochMs): boolean {
    const hour = now - (now % hourMs)
    if (this.ranges.size >= mostRanges) {
      this.ranges.clear()
      this.hours.clear()
    }
    const own = this.ranges.getOrInsertComputed(`${app} ${range}`, () => ({ hour, inHour: 0, bestHour: 0 }))
    if (own.hour !== hour) {
      own.bestHour = Math.max(own.bestHour, own.inHour)
      own.inHour = 0
      own.hour = hour
    }
    const known = this.hours.get(app)
    const all = known?.hour === hour ? known : { hour, messages: 0, ranges: 0 }
    this.hours.set(app, all)
    if (own.inHour === 0) all.ranges++
    own.inHour++
    all.messages++
    return isRangeSurge(own, { messages: all.messages - own.inHour, ranges: all.ranges - 1 })
  }

  private async read(): Promise<void> {
    const { history, now, log } = this.ports
    this.readAt = now()
    try {
      const rows = await history(this.readAt)
      this.history = new Map(rows.map((row) => [`${row.country} ${row.app}`, row]))
      this.since = new Map()
    } catch (err) {
      log.error({ err }, 'the history of notifications could not be read; otpost will try again')
    }
  }
}
