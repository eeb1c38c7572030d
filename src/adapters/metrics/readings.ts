import { Counter, Gauge, type Registry } from 'prom-client'
import type { BreakerState } from '../../domain/delivery/breaker.ts'
import { type Distribution, newDistribution, observe } from '../../domain/log/distribution.ts'
import { DistributionHistogram } from './distribution-histogram.ts'
import { watchLag } from './lag.ts'
import type { MetricSources } from './ports.ts'

/** One value, or one for each label or pair of labels. Undefined: unknown, so that the metric is left out. */
type Values = number | undefined | Iterable<readonly [labels: string | readonly string[], value: number]>

/** What is read once for all metrics of a scrape. Undefined: it did not answer. */
type Facts = Awaited<ReturnType<typeof readFacts>>

const circuitStates: readonly BreakerState['state'][] = ['closed', 'open', 'half-open']
const lagSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]

/** What is read when it is scraped: the state of providers, queue, alerts, events and database. */
export function createReadings(registry: Registry, sources: MetricSources) {
  let facts: Facts | undefined
  const present = () => facts
  readProviders(registry, sources)
  readWork(registry, sources, present)
  readDatabase(registry, sources, present)
  const histogram = (name: string, help: string, distribution: () => Distribution | undefined) =>
    new DistributionHistogram(registry, { name, help }, () => {
      const values = distribution()
      return values ? [[{}, values]] : []
    })
  const batches = 'otpost_store_commit_batch_size'
  histogram(batches, 'Writes in one transaction.', () => facts?.writer?.batchSizes)
  const commits = 'otpost_store_commit_duration_seconds'
  histogram(commits, 'Duration of commits, with the fsync.', () => facts?.writer?.commitSeconds)
  const lag = newDistribution(lagSeconds)
  histogram('otpost_event_loop_lag_seconds', 'Delay of the event loop.', () => lag)
  return {
    refresh: async () => {
      facts = await readFacts(sources)
    },
    stop: watchLag((seconds) => observe(lag, seconds)),
  }
}

/** Metrics that are read when they are scraped. */
function readingsIn(registry: Registry) {
  const make =
    (Metric: typeof Gauge | typeof Counter) =>
    (name: string, help: string, read: () => Values, ...labelNames: string[]): void => {
      const metric = new Metric({ name, help, labelNames, registers: [registry], collect })
      function collect(): void {
        const values = read()
        metric.reset()
        if (typeof values === 'number') metric.inc(values)
        else if (values) for (const [labels, value] of values) metric.labels(...[labels].flat()).inc(value)
        else if (labelNames.length === 0) metric.remove()
      }
    }
  return { gauge: make(Gauge), counter: make(Counter) }
}

async function readFacts({ stats, checkDatabase, queue }: MetricSources) {
  // Before the database check, which writes too.
  const queueLength = stats.queueLength()
  const [check, files, jobs] = await Promise.allSettled([checkDatabase(), stats.files(), queue.status()])
  return {
    queueLength,
    isUp: check.status === 'fulfilled',
    writer: stats.writer(),
    files: settledValue(files),
    jobs: settledValue(jobs),
  }
}

function settledValue<T>(settled: PromiseSettledResult<T>): T | undefined {
  return settled.status === 'fulfilled' ? settled.value : undefined
}

function readProviders(registry: Registry, { phoneRoutes, breakers, lateCodes }: MetricSources): void {
  const inUse = Object.values(phoneRoutes).flat()
  const names = [...new Set(inUse.map(({ name }) => name))]
  const reporting = new Set(inUse.filter(({ deliveryReports }) => deliveryReports).map(({ name }) => name))
  const stateOf = (provider: string) => breakers.states().find((each) => each.provider === provider)
  const { gauge, counter } = readingsIn(registry)
  gauge(
    'otpost_provider_breaker_state',
    '1 for the circuit state of an SMS provider, else 0. The states are closed, open and half-open.',
    () =>
      names.flatMap((provider) => {
        const present = stateOf(provider)?.state ?? 'closed'
        return circuitStates.map((state) => [[provider, state], state === present ? 1 : 0] as const)
      }),
    'provider',
    'state',
  )
  gauge(
    'otpost_provider_failures_in_a_row',
    'Consecutive failures of an SMS provider.',
    () => names.map((provider) => [provider, stateOf(provider)?.failuresInARow ?? 0]),
    'provider',
  )
  counter(
    'otpost_late_codes_total',
    'Codes that were delivered although their send had failed, according to delivery reports. They do not verify.',
    () => Array.from(reporting, (provider) => [provider, lateCodes.get(provider) ?? 0]),
    'provider',
  )
}

function readWork(
  registry: Registry,
  { alerts, events, queue }: MetricSources,
  facts: () => Facts | undefined,
): void {
  const { gauge, counter } = readingsIn(registry)
  counter('otpost_alerts_total', 'Alerts that this server stored, by kind.', () => alerts.counts, 'kind')
  gauge(
    'otpost_budget_spent_ratio',
    'Spent part of a budget in its present period: 1 is the whole amount. At most 30 seconds old. `scope` is such as `server`, `server of codes` or `country:* (LV)`.',
    () => alerts.shares.map(({ name, ratio }) => [name, ratio]),
    'scope',
  )
  counter(
    'otpost_events_total',
    'Tries to deliver events to webhooks, and events that were dropped, by result.',
    () => events.counts,
    'result',
  )
  gauge(
    'otpost_events_waiting',
    'Events that wait for their delivery to a webhook. At most 30 seconds old.',
    () => events.waiting,
  )
  gauge(
    'otpost_queue_waiting',
    'Jobs of asynchronous notifications that are queued or in flight, of all servers.',
    () => facts()?.jobs?.waiting,
  )
  gauge(
    'otpost_queue_oldest_seconds',
    'Age of the oldest queued job of an asynchronous notification. 0: none.',
    () => {
      const jobs = facts()?.jobs
      return jobs && (jobs.oldestAt === null ? 0 : Math.max(0, queue.now() - jobs.oldestAt) / 1000)
    },
  )
  counter(
    'otpost_queue_jobs_total',
    'Jobs of asynchronous notifications that this server ended, by result.',
    queue.counts,
    'result',
  )
}

function readDatabase(registry: Registry, { stats }: MetricSources, facts: () => Facts | undefined): void {
  const { gauge, counter } = readingsIn(registry)
  gauge('otpost_database_up', '1 if the database can be read and written, else 0.', () =>
    facts()?.isUp ? 1 : 0,
  )
  gauge(
    'otpost_store_queue_length',
    'Writes that wait for their commit and its sync.',
    () => facts()?.queueLength,
  )
  counter(
    'otpost_store_lost_transactions_total',
    'Transactions that failed, and locks that timed out.',
    () => facts()?.writer?.lost,
  )
  gauge(
    'otpost_event_log_waiting',
    'Event log entries that wait to be written.',
    () => stats.eventLog().waiting,
  )
  counter(
    'otpost_event_log_lost_requests_total',
    'Requests whose event log entries could not be written.',
    () => stats.eventLog().lost,
  )
  gauge(
    'otpost_database_bytes',
    'Size of the database file and its write-ahead log.',
    () => {
      const files = facts()?.files
      return files && (['main', 'wal'] as const).map((file) => [file, files[file]])
    },
    'file',
  )
  gauge(
    'otpost_database_disk_free_bytes',
    'Free space on the disk of the database.',
    () => facts()?.files?.diskFree,
  )
  gauge(
    'otpost_database_connections',
    'Connections to PostgreSQL, by state. Absent with SQLite.',
    () => {
      const { size, idle } = stats.pool() ?? {}
      if (size === undefined || idle === undefined) return undefined
      return Object.entries({ busy: size - idle, idle })
    },
    'state',
  )
  gauge(
    'otpost_database_statements_waiting',
    'Statements that wait for a connection to PostgreSQL. Absent with SQLite.',
    () => stats.pool()?.waiting,
  )
}
