import type { Answered, MetricSources, Scrape } from './metrics.ts'

/** The metrics of a server. */
export interface Metrics {
  /** Counts an answered request and what it did. */
  observe(answered: Answered): void
  /** Counts a vendor's receipt. */
  observeReport(provider: string, status: 'delivered' | 'failed' | 'pending'): void
  /** What there is to tell now, in Prometheus's text format; a database that does not answer is told of, in time. */
  scrape(): Promise<Scrape>
  /** Ends what runs for them beside requests. */
  stop(): void
}

/**
 * Metrics that load what they are made with beside the server's start: it takes as long as all the rest of that. Nothing
 * is lost meanwhile.
 */
export function startMetrics(sources: MetricSources): Metrics {
  let loaded: Metrics | undefined
  const loading = import('./metrics.ts').then(({ createMetrics }) => {
    loaded = createMetrics(sources)
    return loaded
  })
  const withMetrics = (use: (metrics: Metrics) => void) => {
    if (loaded) use(loaded)
    else void loading.then(use)
  }
  return {
    observe: (answered) => withMetrics((metrics) => metrics.observe(answered)),
    observeReport: (provider, status) => withMetrics((metrics) => metrics.observeReport(provider, status)),
    scrape: async () => (await loading).scrape(),
    stop: () => withMetrics((metrics) => metrics.stop()),
  }
}
