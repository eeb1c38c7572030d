import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import type { EventLogWriter } from '../../src/adapters/store/event-log.ts'
import type { VerifiedNumber } from '../../src/adapters/store/event-rows.ts'
import { firstIdOf } from '../../src/adapters/store/request-ids.ts'
import type { Storage } from '../../src/adapters/store/store.ts'
import type { createStores } from '../../src/adapters/store/stores.ts'
import type { Clock } from '../../src/domain/ground/time.ts'
import type { BucketRow } from '../../src/domain/guard/bucket.ts'
import type { GuardPrefix } from '../../src/domain/guard/store.ts'
import type { AlertDelivery } from '../../src/domain/health/alerts.ts'
import { type Counted, countryStat, spendStat } from '../../src/domain/log/stats.ts'
import { type Budget, budgetClaim, budgetName, inCountry } from '../../src/domain/money/budgets.ts'
import type { PriceGroup, PriceRow } from '../../src/domain/money/prices.ts'
import type { OtpStore } from '../../src/domain/otp/store.ts'
import type { PolicyChange } from '../../src/domain/policy/policy-store.ts'
import { keepAll, tester } from '../support/operator.ts'
import { inProcesses } from './at-once.ts'

// Contract tests of what the guard, prices, budgets and alerts store, for every adapter.

export interface MoneyStores extends ReturnType<typeof createStores> {
  readonly saveEntries: EventLogWriter['saveEntries']
  readonly otps: OtpStore
  readonly sweep: Storage['sweep']
  readonly forget: (subjects: readonly string[]) => Promise<Readonly<Record<string, number>>>
  readonly close: () => Promise<void>
}

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour
const start = Date.UTC(2026, 5, 15, 12, 30)
const clock = { now: start }

/** @param open opens an empty store */
export function testMoneyStores(name: string, open: (now: Clock) => Promise<MoneyStores>): void {
  describe(`guard, prices, budgets and alerts on ${name}`, () => {
    let stores: MoneyStores
    beforeEach(async () => {
      clock.now = start
      stores = await open(() => clock.now)
    })
    afterEach(() => stores.close())

    testGuard(() => stores)
    testVerifiedNumbers(() => stores)
    testCountries(() => stores)
    testPrices(() => stores)
    testBudgets(() => stores)
    testAlerts(() => stores)
  })
}

async function sweepAll({ sweep }: MoneyStores): Promise<void> {
  while (!(await sweep(clock.now, keepAll)).isRound);
}

function bucket(key: string, node: string, properties: Partial<BucketRow> = {}): BucketRow {
  return { kind: 'prefix', key, node, level: 1, sent: 1, verified: 0, updatedAt: start, ...properties }
}

function block(prefix: string, properties: Partial<GuardPrefix> = {}): GuardPrefix {
  return {
    prefix,
    by: 'guard',
    action: 'block',
    createdAt: start,
    expiresAt: start + 12 * hour,
    ...properties,
  }
}

function testGuard(stores: () => MoneyStores): void {
  describe('the guard', () => {
    test("buckets are replaced by kind, key and node, and each node reads the others' since a time", async () => {
      const { guard } = stores()
      const exact = bucket('37120000', 'a', { level: 0.1 + 0.2, sent: 1e-7, verified: 4.75 })
      const others = [bucket('LV', 'a', { kind: 'country-day' }), bucket('x LV', 'a', { kind: 'ip-country' })]
      await guard.saveBuckets([exact, ...others, bucket('37120000', 'b')])
      await guard.saveBuckets([bucket('LV', 'a', { kind: 'country-day', level: 7, updatedAt: start + 1 })])
      const read = await guard.bucketsSince(start, 'b')
      expect(read).toHaveLength(3)
      expect(read).toContainEqual(exact)
      expect(await guard.bucketsSince(start + 1, 'b')).toEqual([
        bucket('LV', 'a', { kind: 'country-day', level: 7, updatedAt: start + 1 }),
      ])
      expect(await guard.bucketsSince(start, 'a')).toEqual([bucket('37120000', 'b')])
      await guard.saveBuckets([])
    })

    test('rows of prefixes with denied codes are read apart from the others, of all nodes', async () => {
      const { guard } = stores()
      const flagged = (node: string, sent: number) => bucket('37120000', node, { kind: 'flagged', sent })
      const early = { kind: 'flagged', updatedAt: start - 1 } as const
      const rows = [flagged('a', 2), flagged('b', 3), bucket('37120001', 'a', early), bucket('37120000', 'a')]
      await guard.saveBuckets(rows)
      expect(await guard.bucketsSince(start, '')).toEqual([bucket('37120000', 'a')])
      expect(await guard.flaggedSince(start)).toEqual([flagged('b', 3), flagged('a', 2)])
    })

    test('nodes save 1,000 buckets at once without waiting for each other in a circle', async () => {
      const { guard } = stores()
      const keys = Array.from({ length: 1000 }, (_, index) => String(index))
      const rows = keys.map((key) => bucket(key, 'a'))
      await Promise.all([rows, rows.toReversed(), rows].map((each) => guard.saveBuckets(each)))
      expect(await guard.bucketsSince(start, 'b')).toHaveLength(1000)
    })

    test('rows of buckets are deleted after 48 hours', async () => {
      const { guard } = stores()
      await guard.saveBuckets([bucket('old', 'a'), bucket('young', 'a', { updatedAt: start + 1 })])
      clock.now = start + 2 * day + 1
      await sweepAll(stores())
      expect((await guard.bucketsSince(0, 'b')).map(({ key }) => key)).toEqual(['young'])
    })

    test("the guard's blocks are replaced, do not raise the revision, and an operator's entry stays beside them", async () => {
      const { guard, policy } = stores()
      const allowed = block('3712', { by: 'operator', action: 'allow' })
      await policy.change({ actor: tester, now: start }, () => ({ savePrefixes: [allowed], entry: null }))
      const read = policy.cached([])
      const before = await read()
      await guard.saveBlocks([block('3712'), block('3713'), block('3714', { expiresAt: start })])
      await guard.saveBlocks([block('3713', { expiresAt: start + day })])
      expect(await read()).toBe(before)
      const prefixes = await guard.prefixes()
      expect(prefixes[0]).toEqual(allowed)
      expect(prefixes.toSorted((a, b) => (a.prefix + a.by < b.prefix + b.by ? -1 : 1))).toEqual([
        block('3712'),
        allowed,
        block('3713', { expiresAt: start + day }),
      ])
      await guard.saveBlocks([])
    })

    test('a process reads at most 10,000 prefixes: the operator’s, then the newest', async () => {
      const { guard, policy } = stores()
      const blocks = Array.from({ length: 10_001 }, (_, index) =>
        block(String(10_000 + index), { createdAt: start + index }),
      )
      await guard.saveBlocks(blocks)
      const allowed = block('1', { by: 'operator', action: 'allow', createdAt: 0 })
      await policy.change({ actor: tester, now: start }, () => ({ savePrefixes: [allowed], entry: null }))
      const prefixes = (await guard.prefixes()).map(({ prefix }) => prefix)
      expect(prefixes).toHaveLength(10_000)
      expect(prefixes.slice(0, 2)).toEqual(['1', '20000'])
      expect(prefixes).not.toContain('10000')
    })

    test('expired prefixes are deleted after 7 days', async () => {
      const { guard, policy } = stores()
      const byOperator = (prefix: string, expiresAt: number) =>
        ({ ...block(prefix, { expiresAt }), by: 'operator' }) as const
      await guard.saveBlocks([
        block('1', { expiresAt: start + 1 }),
        byOperator('1', start),
        byOperator('2', start + 1),
      ])
      clock.now = start + 7 * day
      await sweepAll(stores())
      // The guard's block is not part of the policy that requests read.
      expect((await policy.rows()).prefixes.map(({ prefix }) => prefix)).toEqual(['2'])
    })
  })
}

function testVerifiedNumbers(stores: () => MoneyStores): void {
  const verify = (...numbers: readonly VerifiedNumber[]) =>
    stores().saveEntries(
      numbers.map((verified, index) => ({
        verified,
        request: {
          requestId: `${firstIdOf(verified.verifiedAt)}7000-8000-${String(index).padStart(12, '0')}`,
          at: verified.verifiedAt,
          operation: 'verify',
          app: 'shop',
          limits: '',
        },
        attempts: [],
      })),
      [],
    )
  const isVerified = (...subjects: readonly string[]) => stores().guard.isVerified(subjects)

  describe('verified numbers', () => {
    test('a number is verified for 180 days, under each of its hashes', async () => {
      await verify({ subject: 'ann', verifiedAt: start }, { subject: 'bob', verifiedAt: start + 1 })
      expect(await Promise.all([isVerified('ann'), isVerified('new ann', 'ann'), isVerified('eve')])).toEqual(
        [true, true, false],
      )
      expect(await isVerified()).toBe(false)
      clock.now = start + 180 * day
      expect(await Promise.all([isVerified('ann'), isVerified('bob')])).toEqual([false, true])
      await sweepAll(stores())
      clock.now = start
      expect(await Promise.all([isVerified('ann'), isVerified('bob')])).toEqual([false, true])
    })

    test('a further code is stored only after an hour', async () => {
      const isStored = async (verifiedAt: number) => {
        clock.now = start + 180 * day
        await verify({ subject: 'ann', verifiedAt })
        return isVerified('ann')
      }
      expect(await isStored(start)).toBe(false)
      expect(await isStored(start + hour)).toBe(false)
      expect(await isStored(start + hour + 1)).toBe(true)
      expect(await isStored(start)).toBe(true)
    })

    test('one step may verify a number several times', async () => {
      await verify(
        { subject: 'ann', verifiedAt: start + 1 },
        { subject: 'bob', verifiedAt: start },
        { subject: 'ann', verifiedAt: start },
      )
      clock.now = start + 180 * day
      expect(await Promise.all([isVerified('ann'), isVerified('bob')])).toEqual([true, false])
    })

    test('are erased with the person', async () => {
      await verify({ subject: 'ann', verifiedAt: start }, { subject: 'bob', verifiedAt: start })
      expect(await stores().forget(['new ann', 'ann'])).toMatchObject({ verifiedNumbers: 1 })
      expect(await Promise.all([isVerified('ann'), isVerified('bob')])).toEqual([false, true])
    })
  })
}

function testCountries(stores: () => MoneyStores): void {
  const save = (...counts: readonly Counted[]) => stores().saveEntries([], counts)
  const counted = (kind: 'sms' | 'sms-verified', country: string | null, at: number, count: number) => ({
    ...countryStat(kind, country),
    at,
    count,
  })

  describe('statistics by country', () => {
    test('the history has the best of the 14 days before today, the last 24 hours and the last hour', async () => {
      await save(
        counted('sms-verified', 'LV', start - 15 * day, 99),
        counted('sms-verified', 'LV', start - 14 * day, 7),
        counted('sms-verified', 'LV', start - 3 * day, 4),
        counted('sms-verified', 'LV', start - 3 * day + minute, 5),
        counted('sms-verified', 'LV', start - hour, 2),
        counted('sms-verified', 'LV', start, 1),
        counted('sms-verified', null, start - 59 * minute, 3),
        counted('sms', 'GB', start, 8),
      )
      const history = await stores().guard.verifiedHistory()
      expect(history.toSorted((a, b) => (a.country < b.country ? -1 : 1))).toEqual([
        { country: 'LV', bestDay: 9, inFortnight: 19, inDay: 3, inHour: 1 },
        { country: 'ZZ', bestDay: 0, inFortnight: 3, inDay: 3, inHour: 3 },
      ])
      clock.now = start + day
      expect(await stores().guard.verifiedHistory()).toContainEqual({
        country: 'ZZ',
        bestDay: 3,
        inFortnight: 3,
        inDay: 0,
        inHour: 0,
      })
    })

    test('the codes of the last 24 hours are counted by country', async () => {
      await save(
        counted('sms', 'LV', start - 25 * hour, 99),
        counted('sms', 'LV', start - hour, 2),
        counted('sms', 'GB', start, 5),
        counted('sms-verified', 'GB', start, 4),
      )
      expect(await stores().statistics.countries(start)).toEqual([
        { country: 'GB', sent: 5, verified: 4 },
        { country: 'LV', sent: 2, verified: 0 },
      ])
    })

    test('spending is exact up to 9 × 10^15 millionths, and by day, country, brand, app and currency', async () => {
      const spend = {
        currency: 'EUR',
        country: 'GB',
        app: 'shop',
        brand: 'acme',
        provider: 'twilio',
      } as const
      const unknown = {
        ...spend,
        country: null,
        app: 'a shop of APP_CREDENTIALS',
        brand: '',
        currency: 'units',
      }
      const today = start - (start % day)
      await save({ ...spendStat(spend), at: start, count: 8_999_999_999_999_990 })
      await save({ ...spendStat(spend), at: start + 1, count: 9 })
      await save({ ...spendStat(unknown), at: start - day, count: 1 })
      const { statistics } = stores()
      expect(await statistics.spending(today - day, today + day)).toEqual([
        { at: today - day, micros: 1, ...unknown },
        { at: today, micros: 8_999_999_999_999_999, ...spend },
      ])
      expect(await statistics.spending(today - 30 * day, today)).toHaveLength(1)
      expect((await statistics.statistics('day', start)).byBrand).toEqual([])
    })
  })
}

function testPrices(stores: () => MoneyStores): void {
  const price = (prefix: string, priceMicros: number, provider: string | null = null): PriceRow => ({
    prefix,
    provider,
    priceMicros,
    currency: 'EUR',
  })
  const entry = { target: 'prices', details: { rows: '2' } }
  const by = { actor: tester, now: start }
  const sorted = (rows: readonly PriceRow[]) =>
    rows.toSorted((a, b) => (`${a.prefix} ${a.provider}` < `${b.prefix} ${b.provider}` ? -1 : 1))

  describe('prices', () => {
    test('an import replaces the prices of its groups, and has an audit entry', async () => {
      const { prices, audit, policy } = stores()
      const read = policy.cached([])
      const before = await read()
      const save = [price('44', 40_000), price('371', 90_000), price('44', 35_000, 'twilio')]
      await prices.change(by, () => ({ save, entry }))
      expect(sorted(await prices.rows())).toEqual(sorted(save))
      const after = await read()
      expect(
        [before, after].map((each) => each.prices.perSegment('371', 'ordinary', null) === 90_000),
      ).toEqual([false, true])
      const seen: (readonly PriceGroup[])[] = []
      const next = [price('49', 9_000_000_000_000_000)]
      await prices.change(by, (current) => {
        seen.push(current)
        return { save: next, entry }
      })
      const groups = [
        { provider: null, currency: 'EUR', count: 2 },
        { provider: 'twilio', currency: 'EUR', count: 1 },
      ]
      expect(seen.at(-1)?.toSorted((one, other) => other.count - one.count)).toEqual(groups)
      expect(sorted(await prices.rows())).toEqual(sorted([...next, price('44', 35_000, 'twilio')]))
      expect((await audit.list({ limit: 9 })).map(({ action, target }) => [action, target])).toEqual([
        ['price.imported', 'prices'],
        ['price.imported', 'prices'],
      ])
      const last = await read()
      expect(last.prices.perSegment('49', 'ordinary', null)).toBe(9_000_000_000_000_000)
      await policy.change(by, () => ({ entry: null }))
      expect(await read()).not.toBe(last)
      expect((await read()).prices).toBe(last.prices)
    })

    test('many prices are read page by page, as one import left them', async () => {
      const { prices } = stores()
      const list = (currency: string) =>
        Array.from({ length: 6000 }, (_, index) => ({
          ...price(String(100 + (index >> 1)), 5, index % 2 ? 'twilio' : null),
          currency,
        }))
      await prices.change(by, () => ({ save: list('EUR'), entry }))
      const reading = prices.rows()
      await prices.change(by, () => ({ save: list('GBP'), entry }))
      for (const rows of [await reading, await prices.rows()]) {
        expect(new Set(rows.map(({ prefix, provider }) => `${prefix} ${provider}`)).size).toBe(6000)
        expect(new Set(rows.map(({ currency }) => currency)).size).toBe(1)
      }
      expect((await prices.rows())[0]?.currency).toBe('GBP')
    })

    test('an import lets other changes in between, and readers see the prices before or after it', async () => {
      const { prices, policy } = stores()
      const list = (priceMicros: number) =>
        Array.from({ length: 5000 }, (_, index) => price(String(1000 + index), priceMicros))
      const read = async () => new Set((await prices.rows()).map(({ priceMicros }) => priceMicros))
      await prices.change(by, () => ({ save: list(1), entry }))
      const ended: string[] = []
      const importing = prices.change(by, () => ({ save: list(2), entry })).then(() => ended.push('import'))
      await policy.change(by, () => ({ entry: null })).then(() => ended.push('other'))
      expect(await read()).toEqual(new Set([1]))
      await importing
      expect(ended).toEqual(['other', 'import'])
      expect(await read()).toEqual(new Set([2]))
    })

    test('of two imports at once each is stored whole or not at all', async () => {
      const { prices } = stores()
      const list = (priceMicros: number) =>
        Array.from({ length: 5000 }, (_, index) => price(String(1000 + index), priceMicros))
      const change = (priceMicros: number) =>
        prices
          .change(by, () => ({ save: list(priceMicros), entry }))
          .then(
            () => 'stored',
            (error: Error) => error.message,
          )
      const results = await Promise.all([change(1), change(2), change(3)])
      expect(results).toContain('stored')
      for (const result of results) expect(result).toMatch(/^stored$|^Another import ran/)
      const rows = await prices.rows()
      expect(rows).toHaveLength(5000)
      expect(new Set(rows.map(({ priceMicros }) => priceMicros)).size).toBe(1)
    })

    test('a rejected import changes nothing', async () => {
      const { prices } = stores()
      await prices.change(by, () => ({ save: [price('44', 1)], entry }))
      const fault = () => {
        throw new Error('rejected')
      }
      expect(await prices.change(by, fault).catch((error: Error) => error.message)).toBe('rejected')
      // Fails in the database.
      const twice = { save: [price('1', 1), price('1', 2)], entry }
      expect(await prices.change(by, () => twice).catch(() => 'failed')).toBe('failed')
      expect(await prices.rows()).toEqual([price('44', 1)])
    })
  })
}

function testBudgets(stores: () => MoneyStores): void {
  const budget = (properties: Partial<Budget> = {}): Budget => ({
    scope: 'server',
    of: 'all',
    period: 'day',
    amountMicros: 9_000_000_000_000_000,
    currency: 'EUR',
    alertAt: [50, 100],
    stops: true,
    liftedUntil: null,
    countsFrom: start,
    ...properties,
  })

  test('what was spent of a budget is read exactly, per period and counter', async () => {
    const { otps, policy } = stores()
    const [ofServer, ofBrand] = [budget(), budget({ scope: 'brand:acme', period: 'month', stops: false })]
    const spent = async (budgets: readonly Budget[], now: number) =>
      (await stores().budgets.spent(budgets, now)).map(({ micros }) => micros)
    await policy.change({ actor: tester, now: start }, () => ({
      saveBudgets: [ofServer, ofBrand],
      entry: null,
    }))
    expect((await policy.rows()).budgets).toEqual([ofBrand, ofServer])
    const spend = (...micros: readonly number[]) =>
      otps.admit(
        [ofServer, ofBrand].flatMap((each, index) => budgetClaim(each, micros[index] ?? 0, start)),
        start,
      )
    await spend(8_999_999_999_999_998, 3)
    await spend(1, 4)
    expect(await spend(2, 5)).toMatchObject({ allowed: false })
    const again = budget({ countsFrom: start + 1 })
    const all = [ofBrand, again, ofServer, budget({ scope: 'country:GB' })]
    expect(await spent(all, start)).toEqual([7, 0, 8_999_999_999_999_999, 0])
    expect(await spent(all, start + day)).toEqual([7, 0, 0, 0])
    expect(await spent([], start)).toEqual([])
  })

  test('a scope has a budget of all messages, one of codes and one of notifications, each with its counter', async () => {
    const { otps, budgets, policy } = stores()
    const all = (['all', 'codes', 'notifications'] as const).map((of) => budget({ of }))
    const change = (changed: Partial<PolicyChange>) =>
      policy.change({ actor: tester, now: start }, () => ({ ...changed, entry: null }))
    await change({ saveBudgets: all })
    await change({ saveBudgets: all.slice(1, 2) })
    expect((await policy.rows()).budgets).toEqual(all)
    await otps.admit(
      all.map((each, index) => budgetClaim(each, index + 1, start)),
      start,
    )
    expect((await budgets.spent(all, start)).map(({ micros }) => micros)).toEqual([1, 2, 3])
    await change({ removeBudgets: [{ scope: 'server', of: 'codes' }] })
    expect((await policy.rows()).budgets.map(({ of }) => of)).toEqual(['all', 'notifications'])
  })

  test('the budget of each country has a counter for each country that has no own budget for all of these messages', async () => {
    const { otps, budgets } = stores()
    const [each, ofCodes] = [budget({ scope: 'country:*' }), budget({ scope: 'country:*', of: 'codes' })]
    const spend = (of: Budget, country: string | null, micros: number) =>
      otps.admit([budgetClaim(inCountry(of, country), micros, start)], start)
    for (const [country, micros] of [
      ['LV', 1],
      ['GB', 2],
      [null, 4],
    ] as const)
      await spend(each, country, micros)
    await spend(ofCodes, 'GB', 8)
    const spent = async (...all: readonly Budget[]) =>
      (await budgets.spent(all, start)).map(({ budget, micros }) => `${budgetName(budget)} ${micros}`).sort()
    expect(await spent(each)).toEqual(['country:* (GB) 2', 'country:* (LV) 1', 'country:* (ZZ) 4'])
    const own = budget({ scope: 'country:GB', of: 'codes' })
    expect(await spent(each, ofCodes, own)).toEqual([
      'country:* (GB) 2',
      'country:* (LV) 1',
      'country:* (ZZ) 4',
      'country:GB of codes 0',
    ])
    expect(await budgets.spent([each], start + day)).toEqual([])
  })
}

function testAlerts(stores: () => MoneyStores): void {
  const alert = (key: string, at = start) => ({
    key,
    at,
    kind: 'budget.threshold',
    title: `of ${key}`,
    text: '{}',
  })
  const names = (deliveries: readonly AlertDelivery[]) =>
    deliveries.map(({ alert, channel, tries }) => `${alert.key} ${channel} ${tries}`)
  const both = ['email', 'webhook'] as const

  describe('alerts', () => {
    test('an alert is stored once with its deliveries, also if several processes store it at once', async () => {
      const { alerts } = stores()
      const added = await Promise.all(Array.from({ length: 5 }, () => alerts.add(alert('a'), both)))
      expect(added.filter(Boolean)).toHaveLength(1)
      await alerts.add(alert('b', start + 1), [])
      expect(await alerts.latest(9)).toEqual([alert('b', start + 1), alert('a')])
      expect(await alerts.latest(1)).toEqual([alert('b', start + 1)])
      const taken = await alerts.take(both, start, minute)
      expect(names(taken)).toEqual(['a email 1', 'a webhook 1'])
      expect(taken[0]?.alert).toEqual(alert('a'))
      for (const delivery of taken) await alerts.end(delivery)
      expect(await alerts.add(alert('a'), both)).toBe(false)
      expect(await alerts.take(both, start + day, minute)).toEqual([])
    })

    test('an integration request is stored with an alert for each channel, at most one in 10 minutes', async () => {
      const { alerts, requests } = stores()
      const add = (index: number) => {
        const names = {
          companyName: 'Acme',
          contactName: 'Ada',
          contactEmail: 'ada@acme.test',
          brandName: 'Acme',
        }
        const request = { id: `request ${index}`, createdAt: clock.now, ...names }
        return requests.add({ ...request, channels: [], website: null, useCase: null }, 1000, both)
      }
      const added = await Promise.all(Array.from({ length: 5 }, (_, index) => add(index)))
      const times = added.flatMap((each) => each?.alert?.at ?? []).sort()
      expect(times).toEqual([start, start + 10 * minute])
      expect(names(await alerts.take(both, start, minute)).map((name) => name.split(' ')[2])).toEqual([
        'email',
        'webhook',
      ])
      expect(await alerts.latest(9)).toHaveLength(2)
      clock.now = start + hour
      expect((await add(5))?.alert?.at).toBe(clock.now)
      expect(await alerts.latest(9)).toHaveLength(3)
    })

    test('a change of an operator is stored with its alert for each channel, or neither is', async () => {
      const { alerts, policy } = stores()
      const by = { actor: tester, now: start }
      const change = (number: string) => {
        const about = { subject: number, brandSlug: 'acme', keyedCode: 'code', masked: '1*' }
        const added = { ...about, createdAt: start, expiresAt: start + day }
        const entry = { action: 'review-number.added', target: 'acme', details: {} } as const
        return policy.change(by, () => ({ saveReviewNumbers: [added], alert: alert('added'), entry }))
      }
      await change('one')
      expect(names(await alerts.take(both, start, minute))).toEqual(['added email 1', 'added webhook 1'])
      // The alert exists.
      await expect(change('two')).rejects.toThrow()
      expect((await policy.rows()).reviewNumbers.map(({ subject }) => subject)).toEqual(['one'])
    })

    test('a pause of a provider is one row, which a later pause replaces', async () => {
      const { policy } = stores()
      const by = { actor: tester, now: start }
      const pause = (until: number) => ({ provider: 'outbox', until })
      for (const until of [start + minute, start + hour])
        await policy.change(by, () => ({ savePauses: [pause(until)], entry: null }))
      expect((await policy.rows()).pauses).toEqual([pause(start + hour)])
      await policy.change(by, () => ({ removePauses: [pause(start)], entry: null }))
      expect((await policy.rows()).pauses).toEqual([])
    })

    test('the mode of the guard is one row, with an end or without', async () => {
      const { policy } = stores()
      expect((await policy.rows()).guardMode).toBeNull()
      const temporary = { mode: 'deny', since: start, until: start + hour } as const
      for (const mode of [
        { mode: 'off', temporary },
        { mode: 'record', temporary: null },
      ] as const) {
        await policy.change({ actor: tester, now: start }, () => ({ saveGuardMode: mode, entry: null }))
        expect((await policy.rows()).guardMode).toEqual(mode)
      }
    })

    test('one process takes a delivery that is due, until its lease ends', async () => {
      const { alerts } = stores()
      for (const key of ['a', 'b', 'c']) await alerts.add(alert(key), both)
      expect(await alerts.take(['email'], start - 1, minute)).toEqual([])
      const taken = await Promise.all(Array.from({ length: 4 }, () => alerts.take(['email'], start, minute)))
      expect(names(taken.flat()).sort()).toEqual(['a email 1', 'b email 1', 'c email 1'])
      const [first, second] = taken.flat()
      if (first) await alerts.retryAt(first, start + 5000)
      if (second) await alerts.end(second)
      expect(names(await alerts.take(both, start + 4999, minute))).toEqual([
        'a webhook 1',
        'b webhook 1',
        'c webhook 1',
      ])
      expect(names(await alerts.take(both, start + 5000, minute))).toEqual([`${first?.alert.key} email 2`])
      const crashed = ['a', 'b', 'c'].filter((key) => key !== first?.alert.key && key !== second?.alert.key)
      expect(names(await alerts.take(['email'], start + minute, minute))).toEqual([`${crashed} email 2`])
      expect(await alerts.failing(start + minute)).toEqual([{ channel: 'email', alerts: 2 }])
      expect(await alerts.failing(start + hour)).toEqual([])
    })

    test('a delivery does not wait until a clock that was set back has caught up', async () => {
      const { alerts } = stores()
      await alerts.add(alert('tried'), ['email'])
      const [tried] = await alerts.take(['email'], start, minute)
      if (tried) await alerts.retryAt(tried, start + 5 * minute)
      await alerts.add(alert('new', start + 14 * minute), both)
      const tolerance = 5000
      expect(names(await alerts.take(both, start + 4 * minute - tolerance, minute))).toEqual([])
      // Waits of 10 minutes before the first try, and of a minute before the second.
      expect(names(await alerts.take(['email'], start + 4 * minute - tolerance - 1, minute))).toEqual([
        'new email 1',
        'tried email 2',
      ])
    })

    test('a new integration request sends an alert although the latest is from before the clock was set back', async () => {
      const { alerts, requests } = stores()
      const about = {
        companyName: 'Acme',
        contactName: 'Ada',
        contactEmail: 'ada@acme.test',
        brandName: 'Acme',
      }
      const add = (id: string) => {
        const request = { ...about, id, createdAt: clock.now, channels: [], website: null, useCase: null }
        return requests.add(request, 1000, both)
      }
      await add('before')
      clock.now -= 8 * hour
      expect((await add('after'))?.alert?.at).toBe(clock.now)
      expect(await alerts.latest(9)).toHaveLength(2)
    })

    test('alerts are deleted after 90 days', async () => {
      const { alerts } = stores()
      await alerts.add(alert('old'), both)
      await alerts.add(alert('young', start + 1), both)
      clock.now = start + 90 * day + 1
      await sweepAll(stores())
      expect(await alerts.latest(9)).toEqual([alert('young', start + 1)])
      expect(names(await alerts.take(both, clock.now, minute))).toEqual(['young email 1', 'young webhook 1'])
    })
  })
}

/**
 * Several processes claim a budget, store one alert, take its deliveries and save the same buckets.
 * @param url of an empty database
 */
export function testMoneyAtOnce(url: () => string): void {
  test('processes together spend a budget exactly, and deliver an alert once', async () => {
    const results = await inProcesses(
      3,
      `const { openContext } = await import('./src/context.ts')
      const { readStoreConfig } = await import('./src/config/store.ts')
      const { budgetClaim } = await import('./src/domain/money/budgets.ts')
      const config = readStoreConfig({ DATABASE_URL: '${url()}', SECRET_KEY: '0123456789abcdef0123456789abcdef' })
      const context = await openContext(config, { serves: true })`,
      `const now = context.now()
      const budget = { scope: 'server', of: 'all', period: 'month', amountMicros: 10_050, currency: 'EUR', alertAt: [], stops: true,
        liftedUntil: null, countsFrom: 1 }
      const keys = Array.from({ length: 500 }, (_, key) => String(key)).sort(() => Math.random() - 0.5)
      const alert = { key: 'a', at: now, kind: 'budget.threshold', title: 'of a', text: '{}' }
      const [claims, added] = await Promise.all([
        Promise.all(keys.slice(0, 60).map(() => context.store.admit([budgetClaim(budget, 100, now)], now))),
        context.alerts.add(alert, ['email']),
        context.guard.saveBuckets(keys.map((key) =>
          ({ kind: 'prefix', key, node: 'same', level: 1, sent: 1, verified: 0, updatedAt: now }))),
      ])
      const taken = await Promise.all(keys.slice(0, 9).map(async () =>
        (await context.alerts.take(['email'], now + 60_000, 600_000)).length))
      const [{ micros }] = await context.budgets.spent([budget], now)
      const sum = (numbers) => numbers.reduce((total, number) => total + number, 0)
      console.log(JSON.stringify([claims.filter(({ allowed }) => allowed).length, Number(added), sum(taken), micros > 0]))
      await context.close()`,
    )
    const rows = results.map((text): unknown[] => JSON.parse(text.replace('ready', '')))
    const sum = (column: number) => rows.reduce((total, row) => total + Number(row[column]), 0)
    expect([sum(0), sum(1), sum(2), sum(3)]).toEqual([100, 1, 1, 3])
  })
}
