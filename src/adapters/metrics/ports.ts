import type { Distribution } from '../../domain/events/distribution.ts'
import type { RequestListener } from '../../domain/events/request-ended.ts'
import type { Breakers } from '../../domain/messages/breaker.ts'
import type { DeliveryReportState } from '../../domain/messages/delivery-reports.ts'
import type { Mailer, SmsProvider, SmsRoute } from '../../domain/messages/providers.ts'

/** What a scrape reads. */
export interface MetricSources {
  readonly build: { readonly version: string; readonly bun: string; readonly database: string }
  readonly smsRoutes: Readonly<Record<SmsRoute, readonly SmsProvider[]>>
  readonly mailer: Mailer
  readonly breakers: Pick<Breakers, 'states'>
  /** Rejects when the database cannot be read or written. */
  readonly checkDatabase: () => Promise<void>
  readonly stats: {
    queueLength(): number
    eventLog(): { readonly waiting: number; readonly lost: number }
    /** Since the writer thread began; undefined: there is none. Rejects where it does not answer. */
    writer(): Promise<
      | {
          readonly batchSizes: Distribution
          readonly commitSeconds: Distribution
          readonly lost: number
        }
      | undefined
    >
    /** In bytes; undefined: the database has no files. Rejects where they are gone. */
    files(): Promise<{ readonly main: number; readonly wal: number; readonly diskFree: number } | undefined>
    /** Connections to a database server, and statements that wait for one; undefined: there is none. */
    pool(): { readonly size: number; readonly idle: number; readonly waiting: number } | undefined
  }
}

/** A scrape's answer. */
export interface Scrape {
  readonly contentType: string
  readonly text: string
}

/** The metrics of a server. */
export interface Metrics {
  /** Counts an answered request with its deliveries and limits. */
  readonly ended: RequestListener
  readonly reportReceived: (provider: string, status: DeliveryReportState['status']) => void
  /** The present values in Prometheus's text format; a database that does not answer is reported as down, in time. */
  scrape(): Promise<Scrape>
  /** Stops the timer that measures the event loop. */
  stop(): void
}
