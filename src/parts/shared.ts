import { textBeforeCode } from '../adapters/email/code-in-html.ts'
import { createOutboxMailer } from '../adapters/email/outbox.ts'
import { createSmtpMailer } from '../adapters/email/smtp.ts'
import { textOf } from '../adapters/email/text.ts'
import { ipIdentity } from '../adapters/http/client-ip.ts'
import { breakerLog } from '../adapters/log/breaker-log.ts'
import { numbers } from '../adapters/phone/numbers.ts'
import { segmentsOf } from '../adapters/sms/segments.ts'
import { isTopLevelDomain } from '../adapters/sms/top-level-domains.ts'
import { shareCircuits } from '../adapters/store/shared-circuits.ts'
import type { Config } from '../config/config.ts'
import type { Context } from '../context.ts'
import { Breakers } from '../domain/delivery/breaker.ts'
import {
  callbackUrls,
  type DeliveryReportStore,
  providerReportKey,
  type ReportRejection,
} from '../domain/delivery/delivery-reports.ts'
import { Turns } from '../domain/delivery/turns.ts'
import type { Log } from '../domain/ground/ports.ts'
import { type DeliveryReport, mapRoutes } from '../domain/ground/providers.ts'
import type { Stopwatch } from '../domain/ground/time.ts'
import { modeInForce } from '../domain/guard/mode.ts'
import { CredentialRejections } from '../domain/limits/credentials.ts'
import { createEventLog } from '../domain/log/event-log-writer.ts'
import { rejectedReportStat, spendStat } from '../domain/log/stats.ts'
import { refund } from '../domain/money/refunds.ts'
import type { Spend } from '../domain/money/spending.ts'
import { hasEnded, processOwner } from '../process-owner.ts'
import { version } from '../version.ts'

/** What rules about texts ask: segments of an SMS, host names, and what precedes a code in HTML. */
export const texts = { segmentsOf, isTopLevelDomain, textBeforeCode }

interface Process {
  readonly log: Log
  readonly stopwatch?: Stopwatch
  /** Of requests and jobs in progress. */
  readonly owner?: string
  /** PUBLIC_URL, else the URL on which the server listens. */
  readonly ownUrl: () => string
}

export type Shared = ReturnType<typeof createShared>

/** What most parts use: the context, the settings, the process, and what calls providers. */
export function createShared(config: Config, context: Context, about: Process) {
  const { now, outbox, openCircuits, secrets, stats } = context
  const { log, ownUrl, stopwatch = () => performance.now(), owner = processOwner() } = about
  const smtp = config.smtp && createSmtpMailer(config.smtp, config.providerTimeoutMs)
  const policy = context.policy.cached(config.smsCountries)
  const deliveryReports: DeliveryReportStore = {
    saveReports: async (provider, reports, writesEvents) => {
      const changes = await context.eventLog.saveReports(provider, reports, writesEvents)
      if (config.ladder.ways.length === 1) return changes
      const final = reports.filter(({ status }) => status !== 'pending')
      await context.ladderStore.reported(
        final.map(({ key }) => key),
        now(),
      )
      return changes
    },
  }
  const saveOwnReport = async (provider: string, { providerMessageId = '', ...report }: DeliveryReport) => {
    const key = providerReportKey(provider, providerMessageId)
    const writesEvents = (await policy()).webhooks.size > 0
    await deliveryReports.saveReports(provider, [{ ...report, key, at: now() }], writesEvents)
  }
  const reportLater = (provider: string, report: DeliveryReport, ms: number) => {
    const save = () =>
      saveOwnReport(provider, report).catch((err: unknown) =>
        log.error({ err, provider }, 'a delivery report could not be stored'),
      )
    setTimeout(save, ms).unref()
  }
  const tools = { now, outbox, reportLater }
  const phoneRoutes = mapRoutes(config.phoneRoutes, (makers) => makers.map((make) => make(tools)))
  const breakers = new Breakers(stopwatch)
  breakers.onChange(breakerLog(log))
  if (openCircuits) shareCircuits(openCircuits, breakers, now)
  return {
    ...context,
    ...config,
    log,
    ownUrl,
    stopwatch,
    owner,
    ...numbers,
    ...texts,
    textOf,
    build: { version, bun: Bun.version, database: stats.version() },
    hasOutbox: config.outboxSettings.length > 0 && config.outboxAccess.isOpen,
    hasEnded: (owner: string) => hasEnded(owner, { isLocal: config.database.kind === 'sqlite' }),
    eventLog: createEventLog(context.eventLog),
    policy,
    /** As of the policy of the latest request. */
    guardMode: () => modeInForce(policy.latest()?.guardMode ?? null, config.guard, now()).mode,
    mailer: smtp ?? createOutboxMailer(outbox),
    closeMailer: () => smtp?.close(),
    phoneRoutes,
    // Of two providers with the same name either works: delivery reports and feedback do not depend on the route.
    providers: Object.values(phoneRoutes).flat(),
    breakers,
    turns: new Turns(after),
    callbackUrl: callbackUrls(secrets, config.publicUrl),
    deliveryReports,
    messages: context.eventLog.messages,
    refund: (reportKey: string, to: string) => {
      const { deliveries, count } = context.eventLog
      const countSpend = (at: number, spend: Spend, micros: number) => count(at, spendStat(spend), micros)
      return refund({ ...context, ...numbers, policy, deliveries, countSpend }, reportKey, to)
    },
    reportRejected: (provider: string, why: ReportRejection) =>
      context.eventLog.count(now(), rejectedReportStat(provider, why)),
    rejections: new CredentialRejections(),
    ipIdentity,
  }
}

function after(ms: number, act: () => void): () => void {
  const timer = setTimeout(act, ms)
  return () => clearTimeout(timer)
}
