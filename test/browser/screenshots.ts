import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { BrowserContextOptions, Page } from 'playwright-core'
import type { Context } from '../../src/context.ts'
import { addAccount } from '../support/accounts.ts'
import { browserPath, launchBrowser, newVisitor, withoutBrowser } from '../support/browser.ts'
import { signInWithCode, startConsole } from '../support/console-browser.ts'
import { livePast, setUp } from '../support/past.ts'
import { startSmtp } from '../support/smtp.ts'

// Takes the pictures of the README: a real server and browser, and a database with two days of traffic. Names, numbers
// and keys are fictitious, and the database is deleted afterwards.

const folder = join(import.meta.dir, '../../docs/screenshots')
const desktop: BrowserContextOptions = { viewport: { width: 1280, height: 900 }, colorScheme: 'light' }
const phone: BrowserContextOptions = {
  viewport: { width: 375, height: 812 },
  colorScheme: 'light',
  isMobile: true,
  hasTouch: true,
}

if (!browserPath) {
  process.stderr.write(`${withoutBrowser}\n`)
  process.exit(1)
}
mkdirSync(folder, { recursive: true })

const hourMs = 3_600_000
const sendsPerHour = 150

/** Signs in. */
let owner = { email: '', code: () => '' }

/** A code that the first provider could not deliver and the second one did. */
let rescued = ''

async function prepare(context: Context): Promise<void> {
  await setUp(context)
  const clock = {
    get now() {
      return context.now()
    },
  }
  const app = { app: { context }, clock }
  owner = await addAccount(app, 'ana@acme.example', 'owner')
  await addAccount(app, 'ben@acme.example', 'operator')
  await addAccount(app, 'support@acme.example', 'viewer')
  const now = context.now()
  const accounts = await context.sessions.accounts()
  for (const [index, account] of accounts.entries()) {
    const saveAccount = { ...account, signedInAt: now - (5 * index + 1) * hourMs }
    await context.sessions.change({ now }, () => ({ saveAccount, entry: null }))
  }
  const until = context.now()
  await livePast(context, { from: until - 50 * hourMs, until, sends: 50 * sendsPerHour })
  const rows = await context.eventLog.deliveries({ limit: 10_000 })
  const second = rows.findLast(({ attempt, report }) => attempt === 2 && report?.status === 'delivered')
  if (!second) throw new Error('in this past no provider has stood in for another')
  rescued = second.requestId
}

// Stand-ins for the providers. Twilio fails for some numbers; Vonage accepts all.
const providerSpecs = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  async fetch(request) {
    if (request.url.endsWith('/sms/json')) {
      return Response.json({ messages: [{ status: '0', 'message-id': '0A0000001234ABCD' }] })
    }
    const to = new URLSearchParams(await request.text()).get('To') ?? ''
    if (to.endsWith('0112')) return Response.json({ code: 20503 }, { status: 503 })
    if (to.endsWith('0119')) return Response.json({ code: 21211 }, { status: 400 })
    const sid = `SM${crypto.randomUUID().replaceAll('-', '')}`
    return Response.json({ sid, status: 'queued' }, { status: 201 })
  },
})
const providerUrl = `http://127.0.0.1:${providerSpecs.port}`
const smtp = await startSmtp()
await using browser = await launchBrowser()
await using server = await startConsole({
  prepare,
  env: {
    PUBLIC_URL: 'https://otp.example.com',
    GLOBAL_LIMIT_PER_MINUTE: '120',
    SMS_PLAIN: 'twilio,vonage',
    TWILIO_BASE_URL: providerUrl,
    TWILIO_ACCOUNT_SID: `AC${'0'.repeat(32)}`,
    TWILIO_AUTH_TOKEN: 'of-nobody',
    TWILIO_FROM: '+12025550100',
    VONAGE_BASE_URL: providerUrl,
    VONAGE_API_KEY: '00000000',
    VONAGE_API_SECRET: 'of-nobody',
    VONAGE_FROM: 'Acme',
    SMTP_URL: smtp.url,
    MAIL_FROM: 'Acme <codes@acme.example>',
  },
})

// The last minute: one code goes out through the second provider, one to an unreachable number; two are rate-limited.
for (const end of ['0112', '0104', '0119', '0143', '0178', '0143', '0178', '0178']) {
  await server.post('/otp/send', { phone: `1202555${end}` })
}

const inLight = await newVisitor(browser, desktop)
await inLight.open(server)
await signInWithCode(inLight.page, owner)
// Each code signs in once.
const storageState = await inLight.page.context().storageState()
const inDark = await newVisitor(browser, { ...desktop, storageState, colorScheme: 'dark' })
const onPhone = await newVisitor(browser, { ...phone, storageState })
const visitors = [inLight, inDark, onPhone]
for (const visitor of [inDark, onPhone]) await visitor.open(server)

/** Takes a screenshot of the top of a page, in a window of the given height. */
async function take(page: Page, name: string, path: string, has: string, height?: number): Promise<void> {
  const size = page.viewportSize()
  if (size && height !== undefined) await page.setViewportSize({ ...size, height })
  if (path !== '') await page.goto(String(new URL(path, server.url)))
  await page.locator('main').getByText(has).filter({ visible: true }).first().waitFor()
  await page.screenshot({ path: join(folder, `${name}.png`) })
}

await take(inLight.page, 'overview-light', '/admin', 'Codes sent')
await take(inDark.page, 'overview-dark', '/admin', 'Codes sent')
await take(onPhone.page, 'overview-phone', '/admin', 'Codes sent')
await take(
  inLight.page,
  'deliveries',
  '/admin/deliveries?provider=twilio&status=temporary-failure&status=rejected',
  'twilio',
  780,
)
await take(inLight.page, 'operators', '/admin/operators', 'ben@acme.example', 645)
await take(inLight.page, 'request-trace', `/admin/deliveries/${rescued}`, 'Attempt 2', 850)
await take(inLight.page, 'brand', '/admin/brands/acme', 'Preview', 900)
await inLight.page.goto(String(new URL('/admin/requests', server.url)))
await inLight.page.getByRole('link', { name: 'Review' }).click()
await inLight.page.getByRole('button', { name: 'Approve and create API key' }).click()
await take(inLight.page, 'key', '', 'This key is shown only once.', 760)

for (const visitor of visitors) {
  const wrong = [...visitor.complaints, ...visitor.errors]
  if (wrong.length > 0) throw new Error(wrong.join('\n'))
  await visitor[Symbol.asyncDispose]()
}
await Promise.all([providerSpecs.stop(true), smtp.stop()])
process.stdout.write(`docs/screenshots is new\n`)
