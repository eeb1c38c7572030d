import type { Breakers } from '../../domain/delivery/breaker.ts'
import type { FeedbackResult } from '../../domain/delivery/conversion-feedback.ts'
import type { DeliveryReportState } from '../../domain/delivery/delivery-reports.ts'
import type { Mailer, PhoneRoutes } from '../../domain/ground/providers.ts'
import type { Distribution } from '../../domain/log/distribution.ts'
import type { RequestContext } from '../../domain/request/request-context.ts'
import type { RequestListener } from '../../domain/request/request-ended.ts'

export interface MetricSources {
  readonly build: { readonly version: string; readonly bun: string; readonly database: string }
  readonly phoneRoutes: PhoneRoutes
  readonly mailer: Mailer
  readonly usesConversionFeedback: boolean
  readonly breakers: Pick<Breakers, 'states'>
  /** Codes that were delivered although their send had failed, by provider. */
  readonly lateCodes: ReadonlyMap<string, number>
  readonly alerts: {
    /** Stored alerts, by kind. */
    readonly counts: ReadonlyMap<string, number>
    readonly shares: readonly { readonly name: string; readonly ratio: number }[]
  }
  /** Of webhooks. `counts`: by result, of this server. */
  readonly events: { readonly counts: ReadonlyMap<string, number>; readonly waiting: number }
  readonly queue: {
    /** Ended jobs, by result. */
    readonly counts: () => ReadonlyMap<string, number>
    status(): Promise<{ readonly waiting: number; readonly oldestAt: number | null }>
    readonly now: () => number
  }
  readonly checkDatabase: () => Promise<void>
  readonly stats: {
    queueLength(): number
    eventLog(): { readonly waiting: number; readonly lost: number }
    /** Undefined: the database has no writer here. */
    writer():
      | {
          readonly batchSizes: Distribution
          readonly commitSeconds: Distribution
          readonly lost: number
        }
      | undefined
    /** In bytes. Undefined: the database has no files. Rejects if they are missing. */
    files(): Promise<{ readonly main: number; readonly wal: number; readonly diskFree: number } | undefined>
    /** Undefined: the database is not a server. */
    pool(): { readonly size: number; readonly idle: number; readonly waiting: number } | undefined
  }
}

export interface Scrape {
  readonly contentType: string
  readonly text: string
}

export interface Metrics {
  readonly ended: RequestListener
  /** After a try of a job. */
  readonly tried: (context: RequestContext) => void
  readonly reportReceived: (provider: string, status: DeliveryReportState['status']) => void
  readonly feedbackReported: (result: FeedbackResult) => void
  /** In Prometheus text format. A database that does not answer is reported as down, within a time limit. */
  scrape(): Promise<Scrape>
  stop(): void
}
