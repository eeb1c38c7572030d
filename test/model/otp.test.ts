import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { sql } from 'drizzle-orm'
import fc from 'fast-check'
import { createSecrets, saltedHash, sha256 } from '../../src/adapters/crypto/secrets.ts'
import * as postgres from '../../src/adapters/postgres/database.ts'
import { createOtpStore as createPostgresOtpStore } from '../../src/adapters/postgres/otp-store.ts'
import { createSweep as createPostgresSweep } from '../../src/adapters/postgres/sweep.ts'
import { type Database, openDatabase } from '../../src/adapters/sqlite/database.ts'
import { createOtpStore } from '../../src/adapters/sqlite/otp-store.ts'
import { createSweep } from '../../src/adapters/sqlite/sweep.ts'
import { createApps, type KeyStore } from '../../src/adapters/store/keys.ts'
import type { Storage } from '../../src/adapters/store/store.ts'
import type { Body } from '../../src/domain/body.ts'
import { Failure } from '../../src/domain/failures.ts'
import type { Mailer, Outcome, SmsProvider } from '../../src/domain/messages/providers.ts'
import { putBrand } from '../../src/domain/operator/operator.ts'
import type { LimitSettings } from '../../src/domain/otp/limits.ts'
import { type SendOtpPorts, sendOtp } from '../../src/domain/otp/send.ts'
import { verifyOtp } from '../../src/domain/otp/verify.ts'
import type { Clock } from '../../src/domain/ports.ts'
import { postgresStores, targetOf } from '../store/postgres-database.ts'
import { codeIn, credentials, otherThan, temporaryFolder } from '../support/app.ts'
import { deliveryBasics, newContext } from '../support/calls.ts'
import { keepAll, operatorOf, sqliteStores, tester } from '../support/operator.ts'
import { type DatabaseOfATest, freshDatabase, withoutSharedPostgres } from '../support/postgres.ts'

// Random histories of sends, verifications, failing and late deliveries, time and restarts, played to the real use
// cases on the real store and to a model that restates the contract as naively as it can. When they disagree,
// fast-check shrinks the history and prints seed, path and replayPath: give them to `fc.assert` and `fc.commands` to
// play the same history again.

const brands = ['acme', 'globex'] as const
type BrandSlug = (typeof brands)[number]

/** Recipients, each in several spellings that must count as one. */
const recipients = {
  ann: { channel: 'SMS', spellings: ['+1 (202) 555-0143', '12025550143', '1.202.555.0143'] },
  ben: { channel: 'SMS', spellings: ['447911123456', '+44 7911 123456'] },
  cat: { channel: 'EMAIL', spellings: ['cat@example.com', ' Cat@Example.COM '] },
  dan: { channel: 'EMAIL', spellings: ['dan@example.com'] },
} as const
type Person = keyof typeof recipients
const people = Object.keys(recipients) as Person[]

const cooldownMs = 30_000
const lifetimeMs = 300_000

/** The numbers of spec 8 and design D23, D24, and two sets of smaller ones that short histories reach. */
const limitSets: readonly LimitSettings[] = [
  settings({}),
  settings({ globalPerMinute: 6, phonePerHour: 4, emailPerHour: 3, failureBudgetPerDay: 4 }),
  settings({ globalPerMinute: 1000, phonePerMinute: 2, phonePerHour: 3, failureBudgetPerDay: 2 }),
  settings({ globalPerMinute: 1000, emailPerHour: 0, failureBudgetPerDay: 2 }),
  settings({ globalPerMinute: 1000, emailPerHour: 0, failureBudgetPerDay: 1 }),
  settings({ globalPerMinute: 1000, emailPerHour: 0, failureBudgetPerDay: 0 }),
]

function settings(others: Partial<LimitSettings>): LimitSettings {
  return {
    globalPerMinute: 10,
    phonePerMinute: 3,
    phonePerHour: 10,
    smsCooldownSeconds: cooldownMs / 1000,
    failureBudgetPerDay: 100,
    emailPerHour: 30,
    ...others,
  }
}

/** What a caller sees of an operation: its code, and what Retry-After says. */
interface Seen {
  readonly code: string
  readonly retryAfter?: number | undefined
}

// ---------------------------------------------------------------------------------------------------------------------
// The model
// ---------------------------------------------------------------------------------------------------------------------

interface ModelWindow {
  count: number
  endsAt: number
}

interface ModelRecord {
  readonly code: string
  readonly expiresAt: number
  wrong: number
}

/** A send that was let through, until its delivery ends. */
interface ModelSend {
  readonly scope: string
  readonly record: ModelRecord
  readonly grants: { readonly key: string; readonly window: ModelWindow }[]
  readonly cooldown: ModelWindow | undefined
  readonly cooldownKey: string
}

type Expected = { readonly code: string; readonly retryAfter?: number | 'some' }

class Model {
  now = 0
  readonly records = new Map<string, ModelRecord>()
  readonly windows = new Map<string, ModelWindow>()
  /** The cooldowns that still wait for the end of their delivery. */
  readonly leases = new Set<ModelWindow>()
  readonly held: ModelSend[] = []
  /** Every code that was handed to the provider, by scope, oldest first. */
  readonly codes = new Map<string, string[]>()

  constructor(readonly limits: LimitSettings) {}

  /** Whether the limits let a send through (spec 4.1): the first that is used up answers. */
  refusesSend(brand: BrandSlug, person: Person): Expected | undefined {
    return this.refusal(this.sendLimits(brand, person))
  }

  /** A send that was let through: it counts, and its code takes the place of the one before (spec 3.1, design D15). */
  begin(brand: BrandSlug, person: Person, code: string): ModelSend {
    const grants = this.sendLimits(brand, person).map(([key, , lastsMs]) => ({
      key,
      window: this.count(key, lastsMs),
    }))
    const scope = scopeOf(brand, person)
    const record = { code, expiresAt: this.now + lifetimeMs, wrong: 0 }
    this.records.set(scope, record)
    this.codes.set(scope, [...(this.codes.get(scope) ?? []), code])
    const cooldownKey = `cooldown ${scope}`
    const cooldown = grants.find(({ key }) => key === cooldownKey)?.window
    if (cooldown) this.leases.add(cooldown)
    return { scope, record, grants, cooldown, cooldownKey }
  }

  /** The end of a delivery. */
  end(send: ModelSend, delivered: boolean): void {
    const { cooldown } = send
    if (cooldown) this.leases.delete(cooldown)
    if (delivered) {
      if (!cooldown) return
      const current = this.windows.get(send.cooldownKey)
      const endsAt = this.now + cooldownMs
      if (current && current !== cooldown && current.endsAt > this.now) {
        // A send that took the cooldown over in the meantime keeps it, and it lasts for as long as both ask.
        const { count } = current
        if (endsAt > current.endsAt) this.windows.set(send.cooldownKey, { count, endsAt })
        return
      }
      // Half a second more or less is not part of the contract.
      if (endsAt - cooldown.endsAt <= 500) return
      cooldown.endsAt = endsAt
      this.windows.set(send.cooldownKey, cooldown)
      return
    }
    if (this.records.get(send.scope) === send.record) this.records.delete(send.scope)
    for (const { key, window } of send.grants) {
      // The global limit counts requests, delivered or not (spec 8); the others count what was sent (spec 3.1).
      if (key === globalKey || this.windows.get(key) !== window) continue
      window.count--
      if (window.count === 0) this.windows.delete(key)
    }
  }

  /** Spec 3.1, 4.3, design D1 and D23. */
  verify(brand: BrandSlug, person: Person, code: string): Expected {
    const scope = scopeOf(brand, person)
    const budgetKey = `wrong ${scope}`
    const budget = this.limits.failureBudgetPerDay
    const refusal = this.refusal([
      [globalKey, this.limits.globalPerMinute, 60_000, 'rate_limited'],
      ...(budget === 0 ? [] : [[budgetKey, budget, 86_400_000, 'rate_limited'] as const]),
    ])
    if (refusal) return refusal
    this.count(globalKey, 60_000)
    const record = this.records.get(scope)
    if (!record || record.expiresAt <= this.now) return { code: 'not_found' }
    if (record.wrong === 3) return { code: 'max_attempts', retryAfter: 'some' }
    if (record.code !== code) {
      record.wrong++
      if (budget > 0) this.count(budgetKey, 86_400_000)
      return { code: 'mismatch' }
    }
    this.records.delete(scope)
    this.windows.delete(budgetKey)
    return { code: 'ok' }
  }

  /** After a restart nobody waits for the deliveries that were under way; what they took stays taken. */
  forgetDeliveries(): void {
    this.held.length = 0
  }

  private sendLimits(brand: BrandSlug, person: Person): Limit[] {
    const { channel } = recipients[person]
    const { phonePerMinute, phonePerHour, emailPerHour, globalPerMinute } = this.limits
    const global: Limit = [globalKey, globalPerMinute, 60_000, 'rate_limited']
    if (channel === 'EMAIL') {
      return emailPerHour === 0
        ? [global]
        : [[`mail hour ${person}`, emailPerHour, 3_600_000, 'rate_limited'], global]
    }
    return [
      [`cooldown ${scopeOf(brand, person)}`, 1, cooldownMs, 'cooldown_active'],
      [`minute ${person}`, phonePerMinute, 60_000, 'rate_limited'],
      [`hour ${person}`, phonePerHour, 3_600_000, 'rate_limited'],
      global,
    ]
  }

  private refusal(limits: readonly Limit[]): Expected | undefined {
    for (const [key, max, , code] of limits) {
      const window = this.windows.get(key)
      if (!window || window.endsAt <= this.now || window.count < max) continue
      // How long a delivery under way may hold the cooldown is not part of the contract.
      const seconds = Math.ceil((window.endsAt - this.now) / 1000)
      return { code, retryAfter: this.leases.has(window) ? 'some' : seconds }
    }
    return undefined
  }

  private count(key: string, lastsMs: number): ModelWindow {
    const open = this.windows.get(key)
    if (open && open.endsAt > this.now) {
      open.count++
      return open
    }
    const opened = { count: 1, endsAt: this.now + lastsMs }
    this.windows.set(key, opened)
    return opened
  }
}

type Limit = readonly [key: string, max: number, lastsMs: number, code: string]
const globalKey = 'global'

function scopeOf(brand: BrandSlug, person: Person): string {
  return `${brand} ${person}`
}

// ---------------------------------------------------------------------------------------------------------------------
// The real thing
// ---------------------------------------------------------------------------------------------------------------------

/** How the provider deals with the next message. */
const deliveries = ['ok', 'held', 'retryable', 'rejected', 'unknown', 'throws'] as const
type Delivery = (typeof deliveries)[number]

const outcomes: Readonly<Record<Exclude<Delivery, 'throws' | 'held'>, Outcome>> = {
  ok: { kind: 'accepted' },
  retryable: { kind: 'retryable', reason: 'down' },
  rejected: { kind: 'rejected', scope: 'recipient', reason: 'no such number' },
  unknown: { kind: 'unknown', reason: 'time-out' },
}

/** Two secrets, of which either may be the present one: each server still knows what it has under the other. */
const keys = [
  'a secret of the model test, 32 bytes or more',
  'another secret, 32 bytes or more as well',
] as const
const secretsOf = [createSecrets(...keys), createSecrets(keys[1], keys[0])] as const

const start = Date.UTC(2026, 0, 1, 12)

/** What a service has of its store. */
interface Home {
  readonly adapters: Adapters
  readonly sweep: Storage['sweep']
  /** What the next process has of the same data. */
  reopened(): Promise<Home>
  close(): Promise<void>
}

class Service {
  private ports: SendOtpPorts
  private delivery: Delivery = 'ok'
  private handedOver = Promise.withResolvers<string>()
  private readonly waiting: { release: (outcome: Outcome) => void; answer: Promise<Seen> }[] = []

  constructor(
    private home: Home,
    private readonly limits: LimitSettings,
    readonly clock: { now: number } = { now: start },
  ) {
    this.ports = this.wire(0)
  }

  /**
   * Sends; resolves to the code that the provider was handed, if any, and to the answer, unless the delivery is held:
   * then the answer comes by `release`.
   */
  async send(body: Body, delivery: Delivery): Promise<{ code: string | undefined; seen: Seen | undefined }> {
    this.delivery = delivery
    this.handedOver = Promise.withResolvers<string>()
    const answer = seen(sendOtp(this.ports, newContext(), { ...credentials, ...body }, { isResend: false }))
    const code = await Promise.race([this.handedOver.promise, answer.then(() => undefined)])
    if (code !== undefined && delivery === 'held') {
      const waiting = this.waiting.at(-1)
      if (waiting) waiting.answer = answer
      return { code, seen: undefined }
    }
    return { code, seen: await answer }
  }

  /** Ends the nth of the held deliveries. */
  release(index: number, outcome: Outcome): Promise<Seen> | undefined {
    const [waiting] = this.waiting.splice(index, 1)
    waiting?.release(outcome)
    return waiting?.answer
  }

  verify(body: Body): Promise<Seen> {
    return seen(verifyOtp(this.ports, newContext(), { ...credentials, ...body }))
  }

  /**
   * The process dies and another one starts on the same data; deliveries under way are never heard of again.
   *
   * @param secret which of the two is the present one from now on
   */
  async restart(secret: 0 | 1): Promise<void> {
    this.waiting.length = 0
    this.home = await this.home.reopened()
    this.ports = this.wire(secret)
  }

  async sweep(): Promise<void> {
    while (!(await this.home.sweep(this.clock.now, keepAll)).isRound);
  }

  close(): Promise<void> {
    return this.home.close()
  }

  private wire(secret: 0 | 1): SendOtpPorts {
    const deliver = (text: string): Promise<Outcome> => {
      this.handedOver.resolve(codeIn(text))
      if (this.delivery === 'throws') return Promise.reject(new Error('the provider broke'))
      if (this.delivery !== 'held') return Promise.resolve(outcomes[this.delivery])
      const { promise, resolve } = Promise.withResolvers<Outcome>()
      this.waiting.push({ release: resolve, answer: Promise.resolve({ code: 'none' }) })
      return promise
    }
    const provider: SmsProvider = { name: 'model', send: ({ text }) => deliver(text) }
    const mailer: Mailer = { name: 'model', send: ({ text }) => deliver(text ?? '') }
    return {
      ...this.home.adapters,
      ...deliveryBasics(() => this.clock.now),
      lastProviderOf: async () => undefined,
      secrets: secretsOf[secret],
      limits: this.limits,
      otpTtlSeconds: lifetimeMs / 1000,
      providerTimeoutMs: 4000,
      smsMode: 'plain',
      smsRoutes: { plain: [provider], template: [] },
      mailer,
      now: () => this.clock.now,
      stopwatch: () => this.clock.now,
    }
  }
}

type Adapters = Pick<SendOtpPorts, 'apps' | 'brands' | 'store'>

function appsOf(store: KeyStore): Adapters['apps'] {
  return createApps(store, sha256, new Map([[credentials.appId, credentials.apiKey]]))
}

function onSqlite(database: Database, reopen: () => Promise<Database>): Home {
  return {
    adapters: {
      apps: appsOf(sqliteStores(database).keys),
      brands: sqliteStores(database).brands,
      store: createOtpStore(database, saltedHash),
    },
    sweep: createSweep(database),
    reopened: async () => onSqlite(await reopen(), reopen),
    close: () => database.close(),
  }
}

function onPostgres(database: postgres.Database, reopen: () => Promise<postgres.Database>): Home {
  return {
    adapters: {
      apps: appsOf(postgresStores(database).keys),
      brands: postgresStores(database).brands,
      store: createPostgresOtpStore(database),
    },
    // By the same name each time, so that none waits until the one before it is taken for dead.
    sweep: createPostgresSweep(database, 'the one node'),
    reopened: async () => {
      await database.close()
      return onPostgres(await reopen(), reopen)
    },
    close: () => database.close(),
  }
}

async function seen(operation: Promise<unknown>): Promise<Seen> {
  try {
    await operation
    return { code: 'ok' }
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    return { code: error.kind, retryAfter: error.details.retryAfterSeconds }
  }
}

function recipientFields(person: Person, spelling: number): Body {
  const { channel, spellings } = recipients[person]
  const written = spellings[spelling % spellings.length]
  return channel === 'SMS' ? { phone: written } : { email: written, channel }
}

// ---------------------------------------------------------------------------------------------------------------------
// The commands
// ---------------------------------------------------------------------------------------------------------------------

type Command = fc.AsyncCommand<Model, Service>

/** Everything that was seen over all histories: a model that reaches nothing proves nothing. */
const reached = new Map<string, number>()

function agree(actual: Seen, expected: Expected): void {
  reached.set(expected.code, (reached.get(expected.code) ?? 0) + 1)
  if (expected.retryAfter === 'some') {
    expect(actual.code).toBe(expected.code)
    expect(actual.retryAfter).toBeWithin(1, lifetimeMs / 1000 + 1)
  } else {
    expect({ code: actual.code, retryAfter: actual.retryAfter }).toEqual({
      code: expected.code,
      retryAfter: expected.retryAfter,
    })
  }
}

class Send implements Command {
  constructor(
    readonly brand: BrandSlug,
    readonly person: Person,
    readonly delivery: Delivery,
    readonly spelling: number,
  ) {}

  check = () => true

  async run(model: Model, service: Service): Promise<void> {
    const refusal = model.refusesSend(this.brand, this.person)
    const body = { brandId: this.brand, ...recipientFields(this.person, this.spelling) }
    const { code, seen: answer } = await service.send(body, this.delivery)
    if (refusal) {
      expect(code).toBeUndefined()
      agree(answer ?? { code: 'held' }, refusal)
      return
    }
    expect({ code, answer }).toEqual({ code: expect.stringMatching(/^[0-9]{6}$/), answer })
    const send = model.begin(this.brand, this.person, code ?? '')
    if (this.delivery === 'held') {
      expect(answer).toBeUndefined()
      model.held.push(send)
      return
    }
    const delivered = this.delivery === 'ok'
    model.end(send, delivered)
    agree(answer ?? { code: 'held' }, { code: delivered ? 'ok' : 'sms_failed' })
  }

  toString = () => `send(${this.brand}, ${this.person}, ${this.delivery})`
}

class EndDelivery implements Command {
  constructor(
    readonly which: number,
    readonly delivered: boolean,
  ) {}

  check = (model: Readonly<Model>) => model.held.length > 0

  async run(model: Model, service: Service): Promise<void> {
    const index = this.which % model.held.length
    const [send] = model.held.splice(index, 1)
    if (!send) throw new Error('no delivery is held')
    const answer = await service.release(index, this.delivered ? outcomes.ok : outcomes.retryable)
    model.end(send, this.delivered)
    reached.set('late', (reached.get('late') ?? 0) + 1)
    agree(answer ?? { code: 'none' }, { code: this.delivered ? 'ok' : 'sms_failed' })
  }

  toString = () => `endDelivery(${this.which}, ${this.delivered ? 'delivered' : 'failed'})`
}

class Verify implements Command {
  constructor(
    readonly brand: BrandSlug,
    readonly person: Person,
    readonly which: 'latest' | 'wrong' | 'wrong, then latest' | 'older' | 'of the other brand',
    readonly times: number,
    readonly spelling: number,
  ) {}

  /** Most guesses are about codes that were sent; one in three may be about nothing. */
  check = (model: Readonly<Model>) => this.spelling === 0 || model.codes.has(scopeOf(this.brand, this.person))

  async run(model: Model, service: Service): Promise<void> {
    const otp = this.guess(model)
    const guesses = Array.from({ length: this.times }, () => otp)
    const { channel: _, ...recipient } = recipientFields(this.person, this.spelling)
    for (const guess of this.which === 'wrong, then latest' ? [otherThan(otp), ...guesses] : guesses) {
      const answer = await service.verify({ brandId: this.brand, otp: guess, ...recipient })
      agree(answer, model.verify(this.brand, this.person, guess))
    }
  }

  private guess(model: Model): string {
    const other = this.brand === 'acme' ? 'globex' : 'acme'
    const codes = model.codes.get(scopeOf(this.brand, this.person)) ?? []
    const latest = codes.at(-1) ?? '123456'
    if (this.which === 'wrong') return otherThan(latest)
    if (this.which === 'older') return codes.at(-2) ?? latest
    if (this.which === 'of the other brand')
      return model.codes.get(scopeOf(other, this.person))?.at(-1) ?? latest
    return latest
  }

  toString = () => `verify(${this.brand}, ${this.person}, ${this.which}, ${this.times} times)`
}

class Pass implements Command {
  constructor(readonly ms: number) {}

  check = () => true

  async run(model: Model, service: Service): Promise<void> {
    model.now += this.ms
    service.clock.now += this.ms
  }

  toString = () => `pass(${this.ms / 1000} s)`
}

class Restart implements Command {
  constructor(readonly secret: 0 | 1) {}

  check = () => true

  async run(model: Model, service: Service): Promise<void> {
    model.forgetDeliveries()
    await service.restart(this.secret)
  }

  toString = () => `restart(secret ${this.secret})`
}

/** Removing what is over must change nothing that a caller sees, so the model does not know of it. */
class Sweep implements Command {
  check = () => true

  run = (_: Model, service: Service): Promise<void> => service.sweep()

  toString = () => 'sweep()'
}

const anyDelivery = fc.constantFrom('ok', 'ok', 'ok', 'ok', 'ok', 'held', 'held', ...deliveries)
const anySpelling = fc.nat({ max: 2 })
const endDelivery = fc.tuple(fc.nat({ max: 3 }), fc.boolean()).map((of) => new EndDelivery(...of))
const pass = fc
  .constantFrom(
    ...[0.001, 1, 10, 29.999, 30, 30, 31, 31, 31, 60, 61, 240, 299.999, 300, 301, 3599, 3600, 3601, 86_400],
  )
  .map((seconds) => new Pass(Math.round(seconds * 1000)))
const others = fc.constantFrom(new Restart(0), new Restart(1), new Sweep(), new Sweep())

/** Whom a command is about: for the most part the same few, so that commands meet. */
const anybody = {
  brand: fc.constantFrom('acme', 'acme', 'acme', ...brands),
  person: fc.constantFrom('ann', 'ann', 'ann', 'cat', ...people),
}
/** Where there are few histories. */
const fewPeople = {
  brand: fc.constantFrom('acme', 'acme', 'acme', 'acme', ...brands),
  person: fc.constantFrom('ann', 'cat', 'cat'),
}

function histories(maxCommands: number, { brand, person }: typeof anybody | typeof fewPeople = anybody) {
  const send = fc.tuple(brand, person, anyDelivery, anySpelling).map((of) => new Send(...of))
  const verify = fc
    .tuple(
      brand,
      person,
      fc.constantFrom('latest', 'wrong', 'wrong', 'wrong, then latest', 'older', 'of the other brand'),
      fc.constantFrom(1, 1, 2, 3, 4),
      anySpelling,
    )
    .map((of) => new Verify(...of))
  return fc.commands<Model, Service, false>(
    [send, send, send, send, verify, verify, verify, endDelivery, endDelivery, pass, pass, pass, others],
    { maxCommands, size: 'max' },
  )
}

async function makeBrands(operator: Parameters<typeof putBrand>[0]): Promise<void> {
  for (const slug of brands) await putBrand(operator, slug, { displayName: slug })
}

/** A database in which nothing has happened yet: there are no codes and no windows. */
function emptied(database: Database): Database {
  database.orm.run(sql`DELETE FROM ledgers`)
  database.changes.tell()
  return database
}

const allCodes = [
  'cooldown_active',
  'late',
  'max_attempts',
  'mismatch',
  'not_found',
  'ok',
  'rate_limited',
  'sms_failed',
]

describe('the model of OTP send and verify', () => {
  let database: Database

  beforeAll(async () => {
    database = openDatabase(':memory:')
    await makeBrands(operatorOf(database))
  })
  beforeEach(() => reached.clear())
  afterAll(() => database.close())

  test('the service answers every history as the contract says', async () => {
    const home = onSqlite(database, async () => database)
    const property = fc.asyncProperty(fc.constantFrom(...limitSets), histories(40), (limits, commands) =>
      fc.asyncModelRun(() => {
        emptied(database)
        return { model: new Model(limits), real: new Service(home, limits) }
      }, commands),
    )
    await fc.assert(property, { numRuns: 2000 })
    expect([...reached.keys()].sort()).toEqual(allCodes)
  }, 180_000)

  test('and so it does when the file is closed and opened again in between', async () => {
    const folder = temporaryFolder()
    const file = join(folder.path, 'model.db')
    const first = openDatabase(file)
    await makeBrands(operatorOf(first))
    await first.close()
    const property = fc.asyncProperty(
      fc.constantFrom(...limitSets),
      histories(25),
      async (limits, commands) => {
        let opened = emptied(openDatabase(file))
        const home = onSqlite(opened, async () => {
          await opened.close()
          opened = openDatabase(file)
          return opened
        })
        const service = new Service(home, limits)
        try {
          await fc.asyncModelRun(() => ({ model: new Model(limits), real: service }), commands)
        } finally {
          await service.close()
        }
      },
    )
    try {
      await fc.assert(property, { numRuns: 60 })
    } finally {
      folder.remove()
    }
  }, 180_000)
})

describe.skipIf(withoutSharedPostgres !== undefined)(
  `the model of OTP send and verify on PostgreSQL${withoutSharedPostgres ? ` (${withoutSharedPostgres})` : ''}`,
  () => {
    let own: DatabaseOfATest

    const open = (clock: Clock) => postgres.openDatabase(targetOf(own.url), clock, () => {})

    beforeAll(async () => {
      own = await freshDatabase()
      const database = await open(() => 0)
      await makeBrands({ operator: postgresStores(database).operator, now: () => 0, actor: tester })
      await database.close()
    })
    beforeEach(() => reached.clear())
    afterAll(() => own.remove())

    test('the service answers every history as the contract says, also when it is closed and opened again', async () => {
      // Whoever is the last to have it open, also where a history has failed.
      const clock = { now: start }
      let database = await open(() => clock.now)
      const reopen = async () => {
        database = await open(() => clock.now)
        return database
      }
      const property = fc.asyncProperty(
        fc.constantFrom(...limitSets),
        histories(30, fewPeople),
        async (limits, commands) => {
          await database.pool.rows('DELETE FROM ledgers', [])
          clock.now = start
          const service = new Service(onPostgres(database, reopen), limits, clock)
          await fc.asyncModelRun(() => ({ model: new Model(limits), real: service }), commands)
        },
      )
      try {
        await fc.assert(property, { numRuns: 250 })
      } finally {
        await database.close()
      }
      expect([...reached.keys()].sort()).toEqual(allCodes)
    }, 180_000)
  },
)
