import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { TestOtpost } from '../../client/testing.ts'
import { issueApp } from '../../src/domain/operator/apps.ts'
import { createTestApp, otherThan } from '../support/app.ts'
import { browserPath, launchBrowser, newVisitor, withoutBrowser } from '../support/browser.ts'
import { tester } from '../support/operator.ts'
import { testProvider } from '../support/policy.ts'
import { outputLog } from '../support/run.ts'
import { environmentFor, startSandbox } from '../support/sandbox.ts'
import { copyOf } from './copy.ts'
import { alertOf, Visitor } from './visitor.ts'

const node = Bun.which('node')
const ending = new AsyncDisposableStack()
afterAll(() => ending.disposeAsync())

interface Site {
  readonly origin: string
  /** Its standard output and standard error so far. */
  readonly log: () => string
}

let otpost: TestOtpost
const sites: Record<string, Site> = {}

beforeAll(async () => {
  otpost = await startSandbox()
  ending.defer(() => otpost.stop())
  await Promise.all(
    examples
      .filter(({ isRun }) => isRun)
      .map(async ({ name, start }) => {
        sites[name] = await start(environmentFor(otpost))
      }),
  )
})

type Environment = Readonly<Record<string, string>>

/** In milliseconds, the least time in which a site answers a request for a code. */
const sendAnswerMs = 200

/** Starts a copy of an example on a free port. Resolves once it reports its URL. */
async function startSite(
  command: string[],
  example: string,
  framework: string,
  env: Environment,
): Promise<Site> {
  const { path: cwd, remove } = await copyOf(example, [framework])
  ending.defer(remove)
  const { PATH = '' } = process.env
  const child = Bun.spawn(command, {
    cwd,
    env: { PATH, PORT: '0', SEND_ANSWER_MS: String(sendAnswerMs), ...env },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  ending.defer(async () => {
    child.kill('SIGKILL')
    await child.exited
  })
  const { said, text } = outputLog(child.stdout, child.stderr)
  const [, origin = ''] = await said(/^(http:\S+)\/login\n/m)
  return { origin, log: text }
}

const examples = [
  {
    name: 'elysia',
    title: 'the Elysia example',
    isRun: true,
    start: (env: Environment) => startSite([process.execPath, 'server.ts'], 'elysia-login', 'elysia', env),
  },
  {
    name: 'express',
    title: node ? 'the Express example' : 'The Express example is not tested: there is no Node. It',
    isRun: node !== null,
    start: (env: Environment) => startSite(['node', 'server.mjs'], 'express-login', 'express', env),
  },
]

test('a second Elysia server on the same port does not start', async () => {
  const { path: cwd, remove } = await copyOf('elysia-login', ['elysia'])
  ending.defer(remove)
  const { PATH = '' } = process.env
  const child = Bun.spawn([process.execPath, 'server.ts'], {
    cwd,
    env: { PATH, PORT: new URL(sites.elysia?.origin ?? '').port, ...environmentFor(otpost) },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  ending.defer(() => child.kill('SIGKILL'))
  expect(await new Response(child.stderr).text()).toContain('EADDRINUSE')
  expect(await child.exited).toBe(1)
})

/** A number for each test: limits and cooldowns are per phone. */
let phones = 0
const newPhone = () => `+1 202 555 ${String(1000 + phones++)}`

const onItsWay =
  /^If this number or mailbox can receive codes, a code is on its way\. Only the latest one works\. You can try again in 30 seconds\.$/
const wrongCode = 'That code is wrong or has expired. Please check it, or request another one.'

for (const { name: kind, title, isRun, start } of examples)
  describe.skipIf(!isRun)(title, () => {
    const visit = () => new Visitor(sites[kind]?.origin ?? 'nowhere')

    test('signs a visitor in with the code from an SMS', async () => {
      const visitor = visit()
      const phone = newPhone()
      expect((await visitor.get('/')).location).toBe('/login')
      const form = await visitor.get('/login')
      expect(form.status).toBe(200)
      expect(form.headers.get('content-security-policy')).toStartWith("default-src 'none';")
      expect(form.headers.get('cache-control')).toBe('no-store')

      const sent = await visitor.post('/login', { contact: phone })
      expect(sent.location).toBe('/code')
      expect(sent.headers.getSetCookie()).toEqual([
        expect.stringMatching(/^session=[\w-]{43};.*HttpOnly; SameSite=Lax/),
        expect.stringMatching(/^device=[\w-]{22};.*HttpOnly; SameSite=Lax/),
      ])
      const codePage = await visitor.get('/code')
      expect(codePage.text).toMatch(
        /<input [^>]*name="otp" [^>]*inputmode="numeric" autocomplete="one-time-code"/,
      )
      const code = await otpost.codeFor(phone)
      expect(codePage.text).not.toContain(code)

      // The second code is requested during the cooldown.
      expect(alertOf(codePage)).toMatch(onItsWay)
      expect((await visitor.post('/code/resend')).location).toBe('/code')
      expect(alertOf(await visitor.get('/code'))).toMatch(onItsWay)
      expect(alertOf(await visitor.get('/code'))).toBe('')

      const wrong = await visitor.post('/code', { otp: otherThan(code) })
      expect(wrong.status).toBe(401)
      expect(alertOf(wrong)).toBe(wrongCode)
      expect((await visitor.get('/')).location).toBe('/login')

      const before = new Map(visitor.cookies)
      const right = await visitor.post('/code', { otp: ` ${code.slice(0, 3)} ${code.slice(3)} ` })
      expect(right.location).toBe('/')
      const home = await visitor.get('/')
      expect(home.status).toBe(200)
      expect(home.text).toContain(phone.replaceAll(' ', ''))

      // The session id from before the sign-in is not valid any more.
      const fixed = visit()
      for (const [name, value] of before) fixed.cookies.set(name, value)
      expect(before.get('session')).not.toBe(visitor.cookies.get('session'))
      expect((await fixed.get('/')).location).toBe('/login')

      const signedIn = new Map(visitor.cookies)
      expect((await visitor.post('/logout')).location).toBe('/login')
      for (const [name, value] of signedIn) visitor.cookies.set(name, value)
      expect((await visitor.get('/')).location).toBe('/login')
      expect(visitor.seen.join()).not.toContain(otpost.apiKey)
    })

    test('accepts a new code by e-mail after too many wrong ones', async () => {
      const visitor = visit()
      const email = `Jo.${kind}@example.com`
      await visitor.post('/login', { contact: email })
      const first = await otpost.codeFor(email)
      for (const _ of [1, 2, 3]) await visitor.post('/code', { otp: otherThan(first) })
      const locked = await visitor.post('/code', { otp: first })
      expect(locked.status).toBe(401)
      expect(alertOf(locked)).toBe(wrongCode)

      await visitor.post('/code/resend')
      expect(alertOf(await visitor.get('/code'))).toMatch(onItsWay)
      const second = await otpost.codeFor(email)
      expect((await visitor.post('/code', { otp: second })).location).toBe('/')
      expect((await visitor.get('/')).text).toContain(email.toLowerCase())
    })

    test('answers the same for a known number and a stranger while the guard denies codes', async () => {
      const guarded = await createTestApp({ GUARD: 'deny', SMS_COUNTRIES: 'GB' })
      const web = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: (call) => guarded.app.handle(call) })
      ending.defer(async () => {
        await web.stop(true)
        await guarded.close()
      })
      const { key } = await issueApp(guarded.app.context.acting(tester), 'site')
      const app = { OTPOST_API_KEY: key, OTPOST_BRAND_ID: 'acme' }
      const site = await start({ ...app, OTPOST_URL: web.url.origin })

      const [known, stranger] = ['447400123400', '447400123401'] as const
      await guarded.post('/otp/send', { phone: known })
      await guarded.post('/otp/verify', { phone: known, otp: await guarded.lastCode(known) })
      guarded.advance(60)
      // The fifth fills the bucket of the prefix.
      for (let number = 0; number < 6; number++)
        await guarded.post('/otp/send', { phone: `44740012350${number}` })

      const answersTo = async (phone: string) => {
        const visitor = new Visitor(site.origin)
        const begunAt = performance.now()
        const pages = [await visitor.post('/login', { contact: `+${phone}` })]
        pages.push(await visitor.get('/code'), await visitor.post('/code/resend'))
        // A timer can be early by a millisecond.
        expect(performance.now() - begunAt).toBeGreaterThan(2 * (sendAnswerMs - 1))
        pages.push(await visitor.get('/code'))
        const otp = otherThan(await guarded.lastCode(known))
        for (let guess = 0; guess < 4; guess++) pages.push(await visitor.post('/code', { otp }))
        return pages.map(({ status, location, text }) => [status, location, text.replaceAll(phone, 'phone')])
      }
      const shown = await answersTo(known)
      expect(await answersTo(stranger)).toEqual(shown)
      // In the cooldown, with a locked code.
      expect(await answersTo(known)).toEqual(shown)
      expect(await guarded.outbox(known)).toHaveLength(2)
      expect(await guarded.outbox(stranger)).toEqual([])
      expect(site.log()).toContain('otpost: rate_limited guard')
    })

    test('offers the other ways to the phone, and sends the code by the chosen one', async () => {
      const [sms, whatsapp, voice] = [testProvider('one'), testProvider('two'), testProvider('three')]
      const phoneRoutes = { plain: [sms], whatsapp: [whatsapp], voice: [voice] }
      const env = { SMS_COUNTRIES: 'US', VOICE_COUNTRIES: 'GB', SMS_COOLDOWN_SECONDS: '0' }
      const server = await createTestApp(env, { phoneRoutes })
      const web = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: (call) => server.app.handle(call) })
      ending.defer(async () => {
        await web.stop(true)
        await server.close()
      })
      const { key } = await issueApp(server.app.context.acting(tester), 'site')
      const app = { OTPOST_API_KEY: key, OTPOST_BRAND_ID: 'acme' }
      const site = await start({ ...app, OTPOST_URL: web.url.origin })
      const visitor = new Visitor(site.origin)
      await visitor.post('/login', { contact: newPhone() })
      const { text } = await visitor.get('/code')
      expect([text.includes('Send it by WhatsApp'), text.includes('Call me')]).toEqual([true, false])
      for (const via of ['whatsapp', 'voice']) await visitor.post('/code/resend', { via })
      expect([sms, whatsapp, voice].map(({ sent }) => sent.length)).toEqual([2, 1, 0])
      const otp = sms.sent.at(-1)?.code ?? ''
      expect((await visitor.post('/code', { otp })).location).toBe('/')
    })

    test('rejects an invalid phone number or e-mail address, and escapes it in the page', async () => {
      const answer = await visit().post('/login', { contact: '"><script>alert(1)</script>' })
      expect(answer.status).toBe(400)
      expect(alertOf(answer)).toBe('Please check the phone number or e-mail address.')
      expect(answer.text).not.toContain('<script>')
      // The same where otpost rejects it.
      const refused = await visit().post('/login', { contact: 'two@at@example.com' })
      expect(refused.status).toBe(400)
      expect(alertOf(refused)).toBe('Please check the phone number or e-mail address.')
      expect((await visit().post('/login', { contact: 'x'.repeat(255) })).status).toBe(400)
      expect((await visit().post('/login')).status).toBe(400)
      expect((await visit().get('/nowhere')).status).toBe(404)
    })

    test('rejects forms of other sites', async () => {
      const phone = newPhone()
      for (const headers of [
        { origin: 'https://evil.example' },
        { origin: 'null' },
        { 'sec-fetch-site': 'cross-site' },
        { 'sec-fetch-site': 'same-site' },
      ]) {
        expect((await visit().post('/login', { contact: phone }, { headers })).status).toBe(403)
      }
      expect(await otpost.messagesTo(phone)).toEqual([])
    })
  })

test.skipIf(!browserPath)(
  browserPath
    ? 'the Elysia example in a browser counts down, and fills in the code that the browser has read'
    : withoutBrowser,
  async () => {
    await using browser = await launchBrowser()
    await using visitor = await newVisitor(browser)
    const { page } = visitor
    const phone = newPhone()
    // Plays a browser that reads the SMS itself, which desktop browsers do not: `smsCame` passes it the code.
    await page.addInitScript(
      `window.OTPCredential = class {}
      navigator.credentials.get = () => new Promise((read) => { window.smsCame = (code) => read({ code }) })`,
    )
    await visitor.open({ page: new URL('/', sites.elysia?.origin) })
    await page.getByLabel('Phone number').fill(phone)
    await page.keyboard.press('Enter')
    await page.getByText('Enter the six digits from the message to').waitFor()
    await page.getByRole('button', { name: 'Send another code' }).click()
    // The page counts down by itself from the server's figure.
    const time = page.getByRole('alert').locator('time')
    const [said, shown] = [await time.getAttribute('data-seconds'), time.filter({ hasText: /^\d+ seconds$/ })]
    expect(Number(said)).toBeWithin(1, 31)
    await shown.filter({ hasNotText: `${said} seconds` }).waitFor()

    await page.evaluate(`smsCame('${await otpost.codeFor(phone)}')`)
    await page.getByText('You are signed in as').waitFor()
    expect(await page.evaluate('document.cookie')).toBe('')
    expect(visitor.complaints).toEqual([])
    expect(visitor.errors).toEqual([])
  },
)

test.skipIf(!browserPath)(
  'the link of an e-mail fills in its code, which is checked when the visitor submits it',
  async () => {
    await using browser = await launchBrowser()
    await using visitor = await newVisitor(browser, { viewport: { width: 375, height: 667 } })
    const { page } = visitor
    const origin = sites.elysia?.origin
    const email = 'jane.link@example.com'
    await visitor.open({ page: new URL('/', origin) })
    await page.getByLabel('Phone number').fill(email)
    await page.keyboard.press('Enter')
    await page.getByText('Enter the six digits from the message to').waitFor()
    const code = await otpost.codeFor(email)
    const link = new URL(`/code#${new URLSearchParams({ code, email })}`, origin)
    // A scanner, which has no cookie of the visitor.
    await using scanner = await newVisitor(browser, { viewport: { width: 375, height: 667 } })
    await scanner.open({ page: link })
    await scanner.page.getByText('Open the link in the browser in which you asked for the code.').waitFor()

    await visitor.open({ page: link })
    await page.waitForURL(`${origin}/code`)
    expect(await page.getByLabel('Code').inputValue()).toBe(code)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('You are signed in as').waitFor()
    expect(visitor.complaints).toEqual([])
  },
)

for (const { name: kind, title, isRun } of examples)
  describe.skipIf(!isRun)(`${title}, when otpost is away,`, () => {
    test('reports that without a reason, and limits the codes of one visitor itself', async () => {
      await otpost.stop()
      const origin = sites[kind]?.origin ?? 'nowhere'
      const answers = []
      for (let number = 0; number < 11; number++) {
        const contact = number === 0 ? newPhone() : `${kind}.${number}@example.com`
        answers.push(await new Visitor(origin).post('/login', { contact }))
      }
      const [first, last] = [answers.at(0), answers.at(-1)]
      expect([first?.status, first && alertOf(first)]).toEqual([
        503,
        'We can not send or check codes at the moment. Please try again later.',
      ])
      expect(last?.status).toBe(429)
      expect(last && alertOf(last)).toMatch(
        /^Too many attempts\. You can try again in \d+ (?:seconds?|minutes)\.$/,
      )
      const log = sites[kind]?.log()
      expect(log).toContain('otpost: unreachable')
      for (const secret of [otpost.apiKey, '555 1', '2025551', 'example.com'])
        expect(log).not.toContain(secret)
    })
  })
