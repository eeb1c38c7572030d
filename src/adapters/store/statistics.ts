import { and, eq, gt, gte, inArray, like, max, ne, or, sql } from 'drizzle-orm'
import { dayMs, type EpochMs, hourMs, minuteMs } from '../../domain/ground/time.ts'
import type { CountryCodes, CountrySms, GuardCount, GuardPeriod } from '../../domain/guard/counts.ts'
import type { NotifiedHistory } from '../../domain/guard/notify-watch.ts'
import { type CountryHistory, unknownCountry } from '../../domain/guard/thresholds.ts'
import { attemptsWindowMs, type MinuteOfAttempts, minutesOfAttempts } from '../../domain/health/conditions.ts'
import type { TrafficCount } from '../../domain/health/silence.ts'
import { type AppTraffic, trafficOf } from '../../domain/log/app-traffic.ts'
import { type Period, periodSteps, type Range, rangeOf, stepsOf } from '../../domain/log/ranges.ts'
import { type RejectionRate, rejectionSteps, risingRejections } from '../../domain/log/rejections.ts'
import {
  countedKinds,
  type Lately,
  latelyOf,
  type Statistics,
  StatisticsSum,
  wayName,
} from '../../domain/log/statistics.ts'
import {
  type Counted,
  guardCountOf,
  type StatKey,
  type StatKind,
  spendOf,
  statSteps,
} from '../../domain/log/stats.ts'
import { type DaySpend, spendBy } from '../../domain/money/spending.ts'
import type { Cost } from '../../domain/request/request-context.ts'
import type { StoreDatabase } from './database.ts'
import { timeOfId } from './request-ids.ts'

const historyDays = 14
const minutesLately = 2
const fewSteps = 10

type Counts = ReadonlyMap<string, number>

type StatisticsDatabase = Pick<StoreDatabase, 'orm' | 'tables'>

export function createStatistics(database: StatisticsDatabase & Pick<StoreDatabase, 'reader'>) {
  const large = { ...database, orm: database.reader }
  return { ...createCodeStatistics(database), ...createPeriods(large), ...createLatest(large) }
}

function sumOf({ stats }: StoreDatabase['tables']) {
  return sql<number>`CAST(sum(${stats.count}) AS bigint)`
}

/** With a turn of the event loop between them, since a step may have hundreds of rows. */
async function* fewOf(steps: readonly EpochMs[]): AsyncGenerator<EpochMs[]> {
  for (let start = 0; start < steps.length; start += fewSteps) {
    if (start > 0) await new Promise((resolve) => setImmediate(resolve))
    yield steps.slice(start, start + fewSteps)
  }
}

/** Codes by country, attempts, and what the guard denied: few rows, which timers read too. */
function createCodeStatistics({ orm, tables }: StatisticsDatabase) {
  const { stats } = tables
  const { at, kind, brand, provider, detail } = stats
  const sum = sumOf(tables)
  const days = new Map<StatKey['kind'], { today: number; best: Counts; sums: Counts }>()

  /** By detail: the greatest count of a step, and the sum of the steps. */
  async function byDetail(kind: StatKey['kind'], stepMs: number, steps: readonly number[]) {
    const best = new Map<string, number>()
    const sums = new Map<string, number>()
    for await (const some of fewOf(steps)) {
      const isOf = and(eq(stats.stepMs, stepMs), inArray(at, some), eq(stats.kind, kind))
      const rows = await orm.select({ at, detail, count: sum }).from(stats).where(isOf).groupBy(at, detail)
      for (const { detail, count } of rows) {
        best.set(detail, Math.max(best.get(detail) ?? 0, count))
        sums.set(detail, (sums.get(detail) ?? 0) + count)
      }
    }
    return { best, sums }
  }

  async function inPeriod(kind: StatKey['kind'], period: Period, now: number): Promise<Counts> {
    const { sums } = await byDetail(kind, periodSteps[period].stepMs, stepsOf(rangeOf(period, now)))
    return sums
  }

  /** Of the 14 days before today. Read once a day. */
  async function daysOf(kind: StatKey['kind'], now: number) {
    const today = now - (now % dayMs)
    const known = days.get(kind)
    if (known?.today === today) return known
    const before = Array.from({ length: historyDays }, (_, index) => today - (index + 1) * dayMs)
    const read = { today, ...(await byDetail(kind, dayMs, before)) }
    days.set(kind, read)
    return read
  }

  /** Of the last 14 days, and today. */
  async function historyOf(kind: StatKey['kind'], now: number) {
    const { today, best, sums } = await daysOf(kind, now)
    const inDay = await inPeriod(kind, 'day', now)
    const inHour = await inPeriod(kind, 'hour', now)
    const sinceMidnight = (await byDetail(kind, dayMs, [today])).sums
    return Array.from(new Set([...best.keys(), ...inDay.keys()]), (detail) => ({
      detail,
      bestDay: best.get(detail) ?? 0,
      inFortnight: (sums.get(detail) ?? 0) + (sinceMidnight.get(detail) ?? 0),
      inDay: inDay.get(detail) ?? 0,
      inHour: inHour.get(detail) ?? 0,
    }))
  }

  return {
    /** Countries with a verified code in the last 14 days, or today. Of one number, the first of a day counts. */
    async verifiedHistory(now: number): Promise<readonly CountryHistory[]> {
      const history = await historyOf('sms-verified', now)
      return history.map(({ detail: country, ...counts }) => ({ country, ...counts }))
    },
    /** SMS notifications of each app to each country, of the same time. */
    async notifiedHistory(now: number): Promise<readonly NotifiedHistory[]> {
      const history = await historyOf('notify-sms', now)
      return history.map(({ detail, ...counts }) => {
        const [country = '', ...app] = detail.split(' ')
        return { country, app: app.join(' '), ...counts }
      })
    },
    /** Codes by SMS, by default in the last 24 hours; the most codes first. */
    async countries(now: number, period: Period = 'day'): Promise<readonly CountryCodes[]> {
      const sent = await inPeriod('sms', period, now)
      const verified = await inPeriod('sms-verified', period, now)
      const again = await inPeriod('sms-verified-again', period, now)
      return Array.from(new Set([...sent.keys(), ...verified.keys()]), (country) => ({
        country,
        sent: sent.get(country) ?? 0,
        verified: (verified.get(country) ?? 0) + (again.get(country) ?? 0),
      })).sort((one, other) => other.sent - one.sent || (one.country < other.country ? -1 : 1))
    },
    /** Of the last 7 days in UTC, with today. */
    async smsOfWeek(now: number): Promise<readonly CountrySms[]> {
      const today = now - (now % dayMs)
      const days = Array.from({ length: 7 }, (_, index) => today - index * dayMs)
      const kinds = ['sms', 'sms-verified', 'sms-verified-again', 'notify-sms'] as const
      const found = new Map<string, Record<'sent' | 'verified' | 'notifications', number>>()
      for (const kind of kinds) {
        for (const [detail, count] of (await byDetail(kind, dayMs, days)).sums) {
          const [country = ''] = detail.split(' ')
          const none = () => ({ sent: 0, verified: 0, notifications: 0 })
          const counts = found.getOrInsertComputed(country, none)
          counts[kind === 'sms' ? 'sent' : kind === 'notify-sms' ? 'notifications' : 'verified'] += count
        }
      }
      return Array.from(found, ([country, counts]) => ({ country, ...counts }))
    },
    async guardCounts(period: GuardPeriod, now: number): Promise<readonly GuardCount[]> {
      const range = rangeOf(period === 'day' ? 'day' : 'hour', now)
      const { stepMs } = range
      const steps = stepsOf(range)
      const counts = new Map<string, { readonly brand: string; readonly detail: string; count: number }>()
      for await (const some of fewOf(steps.slice(period === 'lately' ? -minutesLately : 0))) {
        const isOf = and(eq(stats.stepMs, stepMs), inArray(at, some), eq(kind, 'guard'))
        const columns = { brand, detail, count: sum }
        for (const row of await orm.select(columns).from(stats).where(isOf).groupBy(brand, detail)) {
          const known = counts.get(`${row.brand} ${row.detail}`)
          if (known) known.count += row.count
          else counts.set(`${row.brand} ${row.detail}`, row)
        }
      }
      return Array.from(counts.values(), guardCountOf)
    },
    /** Of the minutes of `attemptsWindowMs`; of these providers as long as minutes are stored. */
    async recentAttempts(now: number, names?: readonly string[]): Promise<readonly MinuteOfAttempts[]> {
      const from = now - (names ? statSteps[0].retentionMs : attemptsWindowMs)
      const isOf = names && inArray(provider, [...names])
      const isRecent = and(eq(stats.stepMs, minuteMs), gte(at, from), eq(kind, 'attempt'), isOf)
      const key = { at, provider, detail }
      const rows = await orm
        .select({ ...key, count: sum })
        .from(stats)
        .where(isRecent)
        .groupBy(...Object.values(key))
      return minutesOfAttempts(rows)
    },
  }
}

/** Of a whole period, step by step. */
function createPeriods({ orm, tables }: StatisticsDatabase) {
  const { stats } = tables
  const { at, kind, channel, brand, provider, detail } = stats
  const columns = { at, kind, channel, brand, provider, detail }

  const sum = sumOf(tables)
  const empty = sql<''>`''`
  const ofPoints = { ...columns, channel: empty, brand: empty, provider: empty }
  const ofTries = { ...columns, channel: empty, brand: empty }

  /** @param by columns; rows that differ in the others are one */
  async function* countedIn(
    range: Range,
    kinds: readonly StatKind[] = countedKinds,
    by: typeof columns | typeof ofPoints | typeof ofTries = columns,
  ): AsyncGenerator<readonly Counted[]> {
    for await (const some of fewOf(stepsOf(range))) {
      yield await orm
        .select({ ...by, count: sum })
        .from(stats)
        .where(and(eq(stats.stepMs, range.stepMs), inArray(at, some), inArray(kind, [...kinds])))
        .groupBy(...Object.values(by).filter((column) => column !== empty))
    }
  }

  async function statisticsIn(...[range, ...how]: Parameters<typeof countedIn>): Promise<Statistics> {
    const total = new StatisticsSum(range)
    for await (const rows of countedIn(range, ...how)) for (const row of rows) total.add(row)
    return total.statistics
  }

  return {
    statistics: (period: Period, now: number) => statisticsIn(rangeOf(period, now)),
    statisticsIn: (range: Range) => statisticsIn(range),
    /** The figures of each step. */
    pointsIn: async (range: Range) => (await statisticsIn(range, countedKinds, ofPoints)).points,
    /** By provider. */
    triesIn: async (range: Range) => (await statisticsIn(range, ['attempt'], ofTries)).tries,
    async lately(now: number): Promise<Lately> {
      const counted: Counted[] = []
      for await (const rows of countedIn(rangeOf('hour', now))) counted.push(...rows)
      return latelyOf(counted, now)
    },
  }
}

/** Of the last minutes and days, for the console and the alerts. */
function createLatest({ orm, tables }: StatisticsDatabase) {
  const { stats, deliveryReports, requests } = tables
  const { at, kind, channel, brand, provider, detail } = stats
  const sum = sumOf(tables)
  const acceptedWays = new Set<string>()
  let acceptedFrom = 0

  return {
    /** Null: there is no request. */
    async lastRequestAt(): Promise<EpochMs | null> {
      const [row] = await orm.select({ id: max(requests.requestId) }).from(requests)
      return row?.id ? timeOfId(row.id) : null
    },
    /** When the latest final delivery report of each provider came, of the last 30 days, as exactly as the counts are. */
    async lastReports(now: number): Promise<ReadonlyMap<string, EpochMs>> {
      const since = (stepMs: number, ms: number) => and(eq(stats.stepMs, stepMs), gte(at, now - ms))
      const steps = [since(minuteMs, 2 * hourMs), since(hourMs, 2 * dayMs), since(dayMs, 30 * dayMs)]
      const isOf = and(or(...steps), eq(kind, 'report'))
      const latest = sql<number>`CAST(max(${at}) AS bigint)`
      const rows = await orm.select({ provider, at: latest }).from(stats).where(isOf).groupBy(provider)
      return new Map(rows.map((row) => [row.provider, Number(row.at)]))
    },
    /** Of the last 24 hours, by app. */
    async appTraffic(now: number): Promise<ReadonlyMap<string, AppTraffic>> {
      const { app, count: calls } = stats
      const hours = stepsOf(rangeOf('day', now))
      const counts = await orm
        .select({ kind, detail, app, count: sum })
        .from(stats)
        .where(and(eq(stats.stepMs, hourMs), inArray(at, [...hours]), ne(app, '')))
        .groupBy(kind, detail, app)
      const isMinute = and(eq(stats.stepMs, minuteMs), gte(at, now - dayMs), ne(app, ''))
      const minutes = sql`(SELECT ${app} AS app, sum(CASE WHEN ${kind} = 'limited' THEN -${calls} ELSE ${calls} END) AS calls
        FROM ${stats} WHERE ${isMinute} GROUP BY ${at}, ${app}) AS minutes`
      const peaks = await orm
        .select({ app: sql<string>`app`, peak: sql<number>`CAST(max(calls) AS bigint)` })
        .from(minutes)
        .groupBy(sql`app`)
      return trafficOf(counts, peaks)
    },
    /** By day; `from` is a day's start in UTC, `until` is exclusive. */
    async spending(from: number, until: number): Promise<readonly DaySpend[]> {
      const spending: DaySpend[] = []
      for (let day = from; day < until; day += dayMs) {
        const rows = await orm
          .select({ brand, provider, detail, micros: sum })
          .from(stats)
          .where(and(eq(stats.stepMs, dayMs), eq(at, day), eq(kind, 'spend')))
          .groupBy(brand, provider, detail)
        for (const { micros, ...row } of rows) spending.push({ at: day, micros, ...spendOf(row) })
      }
      return spending
    },
    /** SMS that providers accepted, by template; `from` is a day's start in UTC. */
    async acceptedSms(slug: string, from: number): Promise<ReadonlyMap<string, number>> {
      const isOf = and(eq(stats.stepMs, dayMs), gte(at, from), eq(kind, 'attempt'), eq(channel, 'SMS'))
      const rows = await orm
        .select({ detail, count: sum })
        .from(stats)
        .where(and(isOf, eq(brand, slug), like(detail, 'accepted %')))
        .groupBy(detail)
      return new Map(rows.map((row) => [row.detail.slice('accepted '.length), row.count]))
    },
    /** Changes with requests, attempts and delivery reports, and every minute. */
    async mark(now: number): Promise<string> {
      const minute = now - (now % minuteMs)
      const isRecent = and(eq(stats.stepMs, minuteMs), gte(at, minute - minuteMs))
      const [[counted], [reported]] = await Promise.all([
        orm.select({ count: sum }).from(stats).where(isRecent),
        orm.select({ at: max(deliveryReports.at) }).from(deliveryReports),
      ])
      return [minute, counted?.count, reported?.at].join()
    },
    async risingRejections(now: number): Promise<readonly RejectionRate[]> {
      const [hours, days] = rejectionSteps(now).map(({ stepMs, from }) =>
        and(eq(stats.stepMs, stepMs), gte(at, from)),
      )
      const isOf = and(or(hours, days), inArray(kind, ['attempt', 'rejected']))
      const key = { stepMs: stats.stepMs, kind, brand, provider, detail }
      const rows = await orm
        .select({ ...key, count: sum })
        .from(stats)
        .where(isOf)
        .groupBy(...Object.values(key))
      return risingRejections(rows)
    },
    /** Calls, delivery reports by provider, and codes by SMS by country: of the minutes that are kept, at most an hour, and of these hours. */
    async traffic(now: number, hours: readonly EpochMs[]): Promise<readonly TrafficCount[]> {
      const minutes = and(eq(stats.stepMs, minuteMs), gte(at, now - (now % minuteMs) - 2 * hourMs))
      const before = and(eq(stats.stepMs, hourMs), inArray(at, [...hours]))
      const key = { stepMs: stats.stepMs, at, kind, provider, detail }
      const rows = await orm
        .select({ ...key, count: sum })
        .from(stats)
        .where(
          and(
            or(minutes, before),
            or(inArray(kind, ['send', 'resend', 'relay', 'verify', 'notify', 'report']), like(kind, 'sms%')),
          ),
        )
        .groupBy(...Object.values(key))
      return rows.map((row) => ({ ...row, provider: row.kind === 'report' ? row.provider : '' }))
    },
    /** What SMS to the country cost in the last hour. */
    async spentLately(now: number, country: string): Promise<readonly Cost[]> {
      const isRecent = and(eq(stats.stepMs, minuteMs), gt(at, now - hourMs), eq(kind, 'spend'))
      const rows = await orm
        .select({ brand, provider, detail, micros: sum })
        .from(stats)
        .where(isRecent)
        .groupBy(brand, provider, detail)
      const all = rows.map(({ micros, ...row }) => ({ at: 0, micros, ...spendOf(row) }))
      return spendBy(
        all.filter((each) => (each.country ?? unknownCountry) === country),
        () => '',
      )
    },
    /** By `wayName`. Reads all days once, then only those that may have changed. */
    async accepted(now: number): Promise<ReadonlySet<string>> {
      const isOf = and(eq(stats.stepMs, dayMs), gte(at, acceptedFrom), eq(kind, 'attempt'))
      const rows = await orm
        .select({ channel, provider })
        .from(stats)
        .where(and(isOf, like(detail, 'accepted%')))
        .groupBy(channel, provider)
      for (const row of rows) acceptedWays.add(wayName(row.channel, row.provider))
      // The counts of a day may be written on the next.
      acceptedFrom = now - (now % dayMs) - dayMs
      return acceptedWays
    },
  }
}
