import { Gauge, Registry } from 'prom-client'
import type { MetricSources, Metrics, Scrape } from './ports.ts'
import { createReadings } from './readings.ts'
import { createRequestMetrics } from './request-metrics.ts'
import { registerResources } from './resources.ts'

export function createMetrics(sources: MetricSources): Metrics {
  const registry = new Registry()
  const observed = createRequestMetrics(registry, sources)
  const { refresh, stop } = createReadings(registry, sources)
  new Gauge({
    name: 'otpost_build_info',
    help: 'Always 1. The labels are the versions of otpost and Bun, and the database.',
    labelNames: ['version', 'bun', 'database'],
    registers: [registry],
  }).set({ ...sources.build }, 1)
  registerResources(registry)
  const read = async (): Promise<Scrape> => {
    await refresh()
    return { contentType: registry.contentType, text: await registry.metrics() }
  }
  let scraping: Promise<Scrape> | undefined
  return {
    ...observed,
    // Simultaneous scrapes share a result.
    scrape: () => {
      scraping ??= read().finally(() => {
        scraping = undefined
      })
      return scraping
    },
    stop,
  }
}
