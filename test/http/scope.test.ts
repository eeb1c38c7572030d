import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { AppOperation } from '../../src/domain/limits/scope.ts'
import { issueApp, type ScopeChange, setApp } from '../../src/domain/operator/apps.ts'
import { type Answer, createTestApp, type TestApp } from '../support/app.ts'
import { appKeys, freshApp, manyApps } from '../support/apps.ts'
import { explained } from '../support/explained.ts'
import { tester } from '../support/operator.ts'
import { expectError, expectSuccess, freshPhone } from '../support/rows.ts'

// Design D38: the brands, operations and calls per minute of an app.

const globalMax = 4
let app: TestApp

beforeAll(async () => {
  app = await createTestApp({ ...manyApps, GLOBAL_LIMIT_PER_MINUTE: String(globalMax) })
  await app.brand('acme', { displayName: 'Acme', notifyTemplates: ['ORDER_PLACED'] })
  await app.brand('globex', { displayName: 'Globex' })
  await app.brand('halted', { displayName: 'Halted', status: 'suspended' })
})
afterAll(() => app.close())

const change = (appId: string, scope: ScopeChange) =>
  setApp(app.app.context.acting(tester), appId, scope, Object.keys(appKeys))

/** An app of its own, and its calls. */
async function scoped(scope: ScopeChange) {
  const own = freshApp()
  await change(own.appId, scope)
  return {
    ...own,
    call: (name: CallName, fields: Readonly<Record<string, unknown>> = {}) => {
      const { path, body } = calls[name]
      return app.post(path, { ...own, ...body(), ...fields })
    },
  }
}

const order = { customerName: 'Jane', orderId: 'A1', orderDate: '2026-01-01' }

type CallName = 'send' | 'send by e-mail' | 'resend' | 'verify' | 'notify' | 'notify by e-mail'

const calls: Readonly<
  Record<CallName, { path: string; operation: AppOperation; body: () => Readonly<Record<string, unknown>> }>
> = {
  send: { path: '/otp/send', operation: 'otp', body: () => ({ phone: freshPhone() }) },
  'send by e-mail': {
    path: '/otp/send',
    operation: 'otp',
    body: () => ({ channel: 'EMAIL', email: `${freshPhone()}@example.com` }),
  },
  resend: { path: '/otp/resend', operation: 'otp', body: () => ({ phone: freshPhone() }) },
  verify: { path: '/otp/verify', operation: 'otp', body: () => ({ phone: freshPhone(), otp: '123456' }) },
  notify: {
    path: '/notify',
    operation: 'notify',
    body: () => ({
      channel: 'SMS',
      brandId: 'acme',
      to: [freshPhone()],
      templateKey: 'ORDER_PLACED',
      variables: order,
    }),
  },
  'notify by e-mail': {
    path: '/notify',
    operation: 'notify',
    body: () => ({ channel: 'EMAIL', brandId: 'acme', to: ['a@example.com'], subject: 'x', html: 'x' }),
  },
}

const callNames = Object.keys(calls) as CallName[]

/** The error code, or `ok`. A verify without a code passed every check of the scope. */
function codeOf({ status, body }: Answer): string {
  return status === 200 || body.error === 'not_found' ? 'ok' : body.error
}

describe.each(callNames)('a call of an app: %s', (name) => {
  const { operation } = calls[name]
  const hasBrandCheck = name !== 'notify by e-mail'
  const other = operation === 'otp' ? 'notify' : 'otp'
  const notApproved = hasBrandCheck ? 'brand_not_approved' : 'ok'
  const rows: readonly (readonly [string, ScopeChange, string])[] = [
    ['both operations', { operations: ['otp', 'notify'] }, 'ok'],
    ['its operation', { operations: [operation] }, 'ok'],
    ['the other operation', { operations: [other] }, 'forbidden'],
    ['its brand', { brands: ['acme'] }, 'ok'],
    ['its brand among others', { brands: ['globex', 'acme'] }, 'ok'],
    ['another brand', { brands: ['globex'] }, notApproved],
    ['its operation and its brand', { brands: ['acme'], operations: [operation] }, 'ok'],
    ['its operation and another brand', { brands: ['globex'], operations: [operation] }, notApproved],
    ['the other operation and its brand', { brands: ['acme'], operations: [other] }, 'forbidden'],
    ['the other operation and another brand', { brands: ['globex'], operations: [other] }, 'forbidden'],
    ['every brand again', { brands: [] }, 'ok'],
  ]
  test.each(rows)('scoped to %s: %j returns %s', async (_, scope, expected) => {
    const { call } = await scoped(scope)
    expect(codeOf(await call(name))).toBe(expected)
  })

  test('with its own calls per minute, above and below GLOBAL_LIMIT_PER_MINUTE, counted over all calls', async () => {
    for (const perMinute of [2, globalMax + 2]) {
      const { appId, call } = await scoped({ perMinute })
      for (let count = 1; count < perMinute; count++) await call(callNames[count % callNames.length] ?? name)
      expect(codeOf(await call(name))).toBe('ok')
      const refused = await call(name)
      expectError(refused, 429, 'rate_limited')
      expect(refused.body.message).toContain(`At most ${perMinute} per minute for this app`)
      // The calls of this minute count against the changed limit too.
      await change(appId, { perMinute: perMinute + 1 })
      expect(codeOf(await call(name))).toBe('ok')
      await change(appId, { perMinute: null })
      expect(codeOf(await call(name))).toBe(perMinute + 1 < globalMax ? 'ok' : 'rate_limited')
    }
  })

  test('that may not use it gets 403 before the brand, takes nothing from its limit, and does not count as wrong credentials', async () => {
    const { appId, call } = await scoped({ operations: [other], perMinute: 1 })
    for (let count = 0; count < 3; count++) {
      const refused = await call(name, { brandId: count === 0 ? 'halted' : undefined })
      expectError(refused, 403, 'forbidden')
      expect(refused.body.message).toMatch(/^This app may not send /)
    }
    await change(appId, { operations: [operation] })
    expect(codeOf(await call(name))).toBe('ok')
  })
})

test('more calls than the limit of wrong credentials, outside the operations of an app, do not lock its IP address', async () => {
  const { call } = await scoped({ operations: ['notify'] })
  const answers = await Promise.all(Array.from({ length: 310 }, () => call('send')))
  expect(new Set(answers.map(codeOf))).toEqual(new Set(['forbidden']))
  const wrong = await app.post('/otp/send', { apiKey: 'wrong' })
  expect([wrong.status, wrong.body.message]).toEqual([403, expect.stringContaining('Check `appId`')])
})

test('a brand of other apps is answered like one that does not exist, suspended or not', async () => {
  const { call } = await scoped({ brands: ['acme'] })
  const [unknown, ...others] = await Promise.all(
    ['nobody', 'globex', 'halted'].map((brandId) => call('send', { brandId })),
  )
  for (const { status, body } of others) {
    expect([status, body.error, body.message]).toEqual([403, 'brand_not_approved', unknown?.body.message])
  }
  const own = await scoped({ brands: ['halted'] })
  expectError(await own.call('send', { brandId: 'halted' }), 403, 'brand_suspended')
  // By its name, without brandId.
  const named = (businessName: string) =>
    call('notify', { brandId: undefined, variables: { ...order, businessName } })
  expectError(await named('Globex'), 403, 'brand_not_approved')
  expect(codeOf(await named('ACME'))).toBe('ok')
})

test('the brandId of a mail outside the scope is ignored like an unknown one', async () => {
  const brandsOf = async (answer: Answer) =>
    (await app.eventsOf(answer)).deliveries.map((delivery) => delivery.brand)
  const { call } = await scoped({ brands: ['globex'] })
  expect(await brandsOf(await call('notify by e-mail'))).toEqual([null])
  expect(await brandsOf(await call('notify by e-mail', { brandId: 'nobody' }))).toEqual([null])
  expect(await brandsOf(await call('notify by e-mail', { brandId: 'globex' }))).toEqual(['globex'])
})

test('log, request trace and explain name the app and the brand, and say how to allow the call', async () => {
  const { appId, call } = await scoped({ operations: ['otp'], brands: ['globex'] })
  const linesOf = async (answer: Answer) => {
    const { trace, deliveries } = await app.eventsOf(answer)
    const logged = app.lines.find((line) => 'requestId' in line && line.requestId === answer.body.requestId)
    return { logged, lines: trace ? explained(trace, deliveries).join('\n') : '' }
  }
  const operation = await linesOf(await call('notify'))
  expect(operation.logged).toMatchObject({ app: appId, error: 'forbidden' })
  expect(operation.lines).toContain(`passed    credentials of app ${appId}`)
  expect(operation.lines).toContain('REJECTED  the app may not use this operation')
  expect(operation.lines).toContain(`otpost app set ${appId} --allow otp,notify`)
  const brand = await linesOf(await call('send'))
  expect(brand.logged).toMatchObject({ app: appId, brand: 'acme', error: 'brand_not_approved' })
  expect(brand.lines).toContain('brand acme')
  expect(brand.lines).toContain('REJECTED  the brand is unknown or pending, or the app may not use it')
  expect(brand.lines).toContain(`otpost app set ${appId} --brand SLUG`)
})

describe('businessName of an app that is limited to brands', () => {
  // Case, spaces, punctuation, full width, accents, invisible characters, and letters that look like Latin ones.
  const spellings = [
    'Acme',
    ' ACME ',
    'A c m e',
    'A.C.M.E.',
    'Ａｃｍｅ',
    'Àcmé',
    'Ac\u200dme',
    'АСМЕ',
    'асме',
    'Ac\u2800me',
    'ɑcme',
    'halted',
    'haIted',
    'ha1ted',
  ]
  test.each(spellings)('is rejected if it is another brand: %p', async (businessName) => {
    const { call } = await scoped({ brands: ['globex', 'acme'] })
    for (const name of ['send', 'send by e-mail', 'resend'] as const) {
      const answer = await call(name, { brandId: 'globex', businessName })
      expectError(answer, 400, 'validation_error', 'businessName')
    }
    const free = freshApp()
    const sent = await app.post('/otp/send', {
      ...free,
      brandId: 'globex',
      phone: freshPhone(),
      businessName,
    })
    expectSuccess(sent, ['expiresIn'])
  })

  test.each(['GLOBEX', 'Globex Security', 'Acme+', 'Acme Bank', '100', null])(
    'can be %p',
    async (businessName) => {
      const { call } = await scoped({ brands: ['globex'] })
      expectSuccess(await call('send', { brandId: 'globex', businessName }), ['expiresIn'])
    },
  )
})

test('a changed scope applies to every request that begins after the change, while others are in progress', async () => {
  const { appId, call } = await scoped({ perMinute: 1000 })
  for (let round = 0; round < 10; round++) {
    const isAllowed = round % 2 === 1
    const during = Promise.all(Array.from({ length: 5 }, () => call('send by e-mail')))
    await change(appId, { brands: [isAllowed ? 'acme' : 'globex'] })
    const after = await Promise.all([call('send'), call('verify'), call('notify')])
    expect(after.map(codeOf)).toEqual(Array(3).fill(isAllowed ? 'ok' : 'brand_not_approved'))
    for (const answer of await during) expect(['ok', 'brand_not_approved']).toContain(codeOf(answer))
  }
})

test('changes of different fields at once all hold', async () => {
  const own = freshApp()
  await Promise.all([
    change(own.appId, { brands: ['acme'] }),
    change(own.appId, { operations: ['otp'] }),
    change(own.appId, { perMinute: 7 }),
  ])
  const { scopes } = await app.app.context.policy.rows()
  expect(scopes.find(({ appId }) => appId === own.appId)).toEqual({
    appId: own.appId,
    brands: ['acme'],
    allowsOtp: true,
    allowsNotify: false,
    perMinute: 7,
    newCountrySmsPerDay: null,
  })
})

test('an app that is created with a scope has it at its first call', async () => {
  const { key } = await issueApp(app.app.context.acting(tester), 'till', {
    brands: ['globex'],
    operations: ['otp'],
  })
  const send = (brandId: string) =>
    app.post('/otp/send', { appId: 'till', apiKey: key, brandId, phone: freshPhone() })
  expectError(await send('acme'), 403, 'brand_not_approved')
  expectSuccess(await send('globex'), ['expiresIn'])
})
