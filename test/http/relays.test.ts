import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { countryOfPrefix } from '../../src/adapters/phone/destination.ts'
import type { Outcome } from '../../src/domain/ground/providers.ts'
import { readGuardStatus } from '../../src/domain/operator/guard.ts'
import { type Answer, createTestApp, type TestApp } from '../support/app.ts'
import { signedIn } from '../support/console.ts'
import { explained } from '../support/explained.ts'
import {
  goJson,
  type IdentitySystemName,
  identitySystems,
  supabaseMetadata,
  supabaseUser,
} from '../support/identity-systems.ts'
import { operate } from '../support/operator.ts'
import { accepted, policyOf, rejected, testProvider, unknown } from '../support/policy.ts'
import { type AddedRelay, addRelay, basic } from '../support/relay.ts'

// Design D53: the relays of identity systems that read a status and a body. Those with a caller that can run are in
// test/relays.system.ts.

let app: TestApp
const provider = testProvider('one')

beforeEach(async () => {
  app = await createTestApp({}, { phoneRoutes: { plain: [provider] } })
})
afterEach(async () => {
  await app.close()
  provider.sent.length = 0
  provider.answer(() => accepted)
})

const digits = '12025550143'
const otherSecret: Readonly<Partial<Record<IdentitySystemName, string>>> = {
  supabase: `v1,whsec_${btoa('another secret of thirty-two byt')}`,
}

/** Adds the relay as its page says. */
async function connect(name: IdentitySystemName, at = app): Promise<AddedRelay> {
  const { ownSecret } = identitySystems[name]
  const added = await addRelay(at, name, ownSecret === undefined ? {} : { secret: ownSecret })
  return { ...added, secret: added.secret ?? ownSecret }
}

function post(name: IdentitySystemName, body: string, headers: Record<string, string>): Promise<Answer> {
  return app.request('POST', `/relay/${name}`, { headers, body })
}

/** A code as the identity system sends it. */
function call(name: IdentitySystemName, relay: AddedRelay, code = '482913', to = digits): Promise<Answer> {
  const { body, proof } = identitySystems[name]
  const bytes = body(code, to)
  return post(name, bytes, proof(relay, bytes, app.clock.now))
}

type Situation = (name: IdentitySystemName, relay: AddedRelay) => Promise<Answer>

const other = (name: IdentitySystemName, relay: AddedRelay) => ({
  ...relay,
  secret: otherSecret[name] ?? 'another-secret-of-thirty-two-byt',
})

const failing =
  (outcome: Outcome): Situation =>
  (name, relay) => {
    provider.answer(() => outcome)
    return call(name, relay)
  }

const situations = {
  'a wrong secret': (name, relay) => call(name, other(name, relay)),
  'no proof': (name) => post(name, identitySystems[name].body('482913', digits), {}),
  'a blocked country': async (name, relay) => {
    await policyOf(app).rule('US', 'block')
    return call(name, relay)
  },
  'the limit of the phone number': async (name, relay) => {
    for (let sent = 0; sent < 3; sent++)
      expect(identitySystems[name].seen(await call(name, relay))).toBe('sent')
    return call(name, relay)
  },
  'a suspended brand': async (name, relay) => {
    await app.brand('acme', { status: 'suspended' })
    return call(name, relay)
  },
  'a code of 3 characters': (name, relay) => call(name, relay, '482'),
  'a code of 11 characters': (name, relay) => call(name, relay, '48291348291'),
  'a number that the provider rejects': failing(rejected),
  'an account that the provider rejects': failing({ ...rejected, scope: 'account' } as Outcome),
  'a time-out of the provider': failing(unknown),
  'a body that is too large': (name, relay) => call(name, relay, '4'.repeat(256 * 1024)),
  'no JSON': (name, relay) => post(name, 'a=b', identitySystems[name].proof(relay, 'a=b', app.clock.now)),
  'a relay that was removed': async (name, relay) => {
    await operate(app, 'relay remove', { name })
    return call(name, relay)
  },
} satisfies Readonly<Record<string, Situation>>

type Errors = Readonly<Record<IdentitySystemName, string>>

const ofStatus = (supabase: string, status: number, error: string, authgear: string): Errors => ({
  supabase,
  zitadel: `webhook didn't return a success status: ${status}`,
  logto: `connector.general ${error}`,
  authgear: authgear === '' ? 'UnexpectedError' : `SMSGateway${authgear}`,
  authentik: `ValidationError ${error}`,
})

const noCode = ofStatus('400', 400, 'validation_error', 'UnsupportedRequest')
const notProven = ofStatus(
  '500 Hook requires authorization token',
  401,
  'unauthorized',
  'AuthenticationFailed',
)

/** What each identity system shows. */
const errors: Readonly<Record<keyof typeof situations, Errors>> = {
  'a wrong secret': notProven,
  'no proof': notProven,
  'a blocked country': ofStatus('400', 400, 'validation_error', 'InvalidPhoneNumber'),
  'the limit of the phone number': ofStatus('429', 429, 'rate_limited', 'RateLimited'),
  'a suspended brand': ofStatus('403', 403, 'brand_suspended', 'DeliveryRejected'),
  'a code of 3 characters': noCode,
  'a code of 11 characters': noCode,
  'a number that the provider rejects': ofStatus('422', 502, 'sms_failed', 'InvalidPhoneNumber'),
  'an account that the provider rejects': ofStatus('422', 502, 'sms_failed', 'DeliveryRejected'),
  'a time-out of the provider': ofStatus('422', 502, 'sms_failed', 'Timeout'),
  'a body that is too large': ofStatus('413', 413, 'validation_error', ''),
  'no JSON': noCode,
  'a relay that was removed': ofStatus(
    '500 Unexpected status code returned from hook: 404',
    404,
    'not_found',
    '',
  ),
}

/** What their traces say, if it is not the message of the answer. */
const traces: Partial<Readonly<Record<string, string>>> = {
  'the limit of the phone number': 'REJECTED  SMS codes per minute for this phone: 3 of 3 used',
  'a suspended brand': 'REJECTED  the brand is suspended',
  'a number that the provider rejects': 'The phone number cannot receive SMS',
  'an account that the provider rejects': 'one rejects the account',
  'a time-out of the provider': 'the code may not verify',
}

/** The sentence in an answer, in the place where the identity system reads it. */
function sentenceOf({ body }: Answer): string {
  return body.error?.message ?? body.description ?? body.message
}

/** As `otpost explain` prints the request. */
async function traceOf({ headers }: Answer): Promise<string> {
  const { trace, deliveries } = await app.eventsOf({ body: { requestId: headers.get('x-request-id') } })
  if (!trace) throw new Error('the event log has no such request')
  return explained(trace, deliveries).join('\n')
}

const names = Object.keys(identitySystems) as IdentitySystemName[]

describe.each(names)('%s', (name) => {
  const { body: bodyOf, proof, seen } = identitySystems[name]

  test.each(['4829', '48291356', 'A1b2C3d4E5'])(
    'sends the code %s with the text of the brand',
    async (code) => {
      const relay = await connect(name)
      expect(seen(await call(name, relay, code))).toBe('sent')
      expect(provider.sent.map(({ to, text }) => [to, text.includes(code)])).toEqual([[digits, true]])
      expect(provider.sent[0]?.text).toContain('Acme')
    },
  )

  test.each(Object.entries(situations))(
    '%s is an error of its own, with its trace',
    async (situation, act) => {
      const relay = await connect(name)
      const answer = await act(name, relay)
      expect(seen(answer)).toBe(errors[situation as keyof typeof situations][name])
      const isKnown = situation !== 'a relay that was removed'
      const trace = isKnown ? await traceOf(answer) : ''
      if (isKnown) expect(trace).toContain(traces[situation] ?? sentenceOf(answer))
      const audit = await app.app.context.audit.list({ limit: 100 })
      const told = JSON.stringify([app.lines, answer, audit, trace])
      for (const secret of [relay.secret ?? '', digits, '482913']) expect(told).not.toContain(secret)
    },
  )

  test('a secret under a previous secret key is valid, until that key is gone', async () => {
    await app.close()
    const [old, fresh] = ['a', 'b'].map((letter) => letter.repeat(32)) as [string, string]
    const first = await createTestApp({ SECRET_KEY: old })
    const relay = await connect(name, first)
    const env = first.database.env
    const open = async (SECRET_KEY: string) => {
      app = await createTestApp({ ...env, SECRET_KEY }, { phoneRoutes: { plain: [provider] } })
      const answer = await call(name, relay)
      const trace = await traceOf(answer)
      await app.app.close()
      return [seen(answer), trace.includes('Another secret key')]
    }
    await first.app.close()
    expect(await open(`${fresh},${old}`)).toEqual(['sent', false])
    expect(await open(fresh)).toEqual([notProven[name], true])
    await first.database.remove()
    app = await createTestApp()
  })

  test.each([
    ['operations', { operations: ['notify'] }, 'forbidden'],
    ['brands', { brands: ['globex'] }, 'brand_not_approved'],
  ])('the %s of its app apply', async (_, scope, error) => {
    await app.brand('globex')
    await operate(app, 'app issue', { appId: 'portal', ...scope })
    const { ownSecret } = identitySystems[name]
    const added = await addRelay(app, name, { app: 'portal', ...(ownSecret && { secret: ownSecret }) })
    const answer = await call(name, { ...added, secret: added.secret ?? ownSecret })
    expect(seen(answer)).toBe(ofStatus('403', 403, error, 'UnsupportedRequest')[name])
    expect(
      (await app.eventsOf({ body: { requestId: answer.headers.get('x-request-id') } })).trace,
    ).toMatchObject({
      app: 'portal',
      operation: 'relay',
    })
  })

  test('a report of a verified code needs the proof', async () => {
    const relay = await connect(name)
    const report = JSON.stringify({ phone: `+${digits}` })
    const verified = (by: AddedRelay) =>
      app.request('POST', `/relay/${name}/verified`, {
        headers: proof(by, report, app.clock.now),
        body: report,
      })
    expect(seen(await verified(other(name, relay)))).toBe(notProven[name])
    expect((await app.app.context.policy.rows()).relays[0]?.reportsVerified).toBe(false)
    expect((await verified(relay)).status).toBe(200)
    expect((await app.app.context.policy.rows()).relays[0]?.reportsVerified).toBe(true)
  })

  if (name === 'logto' || name === 'authentik') return

  test('a changed body is not proven', async () => {
    const relay = await connect(name)
    const body = bodyOf('482913', digits)
    const changed = body.replaceAll(digits, '12025550144')
    expect(seen(await post(name, changed, proof(relay, body, app.clock.now)))).toBe(notProven[name])
    expect(provider.sent).toEqual([])
  })

  if (name === 'authgear') return

  test.each([-301, 301])('a signature that is %i seconds off is not proven', async (seconds) => {
    const relay = await connect(name)
    const body = bodyOf('482913', digits)
    const answer = await post(name, body, proof(relay, body, app.clock.now + seconds * 1000))
    expect(seen(answer)).toBe(notProven[name])
    expect(await traceOf(answer)).toContain('5 minutes')
  })

  test('one of several signatures is enough', async () => {
    const relay = await connect(name)
    const body = bodyOf('482913', digits)
    const { secret = '' } = relay
    const before = proof(other(name, relay), body, app.clock.now, secret)
    expect(seen(await post(name, body, before))).toBe('sent')
  })
})

describe('supabase', () => {
  const { proof, seen } = identitySystems.supabase

  const sms = (uuid: string) =>
    goJson({
      metadata: supabaseMetadata('send-sms', uuid),
      user: supabaseUser({ phone: '' }),
      sms: { otp: '482913', sms_type: 'mfa', phone: digits },
    })
  const hook = (relay: AddedRelay, body: string) => post('supabase', body, proof(relay, body, app.clock.now))

  test('a repetition of the same call is sent once, with another webhook-id', async () => {
    const relay = await connect('supabase')
    const body = sms(crypto.randomUUID())
    const answers = [await hook(relay, body), await hook(relay, body)]
    expect(answers.map(({ status, body }) => [status, body])).toEqual([
      [200, {}],
      [200, {}],
    ])
    expect(provider.sent).toHaveLength(1)
  })

  test('a repetition waits for the call in progress', async () => {
    await app.close()
    const begun = Promise.withResolvers<void>()
    const held = Promise.withResolvers<Outcome>()
    provider.answer(() => {
      begun.resolve()
      return held.promise
    })
    let first: Promise<Answer>
    const pause = async () => {
      held.resolve(accepted)
      await first
    }
    app = await createTestApp({}, { phoneRoutes: { plain: [provider] }, pause })
    const relay = await connect('supabase')
    const body = sms(crypto.randomUUID())
    first = hook(relay, body)
    await begun.promise
    const again = await hook(relay, body)
    expect([seen(await first), seen(again)]).toEqual(['sent', 'sent'])
    expect(provider.sent).toHaveLength(1)
  })

  test('a call that failed is sent when it is repeated', async () => {
    const relay = await connect('supabase')
    const body = sms(crypto.randomUUID())
    provider.answer(() => rejected)
    expect(seen(await hook(relay, body))).toBe('422')
    provider.answer(() => accepted)
    expect(seen(await hook(relay, body))).toBe('sent')
  })

  test('a database that fails is an error that is not repeated at once', async () => {
    const relay = await connect('supabase')
    await app.database.loseTables()
    expect(seen(await hook(relay, sms(crypto.randomUUID())))).toStartWith('500 ')
  })

  test('providers get 3.5 s in all', async () => {
    await app.close()
    let stopwatch = 0
    const given: number[] = []
    const slow = (name: string) => ({
      name,
      send: async (_: unknown, timeoutMs: number): Promise<Outcome> => {
        given.push(timeoutMs)
        stopwatch += timeoutMs
        return unknown
      },
    })
    const plain = [slow('one'), slow('two'), slow('three')]
    app = await createTestApp(
      { PROVIDER_TIMEOUT_MS: '30000' },
      { phoneRoutes: { plain }, stopwatch: () => stopwatch },
    )
    const relay = await connect('supabase')
    expect(seen(await call('supabase', relay))).toBe('422')
    expect(given).toEqual([1750, 1750])
  })

  const mail = (type: string, user: object, codes: object) =>
    goJson({
      metadata: supabaseMetadata('send-email'),
      user: supabaseUser({ phone: '', email: 'jane@old.example', ...user }),
      email_data: {
        token: '',
        token_hash: 'a3f9',
        redirect_to: 'https://app.example/?a=1&b=2',
        email_action_type: type,
        site_url: 'https://auth.example',
        token_new: '',
        token_hash_new: '',
        old_email: '',
        old_phone: '',
        provider: '',
        factor_type: '',
        ...codes,
      },
    })
  const isNew = { new_email: 'jane@new.example' }

  // internal/api/mail.go: the hashes of a secure change are exchanged, the codes are not.
  test.each<[type: string, user: object, codes: object, sent: object]>([
    ['magiclink', {}, { token: '482913' }, { 'jane@old.example': '482913' }],
    ['reauthentication', {}, { token: '482913' }, { 'jane@old.example': '482913' }],
    [
      'email_change',
      isNew,
      { token: '111111', token_new: '222222', token_hash_new: 'b7' },
      { 'jane@old.example': '111111', 'jane@new.example': '222222' },
    ],
    ['email_change', isNew, { token: '222222' }, { 'jane@new.example': '222222' }],
    ['email_change', { ...isNew, email: '' }, { token: '222222' }, { 'jane@new.example': '222222' }],
  ])('an e-mail of type %s for %o goes to the right inbox', async (type, user, codes, sent) => {
    const relay = await connect('supabase')
    expect(seen(await hook(relay, mail(type, user, codes)))).toBe('sent')
    const messages = await app.outbox()
    const found = messages.map(({ to, text }) => [to, /\d{6}/.exec(text)?.[0]])
    expect(Object.fromEntries(found)).toEqual(sent)
  })

  test('an e-mail without a code is an error', async () => {
    const relay = await connect('supabase')
    const answer = await hook(relay, mail('password_changed_notification', {}, {}))
    expect(seen(answer)).toBe('400')
    expect(answer.body.error.message).toStartWith('`code` is missing.')
    expect(await traceOf(answer)).toContain('`code` is missing.')
  })
})

test('zitadel has a code of an e-mail delivered', async () => {
  const relay = await connect('zitadel')
  // From the documentation of its HTTP providers.
  const body = goJson({
    contextInfo: {
      eventType: 'user.human.initialization.code.added',
      provider: { id: '285181292935381355', description: 'test' },
      recipientEmailAddress: 'jane@example.com',
    },
    templateData: {
      title: 'Zitadel - Initialize User',
      url: 'http://example.zitadel.com/ui/login/user/init?authRequestID=&code=0M53RF',
    },
    args: { code: '0M53RF', lastEmail: 'jane@example.com', lastPhone: `+${digits}`, verifiedPhone: '' },
  })
  const answer = await post('zitadel', body, identitySystems.zitadel.proof(relay, body, app.clock.now))
  expect(answer.status).toBe(200)
  expect((await app.outbox()).map(({ to, text }) => [to, text.includes('0M53RF')])).toEqual([
    ['jane@example.com', true],
  ])
})

test('logto has its language, its client IP address and its e-mails', async () => {
  const relay = await connect('logto')
  const ask = (fields: object) => {
    const body = JSON.stringify({
      type: 'SignIn',
      payload: { code: '482913', locale: 'de-DE' },
      ip: '203.0.113.7',
      ...fields,
    })
    return post('logto', body, identitySystems.logto.proof(relay, body, app.clock.now))
  }
  expect((await ask({ to: `+${digits}` })).status).toBe(200)
  expect(provider.sent[0]?.text).toContain('Code')
  expect((await ask({ to: 'foo@logto.io' })).status).toBe(200)
  expect(await app.outbox()).toHaveLength(1)
  expect((await ask({ to: 'foo@logto.io', payload: { link: 'https://app.example/i' } })).status).toBe(400)
})

test('authgear has a link sent with its own text', async () => {
  const relay = await connect('authgear')
  const text = 'Reset your password: https://a.example/reset'
  const body = goJson({
    to: `+${digits}`,
    body: text,
    template_name: 'forgot_password_sms.txt',
    language_tag: 'en',
    template_variables: { link: 'https://a.example/reset' },
  })
  const { proof, seen } = identitySystems.authgear
  expect(seen(await post('authgear', body, proof(relay, body, app.clock.now)))).toBe('sent')
  expect(provider.sent.map((sms) => sms.text)).toEqual([text])
})

test('a phone number that is missing or wrong is an error of the phone number', async () => {
  const { proof, seen } = identitySystems.authgear
  const relay = await connect('authgear')
  const text = 'Reset your password: https://a.example/reset'
  for (const fields of [
    { template_variables: { code: '482913' } },
    { to: 'x', body: text },
    { body: text },
  ]) {
    const body = goJson(fields)
    const answer = await post('authgear', body, proof(relay, body, app.clock.now))
    expect([fields, seen(answer)]).toEqual([fields, 'SMSGatewayInvalidPhoneNumber'])
  }
  const body = JSON.stringify({ Body: '482913' })
  const headers = identitySystems.authentik.proof(await connect('authentik'), body, app.clock.now)
  expect((await post('authentik', body, headers)).body).toMatchObject({ field: 'phone' })
})

test('twilio has errors with the names of its fields, and reports of verified codes', async () => {
  const { url, user, secret } = await addRelay(app, 'twilio')
  const authorization = basic(user, secret)
  const { pathname } = new URL(url)
  const ask = async (form: string) => {
    const { body } = await app.request('POST', pathname, { headers: { authorization }, body: form })
    return [body.code, /`\w+`/.exec(body.message)?.[0]]
  }
  expect(await ask('Body=482913')).toEqual([21211, '`To`'])
  expect(await ask('To=x&Body=Hello+there')).toEqual([21211, '`To`'])
  expect(await ask('To=%2B12025550143')).toEqual([21602, '`Body`'])
  for (const [proof, status] of [
    ['Basic bm86bm8=', 401],
    [authorization, 200],
  ] as const) {
    const headers = { authorization: proof, 'content-type': 'application/json' }
    const report = { headers, body: JSON.stringify({ phone: `+${digits}` }) }
    expect((await app.request('POST', '/relay/twilio/verified', report)).status).toBe(status)
  }
  expect((await app.app.context.policy.rows()).relays[0]?.reportsVerified).toBe(true)
})

test('an e-mail of kratos without a code is rejected for that reason', async () => {
  const { user, secret } = await addRelay(app, 'kratos')
  const headers = { authorization: basic(user, secret) }
  const body = JSON.stringify({ recipient: 'jo@example.com', body: 'Someone asked to recover this account.' })
  const answer = await app.request('POST', '/relay/kratos', { headers, body })
  expect([answer.status, answer.body.field]).toEqual([400, 'code'])
})

test('revoking the keys of an app names its relays, whose secrets stay valid', async () => {
  await operate(app, 'app issue', { appId: 'portal' })
  const { secret } = await addRelay(app, 'logto', { app: 'portal' })
  const { warnings } = await operate(app, 'app revoke', { appId: 'portal' })
  expect(warnings?.map(({ text }) => text)).toEqual(['The secrets of its relays are still valid: logto.'])
  const body = identitySystems.logto.body('482913', digits)
  const answer = await post('logto', body, { authorization: `Bearer ${secret}` })
  expect(answer.status).toBe(200)
})

// Design D41 and D53: nothing says which codes of a caller were verified until it reports one.
describe('the guard', () => {
  const ranges = Array.from({ length: 12 }, (_, index) => `447400${10 + index}4567`)
  const oneRange = Array.from({ length: 12 }, (_, index) => `4474009945${10 + index}`)

  beforeEach(async () => {
    await app.close()
    app = await createTestApp({ GUARD: 'deny' }, { phoneRoutes: { plain: [provider] } })
  })

  async function sentOf(name: IdentitySystemName, relay: AddedRelay, numbers: readonly string[]) {
    const answers: Answer[] = []
    for (const to of numbers) answers.push(await call(name, relay, '482913', to))
    return answers.filter((answer) => identitySystems[name].seen(answer) === 'sent').length
  }

  async function report(relay: AddedRelay, to: string): Promise<void> {
    const body = JSON.stringify({ phone: `+${to}` })
    const headers = identitySystems.authentik.proof(relay, body, app.clock.now)
    expect((await app.request('POST', '/relay/authentik/verified', { headers, body })).status).toBe(200)
  }

  /** Of the country: whether its buckets have codes, how many codes were sent and verified. */
  async function figures() {
    app.advance(6)
    await app.post('/otp/send', { phone: '+493012345678' })
    await app.app.context.eventLog.flush()
    const { context } = app.app
    const ports = { ...context, guard: context.guardReader, countryOfPrefix }
    for (let tries = 0; tries < 1000; tries++) {
      const { buckets, countries } = await readGuardStatus(ports, { guard: 'deny', smsCountries: [] })
      const of = countries.find(({ country }) => country === 'GB')
      const isFilled = buckets.some(({ kind, key }) => kind === 'country-hour' && key === 'GB')
      if (buckets.length > 0) return { isFilled, sent: of?.sent ?? 0, verified: of?.verified ?? 0 }
      await new Promise((resolve) => setImmediate(resolve))
    }
    throw new Error('the server did not store its buckets')
  }

  test.each<[name: IdentitySystemName, of: string, numbers: readonly string[], sent: number]>([
    ['authentik', 'many number ranges', ranges, 12],
    ['authentik', 'one number range', oneRange, 5],
    ['logto', 'one client IP address', ranges, 5],
  ])('without reports, %s sends to %s', async (name, _, numbers, sent) => {
    expect(await sentOf(name, await connect(name), numbers)).toBe(sent)
    expect(await figures()).toEqual({ isFilled: false, sent: 0, verified: 0 })
  })

  test('with reports, the codes count for the country, and a verified one makes room in its number range', async () => {
    const relay = await connect('authentik')
    await report(relay, '447400004567')
    expect(await sentOf('authentik', relay, ranges)).toBe(12)
    expect(await figures()).toEqual({ isFilled: true, sent: 12, verified: 1 })
    const [first = '', ...others] = oneRange
    expect(await sentOf('authentik', relay, oneRange.slice(0, 5))).toBe(5)
    await report(relay, first)
    expect(await sentOf('authentik', relay, others.slice(4, 6))).toBe(1)
  })
})

describe('the console', () => {
  test('adds a relay, shows its secret once, and finds the page', async () => {
    const visitor = await signedIn(app)
    const { html } = await visitor.get('/admin/relays')
    expect(html).toContain('No relays')
    expect(/<(?:input|textarea)[^>]* name="secret"[^>]*>/.exec(html)?.[0]).not.toContain('required')
    const fields = { name: 'auth', brand: 'acme', app: '', secret: '', minutes: '5' }
    const added = await visitor.post('/admin/relays', { ...fields, kind: 'logto' })
    expect(added.html).toContain('with the user auth')
    const secret = /data-copy="([0-9a-f]{32})"/.exec(added.html)?.[1] ?? ''
    const headers = { authorization: `Bearer ${secret}` }
    const body = identitySystems.logto.body('482913', digits)
    expect((await app.request('POST', '/relay/auth', { headers, body })).status).toBe(200)
    expect((await visitor.get('/admin/relays')).html).not.toContain(secret)
    const unsigned = await visitor.post('/admin/relays', { ...fields, name: 'other', kind: 'zitadel' })
    expect(unsigned.html).toContain('ZITADEL creates the key itself')
    for (const q of ['relay', 'Supabase']) {
      const found = await visitor.post('/admin/search', { q })
      expect([q, found.headers.get('location')]).toEqual([q, '/admin/relays'])
    }
  })
})
