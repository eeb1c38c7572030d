import { Failure } from './failures.ts'
import type { Clock, Secrets } from './ports.ts'
import type { ReceiptCall, ReceiptReader, SmsProvider } from './providers.ts'

/** What is known of a message by its receipts: the last word on it so far. */
export interface ReceiptState {
  readonly status: 'delivered' | 'failed' | 'pending'
  readonly reason: string | null
  /** Epoch milliseconds at which it came. */
  readonly at: number
}

/** The receipts that have come. */
export interface ReceiptBook {
  /**
   * Keeps what a provider says of messages by key, each unless what is known of its message ranks as high (`receiptRanks`); one atomic
   * step. News may come before the attempt itself is in the delivery log, any number of times, and in any order.
   */
  keepReceipts(
    provider: string,
    news: readonly (readonly [key: string, state: ReceiptState])[],
  ): Promise<void>
}

/** What receipts name an attempt by that has a URL of its own for them; short, since vendors limit the length of those. */
export function attemptKey(requestId: string, attempt: number): string {
  return `${requestId.replaceAll('-', '')}.${attempt}`
}

/** What receipts name a message by that the provider has given a name. */
export function vendorKey(provider: string, vendorId: string): string {
  return `${provider}:${vendorId}`
}

/**
 * The standing of news: what is final outranks what is not, and `delivered` outranks `failed`, since a handset's word is
 * proof and a failure may be a guess of the network. So the outcome is the same in whatever order receipts come.
 */
export const receiptRanks: Readonly<Record<ReceiptState['status'], number>> = {
  pending: 0,
  failed: 1,
  delivered: 2,
}

export interface ReceiptPorts {
  /** The providers in use, of both routes. */
  readonly providers: readonly SmsProvider[]
  readonly secrets: Pick<Secrets, 'isReceiptToken'>
  readonly receipts: ReceiptBook
  readonly now: Clock
}

/** The path, below the public address, at which a provider reports on one attempt. */
export function attemptPath(
  secrets: Pick<Secrets, 'receiptToken'>,
  provider: string,
  requestId: string,
  attempt: number,
): string {
  const key = attemptKey(requestId, attempt)
  return `/receipts/${provider}/${key}.${secrets.receiptToken(`${provider} ${key}`)}`
}

/** How long such a path is at most; for vendors that limit the length of URLs. */
export function attemptPathLength(provider: string): number {
  const idLength = 32
  const tokenLength = 16
  return `/receipts/${provider}/`.length + idLength + '.9999.'.length + tokenLength
}

/** The path at which a provider reports on all its messages; it is entered in the vendor's console. */
export function providerPath(secrets: Pick<Secrets, 'receiptToken'>, provider: string): string {
  return `/receipts/${provider}/${secrets.receiptToken(provider)}`
}

/**
 * Takes in what a vendor tells of messages. The path's last part must be one that this server made, and where the vendor
 * signs, its signature must be right too; else `route_not_found` or `forbidden`. Resolves to what the vendor wants to be
 * answered, if that is anything in particular.
 */
export async function takeReceipts(
  ports: ReceiptPorts,
  provider: string,
  token: string,
  call: ReceiptCall,
): Promise<unknown> {
  const { reader, keyOf } = receiptReader(ports, provider, token)
  const at = ports.now()
  const news = reader
    .read(call)
    .filter(({ vendorId }) => vendorId === undefined || isVendorId(vendorId))
    .map(({ vendorId = '', status, reason }) => [keyOf(vendorId), { status, reason, at }] as const)
  // A vendor may tell of thousands at once: a few at a time, so that codes beside them don't wait.
  for (let done = 0; done < news.length; done += batch) {
    await ports.receipts.keepReceipts(provider, news.slice(done, done + batch))
  }
  return reader.answer?.(call, at)
}

const batch = 200

/**
 * Who reads what comes to such a path, and how it names its messages.
 *
 * @throws Failure `route_not_found` where the path is none that this server made
 */
export function receiptReader(
  { providers, secrets }: Pick<ReceiptPorts, 'providers' | 'secrets'>,
  provider: string,
  token: string,
): { reader: ReceiptReader; keyOf: (vendorId: string) => string } {
  const reader = providers.find(({ name, receipts }) => name === provider && receipts)?.receipts
  const keyOf = reader && namer(secrets, provider, reader, token)
  if (!reader || !keyOf) throw new Failure('route_not_found')
  return { reader, keyOf }
}

/** Whether a vendor's name for a message is one that is kept: what else an answer may hold is not for the log. */
export function isVendorId(text: string): boolean {
  return /^[!-~]{1,200}$/.test(text)
}

/** How a receipt that came to this path names its message; undefined where the path is none of ours. */
function namer(
  secrets: ReceiptPorts['secrets'],
  provider: string,
  { namedBy }: ReceiptReader,
  token: string,
): ((vendorId: string) => string) | undefined {
  if (namedBy === 'vendorId') {
    return secrets.isReceiptToken(provider, token) ? (vendorId) => vendorKey(provider, vendorId) : undefined
  }
  const end = token.lastIndexOf('.')
  const key = token.slice(0, Math.max(0, end))
  return secrets.isReceiptToken(`${provider} ${key}`, token.slice(end + 1)) ? () => key : undefined
}
