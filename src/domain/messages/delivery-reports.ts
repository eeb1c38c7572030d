import { Failure } from '../failures.ts'
import type { Clock, Secrets } from '../ports.ts'
import type { CallbackRequest, DeliveryReport, DeliveryReportReader, SmsProvider } from './providers.ts'

/** The highest-ranking delivery report of a message so far. */
export interface DeliveryReportState extends Pick<DeliveryReport, 'status' | 'reason'> {
  /** Epoch milliseconds. */
  readonly at: number
}

export interface MessageReport extends DeliveryReportState {
  /** `Attempt.reportKey` */
  readonly key: string
}

export interface DeliveryReportStore {
  /**
   * Saves reports in one atomic step. A report is ignored where an earlier one of its message ranks as high (`reportRanks`).
   * Reports may come before their attempt, any number of times, and in any order.
   */
  saveReports(provider: string, reports: readonly MessageReport[]): Promise<void>
}

/** The report key of an attempt with a callback URL of its own; short, since providers limit URLs. */
export function attemptKey(requestId: string, attempt: number): string {
  return `${requestId.replaceAll('-', '')}.${attempt}`
}

/** The report key of a message by the provider's id. */
export function providerReportKey(provider: string, providerMessageId: string): string {
  return `${provider}:${providerMessageId}`
}

/** Final outranks pending, and `delivered` outranks `failed`: a handset's report is proof, a failure may be a guess. */
export const reportRanks: Readonly<Record<DeliveryReportState['status'], number>> = {
  pending: 0,
  failed: 1,
  delivered: 2,
}

export interface CallbackPorts {
  readonly providers: readonly SmsProvider[]
  readonly secrets: Pick<Secrets, 'isCallbackToken'>
  readonly deliveryReports: DeliveryReportStore
  readonly now: Clock
  /** For metrics. */
  readonly reportReceived?: ((provider: string, status: DeliveryReportState['status']) => void) | undefined
}

/** The path of one attempt's callback URL. */
export function attemptPath(
  secrets: Pick<Secrets, 'callbackToken'>,
  provider: string,
  requestId: string,
  attempt: number,
): string {
  const key = attemptKey(requestId, attempt)
  return `/receipts/${provider}/${key}.${secrets.callbackToken(`${provider} ${key}`)}`
}

/** Null where this server has no public URL. */
export function callbackUrls(
  secrets: Pick<Secrets, 'callbackToken'>,
  publicUrl: string | undefined,
): (provider: string, requestId: string, attempt: number) => string | null {
  return (provider, requestId, attempt) =>
    publicUrl === undefined ? null : publicUrl + attemptPath(secrets, provider, requestId, attempt)
}

/** The longest callback path, for providers that limit the length of URLs. */
export function attemptPathLength(provider: string): number {
  const [idLength, tokenLength] = [32, 16]
  return `/receipts/${provider}/`.length + idLength + '.9999.'.length + tokenLength
}

/** The path of a provider's callback URL for all its messages, as entered in the provider's console. */
export function providerPath(secrets: Pick<Secrets, 'callbackToken'>, provider: string): string {
  return `/receipts/${provider}/${secrets.callbackToken(provider)}`
}

/**
 * Saves the delivery reports in a callback.
 *
 * @returns the answer that the provider requires; undefined: the usual envelope
 * @throws Failure `route_not_found` for a path that this server did not make, `forbidden` for a wrong signature
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
  const reports = received
    .filter(({ providerMessageId: id }) => id === undefined || isProviderMessageId(id))
    .map(({ providerMessageId = '', ...report }) => ({ ...report, key: keyOf(providerMessageId), at }))
  // A callback may have thousands of reports: in batches, so that sends are not delayed.
  for (let done = 0; done < reports.length; done += batch) {
    await ports.deliveryReports.saveReports(provider, reports.slice(done, done + batch))
  }
  return reader.answer?.(call, at)
}

const batch = 200

/** @throws Failure `route_not_found` where the path is none that this server made */
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

/** What else an answer may contain is not for the log. */
export function isProviderMessageId(text: string): boolean {
  return /^[!-~]{1,200}$/.test(text)
}
