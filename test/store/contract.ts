import { afterAll, afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { saltedHash } from '../../src/adapters/crypto/secrets.ts'
import { notSetUp } from '../../src/domain/accounts/account-changes.ts'
import type { Account } from '../../src/domain/accounts/accounts.ts'
import type { ConsoleSession, ConsoleStore } from '../../src/domain/accounts/sessions.ts'
import type { AuditEntry, AuditReader } from '../../src/domain/ground/audit.ts'
import {
  type Apps,
  clockToleranceMs,
  type Outbox,
  type OutboxMessage,
} from '../../src/domain/ground/ports.ts'
import type { Clock } from '../../src/domain/ground/time.ts'
import type { IntegrationRequest, IntegrationRequests } from '../../src/domain/integration/integration.ts'
import { grantsOf } from '../../src/domain/limits/gates.ts'
import type { Claim, Grant, Subject } from '../../src/domain/limits/limits.ts'
import { type AppScope, unscoped } from '../../src/domain/limits/scope.ts'
import { freshBrand, putBrand } from '../../src/domain/operator/brands.ts'
import type {
  AppStore,
  BrandStore,
  IntegrationRequestStore,
  OperatorStore,
} from '../../src/domain/operator/changes.ts'
import { textDiscard, textPublish, textRemove } from '../../src/domain/operator/texts.ts'
import type { GuessAttempt, NewCode, OtpStore } from '../../src/domain/otp/store.ts'
import type { ReadPolicy } from '../../src/domain/policy/policy.ts'
import type { PolicyStore } from '../../src/domain/policy/policy-store.ts'
import type { Brand, BrandWithTexts } from '../../src/domain/texts/brand.ts'
import { BrandTexts } from '../../src/domain/texts/brand-texts.ts'
import { claimOf } from '../support/calls.ts'
import { setText, storeBrand, tester } from '../support/operator.ts'

// Contract tests of the store ports, for every adapter. An adapter's test file provides a factory and runs
// them.

/** The ports of one store with its own data. */
export interface Stores {
  readonly otps: OtpStore
  readonly brands: BrandStore
  readonly operator: OperatorStore
  readonly policy: PolicyStore & { readonly cached: (smsCountries: readonly string[]) => ReadPolicy }
  readonly apps: AppStore & Apps
  readonly requests: IntegrationRequests & IntegrationRequestStore
  readonly audit: AuditReader
  readonly sessions: ConsoleStore
  readonly outbox: Outbox
  readonly close: () => Promise<void>
}

export interface StoreSettings {
  readonly now: Clock
  /** Hashes app keys; the results have 43 characters, as SHA-256 in base64url. */
  readonly hashKey: (apiKey: string) => string
  /** appId → API key, beside the keys created by command. */
  readonly credentials: ReadonlyMap<string, string>
}

/** Opens an empty store. */
export type OpenStores = (settings: StoreSettings) => Promise<Stores>

const start = Date.UTC(2026, 0, 1, 12)
const clock = { now: start }
const hashKey = (apiKey: string) => `hash of ${apiKey}`.padEnd(43, '.')

/** Codes and limits, by an access path that is opened once and emptied for each test. */
export interface OpenOtpStore {
  readonly otps: OtpStore
  empty(): Promise<unknown>
  close(): Promise<void>
}

/** Only the tests of codes and limits, for an access path that the other ports do not use. */
export function testOtpStore(name: string, open: () => OpenOtpStore): void {
  describe(`codes and limits on ${name}`, () => {
    const opened = open()
    beforeEach(() => opened.empty())
    afterAll(() => opened.close())

    testLimits(() => opened.otps)
    testCodes(() => opened.otps)
  })
}

/** All tests of all ports. */
export function testStores(name: string, open: OpenStores): void {
  describe(`the ports on ${name}`, () => {
    let stores: Stores

    beforeEach(async () => {
      clock.now = start
      stores = await open({
        now: () => clock.now,
        hashKey,
        credentials: new Map([['configured', 'its key']]),
      })
    })
    afterEach(() => stores.close())

    testLimits(() => stores.otps)
    testCodes(() => stores.otps)
    testBrands(
      () => stores.brands,
      () => stores.operator,
    )
    testTexts(() => stores)
    testApps(
      () => stores.apps,
      () => stores.operator,
    )
    testScopes(() => stores)
    testRequests(() => stores)
    testAudit(() => stores)
    testConsole(() => stores)
    testOutbox(() => stores.outbox)
  })
}

const someone: Subject = ['someone']

function record(properties: Partial<NewCode> = {}): NewCode {
  return {
    id: 'record 1',
    brandSlug: 'acme',
    subject: someone,
    hash: hashOf('right', properties.id),
    ttlMs: 300_000,
    provider: null,
    ...properties,
  }
}

function hashOf(code: string, recordId = 'record 1'): string {
  return saltedHash(recordId, code)
}

const scope = { brandSlug: 'acme', subject: someone }

/** The decision of `admit`, without counting. */
function check(store: OtpStore, claim: Claim, now: number) {
  return store.admit([{ ...claim, counted: false }], now)
}

/** The grants of a send that must be allowed. */
async function begin(
  store: OtpStore,
  properties: Partial<NewCode> = {},
  claims: readonly Claim[] = [],
  now = start,
): Promise<readonly Grant[]> {
  const decision = await store.beginSend(claims, record(properties), now)
  if (!decision.allowed) throw new Error(`refused by ${claims[decision.refusedBy]?.name}`)
  return grantsOf(claims, decision)
}

/** The verdict, or the refusal of a limit. */
async function guess(store: OtpStore, attempt: GuessAttempt, now: number) {
  const decision = await store.guess(attempt, now)
  return decision.allowed ? decision.verdict : ({ kind: 'refused', refusal: decision } as const)
}

function guessing(
  code: string,
  { claims = [], failureBudget, ...properties }: Partial<GuessAttempt> = {},
): GuessAttempt {
  const checked = failureBudget ? [{ ...failureBudget, counted: false }] : []
  return { claims: [...claims, ...checked], failureBudget, ...scope, keyedCodes: [code], ...properties }
}

function testLimits(store: () => OtpStore): void {
  describe('limits', () => {
    test('a limit grants its maximum, then reports when its window ends', async () => {
      for (const second of [0, 10, 59]) {
        expect((await store().admit([claimOf()], start + second * 1000)).allowed).toBe(true)
      }
      expect(await store().admit([claimOf()], start + 59_999)).toEqual({
        allowed: false,
        refusedBy: 0,
        expiresAt: start + 60_000,
        resetsInMs: 1,
      })
    })

    test('a window ends exactly at its end time, and the next one begins with the next request', async () => {
      await store().admit([claimOf({ max: 1 })], start)
      expect(await store().admit([claimOf({ max: 1 })], start + 60_000)).toEqual({
        allowed: true,
        counts: [{ count: 1, expiresAt: start + 120_000 }],
      })
    })

    test('subjects and limit names are counted separately', async () => {
      const claims = [
        claimOf({ max: 1 }),
        claimOf({ max: 1, name: 'hour' }),
        claimOf({ max: 1, subject: ['other'] }),
      ]
      for (const each of claims) expect((await store().admit([each], start)).allowed).toBe(true)
      for (const each of claims) expect((await store().admit([each], start)).allowed).toBe(false)
    })

    test('a claim without a maximum counts beyond the limit, also concurrently', async () => {
      const beyond = claimOf({ max: Number.MAX_SAFE_INTEGER })
      await store().admit([claimOf({ max: 1 })], start)
      await Promise.all([1, 2, 3].map(() => store().admit([beyond], start)))
      expect(await store().admit([claimOf({ max: 4 })], start)).toMatchObject({ allowed: false })
      expect(await store().admit([claimOf({ max: 5 })], start)).toMatchObject({
        allowed: true,
        counts: [{ count: 5 }],
      })
    })

    test('the first exhausted limit rejects the request, and then no limit is counted', async () => {
      const [first, second, third] = [
        claimOf({ name: 'first', max: 1 }),
        claimOf({ name: 'second', max: 1 }),
        claimOf({ name: 'third', max: 1 }),
      ]
      await store().admit([second], start)
      await store().admit([third], start + 1000)
      expect(await store().admit([first, second, third], start + 2000)).toMatchObject({
        allowed: false,
        refusedBy: 1,
        expiresAt: start + 60_000,
      })
      expect((await store().admit([first], start + 2000)).allowed).toBe(true)
    })

    test('a check-only claim is rejected at an exhausted limit, and is not counted', async () => {
      const uncounted = claimOf({ max: 1, counted: false })
      expect(await store().admit([uncounted], start)).toEqual({ allowed: true, counts: [] })
      await store().admit([claimOf({ max: 1 })], start)
      expect((await store().admit([uncounted], start)).allowed).toBe(false)
    })

    test('a full window resets after its length even if the clock was set back', async () => {
      const hour = 3_600_000
      await store().admit([claimOf({ max: 1 })], start + hour)
      expect((await store().admit([claimOf({ max: 1 })], start)).allowed).toBe(false)
      expect((await store().admit([claimOf({ max: 1 })], start + 60_000)).allowed).toBe(true)
      await store().admit([claimOf({ max: 1, name: 'other' })], start + hour)
      expect((await check(store(), claimOf({ max: 1, name: 'other' }), start)).allowed).toBe(false)
      expect((await check(store(), claimOf({ max: 1, name: 'other' }), start + 60_000)).allowed).toBe(true)
    })

    test('concurrent requests never exceed a limit', async () => {
      const decisions = await Promise.all(
        Array.from({ length: 40 }, () => store().admit([claimOf({ max: 7 })], start)),
      )
      expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(7)
    })

    test('an empty list of claims is granted', async () => {
      expect(await store().admit([], start)).toEqual({ allowed: true, counts: [] })
    })
  })
}

function testCodes(store: () => OtpStore): void {
  describe('codes', () => {
    test('a rejected send leaves the previous code unchanged', async () => {
      await begin(store(), {}, [claimOf({ max: 1 })])
      const refused = await store().beginSend([claimOf({ max: 1 })], record({ id: 'record 2' }), start)
      expect(refused.allowed).toBe(false)
      expect(await guess(store(), guessing('right'), start)).toMatchObject({ kind: 'verified' })
    })

    test('a send replaces the code of its brand and recipient, including the attempts', async () => {
      await begin(store())
      for (const _ of [1, 2, 3]) await guess(store(), guessing('wrong'), start)
      await begin(store(), { id: 'record 2', hash: hashOf('new', 'record 2') })
      expect(await guess(store(), guessing('right'), start)).toEqual({ kind: 'mismatch' })
      expect(await guess(store(), guessing('wrong'), start)).toEqual({ kind: 'mismatch' })
      expect(await guess(store(), guessing('new'), start)).toMatchObject({ kind: 'verified' })
    })

    test('a send does not affect codes of other brands and recipients', async () => {
      const others: readonly Partial<NewCode>[] = [
        { id: 'record 2', brandSlug: 'globex' },
        { id: 'record 3', subject: ['other'] },
      ]
      await begin(store())
      for (const other of others) await begin(store(), other)
      await guess(store(), guessing('right'), start)
      for (const other of others) {
        const attempt = guessing('right', other)
        expect(await guess(store(), attempt, start)).toMatchObject({ kind: 'verified' })
      }
    })

    test('a correct guess consumes the code', async () => {
      await begin(store())
      expect(await guess(store(), guessing('right'), start)).toMatchObject({ kind: 'verified' })
      expect(await guess(store(), guessing('right'), start)).toEqual({ kind: 'absent' })
    })

    test('the correct code on the third attempt verifies', async () => {
      await begin(store())
      for (const _ of [1, 2]) {
        expect(await guess(store(), guessing('wrong'), start)).toEqual({ kind: 'mismatch' })
      }
      expect(await guess(store(), guessing('right'), start)).toMatchObject({ kind: 'verified' })
    })

    test('three wrong guesses lock the code until its expiry time, also for the correct guess', async () => {
      await begin(store())
      for (const _ of [1, 2, 3]) {
        expect(await guess(store(), guessing('wrong'), start)).toEqual({ kind: 'mismatch' })
      }
      const locked = { kind: 'locked' } as const
      expect(await guess(store(), guessing('wrong'), start + 1)).toEqual({ ...locked, resetsInMs: 299_999 })
      expect(await guess(store(), guessing('right'), start + 299_999)).toEqual({ ...locked, resetsInMs: 1 })
      expect(await guess(store(), guessing('right'), start + 300_000)).toEqual({ kind: 'absent' })
    })

    test('a code is valid until the instant of its expiry', async () => {
      await begin(store())
      expect(await guess(store(), guessing('right'), start + 300_000)).toEqual({ kind: 'absent' })
      expect(await guess(store(), guessing('right'), start + 299_999)).toMatchObject({ kind: 'verified' })
    })

    test('a code is invalid if the clock was set back to before its creation', async () => {
      await begin(store())
      const before = start - clockToleranceMs
      expect(await guess(store(), guessing('right'), before - 1)).toEqual({ kind: 'absent' })
      expect(await guess(store(), guessing('right'), before)).toMatchObject({ kind: 'verified' })
    })

    test('a guess without a record returns not found and still counts for its claims', async () => {
      const claims = [claimOf({ max: 1 })]
      const attempt = guessing('right', { claims })
      expect(await guess(store(), attempt, start)).toEqual({ kind: 'absent' })
      expect(await guess(store(), attempt, start)).toEqual({
        kind: 'refused',
        refusal: {
          allowed: false,
          refusedBy: 0,
          expiresAt: start + 60_000,
          resetsInMs: 60_000,
        },
      })
    })

    test('a guess rejected by its claims does not count as an attempt', async () => {
      await begin(store())
      const claims = [claimOf({ max: 1 })]
      await store().admit(claims, start)
      for (const _ of [1, 2, 3, 4]) {
        expect((await guess(store(), guessing('wrong', { claims }), start)).kind).toBe('refused')
      }
      expect(await guess(store(), guessing('right'), start)).toMatchObject({ kind: 'verified' })
    })

    test('a guess is compared with its own record only', async () => {
      await begin(store())
      await begin(store(), { id: 'record 2', hash: hashOf('right', 'record 1') })
      expect(await guess(store(), guessing('right'), start)).toEqual({ kind: 'mismatch' })
    })

    test('a guess is correct with any of its keys, and counts as one attempt for all of them', async () => {
      await begin(store())
      const wrong = guessing('', { keyedCodes: ['a', 'b', 'c', 'd'] })
      for (const _ of [1, 2]) expect(await guess(store(), wrong, start)).toEqual({ kind: 'mismatch' })
      const right = guessing('', { keyedCodes: ['a', 'right'] })
      expect(await guess(store(), right, start)).toMatchObject({ kind: 'verified' })
    })

    test('concurrent correct guesses verify once', async () => {
      await begin(store())
      const verdicts = await Promise.all(
        Array.from({ length: 20 }, () => guess(store(), guessing('right'), start)),
      )
      expect(verdicts.filter(({ kind }) => kind === 'verified')).toHaveLength(1)
      expect(verdicts.filter(({ kind }) => kind === 'absent')).toHaveLength(19)
    })

    test('concurrent wrong guesses count as three attempts', async () => {
      await begin(store())
      const verdicts = await Promise.all(
        Array.from({ length: 20 }, () => guess(store(), guessing('wrong'), start)),
      )
      expect(verdicts.filter(({ kind }) => kind === 'mismatch')).toHaveLength(3)
      expect(verdicts.filter(({ kind }) => kind === 'locked')).toHaveLength(17)
    })
  })

  describe('the provider of a code', () => {
    async function lastProvider(id: string, provider: string | null, now = start) {
      const decision = await store().beginSend([], record({ id, provider, hash: hashOf('right', id) }), now)
      if (!decision.allowed) throw new Error('the send was refused')
      return decision.lastProvider
    }

    test('is returned with a correct guess, and the age of the code', async () => {
      await begin(store(), { provider: 'twilio' })
      const verdict = await guess(store(), guessing('right'), start + 8000)
      expect(verdict).toEqual({
        kind: 'verified',
        provider: 'twilio',
        providerMessageId: null,
        ageMs: 8000,
      })
    })

    test('changes to the one that sent the code, which keeps its attempts', async () => {
      await begin(store(), { provider: 'twilio' })
      await guess(store(), guessing('wrong'), start)
      await guess(store(), guessing('wrong'), start)
      await store().setProvider(record(), 'vonage', 'SM1', start)
      expect(await guess(store(), guessing('wrong'), start)).toEqual({ kind: 'mismatch' })
      expect(await guess(store(), guessing('right'), start)).toMatchObject({ kind: 'locked' })
      expect(await lastProvider('record 2', 'twilio')).toBe('vonage')
    })

    test('is returned with the message ID that a later step stored, until the next code', async () => {
      await begin(store(), { provider: 'twilio' })
      await store().setProvider(record(), 'vonage', 'SM1', start)
      await guess(store(), guessing('wrong'), start)
      const sent = { kind: 'verified', provider: 'vonage', providerMessageId: 'SM1' } as const
      expect(await guess(store(), guessing('right'), start)).toMatchObject(sent)
      await begin(store(), { provider: 'twilio' })
      await store().setProvider(record(), 'twilio', 'SM2', start)
      await begin(store(), { id: 'record 2', hash: hashOf('new', 'record 2'), provider: 'twilio' })
      expect(await guess(store(), guessing('new'), start)).toMatchObject({ providerMessageId: null })
    })

    test('does not change if the code was replaced or used', async () => {
      await begin(store())
      await begin(store(), { id: 'record 2', hash: hashOf('new', 'record 2'), provider: 'twilio' })
      await store().setProvider(record(), 'vonage', 'SM1', start)
      expect(await guess(store(), guessing('new'), start)).toMatchObject({ provider: 'twilio' })
      await store().setProvider(record({ id: 'record 2' }), 'vonage', 'SM1', start)
      expect(await guess(store(), guessing('new'), start)).toEqual({ kind: 'absent' })
    })

    test('is returned by the next send of its brand and recipient, until the code expires or is used', async () => {
      expect(await lastProvider('1', 'twilio')).toBeNull()
      await begin(store(), { id: '2', brandSlug: 'globex', provider: 'of another brand' })
      await begin(store(), { id: '3', subject: ['other'], provider: 'of another recipient' })
      expect(await lastProvider('4', 'vonage', start + 299_999)).toBe('twilio')
      expect(await lastProvider('5', 'msg91', start + 599_999)).toBeNull()
      expect(await guess(store(), guessing('right'), start + 599_999)).toMatchObject({ kind: 'verified' })
      expect(await lastProvider('6', 'twilio', start + 599_999)).toBeNull()
    })

    test('is returned by the next send also after the code was revoked', async () => {
      await begin(store(), { provider: 'twilio' })
      await store().abandonSend(record(), [], 'vonage', start)
      expect(await guess(store(), guessing('right'), start)).toEqual({ kind: 'absent' })
      expect(await guess(store(), guessing(''), start)).toEqual({ kind: 'absent' })
      expect(await lastProvider('record 2', 'twilio')).toBe('vonage')
    })
  })

  describe('the end of a send', () => {
    test('an abandoned send revokes its code and releases its grants', async () => {
      const grants = await begin(store(), {}, [claimOf({ max: 1 })])
      await store().abandonSend(record(), grants, null, start)
      expect(await guess(store(), guessing('right'), start)).toEqual({ kind: 'absent' })
      const [grant] = await begin(store(), {}, [claimOf({ max: 1 })], start + 10_000)
      // The count was released, so the window opens again.
      expect(grant?.expiresAt).toBe(start + 70_000)
    })

    test('a send abandoned late does not affect a newer code', async () => {
      const grants = await begin(store())
      await begin(store(), { id: 'record 2', hash: hashOf('new', 'record 2') })
      await store().abandonSend(record(), grants, null, start)
      expect(await guess(store(), guessing('new'), start)).toMatchObject({ kind: 'verified' })
    })

    test('a send abandoned late releases nothing in a later window', async () => {
      const grants = await begin(store(), {}, [claimOf({ max: 1 })])
      await begin(store(), { id: 'record 2' }, [claimOf({ max: 1 })], start + 60_000)
      await store().abandonSend(record(), grants, null, start)
      expect((await store().admit([claimOf({ max: 1 })], start + 60_001)).allowed).toBe(false)
    })

    test('one of several grants in a window is released, and the window ends as before', async () => {
      await store().admit([claimOf({ max: 2 })], start)
      const grants = await begin(store(), {}, [claimOf({ max: 2 })], start + 1000)
      await store().abandonSend(record(), grants, null, start)
      expect((await store().admit([claimOf({ max: 2 })], start + 2000)).allowed).toBe(true)
      expect(await store().admit([claimOf({ max: 2 })], start + 2000)).toMatchObject({
        expiresAt: start + 60_000,
      })
    })

    test('a released grant does not affect the code or later windows', async () => {
      const grants = await begin(store(), {}, [claimOf({ max: 1 })])
      await store().giveBack(grants, start)
      const [later] = await begin(store(), { id: 'record 2' }, [claimOf({ max: 1 })], start + 10_000)
      expect(later?.expiresAt).toBe(start + 70_000)
      await store().giveBack(grants, start)
      expect((await check(store(), claimOf({ max: 1 }), start + 10_000)).allowed).toBe(false)
      expect(await guess(store(), guessing('wrong'), start + 10_000)).toEqual({ kind: 'mismatch' })
    })

    test('a rescheduled end applies to the window of the grant', async () => {
      const [grant] = await begin(store(), {}, [claimOf({ max: 1 })])
      if (!grant) throw new Error('nothing was granted')
      await store().reschedule(grant, 5000, start)
      expect(await check(store(), claimOf({ max: 1 }), start + 4999)).toMatchObject({
        expiresAt: start + 5000,
      })
      expect((await check(store(), claimOf({ max: 1 }), start + 5000)).allowed).toBe(true)
    })

    test('an expired window is opened again, because a delivery may outlast its lease', async () => {
      const [grant] = await begin(store(), {}, [claimOf({ max: 1 })])
      if (!grant) throw new Error('nothing was granted')
      await store().admit([claimOf({ name: 'other', max: 1 })], start + 60_000)
      await store().reschedule(grant, 60_000, start + 60_000)
      expect((await check(store(), claimOf({ max: 1 }), start + 119_999)).allowed).toBe(false)
      expect((await check(store(), claimOf({ max: 1 }), start + 120_000)).allowed).toBe(true)
    })

    test('a later window lasts until a rescheduled end that is later than its own', async () => {
      const [grant] = await begin(store(), {}, [claimOf({ max: 1 })])
      if (!grant) throw new Error('nothing was granted')
      await store().admit([claimOf({ max: 1 })], start + 60_000)
      await store().reschedule(grant, 69_000, start + 61_000)
      expect((await check(store(), claimOf({ max: 1 }), start + 129_999)).allowed).toBe(false)
      expect((await check(store(), claimOf({ max: 1 }), start + 130_000)).allowed).toBe(true)
    })

    test('a rescheduled end does not shorten a later window', async () => {
      const [grant] = await begin(store(), {}, [claimOf({ max: 1 })])
      if (!grant) throw new Error('nothing was granted')
      await store().admit([claimOf({ max: 1 })], start + 60_000)
      await store().reschedule(grant, 1, start + 60_000)
      expect((await check(store(), claimOf({ max: 1 }), start + 119_999)).allowed).toBe(false)
    })
  })

  describe('records of a previous secret key', () => {
    const rekeyed: Subject = ['someone anew', 'nobody', 'someone']

    test('count for the same subject, and are rekeyed at the next change', async () => {
      await begin(store(), {}, [claimOf({ max: 2 })])
      await guess(store(), guessing('wrong'), start)
      expect((await check(store(), claimOf({ subject: rekeyed, max: 1 }), start)).allowed).toBe(false)
      expect(await guess(store(), guessing('wrong', { subject: rekeyed }), start)).toEqual({
        kind: 'mismatch',
      })
      expect(await guess(store(), guessing('right'), start)).toEqual({ kind: 'absent' })
      expect(await guess(store(), guessing('right', { subject: rekeyed }), start)).toMatchObject({
        kind: 'verified',
      })
      expect(await guess(store(), guessing('right', { subject: rekeyed }), start)).toEqual({ kind: 'absent' })
    })

    test('two servers with the keys in different order never exceed a limit together', async () => {
      const orders: Subject[] = [
        ['someone', 'someone anew'],
        ['someone anew', 'someone'],
      ]
      const decisions = await Promise.all(
        Array.from({ length: 40 }, (_, index) =>
          store().admit([claimOf({ max: 7, subject: orders[index % 2] ?? someone })], start),
        ),
      )
      expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(7)
    })

    test('if both keys were used, the newer code is valid and the windows are added', async () => {
      await begin(store(), { subject: ['someone anew'], hash: hashOf('older') }, [
        claimOf({ subject: ['someone anew'] }),
      ])
      await begin(store(), {}, [claimOf()], start + 1)
      const anew = claimOf({ subject: rekeyed, max: 2 })
      expect(await check(store(), anew, start + 1)).toMatchObject({
        allowed: false,
        expiresAt: start + 60_001,
      })
      expect(await guess(store(), guessing('right', { subject: rekeyed }), start + 1)).toMatchObject({
        kind: 'verified',
      })
      expect(await guess(store(), guessing('older', { subject: rekeyed }), start + 1)).toEqual({
        kind: 'absent',
      })
    })

    test.each([['someone'], ['someone anew']])(
      'a window of %s that has expired does not count',
      async (over) => {
        const open = over === 'someone' ? 'someone anew' : 'someone'
        await store().admit([claimOf({ subject: [over] })], start)
        await store().admit([claimOf({ subject: [open] })], start + 60_000)
        const decision = await store().admit([claimOf({ subject: rekeyed })], start + 60_001)
        expect(decision).toEqual({ allowed: true, counts: [{ count: 2, expiresAt: start + 120_000 }] })
      },
    )

    test('a grant is released with the key that its window has at that time', async () => {
      const grants = await begin(store(), {}, [claimOf({ max: 1 })])
      await guess(store(), guessing('wrong', { subject: rekeyed }), start)
      const moved = grants.map((grant) => ({ ...grant, subject: rekeyed }))
      await store().abandonSend({ ...record(), subject: rekeyed }, moved, null, start)
      expect((await check(store(), claimOf({ max: 1, subject: rekeyed }), start)).allowed).toBe(true)
      expect(await guess(store(), guessing('right', { subject: rekeyed }), start)).toEqual({ kind: 'absent' })
    })
  })

  describe('the failure budget', () => {
    const failureBudget = claimOf({ name: 'failures', max: 2, windowMs: 86_400_000 })

    test('is used up by wrong guesses for all codes, and then the correct guess is rejected too', async () => {
      for (const id of ['record 1', 'record 2']) {
        await begin(store(), { id })
        expect(await guess(store(), guessing('wrong', { failureBudget }), start)).toEqual({
          kind: 'mismatch',
        })
      }
      expect(await guess(store(), guessing('right', { failureBudget }), start + 1)).toMatchObject({
        kind: 'refused',
        refusal: { refusedBy: 0, expiresAt: start + 86_400_000 },
      })
    })

    test('counts no other claims of a guess that it rejects', async () => {
      await begin(store())
      const spent = { ...failureBudget, max: 1 }
      await guess(store(), guessing('wrong', { failureBudget: spent }), start)
      const claims = [claimOf({ name: 'global', max: 1 })]
      await guess(store(), guessing('right', { claims, failureBudget: spent }), start)
      expect((await check(store(), claimOf({ name: 'global', max: 1 }), start)).allowed).toBe(true)
    })

    test('does not count guesses without a code or for a locked code', async () => {
      const budget = { ...failureBudget, max: 4 }
      await guess(store(), guessing('wrong', { failureBudget: budget }), start)
      await begin(store())
      for (const _ of [1, 2, 3, 4, 5]) {
        await guess(store(), guessing('wrong', { failureBudget: budget }), start)
      }
      expect((await check(store(), budget, start)).allowed).toBe(true)
      await begin(store())
      await guess(store(), guessing('wrong', { failureBudget: budget }), start)
      expect((await check(store(), budget, start)).allowed).toBe(false)
    })

    test('is shared by brands: concurrent wrong guesses never exceed it', async () => {
      const budget = { ...failureBudget, max: 4 }
      const slugs = ['acme', 'globex', 'hooli']
      for (const brandSlug of slugs) await begin(store(), { brandSlug })
      const verdicts = await Promise.all(
        slugs.flatMap((brandSlug) =>
          [1, 2, 3].map(() => guess(store(), guessing('wrong', { brandSlug, failureBudget: budget }), start)),
        ),
      )
      expect(verdicts.filter(({ kind }) => kind === 'mismatch')).toHaveLength(4)
      expect(verdicts.filter(({ kind }) => kind === 'refused')).toHaveLength(5)
    })

    test('is reset by a correct guess', async () => {
      await begin(store())
      await guess(store(), guessing('wrong', { failureBudget }), start)
      await guess(store(), guessing('right', { failureBudget }), start)
      await begin(store())
      await guess(store(), guessing('wrong', { failureBudget }), start)
      expect((await check(store(), failureBudget, start)).allowed).toBe(true)
    })
  })
}

function brand(properties: Partial<Brand> = {}): BrandWithTexts {
  return {
    ...freshBrand('acme'),
    displayName: 'Acme',
    notifyTemplates: ['ORDER_PLACED'],
    dltEnabled: true,
    domain: 'shop.example.com',
    entityId: '1101456324675322134',
    registrations: { LOGIN_OTP: { id: '1107', ids: { msg91: '65a' }, senderId: 'ACMEIN', maxLength: 40 } },
    lang: 'pt-BR',
    androidHash: 'FA+9qCX9VSu',
    logoUrl: 'https://example.com/logo.png',
    linkUrl: 'https://example.com/code',
    color: '#0b57d0',
    dltAllowList: ['https://example.com', '18001234567'],
    ...properties,
  }
}

function testBrands(store: () => BrandStore, operator: () => OperatorStore): void {
  const edit = (slug: string, change: (current: Brand | undefined) => Brand) =>
    storeBrand({ operator: operator() }, slug, change)
  const put = (given: Brand) => edit(given.slug, () => given)

  describe('brands', () => {
    test('a brand is read as it was stored', async () => {
      for (const stored of [
        brand(),
        brand({
          slug: 'b',
          displayName: 'Ünïcode & Söhne',
          status: 'pending',
          notifyTemplates: [],
          domain: null,
          entityId: null,
          registrations: {},
        }),
        brand({ slug: 'c', status: 'suspended', dltEnabled: false, loginIdEnabled: true }),
      ]) {
        expect(await put(stored)).toEqual(stored)
        expect(await store().bySlug(stored.slug)).toEqual(stored)
      }
      expect(await store().bySlug('d')).toBeUndefined()
    })

    test('an edit gets the current brand and stores the result', async () => {
      await edit('acme', (current) => {
        expect(current).toBeUndefined()
        return brand()
      })
      await edit('acme', (current) => brand({ displayName: `${current?.displayName} & Co` }))
      expect(await store().bySlug('acme')).toEqual(brand({ displayName: 'Acme & Co' }))
      expect(await store().byName('acme')).toBeUndefined()
    })

    test('an edit that throws stores nothing and rejects with the same error', async () => {
      await put(brand())
      const error = new Error('not like this')
      const failing = edit('acme', () => {
        throw error
      })
      expect(await failing.catch((thrown: unknown) => thrown)).toBe(error)
      expect(await store().bySlug('acme')).toEqual(brand())
    })

    test('concurrent edits are all stored', async () => {
      await put(brand({ displayName: '' }))
      await Promise.all(
        Array.from({ length: 20 }, () =>
          edit('acme', (current) => brand({ displayName: `${current?.displayName}x` })),
        ),
      )
      expect((await store().bySlug('acme'))?.displayName).toBe('x'.repeat(20))
    })

    test('the list is sorted by slug', async () => {
      for (const slug of ['b', 'c-1', 'a', 'c']) await put(brand({ slug }))
      expect((await store().list()).map(({ slug }) => slug)).toEqual(['a', 'b', 'c', 'c-1'])
    })

    test('a brand is found by its normalized name', async () => {
      await put(brand({ slug: 'sohne', displayName: 'Mu\u0308ller & SO\u0308HNE' }))
      expect((await store().byName('m\u00fcller & s\u00f6hne'))?.slug).toBe('sohne')
      expect(await store().byName('sohne')).toBeUndefined()
    })

    test('of brands with the same name, an active one is found, then the first by slug', async () => {
      await put(brand({ slug: 'a', status: 'suspended' }))
      await put(brand({ slug: 'b', status: 'pending' }))
      expect((await store().byName('acme'))?.slug).toBe('a')
      await put(brand({ slug: 'd' }))
      await put(brand({ slug: 'c' }))
      expect((await store().byName('acme'))?.slug).toBe('c')
    })
  })
}

function testTexts(stores: () => Stores): void {
  const sms = { brand: 'acme', key: 'TABLE_READY', channel: 'SMS' } as const
  const guest = { name: 'guest', type: 'text', max: 30 } as const
  const at = { name: 'at', type: 'datetime', max: 40 } as const
  const ports = () => ({
    operator: stores().operator,
    now: () => clock.now,
    actor: tester,
    textBeforeCode: () => '',
  })
  const put = (slug: string) => storeBrand(stores(), slug, () => brand({ slug, notifyTemplates: [] }))
  const textsOf = async (slug = 'acme') => (await stores().brands.bySlug(slug))?.texts

  const tableReady = { slug: 'acme', key: 'TABLE_READY', lang: undefined, email: false }
  const remove = (lang?: string) => textRemove.run(ports(), { ...tableReady, lang })

  describe('texts', () => {
    test('a brand is read with its texts and declared variables, in order', async () => {
      await put('acme')
      await put('b')
      const mail = { subject: 'Hi', text: '{{otp}}\n', html: '<b>{{otp}}</b>' }
      await setText(ports(), { ...sms, key: 'LOGIN_OTP', text: 'ಠ {{otp}}\n', lang: 'kn' })
      await setText(ports(), { brand: 'acme', key: 'LOGIN_OTP', channel: 'EMAIL', lang: 'hi', ...mail })
      await setText(ports(), { ...sms, text: '{{guest}}', variables: [guest, at] })
      await setText(ports(), { ...sms, text: '{{at}} {{guest}}', variables: [at, guest] })
      await setText(ports(), { ...sms, brand: 'b', text: 'b' })
      const no = { subject: null, html: null }
      const of = {
        templateKey: 'TABLE_READY',
        channel: 'SMS',
        lang: 'pt-BR',
        version: 1,
        updatedAt: start,
      } as const
      const all = [
        { ...of, ...mail, templateKey: 'LOGIN_OTP', channel: 'EMAIL', lang: 'hi' },
        { ...of, ...no, templateKey: 'LOGIN_OTP', lang: 'kn', text: 'ಠ {{otp}}\n' },
        { ...of, ...no, text: '{{at}} {{guest}}', version: 2 },
      ] as const
      const expected = new BrandTexts(all, new Map([['TABLE_READY', [at, guest]]]))
      expect(await textsOf()).toEqual(expected)
      const [acme, b] = await stores().brands.list()
      expect(acme?.texts).toEqual(expected)
      expect(b?.texts.all).toEqual([{ ...of, ...no, text: 'b' }])
      expect((await stores().brands.byName('acme'))?.texts).toEqual(expected)
    })

    test('a draft is stored beside the published text, with its variables, and deleted when it is published', async () => {
      await put('acme')
      await setText(ports(), { ...sms, text: '{{guest}}', variables: [guest] }, 'draft')
      expect(await textsOf()).toMatchObject({
        all: [],
        drafts: [{ templateKey: 'TABLE_READY', version: 0, text: '{{guest}}', variables: [guest] }],
      })
      await textPublish.run(ports(), tableReady)
      await setText(ports(), { ...sms, text: 'Hi {{guest}}' }, 'draft')
      expect(await textsOf()).toMatchObject({
        all: [{ text: '{{guest}}', version: 1 }],
        drafts: [{ text: 'Hi {{guest}}', version: 1, variables: null }],
      })
      expect((await textsOf())?.variables.get('TABLE_READY')).toEqual([guest])
      await textDiscard.run(ports(), tableReady)
      expect(await textsOf()).toMatchObject({ all: [{ text: '{{guest}}' }], drafts: [] })
    })

    test('concurrent changes of a text each have a version and an entry in the audit log', async () => {
      await put('acme')
      await Promise.all(['one', 'two'].map((text) => setText(ports(), { ...sms, text })))
      const [second = {}, first = {}] = (await stores().audit.list({ limit: 9 })).map(
        ({ details }) => details,
      )
      expect([first.version, second.version]).toEqual(['1', '2'])
      expect(`${first.text}|${second.text}`).toMatch(/^- → (\w+)\|\1 → (?!\1)\w+$/)
      expect((await textsOf())?.all).toMatchObject([{ version: 2, text: second.text?.slice(-3) }])
    })

    test('a template loses its last text, or is enabled, but not both', async () => {
      await put('acme')
      await setText(ports(), { ...sms, text: '{{guest}}', variables: [guest] })
      const enable = () => putBrand(ports(), 'acme', { notifyTemplates: ['TABLE_READY'] })
      const results = await Promise.allSettled([remove(), enable()])
      expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
      const { notifyTemplates, texts } = (await stores().brands.bySlug('acme')) ?? brand()
      expect(texts.all).toHaveLength(notifyTemplates.length)
    })

    test('the last text of a template is removed with its variables', async () => {
      await put('acme')
      await setText(ports(), { ...sms, text: '{{guest}}', variables: [guest] })
      await setText(ports(), { ...sms, text: '{{guest}}', lang: 'en' })
      await remove()
      expect((await textsOf())?.variables.get('TABLE_READY')).toEqual([guest])
      await remove('EN')
      const [entry] = await stores().audit.list({ limit: 1 })
      expect(entry).toMatchObject({ action: 'text.removed', details: { variables: 'guest:text:30 → -' } })
      await setText(ports(), { ...sms, text: 'x' })
      expect((await textsOf())?.variables).toEqual(new Map())
    })
  })
}

function testApps(store: () => AppStore & Apps, operator: () => OperatorStore): void {
  const entry = { action: 'app.issued', target: 'shop', details: {} } as const
  const by = (now = start) => ({ actor: tester, now })
  const ending = (name: string) => `…${name.slice(0, 3)}`
  const kept = (key: string) => ({ sha256: hashKey(key), lastFour: ending(key) })
  const add = (appId: string, key: string, now?: number) =>
    operator().change({ appId }, by(now), () => ({ newKey: kept(key), entry }))

  describe('apps', () => {
    test('only a created pair of appId and key is accepted', async () => {
      await add('shop', 'key')
      const tried: readonly (readonly [string, string, boolean])[] = [
        ['shop', 'key', true],
        ['shop', 'another key', false],
        ['shop', '', false],
        ['Shop', 'key', false],
        ['nobody', 'key', false],
        ['configured', 'its key', true],
        ['configured', 'key', false],
        ['shop', 'its key', false],
        ['__proto__', 'key', false],
      ]
      for (const [appId, apiKey, accepted] of tried) {
        expect({ appId, apiKey, accepted: await store().accepts(appId, apiKey) }).toEqual({
          appId,
          apiKey,
          accepted,
        })
      }
    })

    test('an app may have two keys, both of which are accepted', async () => {
      await add('shop', 'first')
      await add('shop', 'second')
      expect(await store().accepts('shop', 'first')).toBe(true)
      expect(await store().accepts('shop', 'second')).toBe(true)
      expect(await store().accepts('shop', 'third')).toBe(false)
    })

    test('a decision sees the current keys, so that concurrent decisions see earlier ones', async () => {
      const seen: number[] = []
      await Promise.all(
        Array.from({ length: 10 }, (_, index) =>
          operator().change({ appId: 'shop' }, by(), ({ keys }) => {
            seen.push(keys.length)
            return { newKey: kept(`key ${index}`), entry }
          }),
        ),
      )
      expect(seen).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    })

    test('a revoked key is rejected, and other keys are still accepted', async () => {
      await add('shop', 'first')
      await add('shop', 'second')
      await add('kiosk', 'first of another')
      await operator().change({ appId: 'shop' }, by(start + 5), () => ({
        revokedKeys: [ending('first')],
        entry,
      }))
      expect(await store().accepts('shop', 'first')).toBe(false)
      expect(await store().accepts('shop', 'second')).toBe(true)
      expect(await store().accepts('kiosk', 'first of another')).toBe(true)
    })

    test('the list has the keys of each app, by appId, and the time of the last revocation', async () => {
      await add('shop', 'a', start)
      await add('kiosk', 'b', start + 1)
      await add('shop', 'c', start + 2)
      const revoke = (name: string, now: number) =>
        operator().change({ appId: 'shop' }, by(now), () => ({ revokedKeys: [ending(name)], entry }))
      await revoke('a', start + 3)
      const a = {
        lastFour: ending('a'),
        createdAt: start,
        revokedAt: start + 3,
        lastUsedAt: null,
        lastUsedFrom: null,
      }
      const b = {
        lastFour: ending('b'),
        createdAt: start + 1,
        revokedAt: null,
        lastUsedAt: null,
        lastUsedFrom: null,
      }
      const c = {
        lastFour: ending('c'),
        createdAt: start + 2,
        revokedAt: null,
        lastUsedAt: null,
        lastUsedFrom: null,
      }
      const kiosk = { appId: 'kiosk', createdAt: start + 1, revokedAt: null, keys: [b] }
      expect(await store().list()).toEqual([
        kiosk,
        { appId: 'shop', createdAt: start, revokedAt: null, keys: [a, c] },
      ])
      await revoke('c', start + 4)
      expect(await store().list()).toEqual([
        kiosk,
        {
          appId: 'shop',
          createdAt: start,
          revokedAt: start + 4,
          keys: [a, { ...c, revokedAt: start + 4 }],
        },
      ])
    })
  })
}

function testScopes(stores: () => Stores): void {
  const by = { actor: tester, now: start }

  describe('scopes', () => {
    test('a scope is stored with its change, seen by the next decision, and replaced as a whole', async () => {
      const { operator, policy } = stores()
      const set = (scope: AppScope) =>
        operator.change({ appId: scope.appId }, by, () => ({ scope, entry: null }))
      const scope = { appId: 'shop', brands: ['a', 'c-1', 'c'], allowsOtp: true, allowsNotify: false }
      const seen: (AppScope | undefined)[] = []
      const see = () =>
        operator.change({ appId: 'shop' }, by, (current) => {
          seen.push(current.scope)
          return { entry: null }
        })
      await see()
      const read = policy.cached([])
      expect((await read()).scopeOf('shop')).toEqual(unscoped('shop'))
      await set({ ...scope, perMinute: 60, newCountrySmsPerDay: 50 })
      expect((await read()).scopeOf('shop')).toMatchObject({ perMinute: 60, newCountrySmsPerDay: 50 })
      await set({ ...scope, appId: 'kiosk', perMinute: null, newCountrySmsPerDay: null })
      await see()
      const failing = operator.change({ appId: 'shop' }, by, () => {
        throw new Error('not like this')
      })
      expect(await failing.catch(({ message }) => message)).toBe('not like this')
      const stored = { ...scope, brands: ['a', 'c', 'c-1'] }
      expect((await policy.rows()).scopes).toEqual(
        expect.arrayContaining([
          { ...stored, perMinute: 60, newCountrySmsPerDay: 50 },
          { ...stored, appId: 'kiosk', perMinute: null, newCountrySmsPerDay: null },
        ]),
      )
      await set({ ...scope, brands: ['b'], allowsNotify: true, perMinute: null, newCountrySmsPerDay: null })
      await see()
      await set(unscoped('shop'))
      await see()
      expect(seen).toEqual([
        undefined,
        { ...stored, perMinute: 60, newCountrySmsPerDay: 50 },
        { ...unscoped('shop'), brands: ['b'] },
        undefined,
      ])
      expect((await policy.rows()).scopes).toEqual([
        { ...stored, appId: 'kiosk', perMinute: null, newCountrySmsPerDay: null },
      ])
    })

    test('a decision sees the slugs of all brands', async () => {
      const { operator } = stores()
      for (const slug of ['a', 'b']) await storeBrand({ operator }, slug, () => brand({ slug }))
      const { entry: _, slugs } = await operator.change({ appId: 'shop' }, by, ({ brandSlugs }) => ({
        slugs: brandSlugs,
        entry: null,
      }))
      expect(slugs.toSorted()).toEqual(['a', 'b'])
    })
  })
}

function testRequests(stores: () => Stores): void {
  const request: IntegrationRequest = {
    id: 'request 1',
    createdAt: start,
    companyName: 'Acme Ltd',
    contactName: 'Ann',
    contactEmail: 'ann@example.com',
    brandName: 'Acme',
    channels: ['SMS', 'EMAIL'],
    website: 'https://acme.example.com',
    useCase: 'sign-in\ncodes',
  }

  describe('integration requests', () => {
    const undecided = { decidedAt: null, decidedBy: null, reason: null, appId: null, brandSlug: null }

    test('a request is stored as pending, and read as it was stored', async () => {
      const { requests } = stores()
      const other = {
        ...request,
        id: 'request 2',
        createdAt: start + 1,
        channels: [],
        website: null,
        useCase: null,
      }
      await requests.add(request, 1000)
      await requests.add(other, 1000)
      expect(await requests.list()).toEqual([
        { ...other, status: 'pending', ...undecided },
        { ...request, status: 'pending', ...undecided },
      ])
      expect(await requests.get('request 1')).toEqual({ ...request, status: 'pending', ...undecided })
      expect(await requests.get('request 3')).toBeUndefined()
      expect((await requests.list({ limit: 1 })).map(({ id }) => id)).toEqual(['request 2'])
      expect(await requests.pendingCount()).toBe(2)
    })

    test('concurrent requests do not exceed the maximum of pending requests, and a decision makes room', async () => {
      const { requests, operator } = stores()
      const add = (index: number) => requests.add({ ...request, id: `request ${index}` }, 5)
      const kept = await Promise.all(Array.from({ length: 20 }, (_, index) => add(index)))
      expect(kept.filter(Boolean)).toHaveLength(5)
      expect(await requests.pendingCount()).toBe(5)
      const [{ id: requestId } = expect.unreachable()] = await requests.list()
      await operator.change({ requestId }, { actor: tester, now: start + 5 }, () => ({
        verdict: { status: 'rejected', reason: null, appId: null, brandSlug: null },
        entry: null,
      }))
      expect([await add(20), await add(21)]).toEqual([{ alert: null }, undefined])
    })

    test('a request id is used once', async () => {
      const { requests } = stores()
      await requests.add(request, 1000)
      const again = requests.add({ ...request, companyName: 'Other' }, 1000)
      expect(
        await again.then(
          () => 'kept',
          () => 'refused',
        ),
      ).toBe('refused')
      expect(await requests.list()).toHaveLength(1)
    })

    test('a decision is stored with its author and time; the second of two concurrent ones sees the first', async () => {
      const { requests, operator } = stores()
      await requests.add(request, 1000)
      const seen: (string | undefined)[] = []
      const decide = (status: 'approved' | 'rejected') =>
        operator.change({ requestId: 'request 1' }, { actor: tester, now: start + 5 }, (current) => {
          seen.push(current.request?.status)
          return {
            verdict: { status, reason: null, appId: 'shop', brandSlug: 'acme' },
            entry: { action: `request.${status}`, target: 'request 1', details: {} },
          }
        })
      await Promise.all([decide('approved'), decide('rejected')])
      expect(seen).toEqual(['pending', 'approved'])
      expect(await requests.get('request 1')).toMatchObject({
        status: 'rejected',
        decidedAt: start + 5,
        decidedBy: 'command tester',
        appId: 'shop',
        brandSlug: 'acme',
      })
      expect(await requests.pendingCount()).toBe(0)
      expect(await requests.list({ isPending: true })).toEqual([])
      expect(await requests.list({ isPending: false })).toHaveLength(1)
    })
  })
}

function testAudit(stores: () => Stores): void {
  const entry = (target: string, at = start): AuditEntry => ({
    at,
    actor: tester,
    action: 'brand.changed',
    target,
    details: { displayName: 'Acme → Acme & Söhne' },
  })

  describe('the audit log', () => {
    test('has an entry for each stored change, and none for a failed change', async () => {
      const { operator, audit, brands } = stores()
      const by = { actor: tester, now: start }
      const { at: _, actor: __, ...said } = entry('acme')
      await operator.change({ brandSlug: 'acme' }, by, () => ({ brand: brand(), entry: said }))
      const failing = operator.change({ brandSlug: 'acme' }, by, () => {
        throw new Error('not like this')
      })
      expect(await failing.catch(({ message }) => message)).toBe('not like this')
      expect(await audit.list({ limit: 10 })).toEqual([{ id: expect.any(Number), ...entry('acme') }])
      expect(await brands.bySlug('acme')).toEqual(brand())
    })

    test('lists the latest first, page by page, and since a time', async () => {
      const { operator, audit } = stores()
      for (let index = 0; index < 7; index++) await operator.note(entry(`brand ${index}`, start + index))
      const targets = (records: readonly AuditEntry[]) =>
        records.map(({ target }) => target.slice(6)).join('')
      const first = await audit.list({ limit: 3 })
      expect(targets(first)).toBe('654')
      const before = first.at(-1)?.id ?? 0
      expect(targets(await audit.list({ before, limit: 10 }))).toBe('3210')
      expect(targets(await audit.list({ since: start + 5, limit: 10 }))).toBe('65')
    })
  })
}

function testConsole(stores: () => Stores): void {
  const session = (token: string, expiresAt = start + 1000): ConsoleSession => ({
    tokenSha256: token,
    startedAt: start,
    lastSeenAt: start,
    expiresAt,
    by: 'password',
    operatorId: null,
    confirmedAt: start,
    clientIp: '192.0.2.1',
    device: 'Firefox on Linux',
  })
  const entry = (action: AuditEntry['action'], at = start): AuditEntry => ({
    at,
    actor: tester,
    action,
    target: 'a',
    details: {},
  })

  const account = (email: string): Account => ({
    ...notSetUp,
    id: `id of ${email}`,
    email,
    role: 'operator',
    createdAt: start,
    passkeys: ['a', 'b'].map((each, index) => ({
      credentialId: `${each} of ${email}`,
      operatorId: `id of ${email}`,
      name: each,
      publicKey: 'key',
      signCount: 3,
      transports: 'usb,nfc',
      createdAt: start + index,
      usedAt: 0,
    })),
    recoveryCodes: ['one', 'two'],
  })
  const now = start

  describe('console sessions', () => {
    test('a session is found until it expires', async () => {
      const { sessions } = stores()
      await sessions.change({ now }, () => ({ saveSession: session('a'), entry: entry('console.login') }))
      expect(await sessions.find('a', start + 999)).toEqual(session('a'))
      expect(await sessions.find('a', start + 1000)).toBeUndefined()
      expect(await sessions.find('b', start)).toBeUndefined()
      await sessions.prolong('a', start + 500, start + 1500)
      expect(await sessions.find('a', start + 1499)).toMatchObject({ lastSeenAt: start + 500 })
    })

    test('a step reads the sessions, and ends some of them with its audit entry', async () => {
      const { sessions, audit } = stores()
      for (const token of ['a', 'b', 'c'])
        await sessions.change({ now }, () => ({ saveSession: session(token), entry: null }))
      const seen = await sessions.change({ now }, (state) => ({
        tokens: state.sessions.map(({ tokenSha256 }) => tokenSha256).sort(),
        endSessions: ['a', 'c', 'unknown'],
        entry: entry('console.session-revoked'),
      }))
      expect(seen.tokens).toEqual(['a', 'b', 'c'])
      expect((await sessions.list(start)).map(({ tokenSha256 }) => tokenSha256)).toEqual(['b'])
      expect((await audit.list({ limit: 9 })).map(({ action }) => action)).toEqual([
        'console.session-revoked',
      ])
    })

    test('a step that throws stores nothing', async () => {
      const { sessions } = stores()
      const failing = sessions.change({ now }, () => {
        throw new Error('refused')
      })
      expect(failing).rejects.toThrow('refused')
      await failing.catch(() => {})
      expect(await sessions.list(start)).toEqual([])
    })

    test('a link is used once, even by several steps at once, and not after it expired', async () => {
      const { sessions } = stores()
      const link = (tokenSha256: string) => ({ tokenSha256, expiresAt: start + 1000, operatorId: null })
      for (const token of ['link', 'late'])
        await sessions.change({ now }, () => ({ addLink: link(token), entry: null }))
      const use = (linkSha256: string, token: string, at = now) =>
        sessions.change({ linkSha256, now: at }, (state) =>
          state.link
            ? { usesLink: true, saveSession: session(token), entry: null, isUsed: true }
            : { entry: null, isUsed: false },
        )
      const used = await Promise.all(['a', 'b', 'c'].map((token) => use('link', token)))
      expect(used.filter(({ isUsed }) => isUsed)).toHaveLength(1)
      expect(await sessions.list(start)).toHaveLength(1)
      expect((await use('late', 'd', start + 1000)).isUsed).toBe(false)
    })
  })

  describe('accounts of operators', () => {
    test('are stored with their passkeys and recovery codes, and replaced', async () => {
      const { sessions } = stores()
      const [ana, bo] = [account('ana@example.com'), account('bo@example.com')]
      for (const each of [bo, ana]) await sessions.change({ now }, () => ({ saveAccount: each, entry: null }))
      const unordered = (all: readonly Account[]): Account[] =>
        all.map((each) => ({ ...each, recoveryCodes: [...each.recoveryCodes].sort() }))
      expect(unordered(await sessions.accounts())).toEqual([ana, bo])
      const [kept] = ana.passkeys.slice(1)
      if (!kept) throw new Error('no passkey')
      const changed: Account = {
        ...ana,
        role: 'owner',
        passwordHash: 'hash',
        totpSecret: 'secret',
        totpStep: 59_000_000,
        signedInAt: start + 5,
        passkeys: [{ ...kept, signCount: 4, usedAt: start + 9 }],
        recoveryCodes: ['two'],
      }
      await sessions.change({ now }, () => ({ saveAccount: changed, entry: null }))
      expect(unordered(await sessions.accounts())).toEqual([changed, bo])
      const { seen } = await sessions.change({ now }, ({ accounts }) => ({ seen: accounts, entry: null }))
      expect(unordered(seen)).toEqual([changed, bo])
    })

    test('are removed with their links', async () => {
      const { sessions } = stores()
      const [ana, bo] = [account('ana@example.com'), account('bo@example.com')]
      for (const each of [ana, bo]) {
        const addLink = { tokenSha256: each.email, expiresAt: start + 1000, operatorId: each.id }
        await sessions.change({ now }, () => ({ saveAccount: each, addLink, entry: null }))
      }
      await sessions.change({ now }, () => ({ removeAccount: ana.id, entry: null }))
      expect((await sessions.accounts()).map(({ email }) => email)).toEqual([bo.email])
      const linkOf = async (linkSha256: string) =>
        (await sessions.change({ linkSha256, now }, ({ link }) => ({ link, entry: null }))).link
      expect([await linkOf(ana.email), (await linkOf(bo.email))?.operatorId]).toEqual([undefined, bo.id])
      expect(await sessions.invited(start + 999)).toEqual(new Set([bo.id]))
      expect(await sessions.invited(start + 1000)).toEqual(new Set())
    })

    test('have one link at most', async () => {
      const { sessions } = stores()
      const ana = account('ana@example.com')
      await sessions.change({ now }, () => ({ saveAccount: ana, entry: null }))
      for (const tokenSha256 of ['first', 'second']) {
        const addLink = { tokenSha256, expiresAt: start + 1000, operatorId: ana.id }
        await sessions.change({ now }, () => ({ addLink, entry: null }))
      }
      const found = await Promise.all(
        ['first', 'second'].map((linkSha256) =>
          sessions.change({ linkSha256, now }, ({ link }) => ({ link, entry: null })),
        ),
      )
      expect(found.map(({ link }) => link?.tokenSha256)).toEqual([undefined, 'second'])
    })

    test('count failed sign-ins, also simultaneous ones', async () => {
      const { sessions } = stores()
      const ana = account('ana@example.com')
      await sessions.change({ now }, () => ({ saveAccount: ana, entry: null }))
      await Promise.all([1, 2, 3].map(() => sessions.noteFailedSignIn(ana.id)))
      const { seen } = await sessions.change({ now }, ({ accounts }) => ({ seen: accounts, entry: null }))
      expect(seen.map(({ failedSignIns }) => failedSignIns)).toEqual([3])
    })
  })
}

function message(properties: Partial<OutboxMessage> = {}): OutboxMessage {
  return {
    channel: 'SMS',
    to: '12025550143',
    route: 'plain',
    brandId: 'acme',
    brandName: 'Acme',
    subject: null,
    text: 'a text',
    html: null,
    templateKey: null,
    variables: null,
    requestId: 'request 1',
    ...properties,
  }
}

function testOutbox(outbox: () => Outbox): void {
  const texts = async (query: Parameters<Outbox['list']>[0]) =>
    (await outbox().list(query)).map(({ text }) => text)

  describe('the outbox', () => {
    test('a message is read as it was stored, with an id and the time', async () => {
      const messages = [
        message({ route: 'template', templateKey: 'LOGIN_OTP', variables: { otp: '012345' } }),
        message({ channel: 'EMAIL', to: 'Ann@example.com', route: null, subject: 'Hi', html: '<p>Hi</p>' }),
        message({ brandId: null, brandName: null }),
      ]
      for (const each of messages) {
        await outbox().add(each)
        clock.now += 1000
      }
      const entries = await outbox().list({ limit: 10 })
      expect(entries).toEqual(
        messages.map((each, index) => ({
          ...each,
          id: expect.any(Number),
          createdAt: `2026-01-01T12:00:0${index}.000Z`,
        })),
      )
      for (const entry of entries) expect(await outbox().get(entry.id)).toEqual(entry)
      expect(await outbox().get(0)).toBeUndefined()
    })

    test('ids increase with each message', async () => {
      await Promise.all(['a', 'b', 'c'].map((text) => outbox().add(message({ text }))))
      const ids = (await outbox().list({ limit: 10 })).map(({ id }) => id)
      expect(ids).toEqual([...ids].sort((a, b) => a - b))
      expect(new Set(ids).size).toBe(3)
    })

    test('the newest messages are listed, oldest first', async () => {
      for (const text of ['a', 'b', 'c', 'd']) await outbox().add(message({ text }))
      expect(await texts({ limit: 2 })).toEqual(['c', 'd'])
      const [first, second] = await outbox().list({ limit: 10 })
      // Reading on from an id, page by page, skips nothing.
      expect(await texts({ limit: 2, after: first?.id ?? 0 })).toEqual(['b', 'c'])
      expect(await texts({ limit: 10, after: second?.id ?? 0 })).toEqual(['c', 'd'])
    })

    test('messages are found by recipient to', async () => {
      await outbox().add(message({ text: 'to a phone' }))
      await outbox().add(message({ text: 'to another', to: '447911123456' }))
      await outbox().add(message({ text: 'to a mailbox', channel: 'EMAIL', to: 'ann@example.com' }))
      expect(await texts({ limit: 10, to: '12025550143' })).toEqual(['to a phone'])
      expect(await texts({ limit: 10, to: 'ann@example.com' })).toEqual(['to a mailbox'])
      expect(await texts({ limit: 10, to: 'nobody' })).toEqual([])
    })

    test('waiting ends immediately if there is a message', async () => {
      await outbox().add(message({ text: 'there' }))
      const never = new AbortController().signal
      const entries = await outbox().wait({ limit: 10 }, 600_000, never)
      expect(entries.map(({ text }) => text)).toEqual(['there'])
    })

    test('waiting ends with the first new message', async () => {
      const never = new AbortController().signal
      const waiting = outbox().wait({ limit: 10, to: '12025550143' }, 600_000, never)
      await outbox().add(message({ text: 'for somebody else', to: '447911123456' }))
      await outbox().add(message({ text: 'here' }))
      expect((await waiting).map(({ text }) => text)).toEqual(['here'])
    })

    test('waiting ends without a message on abort or time-out', async () => {
      const abort = new AbortController()
      const waiting = outbox().wait({ limit: 10 }, 600_000, abort.signal)
      abort.abort()
      expect(await waiting).toEqual([])
      expect(await outbox().wait({ limit: 10 }, 1, new AbortController().signal)).toEqual([])
    })
  })
}
