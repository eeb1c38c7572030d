import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { countryOfPrefix } from '../../src/adapters/phone/destination.ts'
import { utc } from '../../src/domain/ground/format.ts'
import type { GuardMode } from '../../src/domain/guard/guard.ts'
import { readGuardStatus } from '../../src/domain/operator/guard.ts'
import { createTestApp, type TestApp } from '../support/app.ts'
import { signedIn } from '../support/console.ts'
import { operate } from '../support/operator.ts'
import { expectError, expectSuccess } from '../support/rows.ts'

// The guard of a server as operators see and change it. What it decides is in test/domain/guard.

let app: TestApp

/** The store of the guard is read every 5 s. */
const syncSeconds = 6

function use(env: Readonly<Record<string, string>>): void {
  beforeAll(async () => {
    app = await createTestApp({ SMS_COOLDOWN_SECONDS: '1', ...env })
  })
  afterAll(() => app.close())
  beforeEach(() => app.advance(3 * 86_400))
}

function send(phone: string) {
  return app.post('/otp/send', { phone })
}

/** Codes to numbers of one prefix, none of them verified. */
async function pump(prefix: string, codes: number, first = 0) {
  const answers = []
  for (let index = first; index < first + codes; index++) answers.push(await send(`${prefix}${1000 + index}`))
  return answers
}

/** Resolves to the operator's entries after it. */
async function set(verb: 'allow' | 'block', prefix: string, duration?: string) {
  await operate(app, `guard ${verb}`, { prefix, duration })
  return (await app.app.context.policy.rows()).prefixes
}

const remove = (prefix: string) => operate(app, 'guard remove', { prefix })

/** With the blocks by the guard: the server stores them after the answer to a later request. */
/** @param hasPrefixes whether an attack with its prefixes is stored too */
async function statusIn(guard: GuardMode, blocks: number, hasPrefixes = false) {
  app.advance(syncSeconds)
  await send('+493012345678')
  const { context } = app.app
  const ports = { ...context, guard: context.guardReader, countryOfPrefix }
  for (let tries = 0; tries < 1000; tries++) {
    const status = await readGuardStatus(ports, { guard, smsCountries: ['LV'] })
    const isStored = hasPrefixes
      ? status.pumping.some(({ prefixes }) => prefixes.length > 0)
      : status.buckets.length > 0 || blocks === 0
    if (isStored && status.blocked.filter(({ by }) => by === 'guard').length === blocks) return status
    await new Promise((resolve) => setImmediate(resolve))
  }
  throw new Error('the server did not store its blocks')
}

async function lastChange() {
  const [record] = await app.app.context.audit.list({ limit: 1 })
  return record && { action: record.action, target: record.target, details: record.details }
}

describe('entries of operators (D41)', () => {
  use({ GUARD: 'deny', SMS_COUNTRIES: 'LV,GB,DE,JM' })

  test('block a prefix from the next request on, until they end', async () => {
    await set('block', '+44 7500-1', '2h')
    expectError(await send('+447500123456'), 429, 'rate_limited')
    expectSuccess(await send('+447400123456'), ['expiresIn'])
    app.advance(2 * 3600)
    expectSuccess(await send('+447500123456'), ['expiresIn'])
  })

  test('allow a prefix that the guard blocked, and end its block', async () => {
    const answers = await pump('+3712255', 6)
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 429])
    const { blocked, buckets, lastHour, countries } = await statusIn('deny', 1)
    expect(blocked).toMatchObject([{ prefix: '+3712255', country: 'LV', by: 'guard', unverified: 5 }])
    expect(buckets[0]).toMatchObject({ kind: 'prefix', key: '+3712255', threshold: 5 })
    expect(lastHour).toEqual({ denied: 1, recorded: 0 })
    const latvia = { country: 'LV', sent: 5, verified: 0, conversion: 0, denied: 1, recorded: 0 }
    expect(countries).toContainEqual(latvia)
    expectError(await send('+37122552000'), 429, 'rate_limited')
    await set('allow', '371', '1h')
    expectSuccess(await send('+37122552000'), ['expiresIn'])
    expect(await lastChange()).toMatchObject({ details: { "guard's blocks": '1 → 0' } })
    expect(await statusIn('deny', 0)).toMatchObject({ blocked: [], allowed: [{ prefix: '+371' }] })
    app.advance(3600)
    expectSuccess(await send('+37122552000'), ['expiresIn'])
  })

  test('do not fill the event log: 60 denied requests a minute are stored, and all are counted', async () => {
    await set('block', '+3712299')
    await pump('+3712299', 70)
    const { eventLog } = app.app.context
    const stored = await eventLog.guarded(1000)
    const own = stored.filter(({ at }) => at === app.clock.now)
    expect(own).toHaveLength(60)
    expect(own[0]).toMatchObject({ country: 'LV', flags: ['blocked-prefix'], end: { status: 429 } })
    expect(await eventLog.guardCounts('hour', app.clock.now)).toEqual([
      { bucket: 'blocked-prefix', verdict: 'denied', country: 'LV', app: 'shop', brand: 'acme', count: 70 },
    ])
  })

  test('follow the longest prefix', async () => {
    await set('block', '+44')
    await set('allow', '+4474')
    expectSuccess(await send('+447400123456'), ['expiresIn'])
    expectError(await send('+447500123456'), 429, 'rate_limited')
    await remove('44')
    expectSuccess(await send('+447500123456'), ['expiresIn'])
    await remove('+44 74')
  })

  test('are in the audit log with the entry before', async () => {
    await set('block', '+1876', '1h')
    await set('allow', '1 876')
    const until = (hours: number) => utc(app.clock.now + hours * 3_600_000)
    const entry = `block until ${until(1)} → allow until ${until(24)}`
    expect(await lastChange()).toEqual({ action: 'guard.set', target: '+1876', details: { entry } })
    await remove('1876')
    expect((await lastChange())?.details).toEqual({ entry: `allow until ${until(24)} → -` })
  })
})

describe('the mode (D41)', () => {
  use({ GUARD: 'record', SMS_COUNTRIES: 'LV' })
  afterEach(() => operate(app, 'guard mode', { mode: 'record' }))

  const setMode = (mode: GuardMode, duration?: string) => operate(app, 'guard mode', { mode, duration })
  const answerTo = async (prefix: string, index: number) => (await pump(prefix, 1, index))[0]?.status
  const stored = async () => {
    const { context } = app.app
    const ports = { ...context, guard: context.guardReader, countryOfPrefix }
    const { mode, modeUntil, nextMode } = await readGuardStatus(ports, { guard: 'off', smsCountries: [] })
    return [mode, modeUntil, nextMode]
  }

  test('is GUARD at the first start only, and changes at the next request', async () => {
    await pump('+3712255', 5)
    expect(await answerTo('+3712255', 5)).toBe(200)
    expect((await setMode('deny')).text).toBe('The mode of the guard is deny.')
    const details = { mode: 'record → deny' }
    expect(await lastChange()).toEqual({ action: 'guard.mode', target: 'deny', details })
    expect(await answerTo('+3712255', 6)).toBe(429)
    expect(await stored()).toEqual(['deny', null, null])
    const other = await createTestApp({ ...app.database.env, GUARD: 'off', SMS_COUNTRIES: 'LV' })
    other.clock.now = app.clock.now
    const answers = []
    for (const digit of '012345')
      answers.push((await other.post('/otp/send', { phone: `+3712299100${digit}` })).status)
    expect(answers).toEqual([200, 200, 200, 200, 200, 429])
    await other.close()
  })

  test('with an end: the mode without one follows, also after another one with an end', async () => {
    const until = (hours: number) => new Date(app.clock.now + hours * 3_600_000).toISOString()
    await pump('+3712266', 5)
    const end = until(2)
    expect((await setMode('deny', '2h')).text).toBe(
      `The mode of the guard is deny until ${utc(Date.parse(end))}, then record.`,
    )
    expect(await stored()).toEqual(['deny', end, 'record'])
    expect(await answerTo('+3712266', 5)).toBe(429)
    await setMode('off', '1h')
    expect(await stored()).toEqual(['off', until(1), 'record'])
    expect(await answerTo('+3712266', 6)).toBe(200)
    app.advance(3599)
    expect((await stored())[0]).toBe('off')
    app.advance(1)
    expect(await stored()).toEqual(['record', null, null])
    await setMode('deny', '1h')
    app.clock.now -= 6000
    expect((await stored())[0]).toBe('record')
  })

  test('off counts nothing, and keeps what was counted', async () => {
    await setMode('deny')
    await pump('+3712277', 5)
    await setMode('off')
    expect((await pump('+3712277', 9, 5)).map(({ status }) => status)).toEqual(Array(9).fill(200))
    await setMode('deny')
    expect(await answerTo('+3712277', 20)).toBe(429)
  })
})

describe.each(['record', 'deny'] as const)('an attack sends an alert, GUARD=%s', (mode) => {
  use({ GUARD: mode })
  const check = async () => {
    app.advance(30)
    await app.app.guard.sync()
    app.app.alerts.tick()
    await app.app.alerts.idle()
    const alerts = await app.app.context.alerts.ofKinds(['guard.pumping'], 0)
    return alerts.map(({ text }) => JSON.parse(text))
  }

  test('with its first code, then at most every 10 minutes, and at its end', async () => {
    const codes = (prefix: string) => pump(prefix, 6)
    expect(await check()).toEqual([])
    await codes('+3712255')
    const [started, ...others] = await check()
    expect([started, others]).toEqual([
      {
        country: 'LV',
        prefix: '+3712255…',
        app: 'shop',
        brand: 'acme',
        mode,
        sent: expect.any(Number),
        verified: 0,
        recorded: expect.any(Number),
        denied: expect.any(Number),
        stopped: 0,
        state: 'started',
        since: expect.any(String),
        message: expect.stringMatching(
          mode === 'record'
            ? /^Possible SMS pumping to Latvia \(\+3712255…\): in the last hour \d+ codes sent, none verified; requested by app shop of brand acme\.$/
            : /^Possible SMS pumping to Latvia \(\+3712255…\): in the last hour \d+ codes sent, none verified, \d+ codes? denied; requested by app shop of brand acme\.$/,
        ),
        remedy:
          mode === 'record'
            ? 'Such codes are still sent until you block their prefix or country. To deny them, run otpost guard mode deny. To block them now, run otpost guard block +3712255.'
            : 'Such codes are denied now. To block them now, run otpost guard block +3712255.',
      },
      [],
    ])
    expect(app.lines).toContainEqual(started)
    app.advance(300)
    await codes('+3712266')
    expect(await check()).toHaveLength(1)
    app.advance(300)
    await codes('+3712277')
    expect((await check()).map(({ state }) => state)).toEqual(['started', 'lasting'])
    app.advance(3600)
    expect((await check()).map(({ state }) => state)).toEqual(['started', 'lasting', 'ended'])
  })

  test('not with the codes that an operator blocks', async () => {
    const before = (await check()).length
    await set('block', '+37122')
    await pump('+3712288', 6)
    expect(await check()).toHaveLength(before)
    await remove('+37122')
  })
})

describe('mode record', () => {
  use({ GUARD: 'record', SMS_COUNTRIES: 'LV,DE' })

  test('sends and counts what it would deny; an entry of an operator denies', async () => {
    const answers = await pump('+3712277', 7)
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200, 200])
    await set('block', '+3712288')
    expectError(await send('+37122881000'), 429, 'rate_limited')
    const { lastHour, last24Hours, blocked } = await statusIn('record', 1)
    expect(lastHour).toEqual({ denied: 1, recorded: 2 })
    expect(last24Hours).toEqual(lastHour)
    expect(blocked.map(({ prefix, by }) => `${prefix} ${by}`)).toEqual([
      '+3712277 guard',
      '+3712288 operator',
    ])
  })
})

describe.each(['record', 'deny'] as const)('an attack on a country, GUARD=%s', (mode) => {
  use({ GUARD: mode })

  test('has its prefix and app in the status and the console, whose button stops it', async () => {
    // Each prefix has fewer codes than the guard blocks it for.
    for (let index = 0; index < 24; index++) await send(`+9989371${index % 8}${1000 + index}`)
    const isSent = mode === 'record'
    const { pumping } = await statusIn(mode, 0, true)
    expect(pumping).toMatchObject([
      {
        country: 'UZ',
        sent: isSent ? 24 : 3,
        verified: 0,
        denied: isSent ? 0 : 21,
        recorded: isSent ? 21 : 0,
        recordedLately: isSent ? 21 : 0,
        prefixes: [{ prefix: '+9989371', isBlocked: false }],
        apps: [{ app: 'shop', brand: 'acme', codes: 21 }],
      },
    ])
    const visitor = await signedIn(app)
    expect((await visitor.get('/admin')).html).toContain('to Uzbekistan (+9989371…)')
    const page = await visitor.get('/admin/guard')
    for (const shown of ['+998 9371…', '/admin/apps/app?app=shop', isSent ? 'still sent' : 'Denied calls'])
      expect(page.html).toContain(shown)
    const rule = await visitor.post('/admin/destinations', { rule: 'UZ', action: 'block', foretell: '1' })
    expect(rule.html).toMatch(/name="rule"[^>]*value="UZ"/)
    // The codes that went out are shown before the rule is saved.
    expect(rule.html).toContain(
      isSent ? 'rejected 24 codes by SMS, none of them verified' : 'rejected 3 codes by SMS',
    )
    expect(rule.html).toContain('<option value="block" selected')
    await visitor.post('/admin/guard', { prefix: '+9989371', action: 'block', duration: '12h' })
    expectError(await send('+998937191234'), 429, 'rate_limited')
    const after = (await visitor.get('/admin/guard')).html
    expect(after).not.toContain('still sent')
    expect(after).not.toContain('Block for 12 h')
    app.advance(180)
    expectError(await send('+998937191235'), 429, 'rate_limited')
    await visitor.post('/admin/guard/remove', { prefix: '+9989371' })
    const removed = (await visitor.get('/admin/guard')).html
    expect(removed).toContain(isSent ? 'denied until a moment ago, not blocked now' : '>denied</span>')
    expect(removed).toContain('Block for 12 h')
  })
})

describe('an attack in the mode record', () => {
  use({ GUARD: 'record' })

  test('is stopped in three clicks: the guard page, its button, and the answer to its question', async () => {
    for (let index = 0; index < 24; index++) await send(`+9989371${index % 8}${1000 + index}`)
    await statusIn('record', 0, true)
    const visitor = await signedIn(app)
    const overview = (await visitor.get('/admin')).html
    expect(overview.slice(overview.indexOf('<main'))).toContain('href="/admin/guard')
    const { html } = await visitor.get('/admin/guard')
    const button = /action="\/admin\/guard\/mode"[^>]*data-confirm="[^"]+"(?:(?!<\/form>).)*<\/form>/.exec(
      html,
    )?.[0]
    expect(button).toContain('name="mode" value="deny"')
    expect(button).toContain('name="duration" value="24h"')
    await visitor.post('/admin/guard/mode', { mode: 'deny', duration: '24h' })
    expectError(await send('+998937199999'), 429, 'rate_limited')
    const denied = (await visitor.get('/admin/guard')).html
    expect(denied).toContain('Back to record now')
    expect(denied).toMatch(/>in 2[34] h</)
  })
})

describe('the console', () => {
  use({ GUARD: 'deny', SMS_COUNTRIES: 'LV,DE' })

  test('shows a blocked prefix, and allows it', async () => {
    const denied = (await pump('+3712255', 6)).at(-1)
    await statusIn('deny', 1)
    const visitor = await signedIn(app)
    const overview = await visitor.get('/admin')
    expect(overview.html).toContain('The SMS pumping guard blocks 1 prefix of Latvia.')
    const { html } = await visitor.get('/admin/guard')
    for (const shown of ['+371 2255 ····', 'Latvia', `/admin/deliveries/${denied?.body.requestId}`])
      expect(html).toContain(shown)
    const trace = await visitor.get(`/admin/deliveries/${denied?.body.requestId}`)
    expect(trace.html).toContain('SMS pumping guard: too many unverified codes to the number range')
    expect(trace.html).toContain('Blocked now in Latvia: +371 2255.')
    expect(trace.html).toContain('/admin/guard#prefix')
    expect((await visitor.get('/admin/guard')).status).toBe(200)
    const allow = { prefix: '+3712255', action: 'allow', duration: '24h' }
    expect((await visitor.post('/admin/guard', allow)).status).toBe(303)
    expectSuccess(await send('+37122552000'), ['expiresIn'])
    const after = await visitor.get('/admin/guard')
    expect(after.html).toContain('+3712255 (LV) is allowed until <time')
    expect(after.html).toMatch(/\/admin\/audit\?before=\d+">.{1,300}<small><bdi class="breaks">/)
    expect((await visitor.post('/admin/guard/remove', { prefix: '+3712255' })).status).toBe(303)
    expect(await lastChange()).toMatchObject({ action: 'guard.removed', target: '+3712255' })
  })
})
