import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import packageJson from '../../package.json'
import { type Answer, createTestApp, type TestApp } from '../support/app.ts'
import { createBrokenApp, expectError, expectSuccess, retryAfter } from '../support/rows.ts'

let app: TestApp

beforeAll(async () => {
  app = await createTestApp()
})
afterAll(() => app.close())

describe('GET /health (D16, D20)', () => {
  test('returns status, version and checks', async () => {
    const answer = await app.get('/health')
    expect(answer.status).toBe(200)
    expect(answer.body).toEqual({
      status: 'ok',
      version: packageJson.version,
      checks: { database: 'ok' },
      requestId: answer.headers.get('x-request-id'),
    })
  })

  test('returns 503 and unavailable when the database is unusable', async () => {
    const broken = await createBrokenApp()
    const answer = await broken.get('/health')
    expect(answer.status).toBe(503)
    expect(Object.keys(answer.body).sort()).toEqual(['checks', 'requestId', 'status', 'version'])
    expect(answer.body.status).toBe('unavailable')
    expect(answer.body.checks.database).not.toBe('ok')
    expect(answer.body.requestId).toBe(answer.headers.get('x-request-id'))
    await broken.close()
  })
})

describe('GET /integrations/catalog (D17)', () => {
  let answer: Answer

  beforeAll(async () => {
    answer = await app.get('/integrations/catalog')
  })

  test('has exactly the fields of the design', () => {
    expect(answer.status).toBe(200)
    expect(Object.keys(answer.body).sort()).toEqual([
      'channels',
      'limits',
      'requestId',
      'success',
      'templates',
    ])
    expect(answer.body.success).toBe(true)
    expect(answer.body.requestId).toBe(answer.headers.get('x-request-id'))
    expect([...answer.body.channels].sort()).toEqual(['EMAIL', 'SMS'])
  })

  const required: readonly { key: string; variables: readonly string[] }[] = [
    { key: 'ORDER_PLACED', variables: ['customerName', 'orderDate', 'orderId'] },
    { key: 'OUT_FOR_DELIVERY', variables: ['customerName', 'orderId'] },
    { key: 'ORDER_DELIVERED', variables: ['customerName', 'deliveryDateTime', 'orderId'] },
  ]
  for (const { key, variables } of required) {
    test(`lists ${variables.join(', ')} as required for ${key} (D10)`, () => {
      const entry = answer.body.templates.find((template: { key: string }) => template.key === key)
      expect(Object.keys(entry).sort()).toEqual(['channel', 'key', 'variables'])
      expect(entry.channel).toBe('SMS')
      const names = entry.variables
        .filter((variable: { required: boolean }) => variable.required)
        .map((variable: { name: string }) => variable.name)
      expect(names.sort()).toEqual([...variables])
    })
  }

  test('does not list OTP templates for notify', () => {
    const keys = answer.body.templates.map((template: { key: string }) => template.key)
    expect(keys).not.toContain('LOGIN_OTP')
    expect(keys).not.toContain('LOGIN_OTP_WITH_ID')
  })

  test('returns the limits in effect', async () => {
    const strict = await createTestApp({ GLOBAL_LIMIT_PER_MINUTE: '77', PHONE_LIMIT_PER_HOUR: '66' })
    const { limits } = (await strict.get('/integrations/catalog')).body
    expect(JSON.stringify(limits)).toContain('77')
    expect(JSON.stringify(limits)).toContain('66')
    await strict.close()
  })
})

describe('POST /integrations/requests (D18)', () => {
  const request = {
    companyName: 'Example Ltd',
    contactName: 'Jane Doe',
    contactEmail: 'jane@example.com',
    brandName: 'Example',
  }
  const full = {
    ...request,
    channels: ['SMS', 'EMAIL'],
    website: 'https://example.com',
    useCase: 'Login codes',
  }
  const fields = ['integrationRequestId', 'status']
  const rows: readonly { name: string; body: Readonly<Record<string, unknown>>; status: number }[] = [
    { name: 'the required fields', body: request, status: 201 },
    { name: 'every field', body: full, status: 201 },
    {
      name: 'optional fields as null',
      body: { ...request, channels: null, website: null, useCase: null },
      status: 201,
    },
    { name: 'no companyName', body: { ...request, companyName: undefined }, status: 400 },
    { name: 'no contactName', body: { ...request, contactName: undefined }, status: 400 },
    { name: 'no contactEmail', body: { ...request, contactEmail: undefined }, status: 400 },
    { name: 'no brandName', body: { ...request, brandName: undefined }, status: 400 },
    { name: 'an empty companyName', body: { ...request, companyName: '' }, status: 400 },
    { name: 'companyName null', body: { ...request, companyName: null }, status: 400 },
    { name: 'companyName a number', body: { ...request, companyName: 5 }, status: 400 },
    { name: 'brandName an array', body: { ...request, brandName: ['x'] }, status: 400 },
    {
      name: 'brandName of mixed scripts',
      body: { ...request, brandName: 'HS\u0412\u0421 Bank' },
      status: 400,
    },
    {
      name: 'a companyName with an invisible character',
      body: { ...request, companyName: 'Ac\u202eme' },
      status: 400,
    },
    { name: 'an invalid contactEmail', body: { ...request, contactEmail: 'nobody' }, status: 400 },
    { name: 'contactEmail as a number', body: { ...request, contactEmail: 5 }, status: 400 },
    { name: 'channels as a string', body: { ...request, channels: 'SMS' }, status: 400 },
    { name: 'an unknown channel', body: { ...request, channels: ['FAX'] }, status: 400 },
    { name: 'website as a number', body: { ...request, website: 5 }, status: 400 },
    { name: 'useCase as an object', body: { ...request, useCase: {} }, status: 400 },
    { name: 'nothing', body: {}, status: 400 },
  ]
  for (const { name, body, status } of rows) {
    test(`${name} returns ${status}`, async () => {
      // An hour later the limit of five requests an hour has reset.
      app.advance(3600)
      const answer = await app.postRaw('/integrations/requests', body)
      if (status === 400) return expectError(answer, 400, 'validation_error')
      expectSuccess(answer, fields, 201)
      expect(answer.body.status).toBe('pending')
      expect(answer.body.integrationRequestId).toMatch(/\S/)
    })
  }

  test('rejects the sixth request within an hour with 429 rate_limited, until the hour ends', async () => {
    app.advance(3600)
    const ids = new Set<string>()
    for (let count = 0; count < 5; count++) {
      const answer = await app.postRaw('/integrations/requests', request)
      expectSuccess(answer, fields, 201)
      ids.add(answer.body.integrationRequestId)
      app.advance(60)
    }
    expect(ids.size).toBe(5)
    const refused = await app.postRaw('/integrations/requests', request)
    expectError(refused, 429, 'rate_limited', 'client_ip')
    expect(retryAfter(refused)).toBe(3600 - 5 * 60)
    app.advance(retryAfter(refused) - 1)
    expectError(await app.postRaw('/integrations/requests', request), 429, 'rate_limited')
    app.advance(1)
    expectSuccess(await app.postRaw('/integrations/requests', request), fields, 201)
  })
})

test('at most 1,000 integration requests can be pending; more return 429 rate_limited and count in no limit (D18)', async () => {
  const full = await createTestApp()
  const request = {
    companyName: 'Example Ltd',
    contactName: 'Jane Doe',
    contactEmail: 'jane@example.com',
    brandName: 'Example',
  }
  const { requests } = full.app.context
  for (let index = 0; index < 999; index++) {
    const fields = { ...request, channels: [], website: null, useCase: null }
    await requests.add({ id: `request ${index}`, createdAt: full.clock.now, ...fields }, 1000)
  }
  const answers = await Promise.all(
    Array.from({ length: 5 }, () => full.postRaw('/integrations/requests', request)),
  )
  expect(answers.map(({ status }) => status).sort()).toEqual([201, 429, 429, 429, 429])
  for (let count = 0; count < 6; count++) {
    const refused = await full.postRaw('/integrations/requests', request)
    expectError(refused, 429, 'rate_limited', 'none')
    expect(retryAfter(refused)).toBe(3600)
  }
  expect(await requests.pendingCount()).toBe(1000)
  await full.close()
})

describe('GET /platform/brands (D19)', () => {
  test('lists active brands, without credentials, with exactly these fields', async () => {
    const shop = await createTestApp()
    await shop.brand('waiting', { displayName: 'Waiting', status: 'pending' })
    await shop.brand('halted', { displayName: 'Halted', status: 'suspended' })
    await shop.brand('store', { displayName: 'The Store', dltEnabled: true, domain: 'store.example.com' })
    const answer = await shop.get('/platform/brands')
    expect(answer.status).toBe(200)
    const brands = [...answer.body.brands].sort((a, b) => (a.brandId < b.brandId ? -1 : 1))
    expect({ ...answer.body, brands }).toEqual({
      success: true,
      brands: [
        { brandId: 'acme', displayName: 'Acme' },
        { brandId: 'store', displayName: 'The Store' },
      ],
      requestId: answer.headers.get('x-request-id'),
    })
    await shop.close()
  })

  test('returns an empty list if no brand is active', async () => {
    const shop = await createTestApp()
    await shop.brand('acme', { status: 'suspended' })
    expect((await shop.get('/platform/brands')).body.brands).toEqual([])
    await shop.close()
  })
})
