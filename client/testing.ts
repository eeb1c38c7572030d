/// <reference lib="esnext.disposable" preserve="true" />
import { type ChildProcessWithoutNullStreams as Child, spawn } from 'node:child_process'
import process from 'node:process'
import { setTimeout as pause } from 'node:timers/promises'
import { createClient, type OtpostClient, type OtpostEvent } from './client.ts'
import { type SignedHeaders, signedHeaders } from './events.ts'

// Helpers for the tests of an application that sends and verifies codes: a real otpost of the test's own, whose messages
// can be read, and signed events. Works on Node, Bun and Deno.

/** Options of `startOtpost`. */
export interface StartOptions {
  /** Slugs of the brands to create. Default `acme`. `client` sends for the first one. */
  readonly brandIds?: readonly [string, ...string[]]
  /**
   * Limits and times by the names of otpost's settings, such as `{ SMS_COOLDOWN_SECONDS: 0, OTP_TTL_SECONDS: 2 }`, and
   * `PORT`, `LOG_LEVEL`, `PHONE_DEFAULT_REGION`; `otpost sandbox --help` lists them. Variables of these names in the
   * environment of the tests do not count.
   */
  readonly settings?: Readonly<Partial<Record<SandboxSetting, string | number>>>
  /**
   * The program and its first arguments, such as `['bun', 'src/main.ts']`. Unless given, what the environment variable
   * OTPOST_BINARY names, else `otpost` on the PATH.
   */
  readonly command?: string | readonly string[]
  /** The URL that receives the events of the app, such as that of a server in the test. */
  readonly webhookUrl?: string
  /** How long it may take to start, 10,000 unless given. */
  readonly startTimeoutMs?: number
}

/** The settings of `otpost sandbox`. */
export const sandboxSettingNames = [
  'PORT',
  'LOG_LEVEL',
  'GLOBAL_LIMIT_PER_MINUTE',
  'PHONE_LIMIT_PER_MINUTE',
  'PHONE_LIMIT_PER_HOUR',
  'SMS_COOLDOWN_SECONDS',
  'OTP_TTL_SECONDS',
  'EMAIL_LIMIT_PER_HOUR',
  'FAILURE_BUDGET_PER_DAY',
  'PHONE_DEFAULT_REGION',
] as const
export type SandboxSetting = (typeof sandboxSettingNames)[number]

/** A message as the outbox holds it. */
export interface OutboxMessage {
  /** Increases with each message. */
  readonly id: number
  /** ISO 8601, UTC. */
  readonly createdAt: string
  readonly channel: 'SMS' | 'EMAIL'
  /** The phone number as its digits, or the mail address. */
  readonly to: string
  readonly text: string
  /** Of a mail; null for an SMS, as is `html`. */
  readonly subject: string | null
  readonly html: string | null
  readonly brandId: string | null
  readonly brandName: string | null
  /** The `requestId` of the call that sent it. */
  readonly requestId: string
}

/** A running otpost of the test's own. */
export interface TestOtpost {
  /** Where it listens, such as `http://127.0.0.1:41234`. */
  readonly url: string
  /** What the application under test calls it with. */
  readonly appId: string
  readonly apiKey: string
  /** The first of its brands. */
  readonly brandId: string
  readonly brandIds: readonly string[]
  /** A page that shows what was sent, for people. */
  readonly outboxUrl: string
  /** Signs the events. Undefined without `webhookUrl`. */
  readonly webhookSecret: string | undefined
  /** A client for the first brand. */
  readonly client: OtpostClient
  /**
   * The newest code that was sent to a phone number or mail address, in any spelling that otpost knows it by. Each code is
   * given once: after a resend the next call waits for the new one, and never gives the old one again. Where several
   * brands have sent one, each has its newest.
   *
   * @param options.brandId whose code it has to be; any brand's unless given
   * @param options.timeoutMs how long to wait for it, 4,000 unless given: less than most test runners wait for a test
   * @throws OtpostTestError when none comes in time, or otpost has ended
   */
  codeFor(
    recipient: string,
    options?: { readonly brandId?: string; readonly timeoutMs?: number },
  ): Promise<string>
  /**
   * What was sent to a phone number or mail address so far, the last 500, oldest first.
   *
   * @throws OtpostTestError when the recipient is neither, or otpost has ended or does not answer
   */
  messagesTo(recipient: string): Promise<readonly OutboxMessage[]>
  /** Ends it; what it kept is gone. Again: waits for the same end. */
  stop(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/** An event for `signEvent`: its type, and the fields that matter to the test. */
export type TestEvent = {
  readonly [Type in OtpostEvent['type']]: {
    readonly type: Type
    readonly data?: Partial<Extract<OtpostEvent, { type: Type }>['data']>
  }
}[OtpostEvent['type']]

export interface SignEventOptions {
  /** The header `webhook-id`. Default: a new one. */
  readonly id?: string
  /** The time of the event and of its signature. Default: now. */
  readonly now?: Date
}

/** The request that otpost makes for an event. */
export interface SignedEvent {
  readonly headers: SignedHeaders & { readonly 'content-type': 'application/json' }
  /** The receiver must get it unchanged. */
  readonly body: string
}

const statuses = {
  'message.delivered': 'delivered',
  'message.failed': 'failed',
  'otp.verified': null,
  'otp.locked': null,
} as const satisfies { readonly [Type in OtpostEvent['type']]: unknown }

/**
 * Signs an event as otpost does, to test a receiver without a server. Fields of `data` that are left out are those of an SMS of
 * the brand `acme`.
 *
 * ```ts
 * const { headers, body } = await signEvent({ type: 'otp.verified', data: { reference: 'login-1042' } }, secret)
 * await fetch(receiver, { method: 'POST', headers, body })
 * ```
 *
 * @param secret any `whsec_` with base64 that the receiver knows
 * @throws TypeError when the secret has another form
 */
export async function signEvent(
  { type, data }: TestEvent,
  secret: string,
  { id = crypto.randomUUID(), now = new Date() }: SignEventOptions = {},
): Promise<SignedEvent> {
  const complete = {
    requestId: crypto.randomUUID(),
    reference: null,
    brandId: 'acme',
    channel: 'SMS',
    to: '12*******43',
    index: 0,
    status: statuses[type],
    reason: null,
    ...data,
  }
  const body = JSON.stringify({ type, timestamp: now.toISOString(), data: complete })
  const headers = await signedHeaders(secret, id, body, now)
  return { headers: { 'content-type': 'application/json', ...headers }, body }
}

/** Why otpost could not be started or asked, or a code did not come. */
export class OtpostTestError extends Error {
  override readonly name = 'OtpostTestError'
}

/**
 * Starts `otpost sandbox` on a free port, with a database in memory and every message in the outbox. It ends with `stop`,
 * at the end of the block after `await using`, and also when the process that started it does, however that ends.
 *
 * ```ts
 * await using otpost = await startOtpost()
 * await otpost.client.send({ phone: '+1 202 555 0143' })
 * const otp = await otpost.codeFor('+1 202 555 0143')
 * ```
 *
 * @throws OtpostTestError when the program is not found, ends or says nothing before it listens, or a setting is unknown
 */
export async function startOtpost(options: StartOptions = {}): Promise<TestOtpost> {
  const { brandIds = ['acme'], settings = {}, webhookUrl, startTimeoutMs = 10_000 } = options
  const { command = process.env.OTPOST_BINARY || 'otpost' } = options
  const program = startProgram(command, brandIds, settings, webhookUrl)
  const { url, appId, apiKey, outboxUrl, webhookSecret } = await program.listening(startTimeoutMs)
  const [brandId] = brandIds
  const given = new Set<number>()

  /** What the outbox answers; undefined where it has not within that time. */
  async function ask(
    query: Record<string, string>,
    timeoutMs: number,
  ): Promise<readonly OutboxMessage[] | undefined> {
    // Node takes no fractions.
    const signal = AbortSignal.timeout(Math.max(Math.ceil(timeoutMs), 0))
    try {
      const answer = await fetch(`${outboxUrl}/messages?${new URLSearchParams(query)}`, { signal })
      const { messages, message } = (await answer.json()) as OutboxAnswer
      if (messages) return messages
      throw new OtpostTestError(`The outbox returned an error: ${message}`)
    } catch (cause) {
      if (cause instanceof OtpostTestError) throw cause
      if (signal.aborted) return undefined
      throw new OtpostTestError(`otpost does not answer${program.howItEnded()}.`, { cause })
    }
  }

  return {
    url,
    appId,
    apiKey,
    brandId,
    brandIds,
    outboxUrl,
    webhookSecret,
    client: createClient({ url, appId, apiKey, brandId }),
    async codeFor(to, { brandId: wanted, timeoutMs = 4000 } = {}) {
      const endsAt = performance.now() + timeoutMs
      const leftMs = () => endsAt - performance.now()
      const seen: OutboxMessage[] = []
      let messages = await ask({ to }, Math.max(timeoutMs, answerMs))
      if (messages === undefined) throw silence()
      while (messages !== undefined) {
        seen.push(...messages)
        const ofBrand = seen.filter(({ brandId }) => wanted === undefined || brandId === wanted)
        const newest = newestCodes(ofBrand).findLast(({ id }) => !given.has(id))
        if (newest) {
          given.add(newest.id)
          return newest.code
        }
        if (leftMs() <= 0) break
        messages = await ask({ to, after: String(seen.at(-1)?.id ?? 0), wait: longestWaitSeconds }, leftMs())
      }
      const all = await ask({}, answerMs)
      if (all === undefined) throw silence()
      const useless = seen.length > 0 ? ' (without a code, or with a code that was already returned)' : ''
      throw new OtpostTestError(
        `No code arrived within ${timeoutMs} ms. Messages in the outbox for this recipient: ${seen.length}${useless}; for others: ${Math.max(0, all.length - seen.length)}.`,
      )
    },
    async messagesTo(to) {
      const messages = await ask({ to }, answerMs)
      if (messages === undefined) throw silence()
      return messages
    },
    stop: program.stop,
    [Symbol.asyncDispose]: program.stop,
  }
}

interface OutboxAnswer {
  readonly messages?: readonly OutboxMessage[]
  readonly message?: string
}

/** How long the outbox may take to answer what it has. */
const answerMs = 10_000

function silence(): OtpostTestError {
  return new OtpostTestError('otpost does not answer, but the process is running.')
}

/** The newest code of each brand, in the order in which they were sent. */
function newestCodes(messages: readonly OutboxMessage[]): { readonly id: number; readonly code: string }[] {
  const newest = new Map<string | null, { id: number; code: string }>()
  for (const message of messages) {
    const code = codeIn(message)
    if (code !== undefined) newest.set(message.brandId, { id: message.id, code })
  }
  return [...newest.values()].sort((a, b) => a.id - b.id)
}

/** What one question to the outbox may wait for a message; another follows. */
const longestWaitSeconds = '20'

/** The code in the message of a code: what a line begins with. A message of another kind may hold any digits. */
function codeIn({ subject, text }: OutboxMessage): string | undefined {
  const isOfCode = /\bverification code\b/.test(subject ?? text)
  return isOfCode ? /^ *(\d{6})\b/m.exec(text)?.[1] : undefined
}

/** What the program says once it listens. */
interface Listening {
  readonly url: string
  readonly appId: string
  readonly apiKey: string
  readonly outboxUrl: string
  readonly webhookSecret?: string
}

/** How much of what the program complains of is repeated in an error, in characters. */
const longestComplaint = 4000

/** How long it may take to end before it is killed. */
const farewellMs = 10_000

function startProgram(
  command: string | readonly string[],
  brandIds: readonly string[],
  settings: Readonly<Partial<Record<SandboxSetting, string | number>>>,
  webhookUrl: string | undefined,
) {
  const [file = '', ...before] = typeof command === 'string' ? [command] : command
  const args = [...before, 'sandbox', '--until-stdin-closes', ...brandIds.map((slug) => `--brand=${slug}`)]
  if (webhookUrl !== undefined) args.push(`--webhook=${webhookUrl}`)
  if (file === '') throw new OtpostTestError('The option command is empty.')
  const unknown = Object.keys(settings).filter((name) => !sandboxSettingNames.some((known) => known === name))
  if (unknown.length > 0) {
    throw new OtpostTestError(
      `${unknown.join(', ')} would have no effect. The settings are ${sandboxSettingNames.join(', ')}.`,
    )
  }
  // A variable that is set to nothing counts as unset.
  const own = Object.fromEntries(sandboxSettingNames.map((name) => [name, String(settings[name] ?? '')]))
  const child: Child = spawn(file, args, {
    env: { ...process.env, ...own },
    stdio: 'pipe',
    windowsHide: true,
  })
  let complaints = ''
  let isListening = false
  let ending: string | undefined
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaints = (complaints + text).slice(-longestComplaint)
    if (isListening) process.stderr.write(text)
  })
  // A pipe to a program that has ended is closed already.
  child.stdin.on('error', () => {})
  const ended = new Promise<void>((resolve) => {
    child.on('error', (error: NodeJS.ErrnoException) => {
      ending ??= spawnProblem(file, error)
      resolve()
    })
    child.on('close', (code, signal) => {
      ending ??= `it ended with ${code ?? signal}`
      resolve()
    })
  })

  /** As the end of a sentence; empty while it runs. */
  function howItEnded(): string {
    return ending === undefined ? '' : `: ${ending}${complained()}`
  }

  function complained(): string {
    const said = complaints.trim()
    return said === '' ? '' : `\n${said}`
  }

  async function listening(timeoutMs: number): Promise<Listening> {
    const said = new AbortController()
    const tooLate = pause(timeoutMs, undefined, { signal: said.signal }).catch(() => undefined)
    try {
      const line = await Promise.race([firstLine(child), ended, tooLate])
      if (line === undefined) {
        const why = howItEnded() || `: it does not listen after ${timeoutMs} ms${complained()}`
        throw new OtpostTestError(`otpost did not start${why}`)
      }
      isListening = true
      // A test run may end without having stopped it: it goes then too.
      setRef(child, 'unref')
      return readListening(line)
    } catch (error) {
      child.kill('SIGKILL')
      throw error
    } finally {
      said.abort()
    }
  }

  let stopped: Promise<void> | undefined
  const stop = () => {
    stopped ??= (async () => {
      setRef(child, 'ref')
      child.stdin.end()
      const late = setTimeout(() => child.kill('SIGKILL'), farewellMs)
      await ended
      clearTimeout(late)
    })()
    return stopped
  }
  return { listening, howItEnded, stop }
}

function spawnProblem(file: string, error: NodeJS.ErrnoException): string {
  if (error.code !== 'ENOENT') return `${file} cannot be run (${error.code}).`
  return `The program ${file} was not found. Put otpost on the PATH, or set the environment variable OTPOST_BINARY or the option command, such as command: ['bun', '/path/to/otpost/src/main.ts'].`
}

/** What a program first says on standard output; never resolves where it ends without a line. */
function firstLine({ stdout }: Child): Promise<string> {
  return new Promise((resolve) => {
    let text = ''
    stdout.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
      const end = text.indexOf('\n')
      if (end >= 0) resolve(text.slice(0, end))
    })
  })
}

function readListening(line: string): Listening {
  try {
    const said: Partial<Listening> = JSON.parse(line)
    const { url, appId, apiKey, outboxUrl } = said
    if (url && appId && apiKey && outboxUrl) return { ...said, url, appId, apiKey, outboxUrl }
  } catch {}
  throw new OtpostTestError('The program is not otpost, or another version: it did not print its URL.')
}

/** Whether this process stays alive for the sake of a program and its pipes. */
function setRef(child: Child, how: 'ref' | 'unref'): void {
  child[how]()
  // Pipes are sockets, though their types do not say so.
  const pipes: readonly object[] = [child.stdin, child.stdout, child.stderr]
  for (const pipe of pipes as readonly Partial<Pick<Child, typeof how>>[]) pipe[how]?.()
}
