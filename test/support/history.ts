import { type Answer, codeIn, otherThan } from './app.ts'
import type { startReceiver } from './receiver.ts'

/** A request whose connection ended without a byte of an answer while the server lived: it must have had no effect. */
export class NotServed extends Error {
  override readonly name = 'NotServed'
}

/** One request as its client saw it. Instants are ticks of one counter, so that any two of them have an order. */
export interface Operation {
  readonly kind: 'send' | 'verify'
  readonly phone: string
  /** What a verify guessed. */
  readonly otp: string | undefined
  readonly startedAt: number
  /** When it started, in epoch milliseconds. */
  readonly time: number
  /** When its answer came, or when the server was gone that did not answer it. */
  endedAt: number
  /**
   * `200`, `401 mismatch` and so on, or `not served`; undefined where no answer came and its effect may be there or not.
   */
  verdict: string | undefined
  requestId: string | undefined
}

/** One SMS as the gateway got it. */
export interface Delivery {
  readonly phone: string
  readonly code: string
  readonly requestId: string
  /** Tick. */
  readonly at: number
  /** Epoch milliseconds. */
  readonly time: number
}

/** The limits for the deliveries of a history. */
export interface DeliveryLimits {
  readonly cooldownMs: number
  readonly phonePerMinute: number
}

/** Resolves to a complete answer; rejects with NotServed or, if the effect is unknown, with another error. */
export type Ask = (path: string, fields: Readonly<Record<string, unknown>>) => Promise<Answer>

/** All requests of the clients with their answers, over all restarts of the server, and every SMS. */
export class History {
  readonly operations: Operation[] = []
  readonly deliveries: Delivery[] = []
  private ticks = 0

  constructor(receiver: ReturnType<typeof startReceiver>) {
    receiver.answer(({ body }) => {
      this.deliver(body)
      return new Response(null, { status: 204 })
    })
  }

  /** Takes down an SMS, for a gateway that answers in a way of its own. */
  deliver(body: { to: string; text: string; requestId: string }): void {
    const { to: phone, text, requestId } = body
    this.deliveries.push({ phone, code: codeIn(text), requestId, at: this.tick(), time: Date.now() })
  }

  /** Asks for a code; rejects when no whole answer came. */
  send(ask: Ask, path: '/otp/send' | '/otp/resend', phone: string): Promise<Operation> {
    return this.ask('send', ask, path, phone, undefined)
  }

  /** Guesses a code; rejects when no whole answer came. */
  verify(ask: Ask, phone: string, otp: string): Promise<Operation> {
    return this.ask('verify', ask, '/otp/verify', phone, otp)
  }

  /** The codes that came to a phone, oldest first. */
  codesOf(phone: string): string[] {
    return this.deliveries.filter((delivery) => delivery.phone === phone).map(({ code }) => code)
  }

  get phones(): string[] {
    return [...new Set(this.operations.map(({ phone }) => phone))]
  }

  /** How many answers came, of one verdict or of all. */
  answers(verdict?: string): number {
    return this.operations.filter((operation) =>
      verdict === undefined ? operation.verdict !== undefined : operation.verdict === verdict,
    ).length
  }

  private async ask(
    kind: Operation['kind'],
    ask: Ask,
    path: string,
    phone: string,
    otp: string | undefined,
  ): Promise<Operation> {
    const operation: Operation = {
      kind,
      phone,
      otp,
      startedAt: this.tick(),
      time: Date.now(),
      endedAt: Number.POSITIVE_INFINITY,
      verdict: undefined,
      requestId: undefined,
    }
    this.operations.push(operation)
    try {
      const { status, body } = await ask(path, { phone, ...(otp === undefined ? {} : { otp }) })
      operation.verdict = body.error === undefined ? String(status) : `${status} ${body.error}`
      operation.requestId = body.requestId
    } catch (error) {
      if (error instanceof NotServed) operation.verdict = notServed
      throw error
    } finally {
      operation.endedAt = this.tick()
    }
    return operation
  }

  private tick(): number {
    return this.ticks++
  }
}

/** The verdict of a request that was not served. */
export const notServed = 'not served'

/** Pseudo-random numbers below one, the same for the same seed (mulberry32). */
export function randomNumbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

export interface Load {
  readonly seed: number
  readonly clients: number
  readonly phones: readonly string[]
  /** Called before each request; false skips it. */
  readonly goesOn?: () => boolean
}

/**
 * Many concurrent clients, each with one request after another: sends, resends, right, wrong and old guesses for the same
 * phones, until the end or the first failed request; a request that is not served does not count as failed. Calls
 * `answered` after every answer.
 */
export async function load(
  history: History,
  clientOf: (index: number) => Ask,
  { seed, clients, phones, goesOn = () => true }: Load,
  answered: () => void,
): Promise<void> {
  const client = async (index: number) => {
    const ask = clientOf(index)
    const random = randomNumbers(seed * 1000 + index)
    const pick = <T>(values: readonly T[]): T | undefined => values[Math.floor(random() * values.length)]
    const request = () => {
      const phone = pick(phones) ?? ''
      const codes = history.codesOf(phone)
      const latest = codes.at(-1)
      const dice = random()
      // Mostly sends, so that many a code is still alive when it is replaced.
      if (latest === undefined || dice < 0.6) {
        return history.send(ask, dice < 0.3 ? '/otp/resend' : '/otp/send', phone)
      }
      const otp = dice < 0.8 ? otherThan(latest) : dice < 0.87 ? (pick(codes) ?? latest) : latest
      return history.verify(ask, phone, otp)
    }
    while (goesOn()) {
      try {
        await request()
        answered()
      } catch (error) {
        if (!(error instanceof NotServed)) throw error
      }
    }
  }
  await Promise.allSettled(Array.from({ length: clients }, (_, index) => client(index)))
}

/**
 * Asks a server for what it still knows of what was answered before: guesses at every phone's latest code until that
 * verifies or its guesses are used up, and then sends another, which the limits may refuse.
 */
export async function readBack(history: History, ask: Ask): Promise<void> {
  const read = async (phone: string, index: number) => {
    const code = history.codesOf(phone).at(-1)
    if (code !== undefined) {
      // Some clients send the code, to learn whether it is live; others send wrong codes, to count the remaining guesses.
      const otp = index % 2 ? code : otherThan(code)
      while ((await history.verify(ask, phone, otp)).verdict === '401 mismatch');
      await history.verify(ask, phone, code)
    }
    await history.send(ask, '/otp/send', phone)
  }
  await Promise.all(history.phones.map(read))
}

/**
 * What contradicts the contract in a history, phone by phone, and of what an answer promised has not held; empty when
 * nothing does.
 */
export function contradictions(history: History, limits: DeliveryLimits): string[] {
  const byPhone = Map.groupBy(history.operations, ({ phone }) => phone)
  const deliveriesOf = Map.groupBy(history.deliveries, ({ phone }) => phone)
  return [...new Set([...byPhone.keys(), ...deliveriesOf.keys()])].flatMap((phone) => {
    const operations = byPhone.get(phone) ?? []
    const deliveries = deliveriesOf.get(phone) ?? []
    const found = [...wrongDeliveries(operations, deliveries, limits)]
    if (found.length === 0 && !isExplained(operations, deliveries)) {
      found.push('no order of these requests explains their answers')
    }
    return found.map((problem) => `${phone}: ${problem}\n${told(operations, deliveries)}`)
  })
}

/** Every answered send has its one SMS, every other SMS a send that was cut off, and each is within the limits. */
function* wrongDeliveries(
  operations: readonly Operation[],
  deliveries: readonly Delivery[],
  { cooldownMs, phonePerMinute }: DeliveryLimits,
): Generator<string> {
  const begun = operations.filter(isBegunSend)
  const [first] = begun
  const sent = begun.filter(({ verdict }) => verdict === '200')
  for (const { requestId } of sent) {
    const count = deliveries.filter((delivery) => delivery.requestId === requestId).length
    if (count !== 1) yield `a send that was answered 200 has ${count} deliveries`
  }
  if (deliveries.length > begun.length) {
    yield `${deliveries.length} deliveries of ${sent.length} answered sends and ${begun.length - sent.length} cut off`
  }
  for (const [index, { time }] of deliveries.entries()) {
    const next = deliveries[index + 1]
    if (next && next.time - time < cooldownMs) yield `two deliveries are ${next.time - time} ms apart`
  }
  // The window opens with the first send that is counted, which is this or a later one.
  const inFirstMinute = deliveries.filter(({ time }) => first && time < first.time + 60_000)
  if (inFirstMinute.length > phonePerMinute) yield `${inFirstMinute.length} deliveries within a minute`

  for (const { kind, verdict, endedAt } of operations) {
    if (kind !== 'send' || verdict === '200' || verdict === undefined || verdict === notServed) continue
    const before = begun.filter(({ startedAt }) => startedAt < endedAt).length
    const least = { '429 cooldown_active': 1, '429 rate_limited': phonePerMinute }[verdict]
    if (least === undefined || before < least) yield `after ${before} sends another is answered ${verdict}`
  }
}

/** A send that was not refused, as far as anybody knows. */
function isBegunSend({ kind, verdict }: Operation): boolean {
  return kind === 'send' && (verdict === '200' || verdict === undefined)
}

/** A phone's code, and the wrong guesses that were charged to it. */
interface Code {
  readonly digits: string
  readonly attempts: number
}

/** One thing that happened to a phone's code at some instant between two. */
interface Step {
  readonly from: number
  readonly to: number
  /** It may not have happened, since no client got an answer. */
  readonly optional: boolean
  /** What it may leave behind, given what it found; nothing where that contradicts its answer. */
  apply(record: Code | undefined): readonly (Code | undefined)[]
}

const maxAttempts = 3

/**
 * Whether the requests of one phone can be put in an order, each at an instant between its start and its end, in which a
 * record that keeps the contract gives these very answers: the history is linearizable (Herlihy and Wing).
 */
function isExplained(operations: readonly Operation[], deliveries: readonly Delivery[]): boolean {
  const begun = operations.filter(isBegunSend)
  const steps = [
    ...operations
      .filter(({ kind, verdict }) => kind === 'verify' && verdict !== notServed)
      .map((verify) => guessStep(verify, begun)),
    ...deliveries.map((delivery) => replacement(delivery, begun)),
    ...begun.filter(({ verdict }) => verdict === undefined).map(undelivered),
  ]
  return canBeOrdered(steps.sort((a, b) => a.from - b.from))
}

/** A send puts its code in the place of any other before its SMS leaves. */
function replacement({ requestId, code, at }: Delivery, begun: readonly Operation[]): Step {
  const own = begun.find((send) => send.requestId === requestId)
  // Whose SMS it was that was cut off is not known.
  const owners = own ? [own] : begun.filter((send) => send.startedAt < at && send.endedAt > at)
  return {
    from: Math.min(...owners.map(({ startedAt }) => startedAt)),
    to: at,
    optional: false,
    apply: () => [{ digits: code, attempts: 0 }],
  }
}

/** A send that was cut off before its SMS left may have replaced the code all the same. */
function undelivered({ startedAt, endedAt }: Operation): Step {
  return {
    from: startedAt,
    to: endedAt,
    optional: true,
    apply: () => [{ digits: 'never delivered', attempts: 0 }],
  }
}

function guessStep(operation: Operation, replacements: readonly Operation[]): Step {
  const { startedAt: from, endedAt: to, otp, verdict } = operation
  // The record that a guess was for may be replaced while the guess is under way: it fails then (spec 3.1).
  const isRaced = replacements.some((send) => send.startedAt < to && send.endedAt > from)
  return {
    from,
    to,
    optional: verdict === undefined,
    apply: (record) => {
      const { told, next } = guess(record, otp)
      if (verdict === undefined || verdict === told) return [next]
      return verdict === '404 not_found' && isRaced ? [record] : []
    },
  }
}

/** What the contract answers to a guess, and the record afterwards (spec 3.1). */
function guess(record: Code | undefined, otp: string | undefined) {
  if (record === undefined) return { told: '404 not_found', next: undefined }
  if (record.attempts >= maxAttempts) return { told: '429 max_attempts', next: record }
  if (record.digits === otp) return { told: '200', next: undefined }
  return { told: '401 mismatch', next: { ...record, attempts: record.attempts + 1 } }
}

/** Tries the orders that the intervals allow, and none twice from the same record. */
function canBeOrdered(steps: readonly Step[]): boolean {
  const tried = new Set<string>()
  const search = (left: readonly Step[], record: Code | undefined): boolean => {
    if (left.length === 0) return true
    const key = `${record?.digits} ${record?.attempts} ${left.map((step) => steps.indexOf(step)).join()}`
    if (tried.has(key)) return false
    tried.add(key)
    // A request that ended before another began comes first.
    const soonestEnd = Math.min(...left.map(({ to }) => to))
    return left
      .filter(({ from }) => from <= soonestEnd)
      .some((step) => {
        const others = left.filter((it) => it !== step)
        if (step.apply(record).some((next) => search(others, next))) return true
        return step.optional && search(others, record)
      })
  }
  return search(steps, undefined)
}

/** The history of a phone, line by line, for finding the cause of a failure. */
function told(operations: readonly Operation[], deliveries: readonly Delivery[]): string {
  const lines = [
    ...operations.map(({ kind, otp, startedAt, endedAt, verdict }) => ({
      at: startedAt,
      line: `  ${startedAt}-${endedAt} ${kind} ${otp ?? ''} → ${verdict ?? 'no answer'}`,
    })),
    ...deliveries.map(({ at, code }) => ({ at, line: `  ${at} delivered ${code}` })),
  ]
  return lines
    .sort((a, b) => a.at - b.at)
    .map(({ line }) => line)
    .join('\n')
}
