import { createProofs } from '../../src/adapters/crypto/proofs.ts'
import { createSecrets } from '../../src/adapters/crypto/secrets.ts'
import { ipIdentity } from '../../src/adapters/http/client-ip.ts'
import { destinationOf } from '../../src/adapters/phone/destination.ts'
import { readStoreConfig } from '../../src/config/store.ts'
import { Breakers } from '../../src/domain/delivery/breaker.ts'
import type { Body } from '../../src/domain/ground/body.ts'
import { Failure } from '../../src/domain/ground/failures.ts'
import type { Secrets } from '../../src/domain/ground/ports.ts'
import type { Mailer, Outcome, SmsProvider } from '../../src/domain/ground/providers.ts'
import { CredentialRejections } from '../../src/domain/limits/credentials.ts'
import { relativePrices } from '../../src/domain/money/relative-prices.ts'
import { type SendOtpPorts, sendOtp } from '../../src/domain/otp/send.ts'
import { type VerifyOtpPorts, verifyOtp } from '../../src/domain/otp/verify.ts'
import { Policy } from '../../src/domain/policy/policy.ts'
import { defaultThresholds } from '../../src/domain/policy/policy-store.ts'
import { codeIn } from '../support/app.ts'
import { deliveryBasics, newContext, noGuard, noIdempotency, oneSegment } from '../support/calls.ts'
import { keepAll } from '../support/operator.ts'
import { apiKeys, type Calls, type Ground, type Server, type Site, turn } from './ground.ts'
import {
  type Answer,
  type BrandSlug,
  type Handover,
  type History,
  name,
  type Operation,
  otpTtlMs,
  type Person,
  type Profile,
  people,
  providerTimeoutMs,
} from './history.ts'
import { Invariants, overtakingMs, Violation } from './invariants.ts'
import { Random } from './random.ts'

/** The number of each event, over all histories. */
export type Reached = Map<string, number>

/**
 * Runs the history of a seed and checks it after every step. One scheduler, driven only by the seed, decides
 * what continues next: everything that waits for a port waits for its decision.
 *
 * @returns all events, in order
 * @throws Error with the seed, the broken rule, and the last events
 */
export async function simulate(seed: number, ground: Ground, reached: Reached): Promise<readonly string[]> {
  const simulation = new Simulation(seed, ground, reached)
  try {
    await simulation.run()
  } catch (error) {
    const what =
      error instanceof Violation ? error.message : error instanceof Error ? error.stack : String(error)
    throw new Error(
      `seed ${seed}: ${what}\n${simulation.events.slice(-30).join('\n')}\nreplay: SIMULATION_SEED=${seed} bun test test/simulation/otp.test.ts`,
    )
  } finally {
    await simulation.close()
  }
  return simulation.events
}

const spansMs = [
  1, 10, 999, 1000, 3999, 4000, 4001, 5000, 8000, 10_000, 25_000, 29_999, 30_000, 30_001, 31_000, 31_000,
  59_999, 60_000, 61_000, 120_000, 240_000, 299_999, 300_000, 301_000, 3_599_999, 3_600_000, 86_400_000,
] as const
const settingsMs = [-1, -1000, -4000, -6000, -40_000, -3_600_000, 500, 6000, 70_000, 3_600_000] as const

const noPolicy = new Policy(
  {
    scopes: [],
    rules: [],
    prefixes: [],
    guardMode: null,
    budgets: [],
    webhooks: [],
    reviewNumbers: [],
    pauses: [],
    thresholds: defaultThresholds,
    acknowledgements: [],
    relays: [],
    manageTokens: [],
  },
  relativePrices,
  [],
)

/** A call that waits for the scheduler on its way to the database or back. */
interface WaitingCall {
  readonly server: Server
  readonly operation: Operation
  readonly what: string
  /** Milliseconds from the start to the operation's last reading of its clock. */
  readonly readAtMs: number
  readonly reading: number
  /** Executes the call; undefined for a response on its way back. */
  readonly run: (() => Promise<unknown>) | undefined
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
  readonly giveAnswer: () => void
}

interface WaitingHandover {
  readonly server: Server
  readonly operation: Operation
  readonly handover: Handover
  readonly resolve: (outcome: Outcome) => void
  readonly reject: (error: unknown) => void
}

type Fault = 'none' | 'busy' | 'full' | 'answer lost' | 'answer late'

const secretKey = 'a secret of the simulation, 32 bytes or more'
const realSecrets = createSecrets(secretKey)
const proofs = createProofs(secretKey)

class Simulation {
  readonly events: string[] = []
  private readonly profile: Profile
  private readonly random: Random
  private readonly history: History
  private readonly invariants: Invariants
  /** Set when the history is open. */
  private site: Site | undefined
  private readonly usedCodes = new Set<string>()
  private readonly clients: { operation: Operation | undefined }[]
  private calls: WaitingCall[] = []
  private handovers: WaitingHandover[] = []
  /** New events since the last check. */
  private begun: Operation[] = []
  private answered: Operation[] = []
  private violation: unknown
  private step = 0
  private order = 0
  /** Calls that the real store is executing. */
  private underWay = 0
  /** Resolves when the next of them has ended. */
  private oneEnded = Promise.withResolvers<void>()
  private elapsedMs = 0
  private readonly startMs: number
  private timeMs: number
  private readAtMs = new Map<Operation, number>()
  /** Whether a database failure was caused. */
  private databaseFails = false

  constructor(
    private readonly seed: number,
    private readonly ground: Ground,
    private readonly reached: Reached,
  ) {
    this.profile = ground.profileOf(seed)
    this.startMs = ground.beginning()
    this.timeMs = this.startMs
    this.random = new Random(seed)
    this.history = {
      profile: this.profile,
      operations: [],
      clock: [{ step: -1, timeMs: this.startMs }],
      firstSetBack: Number.POSITIVE_INFINITY,
    }
    this.invariants = new Invariants(this.history)
    this.clients = Array.from({ length: this.profile.clients }, () => ({ operation: undefined }))
  }

  async run(): Promise<void> {
    this.log(JSON.stringify(this.profile))
    this.site = await this.ground.open(this.profile)
    while (this.step < this.profile.steps) {
      this.step++
      await this.advance()
      await this.judge()
    }
    await this.end()
  }

  async close(): Promise<void> {
    await this.site?.close()
  }

  private get servers(): readonly Server[] {
    return this.site?.servers ?? []
  }

  // -------------------------------------------------------------------------------------------------------------------
  // The scheduler
  // -------------------------------------------------------------------------------------------------------------------

  private async advance(): Promise<void> {
    const { random, profile } = this
    const idle = this.clients.filter(({ operation }) => operation === undefined)
    const waiting = this.clients.filter(({ operation }) => operation !== undefined)
    const decision = random.weighted<() => void | Promise<void>>([
      [idle.length > 0 ? 45 : 0, () => this.request(random.pick(idle))],
      [this.calls.length > 0 ? 90 : 0, () => this.letThrough()],
      [this.handovers.length > 0 ? (profile.isSlow ? 12 : 40) : 0, () => this.endHandover()],
      [25, () => this.passTime(random.pick(spansMs.slice(0, random.pick([8, 16, 22, spansMs.length]))))],
      [profile.clockIsSet ? 6 : 0, () => this.setClock(random.pick(settingsMs))],
      [profile.crashes ? 4 : 0, () => this.crash()],
      [4, () => this.sweep()],
      [waiting.length > 0 ? 4 : 0, () => this.cancel(random.pick(waiting))],
      [this.calls.length > 0 ? (this.site?.breakages ?? 0) : 0, () => this.breakDatabase()],
    ])
    await decision()
  }

  /** Runs the event loop until everything waits for the scheduler again, and checks the new events. */
  private async judge(): Promise<void> {
    await turn()
    while (this.underWay > 0) {
      await this.oneEnded.promise
      await turn()
    }
    if (this.violation !== undefined) throw this.violation
    for (const operation of this.begun.splice(0)) this.invariants.begun(operation)
    for (const operation of this.answered.splice(0)) this.invariants.answered(operation)
  }

  /** Ends everything in progress without further faults; then tries the last code of each recipient twice. */
  private async end(): Promise<void> {
    this.log('the end: no more faults')
    await this.settleAll()
    const scopes = new Map<string, Operation>()
    for (const operation of this.history.operations) {
      if (operation.handovers.length > 0) scopes.set(`${operation.brand} ${operation.person}`, operation)
    }
    for (let time = 0; time < 2; time++) {
      this.step++
      for (const { app, brand, person, code } of scopes.values()) {
        this.start({ kind: 'verify', app, brand, person, guess: code })
      }
      await this.judge()
      await this.settleAll()
    }
    this.invariants.ended()
  }

  private async settleAll(): Promise<void> {
    while (this.calls.length + this.handovers.length > 0) {
      this.step++
      const server = (this.calls[0] ?? this.handovers[0])?.server
      for (const call of this.calls.filter((waiting) => waiting.server === server)) this.release(call, 'none')
      for (const handover of this.handovers.splice(0)) this.answer(handover, { kind: 'accepted' }, true)
      await this.judge()
    }
  }

  // -------------------------------------------------------------------------------------------------------------------
  // Clients
  // -------------------------------------------------------------------------------------------------------------------

  private request(client: { operation: Operation | undefined }): void {
    const { random, profile } = this
    const last = this.history.operations.at(-1)
    if (last && random.chance(0.06)) {
      this.note('request repeated')
      client.operation = this.start(last)
      return
    }
    const app = random.pick(profile.apps)
    const brand = random.pick(profile.brands)
    const person = random.pick(profile.people)
    const codes = this.codesOf((send) => send.brand === brand && send.person === person)
    const latest = codes.at(-1)
    const isUsed = this.history.operations.some(
      ({ guess, answer }) => guess === latest && answer?.kind === 'ok',
    )
    const isSend = random.chance(latest === undefined ? 0.85 : isUsed ? 0.6 : 0.3)
    const guess = isSend ? undefined : this.guess(codes, brand, person)
    const request = { kind: isSend ? 'send' : 'verify', app, brand, person, guess } as const
    client.operation = this.start(request)
    if (random.chance(0.06)) {
      this.note('request duplicated')
      this.start(request)
    }
  }

  private readonly breakers = new Map<Server, Breakers>()
  /** The codes sent to providers, latest last. */
  private codesOf(filter: (send: Operation) => boolean): string[] {
    return this.history.operations.flatMap((send) =>
      send.handovers.length > 0 && send.code !== undefined && filter(send) ? [send.code] : [],
    )
  }

  private guess(codes: readonly string[], brand: BrandSlug, person: Person): string {
    const { random } = this
    const others = this.codesOf((send) => send.brand !== brand || send.person !== person)
    const wrong = `9${random.below(100_000).toString().padStart(5, '0')}`
    const latest = codes.at(-1) ?? wrong
    return random.weighted([
      [50, () => latest],
      [this.profile.wrongGuesses, () => wrong],
      [10, () => (codes.length > 1 ? random.pick(codes.slice(0, -1)) : latest)],
      [5, () => withOtherPurpose(latest)],
      [5, () => (others.length > 0 ? random.pick(others) : wrong)],
    ])()
  }

  private cancel(client: { operation: Operation | undefined }): void {
    this.note('request cancelled')
    this.log(`a client no longer waits for ${client.operation?.kind} ${client.operation?.id}`)
    client.operation = undefined
  }

  private start(request: Pick<Operation, 'kind' | 'app' | 'brand' | 'person' | 'guess'>): Operation {
    const { kind, app, brand, person, guess } = request
    const operation: Operation = {
      id: this.history.operations.length + 1,
      kind,
      app,
      brand,
      person,
      guess,
      startedAtStep: this.step,
      calls: [],
      handovers: [],
      code: undefined,
      callsBefore: 0,
      reading: this.timeMs,
      faults: 0,
      answer: undefined,
      lostAtStep: undefined,
    }
    this.history.operations.push(operation)
    this.readAtMs.set(operation, this.elapsedMs)
    const server = this.random.pick(this.servers)
    this.log(
      `${name(operation)} begins${this.servers.length > 1 ? ` at server ${this.servers.indexOf(server)}` : ''}`,
    )
    const ports = this.portsOf(server, operation, new Random(this.seed ^ Math.imul(operation.id, 0xc0de)))
    const recipient = people[person]
    const contact = this.random.pick(recipient.spellings)
    const body: Body = {
      appId: app,
      apiKey: apiKeys[app as keyof typeof apiKeys],
      brandId: brand,
      ...(recipient.channel === 'SMS' ? { phone: contact } : { email: contact }),
      ...(kind === 'send'
        ? { channel: recipient.channel, purpose: purposeOf(operation) }
        : otpAndPurpose(guess)),
    }
    const call = newContext({ requestId: `${operation.id}` })
    const answer: Promise<unknown> =
      kind === 'send' ? sendOtp(ports, call, body, 'send') : verifyOtp(ports, call, body)
    answer.then(
      () => this.settle(operation, { kind: 'ok', step: this.step }),
      (error) => {
        const limitStatus = call.limits.find(({ refused }) => refused)
        if (limitStatus) this.note(`${kind} refused by ${limitStatus.limit}`)
        this.settle(
          operation,
          error instanceof Failure
            ? { kind: 'refused', failure: error.kind, step: this.step }
            : { kind: 'error', error, step: this.step },
        )
      },
    )
    return operation
  }

  private settle(operation: Operation, answer: Answer): void {
    operation.answer = answer
    const what = answer.kind === 'refused' ? answer.failure : answer.kind
    this.note(`${operation.kind}: ${what}`)
    this.log(`${name(operation)} returns ${what}`)
    const open = this.calls.find((waiting) => waiting.operation === operation)
    if (open) this.fail(`${name(operation)} is answered while ${open.what} is under way`)
    this.noteOrder(operation, what)
    for (const client of this.clients) if (client.operation === operation) client.operation = undefined
    this.answered.push(operation)
  }

  // -------------------------------------------------------------------------------------------------------------------
  // The ports
  // -------------------------------------------------------------------------------------------------------------------

  /**
   * @param random decides the outcomes of this operation alone, because the database decides in which order
   * concurrent operations are answered
   */
  private portsOf(server: Server, operation: Operation, random: Random): SendOtpPorts & VerifyOtpPorts {
    const { smsMode, plainProviders, limits } = this.profile
    const secrets = seededSecrets(random, this.usedCodes)
    const provider = (title: string): SmsProvider => ({
      name: title,
      send: ({ id, to, brandSlug, text, template, route }, timeoutMs) => {
        if (template && template.variables.otp !== codeIn(text)) this.fail(`${name(operation)} has two codes`)
        return this.handOver(server, operation, random, {
          ...{ messageId: id, to, brandSlug, route, timeoutMs },
          provider: title,
          code: codeFor(operation, codeIn(text)),
        })
      },
    })
    const mailer: Mailer = {
      name: 'mailer',
      send: ({ requestId, to, brandSlug, text }, _, timeoutMs) =>
        this.handOver(server, operation, random, {
          ...{ messageId: requestId, to, brandSlug, timeoutMs },
          route: 'mail',
          provider: 'mailer',
          code: codeFor(operation, codeIn(text)),
        }),
    }
    return {
      apps: this.intercepted('apps', server.apps, (what, run) =>
        this.read(server, operation, random, what, run),
      ),
      brands: this.intercepted('brands', server.brands, (what, run) =>
        this.read(server, operation, random, what, run),
      ),
      store: this.intercepted('store', server.store, (what, run) => this.call(server, operation, what, run)),
      proofs,
      proofIssuer: () => 'otpost',
      rejections: new CredentialRejections(),
      segmentsOf: oneSegment,
      isTopLevelDomain: () => false,
      secrets: {
        ...secrets,
        newCode: () => {
          const code = secrets.newCode()
          operation.code = codeFor(operation, code)
          return code
        },
      },
      contacts: readStoreConfig({}).contacts,
      policy: () => noPolicy,
      destinationOf,
      ipIdentity,
      guard: noGuard,
      isVerifiedNumber: async () => false,
      ...noIdempotency,
      limits,
      otpTtlSeconds: otpTtlMs / 1000,
      ladder: { ways: ['sms'], waitSeconds: 20 },
      providerTimeoutMs,
      smsMode,
      voiceCountries: [],
      conversionFeedback: { accepts: (name) => name === 'plain 0' },
      phoneRoutes: {
        plain: Array.from({ length: plainProviders }, (_, index) => provider(`plain ${index}`)),
        template: [provider('template')],
      },
      mailer,
      now: () => {
        operation.reading = this.timeMs
        this.readAtMs.set(operation, this.elapsedMs)
        return this.timeMs
      },
      stopwatch: () => this.elapsedMs,
      ...deliveryBasics(() => this.elapsedMs),
      breakers: this.breakersOf(server),
    }
  }

  private breakersOf(server: Server): Breakers {
    const breakers = this.breakers.get(server) ?? new Breakers(() => this.elapsedMs)
    this.breakers.set(server, breakers)
    return breakers
  }

  /** The port, with each of its methods called by `through`. */
  private intercepted<T extends object>(
    title: string,
    port: T,
    through: (what: string, run: () => unknown) => unknown,
  ): T {
    return new Proxy(port, {
      get: (target, key) => {
        const method: unknown = Reflect.get(target, key, target)
        if (typeof method !== 'function') return method
        return (...given: unknown[]) =>
          through(`${title}.${String(key)}`, () => Reflect.apply(method, target, given))
      },
    })
  }

  private call(server: Server, operation: Operation, what: string, run: () => unknown): Promise<unknown> {
    return this.wait(server, operation, what, async () => await run())
  }

  /** Reading apps usually takes no time; sometimes its response is late or lost. */
  private read(
    server: Server,
    operation: Operation,
    random: Random,
    what: string,
    run: () => unknown,
  ): unknown {
    const isLate = random.chance(0.08)
    this.underWay++
    // Whether a value is cached must not change the history.
    return new Promise((resolve) => resolve(run()))
      .finally(() => this.countEnd())
      .then((value) => (isLate ? this.wait(server, operation, what, undefined, value) : value))
      .catch((error) => {
        // A call lost with its server never resolves.
        if (operation.lostAtStep !== undefined) return new Promise(() => {})
        if (this.databaseFails) operation.faults++
        throw error
      })
  }

  private wait(
    server: Server,
    operation: Operation,
    what: string,
    run: (() => Promise<unknown>) | undefined,
    value?: unknown,
  ): Promise<unknown> {
    if (operation.answer) this.fail(`${name(operation)} calls ${what} after its answer`)
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    this.park({
      ...{ server, operation, what, run, resolve, reject },
      readAtMs: this.readAtMs.get(operation) ?? this.elapsedMs,
      reading: operation.reading,
      giveAnswer: () => resolve(value),
    })
    return promise
  }

  /** In the order of the operations, because the database decides the order of concurrent ones. */
  private park(call: WaitingCall): void {
    this.calls.push(call)
    this.calls.sort((a, b) => a.operation.id - b.operation.id)
  }

  private handOver(
    server: Server,
    operation: Operation,
    random: Random,
    message: Omit<Handover, 'step' | 'startedAtMs' | 'arrived' | 'answer'>,
  ): Promise<Outcome> {
    const handover: Handover = {
      ...message,
      step: this.step,
      startedAtMs: this.elapsedMs,
      // It may arrive before the provider responds, and be used before the send is answered.
      arrived: random.chance(0.3),
      answer: undefined,
    }
    if (operation.handovers.length === 0) {
      operation.callsBefore = operation.calls.length
      this.begun.push(operation)
    }
    operation.handovers.push(handover)
    this.log(`${name(operation)} sends ${handover.code} to ${handover.provider}`)
    try {
      this.invariants.handedOver(operation, handover)
    } catch (violation) {
      this.violation ??= violation
    }
    const { promise, resolve, reject } = Promise.withResolvers<Outcome>()
    this.handovers.push({ server, operation, handover, resolve, reject })
    this.handovers.sort((a, b) => a.operation.id - b.operation.id)
    return promise
  }

  // -------------------------------------------------------------------------------------------------------------------
  // What may come about
  // -------------------------------------------------------------------------------------------------------------------

  /** One database call continues, or all that wait at one server, which then share a transaction. */
  private letThrough(): void {
    const { random, profile } = this
    const first = random.pick(this.calls)
    if (!profile.isExact && random.chance(0.5)) {
      // The order makes no difference to the windows of limits if all have the same time.
      const atOnce = this.calls.filter(({ reading }) => reading === first.reading)
      if (new Set(atOnce.map(({ server }) => server)).size > 1) this.note('calls of several servers at once')
      for (const call of atOnce) this.release(call, this.fault())
      return
    }
    const together = random.chance(0.35) ? this.callsOf(first.server) : [first]
    if (together.length > 1) this.note('calls together')
    for (const call of together) this.release(call, this.fault())
  }

  private callsOf(server: Server): WaitingCall[] {
    return this.calls.filter((call) => call.server === server)
  }

  private fault(): Fault {
    const { random, profile } = this
    if (random.chance(0.08)) return 'answer late'
    if (!random.chance(profile.storeFaults)) return 'none'
    return random.pick(['busy', 'full', 'answer lost', 'answer lost'])
  }

  private release(call: WaitingCall, fault: Fault): void {
    this.calls.splice(this.calls.indexOf(call), 1)
    const { operation, what } = call
    this.log(`${what} of ${operation.kind} ${operation.id}${call.run ? '' : ' (answer)'}: ${fault}`)
    if (call.run && what === 'store.admit') this.note('attempt counted after the fact')
    if (fault !== 'none') this.note(`store: ${fault}`)
    if (fault === 'busy' || fault === 'full') {
      this.failCall(call, fault)
      return
    }
    if (!call.run) {
      if (fault === 'answer lost') this.failCall(call, fault)
      else call.giveAnswer()
      return
    }
    operation.calls.push({
      what,
      order: this.order++,
      step: this.step,
      reading: call.reading,
      timeMs: this.timeMs,
    })
    this.underWay++
    call
      .run()
      .then(
        (value) => {
          // It was executed, but its server has crashed.
          if (operation.lostAtStep !== undefined) return
          if (fault === 'answer lost') this.failCall(call, fault)
          else if (fault === 'answer late') {
            this.park({ ...call, run: undefined, giveAnswer: () => call.resolve(value) })
          } else call.resolve(value)
        },
        (error) => {
          if (operation.lostAtStep !== undefined) return
          if (this.databaseFails) {
            operation.faults++
            this.note(`database: ${(error as { code?: string }).code}`)
            this.log(
              `${what} of ${operation.kind} ${operation.id} fails: ${(error as { code?: string }).code}`,
            )
          }
          call.reject(error)
        },
      )
      .finally(() => this.countEnd())
  }

  private countEnd(): void {
    this.underWay--
    this.oneEnded.resolve()
    this.oneEnded = Promise.withResolvers()
  }

  private failCall({ operation, reject }: WaitingCall, fault: 'busy' | 'full' | 'answer lost'): void {
    operation.faults++
    reject(this.site?.problems[fault]())
  }

  private async endHandover(): Promise<void> {
    const { random } = this
    const waiting = random.pick(this.handovers)
    if (!random.chance(this.profile.providerFaults)) {
      this.answer(waiting, { kind: 'accepted' }, true)
      return
    }
    const reason = 'simulated'
    const isLost = random.chance(0.5)
    const fault = random.weighted<() => void | Promise<void>>([
      [3, () => this.answer(waiting, { kind: 'retryable', reason }, false)],
      [2, () => this.answer(waiting, { kind: 'rejected', scope: 'recipient', reason }, false)],
      [
        1,
        () =>
          this.answer(
            waiting,
            { kind: 'rejected', scope: random.pick(['content', 'account']), reason },
            false,
          ),
      ],
      [2, () => this.answer(waiting, { kind: 'unknown', reason }, isLost)],
      [2, () => this.answer(waiting, 'threw', isLost)],
      [3, () => this.timeOut(waiting, isLost)],
    ])
    await fault()
  }

  /** The provider does not respond within the time-out. */
  private async timeOut(waiting: WaitingHandover, arrived: boolean): Promise<void> {
    const { startedAtMs, timeoutMs } = waiting.handover
    await this.passTime(Math.max(0, startedAtMs + timeoutMs - this.elapsedMs))
    this.note('provider: time-out')
    this.answer(waiting, { kind: 'unknown', reason: 'time-out' }, arrived)
  }

  private answer(waiting: WaitingHandover, outcome: Outcome | 'threw', arrives: boolean): void {
    const { operation, handover } = waiting
    this.handovers = this.handovers.filter((other) => other !== waiting)
    if (arrives) handover.arrived = true
    handover.answer = { elapsedMs: this.elapsedMs, outcome }
    const what =
      outcome === 'threw'
        ? 'throws'
        : outcome.kind === 'rejected'
          ? `rejects the ${outcome.scope}`
          : outcome.kind
    const isLost = handover.arrived && (outcome === 'threw' || outcome.kind !== 'accepted')
    const isLate = this.elapsedMs > handover.startedAtMs + handover.timeoutMs
    this.note(`provider: ${what}`)
    if (isLost) this.note('provider: answer lost')
    if (isLate) this.note(`provider: ${what}, late`)
    const title = `${handover.provider} for ${operation.kind} ${operation.id}`
    this.log(`${title}: ${what}${isLost ? ', although it arrived' : ''}`)
    if (outcome === 'threw') waiting.reject(new Error('the provider broke'))
    else waiting.resolve(outcome)
  }

  private async passTime(ms: number): Promise<void> {
    await this.hurry(ms)
    this.elapsedMs += ms
    this.timeMs += ms
    this.history.clock.push({ step: this.step, timeMs: this.timeMs })
    this.log(`${ms} ms pass`)
  }

  private async setClock(ms: number): Promise<void> {
    await this.hurry(Number.POSITIVE_INFINITY)
    this.timeMs += ms
    this.history.clock.push({ step: this.step, timeMs: this.timeMs })
    if (ms < 0) this.history.firstSetBack = Math.min(this.history.firstSetBack, this.step)
    this.note(`clock set ${ms < 0 ? 'back' : 'forwards'}`)
    this.log(`the clock is set by ${ms} ms`)
  }

  /**
   * The store executes a call, or fails it, soon after its start: a call that waits too long continues
   * before the clock advances.
   */
  private async hurry(ms: number): Promise<void> {
    for (;;) {
      const due = this.calls.filter(({ readAtMs }) => this.elapsedMs + ms - readAtMs >= overtakingMs)
      const [first] = due
      if (!first) return
      for (const call of due) {
        if (call.server === first.server) this.release(call, this.random.chance(0.1) ? 'busy' : 'none')
      }
      await this.judge()
      this.step++
    }
  }

  private async sweep(): Promise<void> {
    const { sweep } = this.random.pick(this.servers)
    this.note('sweep')
    this.log('expired rows are deleted')
    // Concurrent with other calls that continue at the same time.
    const isAlone = this.servers.length > 1 && this.profile.isExact
    if (this.calls.length > 0 && !isAlone && this.random.chance(0.5)) this.letThrough()
    while (!(await sweep(this.timeMs, keepAll)).isRound);
  }

  // -------------------------------------------------------------------------------------------------------------------
  // Crashes and the database
  // -------------------------------------------------------------------------------------------------------------------

  /** A process crashes: it gets no response to its calls, and another one starts on the remaining data. */
  private async crash(): Promise<void> {
    const index = this.random.below(this.servers.length)
    const server = this.servers[index]
    if (!server) return
    for (const operation of [...this.calls, ...this.handovers]
      .filter((waiting) => waiting.server === server)
      .map((waiting) => waiting.operation)) {
      operation.lostAtStep = this.step
      for (const client of this.clients) if (client.operation === operation) client.operation = undefined
    }
    for (const { handover } of this.handovers.filter((waiting) => waiting.server === server)) {
      handover.arrived ||= this.random.chance(0.7)
      if (handover.arrived) this.note('crash between delivery and answer')
    }
    this.handovers = this.handovers.filter((waiting) => waiting.server !== server)
    this.note(`crash (${this.profile.storage})`)
    this.log(`server ${index} crashes`)
    const isMidway = this.site?.outlivesCalls && this.random.chance(0.5)
    const underWay = isMidway ? this.concernedOf(server) : []
    this.calls = this.calls.filter((waiting) => waiting.server !== server || underWay.includes(waiting))
    await this.site?.crash(index, this.callsIn(server, underWay))
  }

  /** The database fails. */
  private async breakDatabase(): Promise<void> {
    const { server } = this.random.pick(this.calls)
    const breakage = this.site?.breakage(this.random)
    const calls = this.concernedOf(server)
    if (!breakage || calls.length === 0) return
    this.log(breakage.what)
    this.databaseFails = breakage.fails
    await breakage.run(this.callsIn(server, calls))
    this.databaseFails = false
  }

  /** The calls of a server that are not executed yet, and that its database can fail. */
  private concernedOf(server: Server): WaitingCall[] {
    return this.callsOf(server).filter(({ run, what }) => run && this.site?.isConcerned(what))
  }

  private callsIn(server: Server, calls: readonly WaitingCall[]): Calls {
    return {
      server,
      start: () => {
        for (const call of calls) this.release(call, 'none')
      },
      isUnderWay: () => this.underWay > 0,
      settled: () => this.judge(),
      note: (what) => this.note(what),
    }
  }

  // -------------------------------------------------------------------------------------------------------------------
  // The record
  // -------------------------------------------------------------------------------------------------------------------

  private log(event: string): void {
    this.events.push(`${this.step} ${(this.timeMs - this.startMs) / 1000} s: ${event}`)
  }

  private note(what: string): void {
    this.reached.set(what, (this.reached.get(what) ?? 0) + 1)
  }

  /** Sequences of rare events that must still occur. */
  private noteOrder({ id, kind, brand, person, guess }: Operation, what: string): void {
    const sends = this.history.operations.filter((send) => send.brand === brand && send.person === person)
    if (kind === 'send' && what === 'sms_failed') {
      if (sends.some((send) => send.id > id && send.handovers.length > 0))
        this.note('failure of an older send')
    }
    const send = kind === 'verify' && what === 'ok' && sends.find(({ code }) => code === guess)
    if (!send) return
    if (send.lostAtStep !== undefined) this.note('code used after a crash')
    else if (send.answer === undefined) this.note('code used before its send was answered')
    else if (send.answer.kind === 'error') this.note('code used although its send was answered 500')
  }

  private fail(what: string): void {
    this.violation ??= new Violation(what)
  }
}

function purposeOf({ id }: Pick<Operation, 'id'>): string | undefined {
  return id % 3 === 0 ? 'pay' : undefined
}

/** A code and its purpose: a guess with another purpose is one of another code. */
function codeFor(operation: Pick<Operation, 'id'>, code: string): string {
  const purpose = purposeOf(operation)
  return purpose === undefined ? code : `${code} ${purpose}`
}

function withOtherPurpose(code: string): string {
  return code.endsWith(' pay') ? code.slice(0, 6) : `${code} pay`
}

function otpAndPurpose(guess: string | undefined): Body {
  const [otp, purpose] = guess?.split(' ') ?? []
  return { otp, purpose }
}

/** The hashes of the few recipients, each computed once. */
const subjects = new Map<string, ReturnType<Secrets['subjects']>>()

function knownSubjects(kind: 'SMS' | 'EMAIL' | 'ip', value: string): ReturnType<Secrets['subjects']> {
  const hashes = subjects.get(kind + value) ?? realSecrets.subjects(kind, value)
  subjects.set(kind + value, hashes)
  return hashes
}

/**
 * Seeded ids and codes over the real keyed hashes. No code is repeated in a history, and none begins with 9.
 */
function seededSecrets(random: Random, used: Set<string>): Secrets {
  return {
    ...realSecrets,
    subjects: knownSubjects,
    newId: () => {
      const hex = random.bytes(16).toString('hex')
      return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`
    },
    newCode: () => {
      for (;;) {
        const code = random.below(900_000).toString().padStart(6, '0')
        if (used.has(code)) continue
        used.add(code)
        return code
      }
    },
  }
}
