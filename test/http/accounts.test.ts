import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { codeForms } from '../../src/adapters/console/form-access.ts'
import { makeLink } from '../../src/domain/accounts/sessions.ts'
import { addAccount, codeOf, enterAs, hidden, nextStep, optionsIn } from '../support/accounts.ts'
import { createTestApp, type TestApp } from '../support/app.ts'
import { createAuthenticator } from '../support/authenticator.ts'
import { password, type Seen, signedIn, Visitor } from '../support/console.ts'
import { tester } from '../support/operator.ts'

// Accounts of operators, without a browser: how they are set up, sign in and lose access.

let app: TestApp

beforeEach(async () => {
  app = await createTestApp({ PUBLIC_URL: 'http://localhost:3000' })
})
afterEach(() => app.close())

const newPassword = 'vessel-19-quartz-lantern'
const minutes = (count: number) => app.advance(count * 60)

async function opened(link: string): Promise<Visitor> {
  const visitor = new Visitor(app)
  const { status } = await visitor.post('/admin/link', { token: link.split('#')[1] ?? '' })
  if (status !== 303) throw new Error(`the link was refused: ${status}`)
  return visitor
}

function linkIn({ html }: Seen): string {
  return /http:\/\/localhost\/admin\/link#[\w-]{43}/.exec(html)?.[0] ?? ''
}

async function actions(limit: number): Promise<readonly (readonly string[])[]> {
  const records = await app.app.context.audit.list({ limit })
  return records.map(({ action, actor, target }) => [action, actor.name, target])
}

describe('an invited owner', () => {
  async function invited(): Promise<Visitor> {
    const first = await signedIn(app)
    const link = linkIn(await first.post('/admin/operators', { email: ' Ana@Example.com ', role: 'owner' }))
    return opened(link)
  }

  test('sets up a password and an authenticator app, and signs in with them', async () => {
    const ana = await invited()
    // Only the page of the account, until it is set up.
    expect((await ana.get('/admin/apps')).headers.get('location')).toBe('/admin/account')
    expect((await ana.get('/admin/live')).status).not.toBe(200)
    const { html } = await ana.get('/admin/account')
    const secret = hidden(html, 'secret')
    const [account] = await app.app.context.sessions.accounts()
    const uri = account && app.app.context.consoleSecrets.totpUri(account, secret, 'localhost:3000')
    const code = () => codeOf(uri ?? '', app.clock.now)
    const setUp = (fields: Record<string, string>) => ana.post('/admin/account/app', { secret, ...fields })
    expect((await setUp({ code: code(), password: 'too short' })).status).toBe(409)
    expect((await setUp({ code: code(), password: 'example example example' })).status).toBe(409)
    const wrong = await setUp({ code: code() === '000000' ? '000001' : '000000', password: newPassword })
    expect([wrong.status, hidden(wrong.html, 'secret')]).toEqual([409, secret])
    const done = await setUp({ code: code(), password: newPassword })
    expect(done.html.match(/\b[A-Z2-9]{4}(-[A-Z2-9]{4}){5}\b/g)?.length).toBeGreaterThanOrEqual(10)
    expect((await ana.get('/admin')).status).toBe(200)

    const again = new Visitor(app)
    app.advance(30)
    const first = await again.post('/admin/login', { email: 'ANA@example.com', password: newPassword })
    expect((await again.get('/admin')).status).toBe(303)
    const entered = await again.post('/admin/login/code', { next: hidden(first.html, 'next'), code: code() })
    expect(entered.status).toBe(303)
    expect((await again.get('/admin')).html).toContain('ana@example.com')
    expect((await actions(4)).map(([action, name]) => [action, name])).toEqual([
      ['console.login', 'ana@example.com'],
      ['operator.app-set', 'ana@example.com'],
      ['console.login', 'ana@example.com'],
      ['operator.invited', expect.stringMatching(/^[\w-]{8}$/)],
    ])
    const stored = JSON.stringify([await app.app.context.sessions.accounts(), app.lines])
    expect(stored).not.toContain(new URL(uri ?? '').searchParams.get('secret') ?? '')
  })

  test('can add a passkey instead', async () => {
    const ana = await invited()
    const authenticator = createAuthenticator()
    const made = authenticator.create(optionsIn(await ana.get('/admin/account')), 'http://localhost:3000')
    const fields = { passkey: JSON.stringify(made), name: 'Laptop' }
    expect((await ana.post('/admin/account/passkey', fields)).status).toBe(303)
    expect((await ana.post('/admin/account/passkey', fields)).status).toBe(409)
    expect((await ana.get('/admin/account')).html).toContain('Laptop')

    const visitor = new Visitor(app)
    const used = authenticator.get(optionsIn(await visitor.get('/admin/login')), 'http://localhost:3000')
    const passkey = JSON.stringify(used)
    const answers = await Promise.all(
      [new Visitor(app), new Visitor(app), new Visitor(app)].map((each) =>
        each.post('/admin/login/passkey', { passkey }),
      ),
    )
    // A response counts once.
    expect(answers.map(({ status }) => status).sort()).toEqual([303, 401, 401])
    expect((await visitor.post('/admin/login/passkey', { passkey })).status).toBe(401)
    minutes(1)
    const options = optionsIn(await visitor.get('/admin/login'))
    const late = JSON.stringify(authenticator.get(options, 'http://localhost:3000'))
    minutes(10)
    expect((await visitor.post('/admin/login/passkey', { passkey: late })).status).toBe(401)
    const elsewhere = authenticator.get(optionsIn(await visitor.get('/admin/login')), 'http://localhost:3001')
    expect((await visitor.post('/admin/login/passkey', { passkey: JSON.stringify(elsewhere) })).status).toBe(
      401,
    )
    const removal = await ana.post('/admin/account/passkey/remove', { credentialId: made.id })
    expect([removal.status, removal.html.includes('only way to sign in')]).toEqual([409, true])
  })

  test('is invited with a form that the browser checks: an e-mail address of at most 254 characters', async () => {
    const first = await signedIn(app)
    const { html } = await first.get('/admin/operators')
    const [control = ''] = /<input[^>]*name="email"[^>]*>/.exec(html) ?? []
    for (const attribute of ['type="email"', 'maxlength="254"', 'required'])
      expect(control.toLowerCase()).toContain(attribute)
  })

  test('has 72 hours, and one link', async () => {
    const first = await signedIn(app)
    const link = linkIn(await first.post('/admin/operators', { email: 'bo@example.com', role: 'viewer' }))
    const newer = linkIn(await first.post('/admin/operators/reset', { email: 'bo@example.com' }))
    expect(opened(link)).rejects.toThrow('refused: 401')
    minutes(72 * 60)
    expect(opened(newer)).rejects.toThrow('refused: 401')
  })
})

describe('signing in to an account', () => {
  test('takes both factors, and each code once', async () => {
    const ana = await addAccount(app, 'ana@example.com', 'owner')
    const visitors = Array.from({ length: 6 }, () => new Visitor(app))
    const proofs = await Promise.all(visitors.map((each) => nextStep(each, ana.email)))
    const answers = await Promise.all(
      visitors.map((each, index) =>
        each.post('/admin/login/code', { next: proofs[index] ?? '', code: ana.code() }),
      ),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([303, 401, 401, 401, 401, 401])
    const [next = ''] = proofs
    const used = ana.code()
    app.advance(30)
    // The time still allows the code before.
    expect((await new Visitor(app).post('/admin/login/code', { next, code: used })).status).toBe(401)
    expect((await new Visitor(app).post('/admin/login/code', { next, code: ana.code() })).status).toBe(303)
    minutes(10)
    expect((await new Visitor(app).post('/admin/login/code', { next, code: ana.code() })).status).toBe(401)
  })

  test('accepts a recovery code once, however it is typed', async () => {
    const ana = await addAccount(app, 'ana@example.com', 'owner')
    const visitor = await enterAs(app, ana)
    const { html } = await visitor.post('/admin/account/recovery-codes')
    const [code = ''] = html.match(/\b[A-Z2-9]{4}(-[A-Z2-9]{4}){5}\b/) ?? []
    const typed = code.toLowerCase().replaceAll('-', ' ')
    const others = Array.from({ length: 4 }, () => new Visitor(app))
    const answers = await Promise.all(
      others.map(async (each) =>
        each.post('/admin/login/code', { next: await nextStep(each, ana.email), code: typed }),
      ),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([303, 401, 401, 401])
    expect((await visitor.get('/admin/account')).html).toContain('9 unused codes')
  })

  test('gives the same answer for unknown people and wrong passwords, and reports both to the person later', async () => {
    const ana = await addAccount(app, 'ana@example.com', 'owner')
    const wrong = { password: 'not the password' }
    const known = await new Visitor(app).post('/admin/login', { email: ana.email, ...wrong })
    const unknown = await new Visitor(app).post('/admin/login', { email: 'bo@example.com', ...wrong })
    expect([known.status, unknown.status]).toEqual([401, 401])
    expect(known.html.replaceAll(ana.email, '')).toBe(unknown.html.replaceAll('bo@example.com', ''))
    const visitor = new Visitor(app)
    const next = await nextStep(visitor, ana.email)
    await visitor.post('/admin/login/code', { next, code: '000000' })
    app.advance(30)
    await visitor.post('/admin/login/code', { next, code: ana.code() })
    expect((await visitor.get('/admin')).html).toContain('2 attempts to sign in to your account failed')
  })

  test('cannot be locked by others: not in a known browser, not with a passkey, and not in other accounts', async () => {
    await app.close()
    app = await createTestApp({
      PORT: '0',
      TRUSTED_PROXIES: '127.0.0.1',
      PUBLIC_URL: 'http://localhost:3000',
    })
    const url = app.app.listen()
    const from = (ip: string) => {
      const request: TestApp['request'] = async (method, path, init) => {
        const answer = await fetch(new URL(path, url), {
          ...init,
          method,
          redirect: 'manual',
        })
        return { status: answer.status, headers: answer.headers, body: (await answer.text()) as never }
      }
      return new Visitor({ request }, { 'x-forwarded-for': ip })
    }
    const ana = await addAccount(app, 'ana@example.com', 'owner')
    const bo = await addAccount(app, 'bo@example.com', 'operator')
    const known = await enterAs(app, ana, from('198.51.100.1'))
    const authenticator = createAuthenticator()
    const made = authenticator.create(optionsIn(await known.get('/admin/account')), 'http://localhost:3000')
    expect((await known.post('/admin/account/passkey', { passkey: JSON.stringify(made) })).status).toBe(303)
    const flood = async (email: string) => {
      const statuses = []
      for (let count = 0; count < 202; count++) {
        const { status } = await from(`192.0.2.${count % 25}`).post('/admin/login', {
          email,
          password: 'wrong',
        })
        statuses.push(status)
      }
      return statuses
    }
    // Who has an account does not show.
    for (const email of ['unknown@example.com', (await addAccount(app, 'cy@example.com', 'viewer')).email]) {
      expect(await flood(email)).toEqual([...Array(201).fill(401), 429])
      app.advance(600)
    }
    await flood(ana.email)
    const right = { email: ana.email, password }
    expect((await from('198.51.100.2').post('/admin/login', right)).status).toBe(429)
    await enterAs(app, ana, known)
    await enterAs(app, bo, from('198.51.100.3'))
    const visitor = from('198.51.100.4')
    const options = optionsIn(await visitor.get('/admin/login'))
    const passkey = JSON.stringify(authenticator.get(options, 'http://localhost:3000'))
    expect((await visitor.post('/admin/login/passkey', { passkey })).status).toBe(303)
  })

  test('allows 20 wrong codes a day from browsers that know only the password', async () => {
    const ana = await addAccount(app, 'ana@example.com', 'owner')
    const known = await enterAs(app, ana)
    const next = await nextStep(new Visitor(app), ana.email)
    const statuses = []
    for (let count = 0; count < 21; count++) {
      statuses.push((await new Visitor(app).post('/admin/login/code', { next, code: '000000' })).status)
    }
    expect(statuses).toEqual([...Array(20).fill(401), 429])
    await enterAs(app, ana, known)
  })
})

describe('a change of the own sign-in', () => {
  test('ends the other sessions of the account, for a new password and a new app', async () => {
    const ana = await addAccount(app, 'ana@example.com', 'operator')
    const bo = await enterAs(app, await addAccount(app, 'bo@example.com', 'operator'))
    const own = await enterAs(app, ana)
    const status = async (visitor: Visitor) => (await visitor.get('/admin')).status

    const forgotten = await enterAs(app, ana)
    const change = async (present: string, password: string) =>
      (await own.post('/admin/account/password', { present, password })).status
    expect([await change(password, 'too short'), await change('wrong', newPassword)]).toEqual([409, 409])
    expect([await status(forgotten), await status(own)]).toEqual([200, 200])
    const stolen = await enterAs(app, ana)
    const secret = hidden((await own.get('/admin/account')).html, 'secret')
    const uri = app.app.context.consoleSecrets.totpUri(ana, secret, 'localhost') ?? ''
    const app1 = { secret, code: codeOf(uri, app.clock.now) }
    // A session alone replaces neither the app nor the password.
    for (const more of [{}, { present: 'wrong' }, { password: newPassword }]) {
      // The form itself has no new password.
      await own.get('/admin')
      const { status: refused, html } = await own.post('/admin/account/app', { ...app1, ...more })
      expect([refused, html.includes('The present password is wrong.')]).toEqual([409, true])
    }
    await own.get('/admin')
    const set = await own.post('/admin/account/app', { ...app1, present: password, password: newPassword })
    expect(set.status).toBe(200)
    expect([await status(stolen), await status(forgotten), await status(own)]).toEqual([303, 303, 200])

    const other = new Visitor(app)
    app.advance(30)
    const next = await nextStep(other, ana.email)
    // The previous app is no longer accepted.
    expect((await other.post('/admin/login/code', { next, code: ana.code() })).status).toBe(401)
    await other.post('/admin/login/code', { next, code: codeOf(uri, app.clock.now) })
    expect(await status(other)).toBe(200)
    expect(await change(password, newPassword)).toBe(303)
    expect([await status(other), await status(own), await status(bo)]).toEqual([303, 200, 200])
    // The password of the first step was the previous one.
    expect((await other.post('/admin/login/code', { next, code: codeOf(uri, app.clock.now) })).status).toBe(
      401,
    )
  })

  test('requires a new code after 15 minutes, and so does the end of a session', async () => {
    const ana = await addAccount(app, 'ana@example.com', 'viewer')
    const own = await enterAs(app, ana)
    minutes(15)
    const refused = await Promise.all(
      ['password', 'app', 'recovery-codes', 'passkey', 'passkey/remove'].map(
        async (path) => (await own.post(`/admin/account/${path}`, { password: newPassword })).status,
      ),
    )
    expect(refused).toEqual(Array(5).fill(403))
    const [session] = await app.app.context.sessions.list(app.clock.now)
    const id = session?.tokenSha256.slice(0, 8)
    expect((await own.post(`/admin/sessions/${id}/revoke`)).status).toBe(403)
    expect((await own.post(`/admin/sessions/${id}/revoke`, { 'confirm-code': ana.code() })).status).toBe(303)
    expect((await own.get('/admin')).status).toBe(303)
  })
})

describe('roles', () => {
  test.each(Object.keys(codeForms))('the form %s exists', async (path) => {
    await addAccount(app, 'ana@example.com', 'owner')
    expect((await new Visitor(app).post(path)).status).toBe(401)
  })

  test('a viewer reads, an operator changes, an owner manages accounts', async () => {
    const people = [
      await enterAs(app, await addAccount(app, 'vi@example.com', 'viewer')),
      await enterAs(app, await addAccount(app, 'op@example.com', 'operator')),
      await enterAs(app, await addAccount(app, 'ow@example.com', 'owner')),
    ]
    const statuses = (path: string, fields = {}) =>
      Promise.all(people.map(async (each) => (await each.post(path, fields)).status))
    expect(
      await Promise.all(people.map(async (each) => (await each.get('/admin/operators')).status)),
    ).toEqual([200, 200, 200])
    expect(await statuses('/admin/search', { q: 'acme' })).toEqual([303, 303, 303])
    const text = { templateKey: 'LOGIN_OTP', channel: 'SMS', lang: 'en', text: '{{otp}}' }
    expect(await statuses('/admin/brands/acme/texts/preview', text)).toEqual([200, 200, 200])
    expect(await statuses('/admin/guard', { prefix: '+4479', action: 'block', duration: '1h' })).toEqual([
      403, 303, 303,
    ])
    expect(
      await statuses('/admin/review-numbers', { phone: '+12025550143', brand: 'acme', until: '2026-01-01' }),
    ).toEqual([403, 403, 200])
    expect(await statuses('/admin/operators', { email: 'new@example.com', role: 'viewer' })).toEqual([
      403, 403, 200,
    ])
  })

  test('a lower role and a removal take effect at the next request; the last owner stays', async () => {
    const ana = await enterAs(app, await addAccount(app, 'ana@example.com', 'owner'))
    const bo = await enterAs(app, await addAccount(app, 'bo@example.com', 'owner'))
    const block = { prefix: '+4479', action: 'block', duration: '1h' }
    expect(
      (await ana.post('/admin/operators/role', { email: 'bo@example.com', role: 'viewer' })).status,
    ).toBe(303)
    expect((await bo.post('/admin/guard', block)).status).toBe(403)
    const refusals = await Promise.all([
      ana.post('/admin/operators/role', { email: 'ana@example.com', role: 'operator' }),
      ana.post('/admin/operators/remove', { email: 'ana@example.com' }),
      ana.post('/admin/operators/reset', { email: 'ana@example.com' }),
    ])
    expect(refusals.map(({ status, html }) => [status, html.includes('only owner')])).toEqual(
      Array(3).fill([409, true]),
    )
    expect((await ana.post('/admin/operators/remove', { email: 'bo@example.com' })).status).toBe(303)
    expect((await bo.get('/admin')).status).toBe(303)
    expect((await actions(2)).map(([action, name, target]) => [action, name, target])).toEqual([
      ['operator.removed', 'ana@example.com', 'bo@example.com'],
      ['operator.role', 'ana@example.com', 'bo@example.com'],
    ])
  })

  test('two owners cannot demote each other at once', async () => {
    const people = ['ana@example.com', 'bo@example.com'] as const
    const [ana, bo] = [
      await enterAs(app, await addAccount(app, people[0], 'owner')),
      await enterAs(app, await addAccount(app, people[1], 'owner')),
    ]
    await Promise.all([
      ana.post('/admin/operators/role', { email: people[1], role: 'viewer' }),
      bo.post('/admin/operators/role', { email: people[0], role: 'viewer' }),
    ])
    const accounts = await app.app.context.sessions.accounts()
    expect(accounts.filter(({ role }) => role === 'owner')).toHaveLength(1)
  })
})

describe('a sensitive step', () => {
  test('asks for a new code after 15 minutes, and keeps the entries', async () => {
    const ana = await addAccount(app, 'ana@example.com', 'operator')
    const visitor = await enterAs(app, ana)
    expect((await visitor.post('/admin/apps/issue', { appId: 'early' })).status).toBe(200)
    minutes(15)
    const budget = { scope: 'server', period: 'day', amount: '10', alertAt: '50,80', stops: 'on' }
    const asked = await visitor.post('/admin/money', budget)
    expect([asked.status, asked.html.includes('Confirm that it is you')]).toEqual([403, true])
    for (const [name, value] of Object.entries(budget)) expect(hidden(asked.html, name)).toBe(value)
    const wrong = await visitor.post('/admin/money', { ...budget, 'confirm-code': '000000' })
    expect([wrong.status, hidden(wrong.html, 'amount')]).toEqual([401, '10'])
    expect((await app.app.context.policy.rows()).budgets).toEqual([])
    expect((await visitor.post('/admin/money', { ...budget, 'confirm-code': ana.code() })).status).toBe(303)
    expect((await visitor.post('/admin/apps/issue', { appId: 'late' })).status).toBe(200)
  })

  const path = '/admin/brands/acme/texts'
  const text = { lang: 'en', version: '0', text: '{{otp}}' }
  const rows: readonly (readonly [string, string, Readonly<Record<string, string>>, boolean])[] = [
    ['a text of codes', path, { ...text, key: 'LOGIN_OTP' }, true],
    ['a text of codes in an e-mail', path, { ...text, key: ' LOGIN_OTP', email: '1' }, true],
    ['the removal of a text of codes', `${path}/remove`, { key: 'LOGIN_OTP', lang: 'en' }, true],
    ['another text', path, { ...text, key: 'ORDER_PLACED', text: 'Thanks' }, false],
    ['a rule that allows', '/admin/destinations', { rule: 'GB', action: 'allow' }, true],
    ['a rule that blocks', '/admin/destinations', { rule: 'GB', action: 'block' }, false],
    ['the removal of a rule', '/admin/destinations/remove', { rule: 'GB' }, true],
    ['an allowance of the guard', '/admin/guard', { prefix: '+4479', action: 'allow' }, true],
    ['a block of the guard', '/admin/guard', { prefix: '+4479', action: 'block', duration: '1h' }, false],
    ['the end of a block', '/admin/guard/remove', { prefix: '+4479' }, true],
    ['a test message', '/admin/test', { to: '+12025550143' }, true],
  ]
  test('is what lets messages or codes out; what stops an attack never asks', async () => {
    const ana = await addAccount(app, 'ana@example.com', 'operator')
    const visitor = await enterAs(app, ana)
    minutes(15)
    for (const [what, form, fields, isAsked] of rows) {
      await visitor.get('/admin')
      const { status, html } = await visitor.post(form, fields)
      expect([what, html.includes('Confirm that it is you')]).toEqual([what, isAsked])
      if (!isAsked) expect([what, status]).toEqual([what, 303])
    }
    expect(await app.app.context.sessions.list(app.clock.now)).toHaveLength(1)
  })

  test('is confirmed by a passkey of the own account only', async () => {
    const origin = 'http://localhost:3000'
    const authenticator = createAuthenticator()
    const [ana, bo] = [
      await enterAs(app, await addAccount(app, 'ana@example.com', 'operator')),
      await enterAs(app, await addAccount(app, 'bo@example.com', 'operator')),
    ]
    const made = authenticator.create(optionsIn(await bo.get('/admin/account')), origin)
    await bo.post('/admin/account/passkey', { passkey: JSON.stringify(made) })
    minutes(15)
    const issue = { appId: 'shop' }
    const used = authenticator.get(optionsIn(await bo.post('/admin/apps/issue', issue)), origin)
    const confirmed = { ...issue, 'confirm-passkey': JSON.stringify(used) }
    expect((await ana.post('/admin/apps/issue', confirmed)).status).toBe(401)
    expect((await bo.post('/admin/apps/issue', confirmed)).status).toBe(200)
  })

  test('of a session without an account asks for a new link', async () => {
    const linked = await signedIn(app)
    minutes(15)
    const issue = (fields = {}) => linked.post('/admin/apps/issue', { appId: 'shop', ...fields })
    expect((await issue()).status).toBe(403)
    expect((await issue({ 'confirm-link': 'wrong' })).status).toBe(401)
    const token = await makeLink(app.app.context, tester)
    const link = `http://localhost:3000/admin/link#${token}`
    expect((await issue({ 'confirm-link': link })).status).toBe(200)
    // The link is used.
    expect(opened(link)).rejects.toThrow('refused: 401')
  })
})
