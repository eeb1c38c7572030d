import {
  type Brands,
  type BrandsErrors,
  type Catalog,
  type CatalogErrors,
  type FailureReason,
  type IntegrationReceived,
  type IntegrationRequest,
  type MessageStatus,
  type MessageStatusErrors,
  type MessageStatusRequest,
  type NotificationAccepted,
  type Notified,
  type NotifyErrors,
  type NotifyRequest,
  type OtpResendRequest,
  type OtpSendRequest,
  type OtpSent,
  type OtpVerified,
  type OtpVerifyRequest,
  operations,
  type RequestAccessErrors,
  type ResendErrors,
  type SendErrors,
  type TemplateSmsRequest,
  type VerifyErrors,
  version,
} from './contract.ts'

// The client of otpost. It uses web standards alone (fetch, AbortController, timers, streams), so that it runs on Node,
// Bun, Deno and edge runtimes. Use it on servers only: a program that has the API key can send in the brand's name.

export type {
  Brands,
  BrandsErrors,
  Catalog,
  CatalogErrors,
  FailureReason,
  HtmlEmailRequest,
  IntegrationReceived,
  IntegrationRequest,
  MessageStatus,
  MessageStatusErrors,
  MessageStatusRequest,
  NotificationAccepted,
  Notified,
  NotifyErrors,
  NotifyRequest,
  OtpResendRequest,
  OtpSendRequest,
  OtpSent,
  OtpVerified,
  OtpVerifyRequest,
  RequestAccessErrors,
  ResendErrors,
  SendErrors,
  TemplateEmailRequest,
  TemplateSmsRequest,
  TextSmsRequest,
  VerifyErrors,
} from './contract.ts'
export {
  EventError,
  type EventErrorCode,
  type EventHeaders,
  type MessageDelivered,
  type MessageFailed,
  type OtpLockedEvent,
  type OtpostEvent,
  type OtpVerifiedEvent,
  type VerifyEventOptions,
  verifyEvent,
} from './events.ts'

export interface ClientOptions {
  /** The URL of the server, such as `https://otpost.example.com`, with the path if a proxy adds one. */
  readonly url: string | URL
  /**
   * Required if the key is one of the server's APP_CREDENTIALS. Without it, the client sends the key as `Authorization: Bearer`,
   * and the server finds the app by the key.
   */
  readonly appId?: string | undefined
  /** The API key of the app. Use it only on a server, never in a web page or a mobile app. */
  readonly apiKey: string
  /** The default brand. */
  readonly brandId?: string
  /**
   * How long one attempt may take, in milliseconds, from the request to the end of its answer. By default 15 seconds, and
   * for notify 8 more for every 8 recipients beyond the first 8: longer than a server with the default
   * PROVIDER_TIMEOUT_MS needs, so that its answer comes first. Set it where the server has a higher one.
   */
  readonly timeoutMs?: number
  /** How to retry; false: never. */
  readonly retry?: RetryOptions | false
  /** Replaces the global fetch. It must not follow redirects where `init.redirect` is `manual`. */
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>
  /** Replaces the timer between attempts, for tests. It must reject when signal aborts. */
  readonly wait?: (delayMs: number, signal: AbortSignal | undefined) => Promise<void>
  /** Replaces Math.random. */
  readonly random?: () => number
}

/**
 * The client retries after `rate_limited`, since the service then has done nothing. The pause is at least Retry-After. It
 * doubles with each attempt and has a random part, so that many clients do not retry at the same time.
 *
 * A call with an idempotency key is also retried after `idempotency_in_progress`, `unavailable`, a time-out, a lost connection
 * and a 502, 503 or 504 of a proxy. The key is the same in each attempt, so the message is sent at most once, and the code is
 * compared at most once. A send or resend without a key is not: the service may have sent the message.
 */
export interface RetryOptions {
  /** The maximum number of attempts, with the first. Default 3. */
  readonly maxAttempts?: number
  /**
   * The maximum sum of the pauses of one call, in milliseconds. Default 30,000. If Retry-After is longer, the call ends at
   * once, and its result has `retryAfterSeconds`.
   */
  readonly maxWaitMs?: number
  /** The first pause if Retry-After is shorter, and the maximum of its random part, in milliseconds. Default 500. */
  readonly baseDelayMs?: number
}

export interface CallOptions {
  /** Ends the call, a pause before a retry too: its promise rejects with the reason of the signal. */
  readonly signal?: AbortSignal
  /** As in ClientOptions, for this call. */
  readonly timeoutMs?: number
  /** Each field as in ClientOptions, for this call. */
  readonly retry?: RetryOptions | false
}

/** Options of `send`, `resend`, `verify` and `notify`. */
export interface KeyedOptions extends CallOptions {
  /**
   * 1 to 255 visible ASCII characters. The service answers a request with the same key and the same fields with its first
   * answer, and does nothing: for 24 hours after a notify, for as long as the code is valid after a send or resend, for 10
   * minutes after a verify. A program that stores the key before the call can repeat the call after a crash.
   *
   * By default a new UUID for each call of verify and notify, and for each send and resend by e-mail. An SMS with a code has
   * no key unless you give one.
   */
  readonly idempotencyKey?: string
}

/** Whether the answer is that of an earlier request. */
export interface Replayable {
  /** Present if an earlier request with the same idempotency key got this answer, and this request did nothing. */
  readonly replayed?: true
}

/** An error response of the service. */
export interface ServiceFailure<Code> extends Replayable {
  readonly success: false
  /** The error code, for programs. */
  readonly error: Code
  /** Text for people. Its wording may change. */
  readonly message: string
  /** With rate_limited: the limit. With validation_error: a blocked destination, or one field at fault. */
  readonly reason?: FailureReason
  /** With the reason `field`: its path in the request, such as `phone`, `variables.orderDate` or `to[3]`. */
  readonly field?: string
  /** The id of this request in the server log. */
  readonly requestId: string
  readonly status: number
  /** Seconds until the same request can succeed; on every 429. */
  readonly retryAfterSeconds?: number
}

/** There was no complete response. The service may have processed the request. */
export interface NoAnswer {
  readonly success: false
  /** `timeout`: not within timeoutMs. `unreachable`: there was no connection, or it broke. */
  readonly error: 'timeout' | 'unreachable'
  readonly message: string
  readonly reason?: undefined
  readonly field?: undefined
  readonly requestId?: undefined
  readonly status?: undefined
  readonly retryAfterSeconds?: undefined
}

/**
 * An answer that this client does not know: a page of a proxy, a redirect (which is never followed, since the request has
 * the API key), or a code that a newer server has.
 */
export interface UnexpectedAnswer {
  readonly success: false
  readonly error: 'unexpected_answer'
  readonly message: string
  readonly reason?: undefined
  readonly field?: undefined
  readonly status: number
  /** Present if the response came from the service. */
  readonly requestId?: string
  /** An error code of the service that this client does not know. */
  readonly serverError?: string
  readonly retryAfterSeconds?: number
}

/** Why a call failed: by `error`, one of the codes of its operation or of the client's own three. */
export type Failure<Errors> =
  | { [Code in keyof Errors]: ServiceFailure<Code> & Errors[Code] }[keyof Errors]
  | NoAnswer
  | UnexpectedAnswer

export type SendResult = (OtpSent & Replayable) | Failure<SendErrors>
export type ResendResult = (OtpSent & Replayable) | Failure<ResendErrors>
export type VerifyResult = (OtpVerified & Replayable) | Failure<VerifyErrors>
export type NotifyResult = (Notified & Replayable) | Failure<NotifyErrors>
/** Of a notify with `async: true`. Its success has `recipients`, how many messages are stored. */
export type NotifyAsyncResult = (NotificationAccepted & Replayable) | Failure<NotifyErrors>
export type MessageStatusResult = MessageStatus | Failure<MessageStatusErrors>
export type CatalogResult = Catalog | Failure<CatalogErrors>
export type BrandsResult = Brands | Failure<BrandsErrors>
export type RequestAccessResult = IntegrationReceived | Failure<RequestAccessErrors>

interface Results {
  readonly send: SendResult
  readonly resend: ResendResult
  readonly verify: VerifyResult
  readonly notify: NotifyResult | NotifyAsyncResult
  readonly messageStatus: MessageStatusResult
  readonly catalog: CatalogResult
  readonly brands: BrandsResult
  readonly requestAccess: RequestAccessResult
}

type AnyResult = Results[keyof Results]

/**
 * The variables of the templates that the operator made for your brands, by key:
 * `createClient<{ PARCEL_READY: { shop: string; points: number } }>(…)`. GET /integrations/catalog lists them.
 */
export type OwnTemplates = Readonly<Record<string, Readonly<Record<string, string | number>>>>

type NoTemplates = Record<never, never>

/** An SMS from one of these templates. */
export type OwnTemplateSmsRequest<Own extends OwnTemplates> = {
  [Key in keyof Own & string]: Omit<
    Extract<TemplateSmsRequest, { readonly templateKey: 'ORDER_PLACED' }>,
    'templateKey' | 'variables'
  > & { readonly templateKey: Key; readonly variables: Own[Key] & { readonly businessName?: string } }
}[keyof Own & string]

/**
 * Every method resolves to a result: check `success`, and `error` of a failure. Error answers and network failures are
 * results too. A method rejects only when its signal is aborted, when an option is out of range, or when the request is
 * not JSON.
 */
export interface OtpostClient<Own extends OwnTemplates = NoTemplates> {
  /** Sends a code to a phone or a mailbox. It replaces any earlier code of the same brand and recipient. */
  send(request: OtpSendRequest, options?: KeyedOptions): Promise<SendResult>
  /** Sends a new code and revokes the earlier one. */
  resend(request: OtpResendRequest, options?: KeyedOptions): Promise<ResendResult>
  /** Verifies the code that the recipient entered. A correct code is consumed; the third wrong attempt locks the code. */
  verify(request: OtpVerifyRequest, options?: KeyedOptions): Promise<VerifyResult>
  /**
   * Sends one message to each of some recipients, by SMS or e-mail. An SMS that names its brand by `variables.businessName`
   * is sent for that one, not for the client's own. With `async: true` the service answers before it sends the messages.
   */
  notify(
    request: (NotifyRequest | OwnTemplateSmsRequest<Own>) & { readonly async: true },
    options?: KeyedOptions,
  ): Promise<NotifyAsyncResult>
  notify(
    request: (NotifyRequest | OwnTemplateSmsRequest<Own>) & { readonly async?: false },
    options?: KeyedOptions,
  ): Promise<NotifyResult>
  notify(
    request: NotifyRequest | OwnTemplateSmsRequest<Own>,
    options?: KeyedOptions,
  ): Promise<NotifyResult | NotifyAsyncResult>
  /** What became of the message to each recipient of a send, resend or notify. The client repeats it like a call with a key. */
  messageStatus(request: MessageStatusRequest, options?: CallOptions): Promise<MessageStatusResult>
  /**
   * The channels, the templates with their variables, and the limits of the server. Sends no credentials. With `country`, a
   * country code or some first digits of a phone number (at most 6), also the `ways` that `via` of a resend can choose there.
   */
  catalog(options?: CallOptions & { readonly country?: string }): Promise<CatalogResult>
  /** The active brands. Sends no credentials. */
  brands(options?: CallOptions): Promise<BrandsResult>
  /** Asks the operator for an app and a brand. Sends no credentials. */
  requestAccess(request: IntegrationRequest, options?: CallOptions): Promise<RequestAccessResult>
}

/**
 * A client of one application. It keeps no connection open and needs no closing.
 *
 * @typeParam Own the variables of your own templates, which `notify` then accepts
 *
 * @throws TypeError when url is not a plain http or https URL, RangeError when a number is out of range
 */
export function createClient<Own extends OwnTemplates = NoTemplates>(
  client: ClientOptions,
): OtpostClient<Own> {
  const base = baseOf(client.url)
  retryOf(client.retry)
  timeoutOf(client.timeoutMs)

  async function call<Method extends keyof Results>(
    method: Method,
    request: object,
    { signal, timeoutMs = client.timeoutMs, retry, idempotencyKey }: KeyedOptions = {},
  ): Promise<Results[Method]> {
    const { path } = operations[method]
    const url = new URL(path.slice(1), base)
    if (method === 'catalog' && 'country' in request && request.country !== undefined)
      url.searchParams.set('country', String(request.country))
    const body = bodyOf(client, method, request)
    const limitMs = timeoutOf(timeoutMs) ?? defaultTimeoutMs(recipientsOf(request))
    const policy = retryOf(client.retry, retry)
    const key = keyOf(method, request, idempotencyKey)
    const headers = headersOf(client, method, key)
    const send = client.fetch ?? globalFetch
    const wait = client.wait ?? pause
    let leftMs = policy.maxWaitMs
    for (let attempt = 1; ; attempt++) {
      const result = resultOf(method, await exchange(send, url.href, body, headers, limitMs, signal))
      const isLast = result.success || attempt >= policy.maxAttempts
      const isSafe = key !== undefined || isReading(method)
      const delayMs =
        isLast || !isRepeatable(result, isSafe)
          ? undefined
          : delayBefore(attempt, result.retryAfterSeconds, policy, leftMs, client.random)
      if (delayMs === undefined) return result as Results[Method]
      await wait(delayMs, signal)
      leftMs -= delayMs
    }
  }

  return {
    send: (request, options) => call('send', request, options),
    resend: (request, options) => call('resend', request, options),
    verify: (request, options) => call('verify', request, options),
    // TypeScript cannot infer which overload applies.
    notify: (request: object, options?: KeyedOptions) => call('notify', request, options) as Promise<never>,
    messageStatus: (request, options) => call('messageStatus', request, options),
    catalog: (options) => call('catalog', { country: options?.country }, options),
    brands: (options) => call('brands', {}, options),
    requestAccess: (request, options) => call('requestAccess', request, options),
  }
}

// --- The parts of a call ---------------------------------------------------------------------------------------------

/** The base URL of all paths. Errors do not quote the given URL: it may contain a password. */
function baseOf(given: string | URL): URL {
  const url = parsedUrl(given)
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash) {
    throw new TypeError('url must be an http or https URL without user, query and fragment.')
  }
  if (!url.pathname.endsWith('/')) url.pathname += '/'
  return url
}

function parsedUrl(given: string | URL): URL | undefined {
  try {
    return new URL(given)
  } catch {
    return undefined
  }
}

/**
 * The JSON of a request with what the client knows. The brand that the call names is its own choice, by businessName too; null
 * counts as absent, as it does for the service. Undefined for GET.
 */
function bodyOf(
  { appId, apiKey, brandId }: ClientOptions,
  method: keyof Results,
  request: object,
): string | undefined {
  if (operations[method].verb === 'GET') return undefined
  if (method === 'requestAccess') return JSON.stringify(request)
  const { brandId: own, variables } = request as { brandId?: unknown; variables?: { businessName?: unknown } }
  const brand = own ?? (variables?.businessName ? undefined : brandId)
  return JSON.stringify({
    ...request,
    brandId: brand,
    appId,
    apiKey: appId === undefined ? undefined : apiKey,
  })
}

function headersOf(
  { appId, apiKey }: ClientOptions,
  method: keyof Results,
  key: string | undefined,
): Record<string, string> {
  const isOpen = operations[method].verb === 'GET' || method === 'requestAccess'
  return {
    ...(key === undefined ? {} : { 'idempotency-key': key }),
    ...(appId !== undefined || isOpen ? {} : { authorization: `Bearer ${apiKey}` }),
  }
}

/** Whether a call changes nothing. */
function isReading(method: keyof Results): boolean {
  return operations[method].verb === 'GET' || method === 'messageStatus'
}

/** The idempotency key of a call. With other methods it would have no effect. */
function keyOf(method: keyof Results, request: object, given: string | undefined): string | undefined {
  if (isReading(method) || method === 'requestAccess') return undefined
  if (given !== undefined) {
    // The message does not repeat the key: a key may contain the name of a person.
    if (/^[!-~]{1,255}$/.test(given)) return given
    throw new RangeError('idempotencyKey must be 1 to 255 visible ASCII characters.')
  }
  const { channel } = request as { channel?: unknown }
  return method === 'verify' || method === 'notify' || channel === 'EMAIL' ? crypto.randomUUID() : undefined
}

/** Reached by its name at each call, so that what instruments it later is used, and never as a method of an object. */
function globalFetch(url: string, init: RequestInit): Promise<Response> {
  return fetch(url, init)
}

/** The longest that a timer can be set to; a longer one would ring at once. */
const longestTimerMs = 2 ** 31 - 1

function timeoutOf(timeoutMs: number | undefined): number | undefined {
  return timeoutMs === undefined ? undefined : within('timeoutMs', timeoutMs, 1, longestTimerMs)
}

/**
 * The default time-out of one attempt, in milliseconds. The service spends at most 8 seconds on a message, fallbacks
 * included, and sends 8 messages at a time. The rest is for the network and a busy machine.
 *
 * @param recipients the number of recipients of a notify
 */
export function defaultTimeoutMs(recipients = 1): number {
  return 15_000 + 8_000 * Math.max(0, Math.ceil(recipients / 8) - 1)
}

function recipientsOf({ to }: { readonly to?: unknown }): number {
  return Array.isArray(to) ? to.length : 1
}

type Policy = Required<RetryOptions>

/** The later of several choices wins, field by field; false turns off, and an object after it on again. */
function retryOf(...choices: readonly (RetryOptions | false | undefined)[]): Policy {
  let policy: Policy = { maxAttempts: 3, maxWaitMs: 30_000, baseDelayMs: 500 }
  let isOn = true
  for (const choice of choices) {
    if (choice === undefined) continue
    isOn = choice !== false
    const { maxAttempts, maxWaitMs, baseDelayMs } = choice || {}
    policy = {
      maxAttempts: within('retry.maxAttempts', maxAttempts ?? policy.maxAttempts, 1, Number.MAX_SAFE_INTEGER),
      maxWaitMs: within('retry.maxWaitMs', maxWaitMs ?? policy.maxWaitMs, 0, longestTimerMs),
      baseDelayMs: within('retry.baseDelayMs', baseDelayMs ?? policy.baseDelayMs, 0, longestTimerMs),
    }
  }
  return isOn ? policy : { ...policy, maxAttempts: 1 }
}

function within(name: string, value: number, least: number, most: number): number {
  // Not the other way round: NaN is in no range.
  if (value >= least && value <= most) return value
  throw new RangeError(`${name} must be a number from ${least} to ${most}.`)
}

// --- Retry ----------------------------------------------------------------------------------------------------------

/** What decides whether a failed attempt is repeated. */
type Failed = Pick<ServiceFailure<string> | NoAnswer | UnexpectedAnswer, 'error' | 'status' | 'requestId'>

/**
 * A limit rejects before anything is done. With a key, the service does not handle the call twice.
 * @param isSafe whether the call has a key, or changes nothing
 */
function isRepeatable({ error, status, requestId }: Failed, isSafe: boolean): boolean {
  if (error === 'rate_limited') return true
  if (!isSafe) return false
  if (error === 'timeout' || error === 'unreachable') return true
  if (error === 'idempotency_in_progress' || error === 'unavailable') return true
  // Of a proxy that the service did not answer.
  return error === 'unexpected_answer' && requestId === undefined && [502, 503, 504].includes(status ?? 0)
}

/**
 * How long to wait after an attempt, in milliseconds: at least Retry-After, at least a pause that doubles each time, and
 * a random part as long as that pause. Undefined when that is not over before the time that is left.
 */
function delayBefore(
  attempt: number,
  retryAfterSeconds: number | undefined,
  { baseDelayMs }: Policy,
  leftMs: number,
  random: () => number = Math.random,
): number | undefined {
  const pauseMs = baseDelayMs * 2 ** (attempt - 1)
  const leastMs = Math.max((retryAfterSeconds ?? 0) * 1000, pauseMs)
  return leastMs > leftMs ? undefined : Math.min(leastMs + random() * pauseMs, leftMs)
}

function pause(delayMs: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const onAbort = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    }, delayMs)
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}

// --- One attempt ----------------------------------------------------------------------------------------------------

/** An answer as it came. */
interface Answer {
  readonly ok: boolean
  readonly status: number
  readonly retryAfter: string | null
  readonly isReplay: boolean
  /** Undefined when it was too long. */
  readonly text: string | undefined
}

/** Sends one request and reads its answer to the end. Leaves no timer and no listener behind, however it ends. */
async function exchange(
  fetch: NonNullable<ClientOptions['fetch']>,
  url: string,
  body: string | undefined,
  more: Readonly<Record<string, string>>,
  timeoutMs: number,
  signal: AbortSignal | undefined,
): Promise<Answer | NoAnswer> {
  if (signal?.aborted) throw signal.reason
  const controller = new AbortController()
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    controller.abort()
  }, timeoutMs)
  const onAbort = () => controller.abort()
  signal?.addEventListener('abort', onAbort, { once: true })
  const ask = async () => {
    const response = await fetch(url, {
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        accept: 'application/json',
        'user-agent': `otpost-client/${version}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...more,
      },
      ...(body === undefined ? {} : { body }),
      // Not `error`, which some edge runtimes refuse.
      redirect: 'manual',
      signal: controller.signal,
    })
    const { ok, status, headers } = response
    const isReplay = headers.get('idempotency-replayed') === 'true'
    const text = await textOf(response, maxAnswerBytes[body === undefined ? 'GET' : 'POST'])
    return { ok, status, retryAfter: headers.get('retry-after'), isReplay, text }
  }
  // Some implementations of fetch ignore the signal.
  const ended = new Promise<never>((_, reject) => {
    controller.signal.addEventListener('abort', () => reject(controller.signal.reason), { once: true })
  })
  try {
    return await Promise.race([ask(), ended])
  } catch (error) {
    if (signal?.aborted) throw signal.reason
    const message = isLate
      ? `No answer within ${timeoutMs} ms. The service may still have handled the request.`
      : `The service could not be reached, or the connection broke before its answer was whole${nameOf(error)}.`
    return { success: false, error: isLate ? 'timeout' : 'unreachable', message }
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', onAbort)
  }
}

/** Answers of the service are much shorter; the catalog has the templates of every brand. */
const maxAnswerBytes = { GET: 16 * 1024 * 1024, POST: 64 * 1024 } as const

async function textOf({ body }: Response, maxBytes: number): Promise<string | undefined> {
  if (!body) return ''
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let text = ''
  for (let bytes = 0; ; ) {
    const { done, value } = await reader.read()
    if (done) return text + decoder.decode()
    bytes += value.byteLength
    if (bytes > maxBytes) {
      // The rest of the answer is not needed.
      reader.cancel().catch(() => {})
      return undefined
    }
    text += decoder.decode(value, { stream: true })
  }
}

/** What the runtime calls a failure, such as ECONNREFUSED. Its message is left out, since it may repeat what was sent. */
function nameOf(error: unknown): string {
  for (const { code } of [error, (error as Error | undefined)?.cause].filter(isObject)) {
    if (typeof code === 'string' && /^[A-Z][A-Za-z_]{1,40}$/.test(code)) return ` (${code})`
  }
  return ''
}

// --- Answers --------------------------------------------------------------------------------------------------------

/** What an answer means to the caller of a method. */
function resultOf(method: keyof Results, answer: Answer | NoAnswer): AnyResult {
  const { fields, errors } = operations[method]
  if ('success' in answer) return answer
  const { ok, status } = answer
  const body = parsed(answer.text)
  const replayed = answer.isReplay ? { replayed: true } : {}
  if (ok && body?.success === true && hasAll(body, fields)) {
    return { ...body, ...replayed } as unknown as AnyResult
  }
  const later = retryAfterOf(answer)
  if (!ok && body?.success === false && hasAll(body, envelope)) {
    const { error, message, requestId } = body as { [Name in keyof typeof envelope]: string }
    if ((errors as readonly string[]).includes(error)) {
      return { ...body, status, ...later, ...replayed } as unknown as AnyResult
    }
    return {
      success: false,
      error: 'unexpected_answer',
      message,
      status,
      requestId,
      serverError: error,
      ...later,
    }
  }
  const message = `The answer, of status ${status}, is not one that the service would give.`
  return { success: false, error: 'unexpected_answer', message, status, ...later }
}

/** What every failure has besides success. */
const envelope = { error: 'string', message: 'string', requestId: 'string' } as const

function hasAll(body: Record<string, unknown>, fields: Readonly<Record<string, string>>): boolean {
  return Object.entries(fields).every(([name, type]) => typeof body[name] === type)
}

function parsed(text: string | undefined): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text ?? '')
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** Retry-After in seconds. The service sends seconds; a proxy may send a date. */
function retryAfterOf({ retryAfter }: Answer): { retryAfterSeconds?: number } {
  if (retryAfter === null) return {}
  if (/^\d+$/.test(retryAfter)) return { retryAfterSeconds: Number(retryAfter) }
  const at = /^[A-Z][a-z]{2}, .* GMT$/.test(retryAfter) ? Date.parse(retryAfter) : Number.NaN
  return Number.isNaN(at) ? {} : { retryAfterSeconds: Math.max(0, Math.ceil((at - Date.now()) / 1000)) }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
