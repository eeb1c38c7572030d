import { see } from '../ground/advice.ts'
import type { Alert } from '../ground/alert.ts'
import type { AuditReader, AuditRecord } from '../ground/audit.ts'
import { partOf } from '../ground/format.ts'
import { type EpochMs, hourMs, minuteMs } from '../ground/time.ts'
import type { EventLogReader } from '../log/event-log.ts'
import { figureRows, type Span } from '../log/log-search.ts'
import { earlier, finerSteps, type Range } from '../log/ranges.ts'
import { isTrouble, type Point, type Statistics, sumOfTries, type Tries } from '../log/statistics.ts'
import { statSteps } from '../log/stats.ts'
import type { AlertStore } from './alerts.ts'
import { conditionKinds } from './conditions.ts'
import { peopleWords } from './incidents.ts'
import type { See } from './problem.ts'

// What charts show besides the figures of their time: the time before, incidents and changes.

interface Stretch extends Omit<Tries, 'at'>, Span {}

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
    outagesIn(statistics, now, (range) => eventLog.pointsIn(range)).then((found) =>
      Promise.all(found.map((outage) => withPeople(eventLog, outage, statistics))),
    ),
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
/** Of each length of steps, those that are read in shorter ones. */
const mostRead = 12
/** Failures that are closer are one outage, also if messages were sent between them. */
const longestPauseMs = 5 * minuteMs

type Step = Tries & Pick<Range, 'stepMs'>

/**
 * The times in which codes and notifications failed, those with the most failures. To the minute, if the statistics still have the
 * minutes: a short outage is a small share of its hour.
 */
export async function outagesIn(
  { points, stepMs }: Pick<Statistics, 'points' | 'stepMs'>,
  now: EpochMs,
  read: (range: Range) => Promise<readonly Point[]>,
): Promise<readonly Stretch[]> {
  let steps = sendingTries(points, stepMs)
  for (let length = 1; length < statSteps.length; length++) {
    const worst = steps
      .filter(({ failed }) => failed >= leastFailures)
      .sort((one, other) => other.failed - one.failed)
      .slice(0, mostRead)
    const parts = await Promise.all(
      worst.map(async (step) => {
        const finer = finerSteps({ from: step.at, until: step.at + step.stepMs }, step.stepMs, now)
        return [step, finer ? sendingTries(await read(finer), finer.stepMs) : []] as const
      }),
    )
    const partsOf = new Map(parts.filter(([, own]) => own.length > 0))
    steps = steps.flatMap((step) => partsOf.get(step) ?? step)
  }
  return stretchesOf(steps)
    .filter(({ failed }) => failed >= leastFailures)
    .sort((one, other) => other.failed - one.failed)
    .slice(0, mostOutages)
}

/** Steps with trouble that follow each other, or nearly so. @param steps those without any tries are left out */
function stretchesOf(steps: readonly Step[]): readonly Stretch[] {
  const stretches: Stretch[] = []
  let between: Step[] = []
  for (const step of steps) {
    const last = stretches.at(-1)
    if (!isTrouble(step.failed, step.all)) {
      between.push(step)
      continue
    }
    const isSame = last && (between.length === 0 || step.at - last.until <= longestPauseMs)
    if (isSame) stretches.pop()
    const sum = sumOfTries([...(isSame ? [last, ...between] : []), step])
    stretches.push({ from: isSame ? last.from : step.at, until: step.at + step.stepMs, ...sum })
    between = []
  }
  return stretches
}

function sendingTries(points: readonly Point[], stepMs: number): readonly Step[] {
  return points
    .map(({ at, sends, sendsFailed, notified, notifyFailed }) => {
      const failed = sendsFailed + notifyFailed
      return { at, stepMs, failed, all: sends + notified + failed }
    })
    .filter(({ all }) => all > 0)
}

async function withPeople(
  eventLog: HistoryPorts['eventLog'],
  { from, until, failed, all }: Stretch,
  range: Range,
): Promise<PastIncident> {
  const filters = { ...figureRows.notSent, since: from, until }
  const people = peopleWords(await eventLog.countFound('calls', filters))
  return {
    from,
    until: Math.min(until, range.until),
    isOpen: until > range.until,
    text: `Sending failed for ${partOf(failed, all, 'message')}, to ${people}.`,
    see: { list: 'calls', filters, title: 'Failed calls' },
  }
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
