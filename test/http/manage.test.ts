import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { createManageClient } from 'otpost/manage'
import { actions } from '../../src/domain/operator/actions.ts'
import { reads } from '../../src/domain/operator/reads.ts'
import { createTestApp, type TestApp } from '../support/app.ts'
import { accessRequest } from '../support/calls.ts'
import { operate } from '../support/operator.ts'

// Design D57: the management API. test/http/actions.test.ts has each action.

let app: TestApp

beforeEach(async () => {
  app = await createTestApp()
})
afterEach(() => app.close())

async function token(role: string, duration?: string): Promise<string> {
  const entered = { name: `${role}-${duration ?? 'always'}`, role, duration }
  return (await operate(app, 'admin token create', entered)).secret ?? ''
}

function call(name: string, bearer: string | undefined, body: unknown = {}) {
  const headers = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }
  return app.request('POST', `/api/manage/${name}`, { headers, body: JSON.stringify(body) })
}

describe('a token', () => {
  test('is required', async () => {
    const answers = await Promise.all([
      call('brand.list', undefined),
      call('brand.list', 'another'),
      app.request('GET', '/api/manage'),
      app.request('POST', '/api/manage/brand.list', { headers: { authorization: 'Basic YTpi' }, body: '{}' }),
    ])
    expect(answers.map(({ status, body }) => [status, body.error])).toEqual([
      [401, 'unauthorized'],
      [403, 'forbidden'],
      [401, 'unauthorized'],
      [403, 'forbidden'],
    ])
  })

  test('of an app is none', async () => {
    const { secret } = await operate(app, 'app issue', { appId: 'till' })
    expect((await call('brand.list', secret)).status).toBe(403)
  })

  test('ends when it expires, and when it is revoked', async () => {
    const [short, long] = [await token('viewer', '1h'), await token('viewer')]
    expect((await call('brand.list', short)).status).toBe(200)
    app.advance(3600)
    expect((await call('brand.list', short)).status).toBe(403)
    expect((await call('brand.list', long)).status).toBe(200)
    await operate(app, 'admin token revoke', { name: 'viewer-always' })
    expect((await call('brand.list', long)).status).toBe(403)
  })

  test('that has expired leaves its name to another one', async () => {
    await token('viewer', '1h')
    await expect(token('viewer', '1h')).rejects.toThrow('There is already a token viewer-1h.')
    app.advance(3600)
    const again = await token('viewer', '1h')
    expect((await call('admin.token.list', again)).body.rows).toHaveLength(1)
  })

  test('has 120 calls a minute', async () => {
    const viewer = await token('viewer')
    const answers = []
    for (let calls = 0; calls < 121; calls++) answers.push(await call('brand.list', viewer))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(120)
    expect(answers.find(({ status }) => status === 429)?.headers.get('retry-after')).toBe('60')
  })

  test('is named in the audit log, which does not have it', async () => {
    const operator = await token('operator')
    await call('brand.put', operator, { slug: 'globex', displayName: 'Globex' })
    const [entry] = (await call('audit', operator, { limit: 1 })).body.rows
    expect([entry.action, entry.by]).toEqual(['brand.created', 'token operator-always'])
    const { body } = await call('audit', operator)
    expect(JSON.stringify([body, app.lines])).not.toContain(operator)
  })
})

describe('a body', () => {
  test.each([
    [{ slug: 'globex', colour: 'red' }, 'colour', '`colour` is no field of this action.'],
    [{ displayName: 'Globex' }, 'slug', '`slug` is required.'],
    [{ slug: 'globex', dltEnabled: 'yes' }, 'dltEnabled', '`dltEnabled` must be true or false.'],
    [
      { slug: 'globex', notifyTemplates: 'ORDER_PLACED' },
      'notifyTemplates',
      '`notifyTemplates` must be an array of strings.',
    ],
    [
      { slug: 1234567890123456800 },
      'slug',
      '`slug` has a number of more digits than JSON and YAML keep. Give it as a string.',
    ],
    [
      { slug: 'globex', notifyTemplates: [9007199254740992] },
      'notifyTemplates',
      '`notifyTemplates` has a number of more digits than JSON and YAML keep. Give it as a string.',
    ],
    [{ slug: { a: 1 } }, 'slug', '`slug` must be a string.'],
    [{ slug: 'globex', mustBeNew: true }, 'mustBeNew', '`mustBeNew` is no field of this action.'],
  ])('%j names the field %s', async (body, field, message) => {
    const { status, body: answer } = await call('brand.put', await token('operator'), body)
    expect([status, answer.error, answer.field, answer.message]).toEqual([
      400,
      'validation_error',
      field,
      message,
    ])
  })

  test.each(['[]', '"a"', '{', ''])('%s is an object or nothing', async (body) => {
    const headers = { authorization: `Bearer ${await token('viewer')}` }
    const { status } = await app.request('POST', '/api/manage/brand.list', { headers, body })
    expect(status).toBe(body === '' ? 200 : 400)
  })

  test('for an unknown action is 404', async () => {
    expect((await call('brand.paint', await token('viewer'))).status).toBe(404)
  })

  test('goes to a POST, as the answer to another method says', async () => {
    const { status, body } = await app.request('GET', '/api/manage/brand.list')
    expect([status, body.message]).toEqual([
      405,
      expect.stringContaining('/api/manage/brand.list accepts POST.'),
    ])
  })
})

test('access requests are as in their command', async () => {
  const { integrationRequestId } = (await app.postRaw('/integrations/requests', accessRequest)).body
  const { rows } = (await call('request.list', await token('viewer'))).body
  expect(rows).toMatchObject([
    { integrationRequestId, createdAt: '2026-01-01T12:00:00.000Z', decidedAt: null },
  ])
})

test('a secret is in the answer once', async () => {
  const { body } = await call('app.issue', await token('operator'), { appId: 'till', brands: ['acme'] })
  expect([body.success, body.secret]).toEqual([true, expect.stringMatching(/^otp_live_/)])
  const { rows } = (await call('app.list', await token('viewer'))).body
  expect(rows.map(({ appId, brands }: { appId: string; brands: string[] }) => [appId, brands])).toEqual([
    ['till', ['acme']],
  ])
  expect(JSON.stringify(rows)).not.toContain(body.secret)
})

test('an invitation answers the link, as the command', async () => {
  const { body } = await call('admin.operator.invite', await token('owner'), {
    email: 'new@example.com',
    role: 'viewer',
  })
  expect(body.secret).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/admin\/link#./)
})

describe('the same call twice changes nothing, and has one audit entry:', () => {
  const prices = 'prefix,currency,price\n+44,EUR,0.04\n+371,EUR,0.05\n'
  test.each([
    ['budget.set', { scope: 'server', period: 'month', amount: '5' }, { amount: '6' }],
    ['guard.mode', { mode: 'off' }, { mode: 'deny' }],
    ['incident.set', { failedPercent: 20 }, { failedPercent: 30 }],
    ['price.import', { prices }, { prices: prices.replace('0.05', '0.06') }],
    [
      'app.webhook',
      { appId: 'shop', url: 'https://shop.example/otpost', keepSecret: true },
      { events: ['otp.verified'] },
    ],
  ])('%s', async (name, body, other) => {
    const operator = await token('operator')
    const entries = async () => (await call('audit', operator)).body.rows.length
    const before = await entries()
    expect((await call(name, operator, body)).status).toBe(200)
    const { webhooks } = await app.app.context.policy.rows()
    const again = await call(name, operator, body)
    expect([again.status, again.body.secret]).toEqual([200, undefined])
    expect(await entries()).toBe(before + 1)
    expect((await app.app.context.policy.rows()).webhooks).toEqual(webhooks)
    expect((await call(name, operator, { ...body, ...other })).status).toBe(200)
    expect(await entries()).toBe(before + 2)
    expect((await app.app.context.policy.rows()).webhooks[0]?.secret).toBe(webhooks[0]?.secret as string)
  })
})

test('the event log is read in pages, newest first, and filtered', async () => {
  const requestIds: string[] = []
  for (const phone of ['+12025550101', '+12025550102', '+447400123456'])
    requestIds.unshift((await app.post('/otp/send', { phone })).body.requestId)
  const viewer = await token('viewer')
  const first = (await call('deliveries', viewer, { limit: 2 })).body
  const second = (await call('deliveries', viewer, { limit: 2, next: first.next })).body
  const found = [...first.rows, ...second.rows].map(({ requestId }) => requestId)
  expect(found).toEqual(requestIds)
  const toOne = (await call('requests', viewer, { to: '+1 202 555 0101', call: 'code' })).body
  expect(toOne.rows.map((row: { requestId: string }) => row.requestId)).toEqual([requestIds[2]])
  expect((await call('deliveries', viewer, { country: 'zz' })).status).toBe(400)
  expect((await call('deliveries', viewer, { country: 'gb' })).body.rows).toHaveLength(1)
  for (const [status, rows] of [
    ['delivered', 0],
    ['accepted', 1],
  ] as const)
    expect(
      (await call('deliveries', viewer, { status: [status], request: requestIds[0] })).body.rows,
    ).toHaveLength(rows)
  expect((await call('deliveries', viewer, { status: ['lost'] })).status).toBe(400)
  expect(JSON.stringify([first, toOne])).not.toContain('2025550101')
  expect((await call('deliveries', viewer, { status: ['bogus'] })).status).toBe(400)
  const explained = (await call('explain', viewer, { requestId: requestIds[0] })).body
  expect([explained.deliveries.length, explained.opening.join(' ')]).toEqual([
    1,
    expect.stringContaining('requested a code'),
  ])
})

test('otpost/manage calls it, and rejects with the error of the server', async () => {
  const handle = ((url: URL, init: RequestInit) => app.app.handle(new Request(url, init))) as typeof fetch
  const manage = createManageClient({
    url: 'http://localhost',
    token: await token('operator'),
    fetch: handle,
  })
  const created = await manage('brand.put', { slug: 'globex', displayName: 'Globex' })
  expect(created.message).toBe('Saved. Takes effect immediately.')
  const { rows } = await manage('brand.list', {})
  expect(rows?.map(({ brandId }) => brandId)).toEqual(['acme', 'globex'])
  await expect(manage('budget.set', { scope: 'app:ghost', period: 'day', amount: 5 })).rejects.toMatchObject({
    status: 400,
    error: 'validation_error',
    message: 'App ghost does not exist.',
  })
})

test('whatif and routes answer as the commands print with --json', async () => {
  for (const phone of ['+12025550101', '+447400123456']) await app.post('/otp/send', { phone })
  await new Promise((resolve) => setImmediate(resolve))
  const viewer = await token('viewer')
  const { body } = await call('whatif', viewer, { since: '1d', countries: ['GB'], phoneHour: 5 })
  expect([body.requests, body.denied, body.byCountry[0]?.country]).toEqual([2, 1, 'US'])
  expect(body.unknown.length).toBeGreaterThan(2)
  expect((await call('whatif', viewer, { countries: ['XX'] })).status).toBe(400)
  const routes = (await call('routes', viewer, { since: '1d' })).body
  expect(routes.rows.map((row: { country: string }) => row.country).sort()).toEqual(['GB', 'US'])
  expect((await call('routes', viewer, { since: '2100-01-01' })).status).toBe(400)
})

test('every read answers', async () => {
  const viewer = await token('viewer')
  const { requestId } = (await app.post('/otp/send', { phone: '+12025550101' })).body
  for (const { name } of reads) {
    const { status, body } = await call(
      name.replaceAll(' ', '.'),
      viewer,
      name === 'explain' ? { requestId } : {},
    )
    expect([name, status, body.success]).toEqual([name, 200, true])
  }
})

test('GET /api/manage describes each action and read as OpenAPI', async () => {
  const headers = { authorization: `Bearer ${await token('viewer')}` }
  const { body } = await app.request('GET', '/api/manage', { headers })
  expect(Object.keys(body.paths).sort()).toEqual(
    [...actions, ...reads].map(({ name }) => `/api/manage/${name.replaceAll(' ', '.')}`).sort(),
  )
  const { schema } = body.paths['/api/manage/budget.set'].post.requestBody.content['application/json']
  expect(schema.required).toEqual(['scope', 'period', 'amount'])
  expect(schema.properties.period.enum).toEqual(['day', 'month'])
  expect(schema.properties.amount.type).toEqual(['string', 'number'])
  const template = body.paths['/api/manage/text.set'].post.requestBody.content['application/json'].schema
  expect(template.properties.slug.type).toBe('string')
})
