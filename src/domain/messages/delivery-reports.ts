import { Failure } from '../failures.ts'
import type { Clock, Secrets } from '../ports.ts'
import type { CallbackRequest, DeliveryReportReader, SmsProvider } from './providers.ts'

/** What is known of a message by its delivery reports: the one that counts so far. */
export interface DeliveryReportState {
  readonly status: 'delivered' | 'failed' | 'pending'
  readonly reason: string | null
  /** Epoch milliseconds at which it came. */
  readonly at: number
}

/** What a provider reports of one message. */
export interface MessageReport extends DeliveryReportState {
  /** Names the message (`Attempt.reportKey`). */
  readonly key: string
}

/** The delivery reports that have come. */
export interface DeliveryReportStore {
  /**
   * Saves what a provider reports, in one atomic step. A report is ignored where an earlier one of its message ranks as high
   * (`reportRanks`). Reports may come before their attempt is in the delivery log, any number of times, and in any order.
   */
  saveReports(provider: string, reports: readonly MessageReport[]): Promise<void>
}

/** What delivery reports name an attempt by that has a URL of its own for them; short, since vendors limit the length of those. */
export function attemptKey(requestId: string, attempt: number): string {
  return `${requestId.replaceAll('-', '')}.${attempt}`
}

/** What delivery reports name a message by that the provider has given a name. */
export function providerReportKey(provider: string, providerMessageId: string): string {
  return `${provider}:${providerMessageId}`
}

/**
 * The rank of a report: what is final outranks what is not, and `delivered` outranks `failed`, since a handset's word is
 * proof and a failure may be a guess of the network. So the outcome is the same in whatever order reports come.
 */
export const reportRanks: Readonly<Record<DeliveryReportState['status'], number>> = {
  pending: 0,
  failed: 1,
  delivered: 2,
}

export interface CallbackPorts {
  /** The providers in use, of both routes. */
  readonly providers: readonly SmsProvider[]
  readonly secrets: Pick<Secrets, 'isCallbackToken'>
  readonly deliveryReports: DeliveryReportStore
  readonly now: Clock
  /** Receives each report as it comes; for metrics. */
  readonly reportReceived?: ((provider: string, status: DeliveryReportState['status']) => void) | undefined
}

/** The path, below the public address, at which a provider reports on one attempt. */
export function attemptPath(
  secrets: Pick<Secrets, 'callbackToken'>,
  provider: string,
  requestId: string,
  attempt: number,
): string {
  const key = attemptKey(requestId, attempt)
  return `/receipts/${provider}/${key}.${secrets.callbackToken(`${provider} ${key}`)}`
}

/** The URL at which a provider reports on one attempt; null where this server has no public URL. */
export function callbackUrls(
  secrets: Pick<Secrets, 'callbackToken'>,
  publicUrl: string | undefined,
): (provider: string, requestId: string, attempt: number) => string | null {
  return (provider, requestId, attempt) =>
    publicUrl === undefined ? null : publicUrl + attemptPath(secrets, provider, requestId, attempt)
}

/** How long such a path is at most; for vendors that limit the length of URLs. */
export function attemptPathLength(provider: string): number {
  const idLength = 32
  const tokenLength = 16
  return `/receipts/${provider}/`.length + idLength + '.9999.'.length + tokenLength
}

/** The path at which a provider reports on all its messages; it is entered in the vendor's console. */
export function providerPath(secrets: Pick<Secrets, 'callbackToken'>, provider: string): string {
  return `/receipts/${provider}/${secrets.callbackToken(provider)}`
}

/**
 * Takes in what a vendor tells of messages. The path's last part must be one that this server made, and where the vendor
 * signs, its signature must be right too; else `route_not_found` or `forbidden`. Resolves to what the vendor wants to be
 * answered, if that is anything in particular.
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
    .filter(
      ({ providerMessageId }) => providerMessageId === undefined || isProviderMessageId(providerMessageId),
    )
    .map(({ providerMessageId = '', status, reason }) => ({
      key: keyOf(providerMessageId),
      status,
      reason,
      at,
    }))
  // A vendor may tell of thousands at once: a few at a time, so that codes beside them don't wait.
  for (let done = 0; done < reports.length; done += batch) {
    await ports.deliveryReports.saveReports(provider, reports.slice(done, done + batch))
  }
  return reader.answer?.(call, at)
}

const batch = 200

/**
 * Who reads what comes to such a path, and how it names its messages.
 *
 * @throws Failure `route_not_found` where the path is none that this server made
 */
export function reportReader(
  { providers, secrets }: Pick<CallbackPorts, 'providers' | 'secrets'>,
  provider: string,
  token: string,
): { reader: DeliveryReportReader; keyOf: (providerMessageId: string) => string } {
  const reader = providers.find(
    ({ name, deliveryReports }) => name === provider && deliveryReports,
  )?.deliveryReports
  const keyOf = reader && namer(secrets, provider, reader, token)
  if (!reader || !keyOf) throw new Failure('route_not_found')
  return { reader, keyOf }
}

/** Whether a provider's name for a message is one that is stored: what else an answer may hold is not for the log. */
export function isProviderMessageId(text: string): boolean {
  return /^[!-~]{1,200}$/.test(text)
}

/** How a delivery report that came to this path names its message; undefined where the path is none of ours. */
function namer(
  secrets: CallbackPorts['secrets'],
  provider: string,
  { namedBy }: DeliveryReportReader,
  token: string,
): ((providerMessageId: string) => string) | undefined {
  if (namedBy === 'providerMessageId') {
    return secrets.isCallbackToken(provider, token)
      ? (providerMessageId) => providerReportKey(provider, providerMessageId)
      : undefined
  }
  const end = token.lastIndexOf('.')
  const key = token.slice(0, Math.max(0, end))
  return secrets.isCallbackToken(`${provider} ${key}`, token.slice(end + 1)) ? () => key : undefined
}
