import { see } from '../ground/advice.ts'
import type { Alert } from '../ground/alert.ts'
import type { AuditReader, AuditRecord } from '../ground/audit.ts'
import { partOf } from '../ground/format.ts'
import { type EpochMs, hourMs } from '../ground/time.ts'
import type { EventLogReader } from '../log/event-log.ts'
import { figureRows, type Span } from '../log/log-search.ts'
import { earlier, finerSteps, type Range } from '../log/ranges.ts'
import {
  type Point,
  type Statistics,
  type Stretch,
  stretchesOf,
  sumOfTries,
  type Tries,
} from '../log/statistics.ts'
import type { AlertStore } from './alerts.ts'
import { conditionKinds } from './conditions.ts'
import { peopleWords } from './incidents.ts'
import type { See } from './problem.ts'

// What charts show besides the figures of their time: the time before, incidents and changes.

/** Something that lasted. */
export interface PastIncident extends Span {
  /** `until` is the end of the range. */
  readonly isOpen: boolean
  readonly text: string
  readonly see: See
}

export interface History {
  readonly before: { readonly words: string; readonly points: readonly Point[] } | undefined
  /** Attempts by provider and hour. */
  readonly hours: Range
  readonly tries: Statistics['tries']
  /** Oldest first. */
  readonly incidents: readonly PastIncident[]
  /** By operators, newest first. */
  readonly changes: readonly AuditRecord[]
}

export interface HistoryPorts {
  readonly eventLog: Pick<EventLogReader, 'countFound'> & {
    pointsIn(range: Range): Promise<readonly Point[]>
    triesIn(range: Range): Promise<Statistics['tries']>
  }
  readonly alerts: Pick<AlertStore, 'ofKinds'>
  readonly audit: AuditReader
}

const mostChanges = 50
const mostOutages = 5
const heatHours = 48

export async function readHistory(
  { eventLog, alerts, audit }: HistoryPorts,
  statistics: Statistics,
  now: EpochMs,
): Promise<History> {
  const { from, until } = statistics
  const previous = earlier(statistics)
  const start = Math.floor(now / hourMs) * hourMs - (heatHours - 1) * hourMs
  const hours: Range = { period: 'range', from: start, until: now, stepMs: hourMs, count: heatHours }
  const [points, tries, reports, changes, outages] = await Promise.all([
    previous && eventLog.pointsIn(previous),
    eventLog.triesIn(hours),
    alerts.ofKinds([...conditionKinds], from),
    audit.list({ since: from, until, withoutSignIns: true, limit: mostChanges }),
    Promise.all(outagesIn(statistics).map((outage) => measured(eventLog, outage, statistics, now))),
  ])
  return {
    before: previous && points && { words: previous.words, points },
    hours,
    tries,
    incidents: [...reportedIn(reports, statistics), ...outages].sort((one, other) => one.from - other.from),
    changes,
  }
}

/** A few failures may be chance. */
const leastFailures = 3

/** The times in which codes and notifications failed, those with the most failures. */
export function outagesIn({ points, stepMs }: Pick<Statistics, 'points' | 'stepMs'>): readonly Stretch[] {
  return stretchesOf(sendingTries(points), stepMs)
    .filter(({ failed }) => failed >= leastFailures)
    .sort((one, other) => other.failed - one.failed)
    .slice(0, mostOutages)
}

function sendingTries(points: readonly Point[]): readonly Tries[] {
  return points
    .map(({ at, sends, sendsFailed, notified, notifyFailed }) => {
      const failed = sendsFailed + notifyFailed
      return { at, failed, all: sends + notified + failed }
    })
    .filter(({ all }) => all > 0)
}

/** To the minute, if the statistics still have the minutes, with the people. */
async function measured(
  eventLog: HistoryPorts['eventLog'],
  outage: Stretch,
  range: Range,
  now: EpochMs,
): Promise<PastIncident> {
  let [exact, { stepMs }]: [Stretch, Pick<Range, 'stepMs'>] = [outage, range]
  for (let finer = finerSteps(exact, stepMs, now); finer; finer = finerSteps(exact, stepMs, now)) {
    exact = narrowed(exact, sendingTries(await eventLog.pointsIn(finer)), finer.stepMs)
    stepMs = finer.stepMs
  }
  const isOpen = exact.until > range.until
  const span = { from: exact.from, until: Math.min(exact.until, range.until) }
  const filters = { ...figureRows.notSent, since: span.from, until: exact.until }
  const people = peopleWords(await eventLog.countFound('calls', filters))
  return {
    ...span,
    isOpen,
    text: `Sending failed for ${partOf(exact.failed, exact.all, 'message')}, to ${people}.`,
    see: { list: 'calls', filters, title: 'Failed calls' },
  }
}

/** From the first of these steps with trouble to the last. */
export function narrowed(outage: Stretch, tries: readonly Tries[], stepMs: number): Stretch {
  const parts = stretchesOf(tries, stepMs)
  const [first, last] = [parts[0], parts.at(-1)]
  if (!first || !last) return outage
  const own = tries.filter(({ at }) => at >= first.from && at < last.until)
  return { from: first.from, until: last.until, ...sumOfTries(own) }
}

/** The conditions that alerts reported. @param alerts oldest first, since the start of the range */
export function reportedIn(alerts: readonly Alert[], range: Span): readonly PastIncident[] {
  const reports = alerts.map(({ key, text, ...alert }) => {
    const data = JSON.parse(text) as Partial<Record<'state' | 'since' | 'provider', string>>
    return { ...alert, ...data, since: Date.parse(data.since ?? ''), about: key.replace(/ #\d+$/, '') }
  })
  const conditions = Map.groupBy(reports, ({ about, since }) => `${about} ${since}`)
  return [...conditions.values()].flatMap((own) => {
    const [first] = own
    if (!first || !(first.since < range.until)) return []
    const endedAt = own.find(({ state }) => state === 'ended')?.at
    const isOpen = endedAt === undefined || endedAt > range.until
    const from = Math.max(first.since, range.from)
    const until = isOpen ? range.until : endedAt
    return { from, until, isOpen, text: `${first.title}.`, see: pageOf(first, { from, until }) }
  })
}

function pageOf({ kind, provider }: { kind: string; provider?: string }, { from, until }: Span): See {
  if (provider !== undefined)
    return {
      list: 'deliveries',
      filters: { ...figureRows.failedOrUnknown, provider, since: from, until },
      title: 'Failed attempts',
    }
  return see(
    kind === 'budget.exhausted' ? 'budget list' : kind === 'guard.pumping' ? 'guard status' : 'doctor',
  )
}
