import type { MetricSources, Metrics } from './ports.ts'

/** Loads prom-client in the background, since that doubles the start-up time. */
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
    ended: (ended) => withMetrics((metrics) => metrics.ended(ended)),
    tried: (context) => withMetrics((metrics) => metrics.tried(context)),
    reportReceived: (provider, status) => withMetrics((metrics) => metrics.reportReceived(provider, status)),
    feedbackReported: (result) => withMetrics((metrics) => metrics.feedbackReported(result)),
    scrape: async () => (await loading).scrape(),
    stop: () => withMetrics((metrics) => metrics.stop()),
  }
}
