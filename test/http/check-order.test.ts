import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { setApp } from '../../src/domain/operator/apps.ts'
import { type Answer, createTestApp, otherThan, type TestApp } from '../support/app.ts'
import { appKeys, freshApp, manyApps } from '../support/apps.ts'
import { operate as change, tester } from '../support/operator.ts'
import { policyOf } from '../support/policy.ts'
import { expectError, expectSuccess, freshPhone, retryAfter } from '../support/rows.ts'

// Design 5: a request with two faults is answered with the one that is checked first. Each endpoint has a
// list of faults in the order of the checks, and each pair of faults is one test. Limits that share an error
// code differ in Retry-After.

type Fields = Readonly<Record<string, unknown>>

interface Fault {
  readonly name: string
  /** The fields it changes in the request; `variables.x` is a field of `variables`. */
  readonly fields: Fields
  /** HTTP status, error code, and its reason or the field at fault. */
  readonly answer: string
  readonly retryAfter?: number
  /** The phone limit that it exhausts. */
  readonly limit?: PhoneLimit
  /** Names of faults that it cannot be combined with. */
  readonly notBeside?: readonly string[]
}

type PhoneLimit = 'cooldown' | 'minute' | 'hour' | 'failures'

const globalMax = 5
const minuteMax = 3
const hourMax = 5
const failuresMax = 3

/**
 * Phones by their exhausted limits, such as `minute,hour`. A cooldown is that of the brands acme and halted.
 */
const phones = new Map(
  [
    ...['', 'cooldown', 'minute', 'hour', 'cooldown,minute', 'cooldown,hour', 'minute,hour'],
    ...['failures', 'cooldown,failures', 'minute,failures', 'hour,failures'],
  ].map((limits) => [limits, freshPhone()]),
)
const live = freshPhone()
const locked = freshPhone()
const spentApp = freshApp()
const notifyApp = freshApp()
const otpApp = freshApp()
const appOfOthers = freshApp()
let liveCode: string
let colonApps = 0
let app: TestApp

beforeAll(async () => {
  app = await createTestApp({
    APP_CREDENTIALS: JSON.stringify({
      ...appKeys,
      ...Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`with:colon${index}`, 'key'])),
    }),
    GLOBAL_LIMIT_PER_MINUTE: String(globalMax),
    PHONE_LIMIT_PER_MINUTE: String(minuteMax),
    PHONE_LIMIT_PER_HOUR: String(hourMax),
    FAILURE_BUDGET_PER_DAY: String(failuresMax),
  })
  await app.brand('acme', { displayName: 'Acme', notifyTemplates: ['ORDER_PLACED'] })
  await app.brand('waiting', { status: 'pending' })
  const others = ['brand1', 'brand2', 'brand3']
  for (const slug of ['halted', ...others]) await app.brand(slug)

  const ports = app.app.context.acting(tester)
  const scopes = [
    [notifyApp, { operations: ['notify'] }],
    [otpApp, { operations: ['otp'] }],
    [appOfOthers, { brands: ['brand2', 'brand3'] }],
  ] as const
  for (const [{ appId }, scope] of scopes) await setApp(ports, appId, scope, [appId])

  const send = async (phone: string, brands: readonly string[]) => {
    for (const brandId of brands) {
      expectSuccess(await app.post('/otp/send', { ...freshApp(), brandId, phone }), ['expiresIn'])
    }
  }
  /** Brands that send to a phone within the last minute. */
  const lastSends = (limits: string): readonly string[] => {
    const cooled = limits.includes('cooldown') ? ['acme', 'halted'] : []
    const count = limits.includes('minute')
      ? minuteMax
      : limits.includes('hour')
        ? minuteMax - 1
        : cooled.length
    return [...cooled, ...others].slice(0, count)
  }
  for (const [limits, phone] of phones) {
    if (limits.includes('hour')) await send(phone, others.slice(0, hourMax - lastSends(limits).length))
  }
  await send(phones.get('failures') ?? '', ['brand1'])
  app.advance(60)
  for (const [limits, phone] of phones) await send(phone, lastSends(limits))
  await send(live, ['acme'])
  liveCode = await app.lastCode(live)
  const guessWrong = async (phone: string, brandId: string, times: number) => {
    const otp = otherThan(await app.lastCode(phone))
    for (let guess = 0; guess < times; guess++) {
      expectError(await app.post('/otp/verify', { ...freshApp(), brandId, phone, otp }), 401, 'mismatch')
    }
  }
  for (const [limits, phone] of phones) {
    if (!limits.includes('failures')) continue
    await guessWrong(phone, lastSends(limits).at(-1) ?? 'brand1', failuresMax)
  }
  await send(locked, ['acme'])
  await guessWrong(locked, 'acme', 2)
  await send(locked, ['brand1'])
  // A correct code clears the wrong-code counts of all brands.
  const right = { ...freshApp(), brandId: 'brand1', phone: locked, otp: await app.lastCode(locked) }
  expectSuccess(await app.post('/otp/verify', right))
  await guessWrong(locked, 'acme', 1)
  await app.brand('halted', { status: 'suspended' })
  app.advance(10)
  for (let count = 0; count < globalMax; count++) await app.post('/otp/verify', { ...spentApp, otp: 'x' })
})
afterAll(() => app.close())

const credentialFaults: readonly Fault[] = [
  { name: 'no credentials', fields: { appId: undefined, apiKey: undefined }, answer: '401 unauthorized' },
  { name: 'no apiKey', fields: { apiKey: undefined }, answer: '401 unauthorized' },
  { name: 'wrong key', fields: { apiKey: 'wrong' }, answer: '403 forbidden' },
  { name: 'unknown app', fields: { appId: 'nobody' }, answer: '403 forbidden' },
]
const notOtp: Fault = { name: 'app without otp', fields: notifyApp, answer: '403 forbidden' }
const notNotify: Fault = { name: 'app without notify', fields: otpApp, answer: '403 forbidden' }
const brandFaults: readonly Fault[] = [
  { name: 'no brandId', fields: { brandId: undefined }, answer: '400 brand_id_required' },
  { name: 'unknown brand', fields: { brandId: 'nobody' }, answer: '403 brand_not_approved' },
  { name: 'brand of other apps', fields: appOfOthers, answer: '403 brand_not_approved' },
  { name: 'pending brand', fields: { brandId: 'waiting' }, answer: '403 brand_not_approved' },
  { name: 'suspended brand', fields: { brandId: 'halted' }, answer: '403 brand_suspended' },
]
/** Seconds until a limit resets, at the time the pairs are sent. */
const globalFault: Fault = {
  name: 'global',
  fields: spentApp,
  answer: '429 rate_limited app_minute',
  retryAfter: 60,
}
/** Phone limits apply to SMS only. */
const notBeside = ['unknown channel']
const phoneFaults: readonly Fault[] = [
  {
    name: 'cooldown',
    fields: {},
    answer: '429 cooldown_active',
    retryAfter: 20,
    limit: 'cooldown',
    notBeside,
  },
  {
    name: 'minute',
    fields: {},
    answer: '429 rate_limited phone_minute',
    retryAfter: 50,
    limit: 'minute',
    notBeside,
  },
  {
    name: 'hour',
    fields: {},
    answer: '429 rate_limited phone_hour',
    retryAfter: 3530,
    limit: 'hour',
    notBeside,
  },
]
const failuresFault: Fault = {
  name: 'wrong codes',
  fields: {},
  answer: '429 rate_limited wrong_codes',
  retryAfter: 86_390,
  limit: 'failures',
  notBeside,
}
/** @param detail the field at fault, else `none` */
const invalid = (name: string, fields: Fields, [detail = 'none'] = Object.keys(fields)): Fault => ({
  name,
  fields,
  answer: `400 validation_error ${detail}`,
})

const sendFaults: readonly Fault[] = [
  ...credentialFaults,
  notOtp,
  ...brandFaults,
  ...phoneFaults,
  failuresFault,
  globalFault,
  invalid('wrong businessName', { businessName: 5 }),
  invalid('no phone', { phone: undefined }),
  invalid('unusable phone', { phone: 'call me' }),
  invalid('unknown channel', { channel: 'FAX' }),
  invalid('EMAIL without email', { channel: 'EMAIL', phone: undefined }, ['email']),
]

const verifyFaults: readonly Fault[] = [
  ...credentialFaults,
  notOtp,
  ...brandFaults,
  globalFault,
  invalid('no otp', { otp: undefined }),
  invalid('phone and email', { phone: live, email: 'a@example.com' }, []),
  invalid('neither phone nor email', { phone: undefined, email: undefined }, []),
  { name: 'otp a number', fields: { otp: 5 }, answer: '400 invalid_input' },
  { name: 'five digits', fields: { otp: '12345' }, answer: '400 invalid_otp_format' },
  { name: 'unusable phone', fields: { phone: 'call me' }, answer: '400 invalid_contact' },
  { name: 'unusable email', fields: { phone: undefined, email: 'nobody' }, answer: '400 invalid_contact' },
  {
    name: 'appId with a colon',
    get fields() {
      return { appId: `with:colon${colonApps++ % 50}`, apiKey: 'key' }
    },
    answer: '400 invalid_app_id',
  },
  failuresFault,
  { name: 'locked code', fields: { phone: locked }, answer: '429 max_attempts' },
  { name: 'no code', fields: { phone: phones.get('') }, answer: '404 not_found' },
]

const order: Fields = {
  channel: 'SMS',
  brandId: 'acme',
  to: ['15559500001'],
  templateKey: 'ORDER_PLACED',
  variables: { customerName: 'Jane', orderId: 'A1', orderDate: '2026-01-01' },
}

const smsFaults: readonly Fault[] = [
  ...credentialFaults,
  notNotify,
  // Another businessName would select the brand.
  ...brandFaults.map((fault) =>
    fault.name === 'no brandId' ? { ...fault, notBeside: ['other business'] } : fault,
  ),
  {
    name: 'template not enabled',
    fields: { brandId: 'brand1' },
    answer: '403 template_not_allowed',
    // Checked only for a known notify template.
    notBeside: ['message and templateKey', 'OTP template', 'unknown template'],
  },
  globalFault,
  invalid('no to', { to: undefined }),
  invalid('empty to', { to: [] }),
  invalid('message and templateKey', { message: 'x' }, []),
  invalid('no variables', { variables: undefined }),
  invalid('a field of e-mail', { subject: 'x' }),
  invalid('otp beside the variables', { otp: '123456' }),
  { name: 'OTP template', fields: { templateKey: 'LOGIN_OTP' }, answer: '400 otp_template_not_supported' },
  { name: 'unknown template', fields: { templateKey: 'NONE' }, answer: '400 invalid_template' },
  { name: 'other business', fields: { 'variables.businessName': 'x' }, answer: '400 unsupported_business' },
  { name: 'missing variable', fields: { 'variables.orderDate': undefined }, answer: '400 missing_variable' },
  invalid('wrong variable', { 'variables.orderId': '' }),
  invalid('otp among the variables', { 'variables.otp': '123456' }),
  invalid('unusable phone', { to: ['call me'] }, ['to[0]']),
]

const mail: Fields = { channel: 'EMAIL', to: ['a@example.com'], subject: 'x', html: 'x' }

const mailFaults: readonly Fault[] = [
  ...credentialFaults,
  notNotify,
  globalFault,
  invalid('no channel', { channel: undefined }),
  { name: 'unknown channel', fields: { channel: 'FAX' }, answer: '400 invalid_channel' },
  invalid('no to', { to: [] }),
  invalid('a field of SMS', { message: 'x' }),
  invalid('no subject', { subject: undefined }),
  {
    name: 'placeholder without data',
    fields: { html: undefined, template: '{{a}}' },
    answer: '400 missing_variable',
  },
]

/** The request fields with these faults; where several change a field, the first one wins. */
function withFaults(base: Fields, faults: readonly Fault[]): Fields {
  const limits = faults.flatMap(({ limit = [] }) => limit)
  const body: Record<string, unknown> =
    limits.length > 0 ? { ...base, phone: phones.get(limits.join()) } : { ...base }
  for (const { fields } of faults.toReversed()) {
    for (const [path, value] of Object.entries(fields)) {
      const [name = '', inner] = path.split('.')
      const present = body[name]
      body[name] =
        inner === undefined ? value : { ...(typeof present === 'object' ? present : {}), [inner]: value }
    }
  }
  return body
}

/** Whether a request can have both faults and the response can show which one was reported. */
function isPair(earlier: Fault, later: Fault): boolean {
  const fieldsOf = ({ fields, limit }: Fault) => [...Object.keys(fields), ...(limit ? ['phone'] : [])]
  const changed = new Set(fieldsOf(earlier))
  const isCovered = (field: string) => changed.has(field) || changed.has(field.split('.')[0] ?? '')
  const both = earlier.limit !== undefined && later.limit !== undefined
  if (!both && (earlier.limit ? fieldsOf(later).includes('phone') : fieldsOf(later).every(isCovered)))
    return false
  if (later.limit && !both && changed.has('phone')) return false
  // An IP address has at most 300 wrong credentials a minute. `wrong key` takes the same path.
  if (earlier.name === 'unknown app') return false
  if (earlier.notBeside?.includes(later.name)) return false
  // The order of the checks of fields is no part of the contract.
  const codeOf = ({ answer }: Fault) => answer.split(' ').slice(0, 2).join(' ')
  return codeOf(earlier) !== codeOf(later) || earlier.retryAfter !== later.retryAfter
}

const endpoints: readonly {
  title: string
  path: string
  base: () => Fields
  faults: readonly Fault[]
  /** Requests with two faults that the list of pairs cannot express. */
  further?: readonly (readonly [name: string, fields: Fields, answer: string])[]
}[] = [
  ...['/otp/send', '/otp/resend'].map((path) => ({
    title: path,
    path,
    base: () => ({ phone: phones.get('') }),
    faults: sendFaults,
  })),
  {
    title: '/otp/verify',
    path: '/otp/verify',
    base: () => ({ phone: live, otp: liveCode }),
    faults: verifyFaults,
    further: [
      [
        'wrong codes, and a locked code',
        { phone: phones.get('failures'), brandId: 'brand1', otp: '123456' },
        '429 rate_limited wrong_codes',
      ],
    ],
  },
  {
    title: '/notify by SMS',
    path: '/notify',
    base: () => order,
    faults: smsFaults,
    further: [
      [
        'message and templateKey, and a template not enabled',
        { ...order, brandId: 'brand1', message: 'x' },
        '400 validation_error',
      ],
      [
        'suspended brand, and an OTP template',
        { ...order, brandId: 'halted', templateKey: 'LOGIN_OTP' },
        '403 brand_suspended',
      ],
    ],
  },
  {
    title: '/notify by mail',
    path: '/notify',
    base: () => mail,
    faults: mailFaults,
    further: [
      [
        'unknown channel, and no brand',
        { channel: 'FAX', to: ['15559500001'], message: 'x' },
        '400 invalid_channel',
      ],
      [
        'unknown channel, and an unknown brand',
        { ...order, channel: 'FAX', brandId: 'nobody' },
        '400 invalid_channel',
      ],
    ],
  },
]

describe.each(endpoints)('order of checks: $title', ({ path, base, faults, further = [] }) => {
  async function expectAnswer(fields: Fields, answer: string, seconds?: number) {
    const answered = await app.post(path, { ...freshApp(), ...fields })
    const [status = '', code = '', detail] = answer.split(' ')
    expectError(answered, Number(status), code, detail)
    if (seconds !== undefined) expect(retryAfter(answered)).toBe(seconds)
  }

  test.each(faults)('$name returns $answer', (fault) =>
    expectAnswer(withFaults(base(), [fault]), fault.answer, fault.retryAfter),
  )

  const pairs = faults.flatMap((earlier, index) =>
    faults.slice(index + 1).flatMap((later) => (isPair(earlier, later) ? { earlier, later } : [])),
  )
  test.each(pairs)('$earlier.name, with $later.name, returns $earlier.answer', ({ earlier, later }) =>
    expectAnswer(withFaults(base(), [earlier, later]), earlier.answer, earlier.retryAfter),
  )

  test.each(further)('%s: %s returns %s', (_, fields, answer) => expectAnswer(fields, answer))

  test('a body that is not an object, without credentials, returns 400 validation_error', async () => {
    expectError(await app.postRaw(path, []), 400, 'validation_error')
  })
})

test('phone limits do not apply to verify: a phone in cooldown can verify its code', async () => {
  expectSuccess(await app.post('/otp/verify', { ...freshApp(), phone: live, otp: liveCode }))
})

// Each step removes the fault that was reported, and the next fault is reported (design 5). Nothing before the
// last step consumes anything.
describe('destinations, guard and budgets', () => {
  const latvia = '37122551234'
  let api: TestApp
  let operate: ReturnType<typeof policyOf>

  beforeEach(async () => {
    api = await createTestApp({
      ...manyApps,
      GLOBAL_LIMIT_PER_MINUTE: '1',
      PHONE_LIMIT_PER_MINUTE: '2',
      PHONE_LIMIT_PER_HOUR: '2',
    })
    await api.brand('acme', { notifyTemplates: ['ORDER_PLACED'] })
    operate = policyOf(api)
    await operate.budget('server', '4')
    await operate.rule('LV', 'block')
  })
  afterEach(() => api.close())

  const answerOf = ({ status, body, headers }: Answer) => ({
    answer: [status, body.error, body.field ?? body.reason].filter(Boolean).join(' '),
    message: body.message,
    retryAfter: Number(headers.get('retry-after')),
  })

  test.each(['/otp/send', '/otp/resend'])('%s', async (path) => {
    await operate.removeRule('LV')
    expectSuccess(await api.post(path, { ...freshApp(), phone: latvia }), ['expiresIn'])
    await operate.rule('LV', 'block')
    await operate.budget('server', '3')
    await change(api, 'guard block', { prefix: '371', duration: '1h' })
    const spent = freshApp()
    await api.post('/otp/verify', { ...spent, phone: latvia })
    const post = async (app: Fields, fields: Fields = {}) =>
      answerOf(await api.post(path, { ...app, phone: latvia, ...fields }))
    const all = { businessName: 5, clientIp: 'fe80::1%eth0', deviceId: '', trustedUser: 'yes' }

    expect(await post(spent, all)).toMatchObject({ answer: '429 cooldown_active', retryAfter: 30 })
    api.advance(30)
    expect(await post(spent, all)).toMatchObject({ answer: '429 rate_limited app_minute', retryAfter: 30 })
    expect(await post(freshApp(), all)).toMatchObject({ answer: '400 validation_error businessName' })
    for (const [name, value] of Object.entries(all)) {
      const answer = `400 validation_error ${name}`
      expect(await post(freshApp(), { [name]: value })).toMatchObject({ answer })
    }
    const blocked = freshApp()
    expect(await post(blocked)).toMatchObject({
      answer: '400 validation_error destination',
      message: expect.stringContaining('Latvia'),
    })
    // It counts only on the global limit.
    expect(await post(blocked)).toMatchObject({ answer: '429 rate_limited app_minute', retryAfter: 60 })
    await operate.removeRule('LV')
    const caller = freshApp()
    expect(await post(caller)).toMatchObject({ answer: '429 rate_limited guard', retryAfter: 3570 })
    await change(api, 'guard remove', { prefix: '371' })
    expect(await post(caller)).toMatchObject({
      answer: '429 rate_limited budget',
      retryAfter: 12 * 3600 - 30,
    })
    expect(await operate.spent()).toEqual({ server: 2000 })
    await operate.budget('server', '4')
    expect(await post(caller)).toMatchObject({ answer: '200' })
    expect(await operate.spent()).toEqual({ server: 4000 })
  })

  test('/notify', async () => {
    await operate.budget('server', '2')
    const post = async (app: Fields, fields: Fields) =>
      answerOf(await api.post('/notify', { ...app, ...order, to: ['447400123456', latvia], ...fields }))
    const faulty = { ...(order.variables as Fields), orderDate: 'today' }

    const invalid = { to: ['447400123456', latvia, 'me'], variables: faulty, reference: '' }
    expect(await post(freshApp(), { ...invalid, templateKey: 'NONE' })).toMatchObject({
      answer: '400 validation_error reference',
    })
    expect(await post(freshApp(), { ...invalid, reference: 'a' })).toMatchObject({
      answer: '400 validation_error variables.orderDate',
    })
    expect(await post(freshApp(), { to: ['447400123456', latvia, 'me'] })).toMatchObject({
      answer: '400 validation_error to[2]',
    })
    const blocked = freshApp()
    expect(await post(blocked, {})).toMatchObject({
      answer: '400 validation_error destination',
      message: expect.stringContaining('`to[1]` is in a country'),
    })
    expect(await post(blocked, {})).toMatchObject({ answer: '429 rate_limited app_minute', retryAfter: 60 })
    await operate.removeRule('LV')
    const caller = freshApp()
    const limit = (sms: string) => change(api, 'app set', { appId: caller.appId, newCountrySmsPerDay: sms })
    await limit('1')
    expect(await post(caller, { to: [latvia, '37122551235'] })).toMatchObject({
      answer: '429 rate_limited guard',
      retryAfter: 12 * 3600,
    })
    await limit('default')
    expect(await post(caller, {})).toMatchObject({
      answer: '429 rate_limited budget',
      retryAfter: 12 * 3600,
    })
    expect([await operate.spent(), await api.outbox()]).toEqual([{ server: 0 }, []])
    await operate.budget('server', '3')
    expect(await post(caller, {})).toMatchObject({ answer: '200' })
    expect(await operate.spent()).toEqual({ server: 3000 })
  })
})
