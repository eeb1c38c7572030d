import { Failure } from '../ground/failures.ts'
import type { Secrets } from '../ground/ports.ts'
import type {
  CallbackRequest,
  DeliveryReport,
  DeliveryReportReader,
  SmsProvider,
} from '../ground/providers.ts'
import type { Clock, EpochMs, Stopwatch } from '../ground/time.ts'
import type { Attempt } from '../request/request-context.ts'

export interface DeliveryReportState extends Pick<DeliveryReport, 'status' | 'reason'> {
  readonly at: EpochMs
}

export interface MessageReport extends DeliveryReportState {
  readonly key: string
}

export interface DeliveryReportStore {
  /**
   * Atomic. Reports may repeat and arrive in any order, also before their attempt.
   * @param writesEvents whether a report that makes a message delivered or failed also writes an event (design D45)
   * @returns what the reports changed
   */
  saveReports(
    provider: string,
    reports: readonly MessageReport[],
    writesEvents: boolean,
  ): Promise<readonly ReportChange[]>
}

/** A message that failed or was delivered, according to its report. */
export interface ReportChange extends Pick<MessageReport, 'key' | 'reason'> {
  readonly status: 'failed' | 'delivered'
  readonly at: EpochMs
  /** -1: it did not fail, as an earlier report said. */
  readonly times: 1 | -1
}

/** What was sent with a report key. */
export interface ReportedMessage {
  readonly brand: string
  readonly template: string
}

/** A message whose report says that it was delivered. */
export interface DeliveredMessage extends ReportedMessage {
  readonly outcome: Attempt['outcome']
  readonly reason: string | null
  /** The error code of its request. */
  readonly error: string | null
}

/** The report key of an attempt with its own callback URL. Short, since providers limit URLs. */
export function attemptKey(requestId: string, attempt: number): string {
  return `${requestId.replaceAll('-', '')}.${attempt.toString(36)}`
}

/**
 * Of a key with a URL of its own, or of a message ID as `smsOf` makes it, by which `webhook` reports. Undefined: a key with a
 * provider's own ID, which may be a UUID too.
 */
export function requestIdOfKey(key: string): string | undefined {
  const [, own] = /^webhook:([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:\.\d+)?$/.exec(key) ?? []
  if (own !== undefined) return own
  const groups = /^([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})\.[0-9a-z]+$/.exec(key)
  return groups ? groups.slice(1).join('-') : undefined
}

export function providerReportKey(provider: string, providerMessageId: string): string {
  return `${provider}:${providerMessageId}`
}

/** `delivered` outranks `failed`: a handset's confirmation is proof, a failure may be a guess. */
export const reportRanks: Readonly<Record<DeliveryReportState['status'], number>> = {
  pending: 0,
  failed: 1,
  delivered: 2,
}

/** Why a delivery report is rejected. `url`: of another provider, or with a wrong token. */
export type ReportRejection = 'url' | 'signature' | 'form'

interface WebhooksOfApps {
  readonly webhooks: ReadonlyMap<string, unknown>
}

export interface CallbackPorts {
  readonly providers: readonly SmsProvider[]
  readonly secrets: Pick<Secrets, 'isCallbackToken'>
  readonly deliveryReports: DeliveryReportStore
  /** The webhooks of apps. */
  readonly policy: () => WebhooksOfApps | Promise<WebhooksOfApps>
  readonly now: Clock
  readonly stopwatch: Stopwatch
  /** Gives the budgets back what a refunded message cost. */
  readonly refund: (reportKey: string, to: string) => Promise<void>
  readonly reportReceived?: ((provider: string, status: DeliveryReportState['status']) => void) | undefined
  /** `provider` is empty if the URL names none of this server. */
  readonly reportRejected: (provider: string, why: ReportRejection) => void
}

export function attemptPath(
  secrets: Pick<Secrets, 'callbackToken'>,
  provider: string,
  requestId: string,
  attempt: number,
): string {
  const key = attemptKey(requestId, attempt)
  return `/callbacks/${provider}/${key}.${secrets.callbackToken(`${provider} ${key}`)}`
}

/** Null: this server has no public URL. */
export function callbackUrls(
  secrets: Pick<Secrets, 'callbackToken'>,
  publicUrl: string | undefined,
): (provider: string, requestId: string, attempt: number) => string | null {
  return (provider, requestId, attempt) =>
    publicUrl === undefined ? null : publicUrl + attemptPath(secrets, provider, requestId, attempt)
}

export function attemptPathLength(provider: string): number {
  const [idLength, tokenLength] = [32, 16]
  return `/callbacks/${provider}/`.length + idLength + '.zzzz.'.length + tokenLength
}

/** For all messages of a provider; entered in the provider's console. */
export function providerPath(secrets: Pick<Secrets, 'callbackToken'>, provider: string): string {
  return `/callbacks/${provider}/${secrets.callbackToken(provider)}`
}

/**
 * @returns the response that the provider requires; undefined: the usual envelope
 * @throws Failure `route_not_found` for an unknown path, `forbidden` for a wrong signature
 */
export async function takeReports(
  ports: CallbackPorts,
  provider: string,
  token: string,
  call: CallbackRequest,
): Promise<unknown> {
  const { reader, keyOf } = reportReader(ports, provider, token)
  const at = ports.now()
  const received = reader.read(call)
  for (const { status } of received) ports.reportReceived?.(provider, status)
  const writesEvents = (await ports.policy()).webhooks.size > 0
  const refunds = new Map<string, string>()
  const reports = received
    .filter(({ providerMessageId: id }) => id === undefined || isProviderMessageId(id))
    .map(({ providerMessageId = '', refundedTo, ...report }) => {
      const key = keyOf(providerMessageId)
      if (refundedTo !== undefined) refunds.set(key, refundedTo)
      return { ...report, key, at }
    })
  // In batches, so that thousands of reports do not delay sends.
  for (let done = 0; done < reports.length; done += batch) {
    const some = reports.slice(done, done + batch)
    for (const { key, status, times } of await ports.deliveryReports.saveReports(
      provider,
      some,
      writesEvents,
    )) {
      const to = refunds.get(key)
      // A repeated report changes nothing.
      if (to !== undefined && status === 'failed' && times === 1) await ports.refund(key, to)
    }
  }
  return reader.answer?.(call, at)
}

const batch = 200

/** @throws Failure `route_not_found` for an unknown path */
export function reportReader(
  { providers, secrets }: Pick<CallbackPorts, 'providers' | 'secrets'>,
  provider: string,
  token: string,
): { reader: DeliveryReportReader; keyOf: (providerMessageId: string) => string } {
  const reader = providers.find(
    ({ name, deliveryReports }) => name === provider && deliveryReports,
  )?.deliveryReports
  const end = reader?.namedBy === 'attempt' ? token.lastIndexOf('.') : -1
  const key = token.slice(0, Math.max(0, end))
  const about = reader?.namedBy === 'attempt' ? `${provider} ${key}` : provider
  if (!reader || !secrets.isCallbackToken(about, token.slice(end + 1))) throw new Failure('route_not_found')
  const keyOf = (id: string) => (reader.namedBy === 'attempt' ? key : providerReportKey(provider, id))
  return { reader, keyOf }
}

/** Other content of a provider's response does not belong in the log. */
export function isProviderMessageId(text: string): boolean {
  return /^[!-~]{1,200}$/.test(text)
}

export interface Delivery extends Omit<Attempt, 'error' | 'cost'> {
  readonly requestId: string
  readonly app: string
  readonly brand: string | null
  readonly report: DeliveryReportState | null
}
