import { afterAll, describe, expect, test } from 'bun:test'
import type { BrowserContextOptions, Locator, Page } from 'playwright-core'
import { readConfig } from '../../src/config/config.ts'
import { putBrand } from '../../src/domain/operator/brands.ts'
import { addReviewNumber } from '../../src/domain/operator/review-numbers.ts'
import { addAccount } from '../support/accounts.ts'
import { codeIn } from '../support/app.ts'
import { browserPath, type PageVisitor } from '../support/browser.ts'
import { password } from '../support/console.ts'
import { type ConsoleScene, type ConsoleServer, signIn, startConsole } from '../support/console-browser.ts'
import {
  expectGoodLooks,
  expectKeyboard,
  expectNoOverflow,
  narrow,
  sections,
  wide,
} from '../support/looks.ts'
import { operate, setText, tester } from '../support/operator.ts'
import { failSends, livePast, setUp } from '../support/past.ts'
import { startReceiver } from '../support/receiver.ts'
import { startSmtp } from '../support/smtp.ts'
import { useBrowser } from '../support/use-browser.ts'

// The console in a real browser, against a real server. What the forms do is tested without a browser
// (test/http/console.test.ts); this file has what only a browser can show.

const browser = useBrowser()

const smtp = await startSmtp()
afterAll(() => smtp.stop())

interface RequestTrace {
  readonly page: Page
  readonly server: ConsoleServer
  /** The SMS provider of the server, if the scenario has one. */
  readonly gateway: ReturnType<typeof startReceiver>
  /** Opens a part of the console by its path. */
  readonly goto: (path: string) => Promise<unknown>
  /** Another browser with its own cookies; `path` is the first page it opens. */
  readonly another: (path: string, options?: BrowserContextOptions) => Promise<Page>
  /** The requests rejected since the last call, such as `409 for /admin/brands`. Any that are left at the end fail the test. */
  readonly refusals: () => string[]
}

const owner = 'ana@example.com'

/** A scenario in the console. It begins at the sign-in form; at its end no page may have reported a problem. */
function trace(
  name: string,
  tell: (trace: RequestTrace) => Promise<void>,
  {
    env,
    prepare,
    isWithGateway = false,
    ...options
  }: ConsoleScene & BrowserContextOptions & { isWithGateway?: boolean } = {},
): void {
  const run = async () => {
    await using visitors = new AsyncDisposableStack()
    const gateway = startReceiver()
    visitors.defer(() => gateway.stop())
    const opening = browser.visit({ viewport: wide, ...options })
    await using server = await startConsole({
      env: { ...(isWithGateway ? { SMS_PLAIN: 'webhook', ...gateway.env } : {}), ...env },
      prepare: async (context) => {
        await addAccount({ app: { context }, clock: { now: Date.now() } }, owner, 'owner')
        await prepare?.(context)
      },
    })
    const visitor = visitors.use(await opening)
    const all: PageVisitor[] = [visitor]
    await visitor.open(server)
    await tell({
      page: visitor.page,
      server,
      gateway,
      goto: (path) => visitor.page.goto(String(new URL(path, server.url))),
      another: async (path, own = {}) => {
        const other = visitors.use(await browser.visit({ viewport: wide, ...own }))
        all.push(other)
        await other.open({ page: new URL(path, server.url) })
        return other.page
      },
      refusals: () => all.flatMap(({ complaints }) => complaints.splice(0)),
    })
    for (const { complaints, errors } of all) {
      expect(complaints).toEqual([])
      expect(errors).toEqual([])
    }
  }
  test.skipIf(!browserPath)(name, run, 300_000)
}

/** Waits for an element and for the styles of the page: elements that move under the mouse are not clicked. */
const seen = async (page: Page, what: Locator) => {
  await what.waitFor()
  await page.waitForLoadState()
}
/** Follows the navigation. A counter may follow the name of a section. */
const goTo = async (page: Page, section: string) => {
  await openMenu(page)
  await sections(page).getByRole('link', { name: section }).click()
  await headed(page, section.split(' ')[0] ?? '')
}
/** On a phone. */
const openMenu = async (page: Page) => {
  const menu = page.getByRole('button', { name: 'Menu' })
  if (await menu.isVisible()) await menu.click()
}
const headed = (page: Page, name: string | RegExp) =>
  seen(page, page.getByRole('heading', { level: 1, name }))
const said = (page: Page, words: string) =>
  seen(page, page.getByRole('status').getByText(words, { exact: true }))
const complained = (page: Page, words: string | RegExp) =>
  seen(page, page.getByRole('alert').getByText(words))
const dialog = (page: Page) => page.getByRole('dialog')
const button = (page: Page | Locator, name: string) => page.getByRole('button', { name, exact: true })
const row = (page: Page | Locator, words: string | RegExp) => page.getByRole('row').filter({ hasText: words })
/** The innermost section with this heading, since sections are nested. */
const part = (page: Page, heading: string) =>
  page
    .locator('section')
    .filter({ has: page.getByRole('heading', { level: 2, name: heading, exact: true }) })
    .last()

const textOf = async (locator: Locator) => (await locator.textContent()) ?? ''
const keyOn = async (page: Page) =>
  /otp_live_[0-9A-Za-z]{49}/.exec(await page.locator(':root').innerHTML())?.[0] ?? ''
/** The text of the focused element. */
const focused = (page: Page) => page.evaluate<string>('document.activeElement.textContent.trim()')

const request = {
  companyName: 'Globex Corporation',
  contactName: 'Jo Doe',
  contactEmail: 'jo@globex.example',
  brandName: 'Globex',
  channels: ['SMS'],
  useCase: 'Codes for logging in to the shop',
}

/** Sends a code for a brand, as the app `shop` of the settings. Resolves to the error, if any. */
const errorOfSend = async (
  server: ConsoleServer,
  brandId: string,
  phone: string,
): Promise<string | undefined> => (await server.post('/otp/send', { brandId, phone })).body.error

describe('an operator', () => {
  trace(
    'approves an integration request and gets the API key, which is shown only once',
    async ({ page, server, goto, refusals }) => {
      const asked = await server.postAs('/integrations/requests', request)
      expect(asked.status).toBe(201)
      await signIn(page, server)
      await goTo(page, 'Requests 1 pending')
      await page.getByRole('link', { name: 'Review' }).click()
      await headed(page, 'Globex Corporation')
      expect(await page.getByLabel('App ID').inputValue()).toBe('globex-corporation')
      expect(await page.getByLabel('Brand slug').inputValue()).toBe('globex')
      await page.getByLabel('App ID').fill('globex-shop')
      await page.getByLabel('Brand slug').focus()
      // Only the first is sent, since the answer to the second would replace the API key.
      await page.keyboard.press('Enter')
      await page.keyboard.press('Enter')

      await headed(page, 'API key for globex-shop')
      const apiKey = await keyOn(page)
      expect(await textOf(page.locator('.key-value'))).toBe(apiKey)
      await button(page, 'Copy key').click()
      await button(page, 'Copied').waitFor()
      expect(await page.evaluate<string>('navigator.clipboard.readText()')).toBe(apiKey)
      const credentials = { appId: 'globex-shop', apiKey, brandId: 'globex' }
      const sent = await server.postAs('/otp/send', { ...credentials, phone: '+1 202 555 0143' })
      expect(sent.body).toMatchObject({ success: true })

      // Reloading the answer of a form sends the form again; there is nothing left to approve.
      await page.reload()
      await complained(page, 'is already approved')
      expect(await keyOn(page)).toBe('')
      expect(refusals()).toEqual([`409 for /admin/requests/${asked.body.integrationRequestId}/approve`])

      await goTo(page, 'Requests')
      await row(page, 'Globex Corporation').getByText('approved', { exact: true }).waitFor()
      expect(await sections(page).getByText('pending').isVisible()).toBe(false)
      // Back to the page that showed the key.
      await expect(page.goBack()).rejects.toThrow('ERR_CACHE_MISS')
      await page.waitForURL('chrome-error://chromewebdata/')
      for (const path of [
        '/admin/apps',
        '/admin/audit',
        `/admin/requests/${asked.body.integrationRequestId}`,
      ]) {
        await goto(path)
        await page.getByText('globex-shop').first().waitFor()
        expect(await keyOn(page), path).toBe('')
      }
      expect(server.lines.join('\n')).not.toContain(apiKey)
    },
    { permissions: ['clipboard-read', 'clipboard-write'] },
  )

  trace(
    'does all of this without JavaScript',
    async ({ page, server }) => {
      await server.postAs('/integrations/requests', request)
      await signIn(page, server)
      await goTo(page, 'Requests 1 pending')
      await page.getByRole('link', { name: 'Review' }).click()
      await button(page, 'Approve and create API key').click()
      await headed(page, 'API key for globex-corporation')
      const apiKey = await textOf(page.locator('.key-value'))
      // What needs a script is not shown.
      expect(await page.locator('[data-copy]').filter({ visible: true }).count()).toBe(0)
      const credentials = { appId: 'globex-corporation', apiKey, brandId: 'globex' }
      const sent = await server.postAs('/otp/send', { ...credentials, phone: '+1 202 555 0143' })
      expect(sent.body).toMatchObject({ success: true })

      await goTo(page, 'Brands')
      await page.getByRole('link', { name: 'Acme' }).click()
      await button(page, 'Suspend').click()
      await said(page, 'Brand acme is suspended.')
      expect(await errorOfSend(server, 'acme', '12025550144')).toBe('brand_suspended')
      await goTo(page, 'Overview')
      await part(page, 'Codes').getByText('Show as a table').click()
      await part(page, 'Codes').getByRole('table').waitFor()
      await button(page, 'Sign out').click()
      await headed(page, 'Sign in')
    },
    { javaScriptEnabled: false },
  )
})

describe('sessions', () => {
  trace('begin by a link of the command once, and can be ended from another', async (at) => {
    const { page, server, another, refusals } = at
    expect(await textOf(page.getByRole('heading', { level: 1 }))).toBe('Sign in')
    expect(await page.evaluate('document.activeElement.id')).toBe('email')
    await signIn(page, server)

    const link = await server.command('admin', 'link')
    expect(link).toStartWith(`${server.url.origin}/admin/link#`)
    const [path = '', token = ''] = link.slice(server.url.origin.length).split('#')
    const other = await another(`${path}#${token}`)
    await headed(other, 'Overview')
    // No URL in the browser's history has the token.
    expect(other.url()).toBe(`${server.url.origin}/admin`)
    expect(server.lines.join('\n')).not.toContain(token)

    const late = await another(`${path}#${token}`)
    await headed(late, 'This link is not valid')
    await late.getByText('otpost admin link').waitFor()
    expect(refusals()).toEqual(['401 for /admin/link'])

    await goTo(page, 'Settings')
    const theirs = row(page, 'sign-in link').filter({ hasNotText: 'this session' })
    const id = (await textOf(theirs.getByRole('rowheader'))).trim()
    await theirs.getByRole('button', { name: `End session ${id}` }).click()
    await dialog(page).getByText(`End the session ${id}?`).waitFor()
    await dialog(page).getByRole('button', { name: 'End' }).click()
    await said(page, `Ended the session ${id}.`)
    await sections(other).getByRole('link', { name: 'Brands' }).click()
    await headed(other, 'Sign in')

    await button(page, 'Sign out').click()
    await headed(page, 'Sign in')
    await page.goBack()
    await headed(page, 'Sign in')
  })

  trace('are not begun by guessing: after ten tries the form says how long to wait', async (at) => {
    const { page, server, another, refusals } = at
    await page.getByLabel('E-mail address').fill(owner)
    const field = page.getByLabel('Password')
    await field.fill('not the password')
    expect(await field.getAttribute('type')).toBe('password')
    await button(page, 'Show password').click()
    expect(await field.getAttribute('type')).toBe('text')
    await field.press('Enter')
    await complained(page, 'Wrong e-mail address or password.')
    expect(await field.getAttribute('type')).toBe('password')
    expect(await page.getByLabel('Password').inputValue()).toBe('')
    expect(await page.getByLabel('Password').getAttribute('aria-invalid')).toBe('true')
    const tries = Array.from({ length: 9 }, () =>
      server.request('POST', '/admin/login', {
        body: new URLSearchParams({ email: owner, password: 'wrong' }),
      }),
    )
    expect((await Promise.all(tries)).map(({ status }) => status)).toEqual(Array(9).fill(401))

    await page.getByLabel('Password').fill(password)
    await page.keyboard.press('Enter')
    await complained(
      page,
      'Too many attempts. Try again in 10 minutes, or use a passkey, a browser that signed in before, or a link from otpost admin link.',
    )
    expect(refusals()).toEqual(['401 for /admin/login', '429 for /admin/login'])
    // The sign-in form must have a user name.
    const link = await server.command('admin', 'link')
    const other = await another(link.slice(server.url.origin.length))
    await headed(other, 'Overview')
  })
})

describe('brands', () => {
  trace('a suspended one is refused at the next call, once the operator has said yes', async (at) => {
    const { page, server, goto } = at
    await signIn(page, server)
    await goto('/admin/brands/acme')
    const suspend = button(page, 'Suspend')
    await suspend.focus()
    await page.keyboard.press('Enter')
    await dialog(page).getByText('Suspend Acme?').waitFor()
    expect(await focused(page)).toBe('Cancel')
    await page.keyboard.press('Escape')
    await dialog(page).waitFor({ state: 'detached' })
    expect(await focused(page)).toBe('Suspend')
    await suspend.click()
    await button(dialog(page), 'Cancel').click()
    await dialog(page).waitFor({ state: 'detached' })
    expect(await errorOfSend(server, 'acme', '12025550143')).toBeUndefined()

    await suspend.focus()
    for (const key of ['Enter', 'Tab', 'Enter']) await page.keyboard.press(key)
    await said(page, 'Brand acme is suspended.')
    expect(await errorOfSend(server, 'acme', '12025550144')).toBe('brand_suspended')
    await button(page, 'Activate').click()
    await said(page, 'Brand acme is active.')
    expect(await errorOfSend(server, 'acme', '12025550145')).toBeUndefined()
  })
})

trace('a text of a code is written in Hindi, and its message is shown while it is typed', async (at) => {
  const { page, server, goto, refusals } = at
  await signIn(page, server)
  await goto('/admin/brands/acme')
  await page.getByRole('link', { name: 'Texts', exact: true }).click()
  await headed(page, 'Texts')
  await page.getByLabel('Language').selectOption({ label: 'Hindi (hi)' })
  await button(page, 'Show').click()
  await page.getByRole('link', { name: /^LOGIN_OTP in Hindi/ }).click()
  await headed(page, 'LOGIN_OTP in Hindi (hi)')

  const preview = part(page, 'Preview')
  const bubble = preview.locator('.handset .bubble')
  await bubble.getByText(/^आपका Acme कोड 123456 है। 5 मिनट/).waitFor()
  const text = page.getByLabel('Text', { exact: true })
  await text.fill('कोड ')
  await preview.locator('.unreadable').getByText('must have the code, {{otp}}, once.').waitFor()
  await button(page, '{{otp}}').click()
  await bubble.getByText('कोड 123456', { exact: true }).waitFor()
  await preview.getByText('1 segment · UCS-2 · 10 of 70 characters').first().waitFor()
  await preview.getByLabel('otp').fill('111222')
  await bubble.getByText('कोड 111222', { exact: true }).waitFor()
  await text.press('End')
  await text.pressSequentially('। <b>'.repeat(15))
  await preview.getByText('2 segments · UCS-2').first().waitFor()
  await text.fill('कोड {{otp}} <b>')
  // Nothing typed is lost when the session ends before it is stored.
  await page.context().clearCookies()
  await button(page, 'Save draft').click()
  await page.getByRole('heading', { level: 1, name: 'Your session has expired' }).waitFor()
  await signIn(page, server)
  await goto('/admin/brands/acme/texts/LOGIN_OTP/sms/hi')
  await page.getByText('Your unsaved changes are back.').waitFor()
  expect(await text.inputValue()).toBe('कोड {{otp}} <b>')
  await preview.locator('del', { hasText: 'आपका' }).waitFor()
  await button(page, 'Save draft').click()
  await said(page, 'Saved the draft. otpost sends it after you publish it.')
  expect(await page.getByText('Your unsaved changes are back.').isVisible()).toBe(false)
  await button(page, 'Publish').click()
  await said(page, 'Published version 1. Takes effect immediately.')
  await text.fill('{{otp}} typed, not stored')
  await goto('/admin/brands/acme/texts/LOGIN_OTP/sms/hi')
  await button(page, 'Discard them').click()
  expect(await text.inputValue()).toBe('कोड {{otp}} <b>')

  await goto('/admin/brands/acme/texts/LOGIN_OTP/email/en')
  const mail = page.frameLocator('iframe.mail:not([data-loading])')
  await mail.getByText('Enter this code to continue with Acme').waitFor()
  const visits = await page.evaluate('history.length')
  await page.getByLabel('Text', { exact: true }).fill('Hello <i>from</i> {{businessName}}\n\n{{otp}}')
  await mail.getByText('Hello <i>from</i> Acme').waitFor()
  expect(await page.evaluate('history.length')).toBe(visits)
  expect(refusals()).toEqual(['401 for /admin/brands/acme/texts'])
})

for (const [how, options] of [
  ['with the times of the viewer', { timezoneId: 'Asia/Kolkata' }],
  ['without JavaScript', { timezoneId: 'Asia/Kolkata', javaScriptEnabled: false }],
] as const) {
  trace(
    `deliveries are filtered by keyboard, ${how}, by a URL that others can open`,
    async ({ page, server, goto }) => {
      await server.post('/otp/send', { brandId: 'acme', phone: '12025550143' })
      await server.post('/notify', { brandId: 'acme', channel: 'SMS', to: ['447400123456'], message: 'Hi' })
      await signIn(page, server)
      await goto('/admin/deliveries')
      const requests = page.locator('tbody').getByRole('rowheader')
      const fold = page.locator('.fold > summary', { hasText: 'Filter' })
      expect(await requests.count()).toBe(2)
      await fold.focus()
      await page.keyboard.press('Enter')
      await page.getByRole('checkbox', { name: /^accepted/ }).focus()
      await page.keyboard.press('Space')
      await page.getByLabel('Country', { exact: true }).selectOption('GB')
      await page.getByLabel('From').fill('2026-01-01T05:30')
      await page.getByLabel('Template').focus()
      await page.keyboard.press('Enter')
      await page.getByRole('link', { name: /^Country/ }).waitFor()
      expect(await requests.count()).toBe(1)
      const from = how === 'without JavaScript' ? '2026-01-01T05%3A30Z' : '2026-01-01T00%3A00Z'
      const { pathname, search } = new URL(page.url())
      expect(pathname + search).toBe(`/admin/deliveries?status=accepted&country=GB&from=${from}`)
      await fold.focus()
      await page.keyboard.press('Enter')
      expect(await page.getByLabel('From').inputValue()).toBe('2026-01-01T05:30')
      await page.getByRole('link', { name: 'Country United Kingdom (remove filter)' }).focus()
      await page.keyboard.press('Enter')
      await row(page, '+12*******43').waitFor()
      await page.getByRole('link', { name: 'Show all' }).click()
      await page.getByRole('link', { name: 'API calls' }).click()
      await row(page, '/notify').waitFor()
      expect(await requests.count()).toBe(2)
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('link', { name: 'Download as CSV' }).click(),
      ])
      expect(download.suggestedFilename()).toBe('otpost-calls.csv')
    },
    options,
  )
}

trace(
  'a search by keyboard, from any page, on a phone that shows every section',
  async (at) => {
    const { page, server, goto } = at
    const sent = await server.post('/otp/send', { phone: '12025550143', reference: 'acme' })
    const addresses: string[] = []
    page.on('request', (asked) => addresses.push(asked.url()))
    await signIn(page, server)
    await openMenu(page)
    await expectGoodLooks(page, 'the menu')
    for (const link of await sections(page).getByRole('link').all()) {
      const { x = -1, width = 0 } = (await link.boundingBox()) ?? {}
      expect([x >= 0, x + width <= narrow.width]).toEqual([true, true])
    }
    const search = async (words: string) => {
      await page.getByLabel('Search: request ID').fill(words)
      await page.keyboard.press('Enter')
    }
    await search('+1 202 555 0143')
    await page.getByText('Recipient +12*******43').waitFor()
    await goto('/admin/money')
    await search(sent.body.requestId)
    await page.waitForURL(`**/admin/deliveries/${sent.body.requestId}`)
    await search('acme')
    await headed(page, 'Search')
    await row(page, 'Brand Acme').waitFor()
    await row(page, 'Request with this reference').getByText('shop').waitFor()
    await expectGoodLooks(page, 'results of a search')
    await search('stranger@example.org')
    await complained(page, 'Nothing was found for')
    expect(await page.getByLabel('Search: request ID').inputValue()).toBe('stranger@example.org')
    await expectGoodLooks(page, 'a search that failed')
    expect(
      addresses.filter((address) =>
        /555|stranger/.test(decodeURIComponent(new URL(address).pathname + new URL(address).search)),
      ),
    ).toEqual([])
  },
  { viewport: narrow },
)

trace(
  'a search in a dialog: by / or Ctrl-K, with the arrow keys, without the text in a URL',
  async ({ page, server, goto }) => {
    const sent = await server.post('/otp/send', { phone: '12025550143' })
    const addresses: string[] = []
    page.on('request', (asked) => addresses.push(asked.url()))
    await signIn(page, server)
    await page.keyboard.press('/')
    await dialog(page).getByRole('searchbox').fill('acm')
    await page.keyboard.press('Enter')
    await headed(page, 'Acme')
    await goto('/admin/audit?hide=sign-ins')
    await page.keyboard.press('Control+k')
    await page.keyboard.type('+1202555')
    await page.keyboard.press('Enter')
    await dialog(page).getByRole('link', { name: 'Prefix +1 202555' }).waitFor()
    await expectGoodLooks(page, 'a search in a dialog')
    await dialog(page).getByRole('searchbox').focus()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.waitForURL('**/admin/deliveries?country=US')
    await page.keyboard.press('/')
    await page.keyboard.type(sent.body.requestId)
    await page.keyboard.press('Enter')
    await page.waitForURL(`**/admin/deliveries/${sent.body.requestId}`)
    await page.keyboard.press('/')
    await page.keyboard.press('Escape')
    await dialog(page).waitFor({ state: 'detached' })
    expect(addresses.filter((address) => address.includes('555'))).toEqual([])
  },
)

trace(
  'a browser whose clock differs from the server says so on each page',
  async ({ page, server, goto }) => {
    await signIn(page, server)
    const hint = page.getByText(/^The clock of your browser is 8 h ahead of the clock of the server\./)
    expect(await hint.count()).toBe(0)
    await page.clock.setFixedTime(Date.now() + 8 * 3_600_000 + 1000)
    await goto('/admin/health')
    await hint.waitFor()
    await expectGoodLooks(page, 'a hint about clocks')
  },
)

describe('times', () => {
  /** The request, its time in the deliveries, in its trace and in the audit log, and the tooltips of the charts. */
  const timesOn = async ({ page, server, goto }: RequestTrace) => {
    const { body } = await server.post('/otp/send', { brandId: 'acme', phone: '12025550143' })
    await signIn(page, server)
    const hint = await textOf(part(page, 'Codes').locator('.hint').first())
    await goto('/admin/deliveries')
    const cell = page.locator('tbody time').first()
    const delivery = await textOf(cell)
    const inUtc = (await cell.getAttribute('title')) ?? ''
    const column = (await textOf(page.getByRole('columnheader').first())).trim()
    await goto(`/admin/deliveries/${body.requestId}`)
    const trace = await textOf(page.locator('.timeline .event').first().locator('time'))
    await goto('/admin/audit')
    const audit = await textOf(row(page, 'Brand created').locator('time').last())
    const at = Date.parse(inUtc.replace(' UTC', 'Z').replace(' ', 'T'))
    return { hint, delivery, inUtc, column, trace, audit, at }
  }
  const clock = (epochMs: number) => new Date(epochMs).toISOString().slice(11, 19)
  const kolkataMs = 5.5 * 3_600_000

  trace(
    'are in the time zone of the viewer, with UTC as their title',
    async (at) => {
      const shown = await timesOn(at)
      expect(shown.hint).toBe('Per hour.')
      expect(shown.column).toBe('Time')
      expect(shown.delivery).toBe(clock(shown.at + kolkataMs))
      expect(shown.inUtc).toEndWith(`${clock(shown.at)} UTC`)
      expect(shown.trace).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\+5:30$/)
      expect(shown.audit).toEndWith(' UTC+5:30')
    },
    { timezoneId: 'Asia/Kolkata' },
  )

  trace(
    'are all in the zone that the page names, and in UTC after one click',
    async ({ page, server, goto }) => {
      await server.post('/otp/send', { brandId: 'acme', phone: '12025550143' })
      await server.command('provider', 'pause', 'webhook', '--for', '1h')
      await signIn(page, server)
      const zone = page.locator('main [data-zone]')
      expect(await textOf(zone)).toBe('Times in Asia/Dubai (UTC+4) Use UTC')
      const pause = page
        .locator('main')
        .getByText(/paused until/)
        .first()
      const zones = async () => [...(await textOf(pause)).matchAll(/UTC\S*/g)].map(([found]) => found)
      expect(await zones()).toEqual(['UTC+4.'])
      await button(page, 'Use UTC').click()
      await page.getByText('Times in UTC').waitFor()
      expect(await zones()).toEqual(['UTC.'])
      await goto('/admin/deliveries')
      expect(await textOf(zone)).toBe('Times in UTC Use Asia/Dubai')
      const cell = page.locator('tbody time').first()
      expect(await cell.getAttribute('title')).toEndWith(`${await textOf(cell)} UTC`)
      await page.getByText('Filter', { exact: true }).click()
      await page.getByLabel('From').fill('2026-01-01T05:30')
      await button(page, 'Apply').click()
      await page.waitForURL('**from=2026-01-01T05%3A30Z')
      await button(page, 'Use Asia/Dubai').click()
      await page.getByText('2026-01-01 09:30 UTC+4').waitFor()
    },
    { timezoneId: 'Asia/Dubai', isWithGateway: true },
  )

  trace(
    'are in UTC without JavaScript',
    async (at) => {
      const shown = await timesOn(at)
      expect(shown.hint).toBe('Per hour.')
      expect(shown.column).toBe('Time (UTC)')
      expect(shown.delivery).toBe(clock(shown.at))
      expect([shown.trace.slice(-4), shown.audit.slice(-4)]).toEqual([' UTC', ' UTC'])
    },
    { timezoneId: 'Asia/Kolkata', javaScriptEnabled: false },
  )
})

/** The end of the latest UTC hour that began two days before. */
const outageEnd = Math.floor((Date.now() - 50 * 3_600_000) / 3_600_000) * 3_600_000 + 41 * 60_000

trace(
  'an outage of two days ago is found with its minutes and people, by two clicks, by dragging, and in the heat map',
  async (at) => {
    const { page, server, goto } = at
    await server.post('/otp/send', { brandId: 'acme', phone: '12025550143' })
    await signIn(page, server)
    await page.getByRole('link', { name: '7 days' }).click()
    const incident = page.locator('.marks > li', { hasText: 'Sending failed' })
    const text = await textOf(incident)
    expect(text).toContain('38 min')
    expect(text).toMatch(/Sending failed for 114 of \d+ messages \(.*\), to 19 people\./)
    await incident.getByRole('link', { name: 'Failed calls' }).click()
    await page.getByText('114 requests to 19 recipients').waitFor()

    await page.goBack()
    await incident.getByRole('link').first().click()
    await page.waitForURL('**from=**')
    const chart = page.locator('#chart-codes')
    const data = async () => JSON.parse((await chart.getAttribute('data-chart')) ?? '')
    const shown = await data()
    expect(shown.stepSeconds).toBe(60)
    expect(shown.isUnfinished).toBe(false)
    await expectGoodLooks(page, 'a chosen time')
    await page.setViewportSize(wide)

    // From the start of the chart to its middle.
    const plot = chart.locator('.u-over')
    await plot.scrollIntoViewIfNeeded()
    const { x = 0, y = 0, width = 0 } = (await plot.boundingBox()) ?? {}
    await page.mouse.move(x + 1, y + 40)
    await page.mouse.down()
    await page.mouse.move(x + width / 2, y + 40, { steps: 4 })
    await page.mouse.up()
    const steps = async () => (await data()).at.length
    while ((await steps()) === shown.at.length) await page.waitForLoadState()
    const zoomed = await data()
    expect(zoomed.at[0]).toBe(shown.at[0])
    expect(Math.abs(zoomed.at.length - shown.at.length / 2)).toBeLessThan(3)

    // A click opens the failed codes of its minute.
    await plot.scrollIntoViewIfNeeded()
    const box = (await plot.boundingBox()) ?? { x: 0, y: 0, width: 0 }
    const step = zoomed.lines[2].values.findIndex((value: number) => value === 3)
    await page.mouse.click(box.x + (box.width * step) / (zoomed.at.length - 1), box.y + 4)
    await page.waitForURL('**/admin/calls?**')
    expect(new URL(page.url()).searchParams.get('result')).toBe('failed')
    await page.getByText(/^3 requests/).waitFor()

    await goto('/admin')
    const cells = page.locator('[data-heat] tr[data-rows*=outbox] td:not(:nth-child(2))')
    expect(await cells.count()).toBe(48)
    expect(await textOf(cells.last())).toBe('0% of 1')
    expect((await data()).isUnfinished).toBe(true)
  },
  {
    prepare: async (context) => {
      await livePast(context, { from: outageEnd - 3_600_000, until: outageEnd + 3_600_000, sends: 200 })
      await failSends(context, { from: outageEnd - 38 * 60_000, until: outageEnd, sends: 114 }, 19)
    },
  },
)

trace('text of other people is escaped everywhere, and fits on a phone', async (at) => {
  const { page, server, goto } = at
  await page.setViewportSize(narrow)
  const hostile = '<img src=x onerror="attacked=1"><b>'
  const long = `"><script>attacked=1</script>${'long'.repeat(17)}`
  const ids: string[] = []
  for (const company of [`${hostile}1`, `${hostile}2`]) {
    const { body } = await server.postAs('/integrations/requests', {
      companyName: company,
      contactName: long,
      contactEmail: 'eve@example.com',
      brandName: hostile,
      website: `https://example.com/${encodeURIComponent(hostile)}?${'w'.repeat(150)}`,
      useCase: `${hostile} ${long}${long}`,
    })
    ids.push(body.integrationRequestId)
  }
  const [first, second] = ids
  const appId = '<b>a</b>"\'<script>attacked=1</script>'
  await signIn(page, server)
  await goto(`/admin/requests/${first}`)
  await headed(page, `${hostile}1`)
  await page.getByLabel('App ID').fill(appId)
  await page.getByLabel('Brand slug').fill('evil')
  await button(page, 'Approve and create API key').click()
  await headed(page, `API key for ${appId}`)
  const apiKey = await keyOn(page)
  await expectNoOverflow(page, 'the key')
  const sent = await server.postAs('/otp/send', {
    appId,
    apiKey,
    brandId: 'evil',
    businessName: hostile,
    phone: '12025550143',
  })
  expect(sent.body).toMatchObject({ success: true })

  const places = [
    { path: '/admin', tells: 'evil' },
    { path: '/admin/requests', tells: hostile },
    { path: `/admin/requests/${first}`, tells: appId },
    { path: `/admin/requests/${second}`, tells: long },
    { path: '/admin/brands', tells: hostile },
    { path: '/admin/brands/evil', tells: hostile },
    { path: '/admin/apps', tells: appId },
    { path: `/admin/apps/app?app=${encodeURIComponent(appId)}`, tells: appId },
    { path: `/admin/apps/webhook?app=${encodeURIComponent(appId)}`, tells: appId },
    { path: '/admin/deliveries', tells: appId },
    { path: `/admin/deliveries/${sent.body.requestId}`, tells: appId },
    { path: '/admin/audit', tells: appId },
  ]
  for (const { path, tells } of places) {
    await goto(path)
    // The overview has its tables folded.
    await page.evaluate("for (const each of document.querySelectorAll('.folded-part')) each.open = true")
    await page.locator('main').getByText(tells).filter({ visible: true }).first().waitFor()
    expect(await page.locator('body').locator('script, img, b').count(), path).toBe(0)
    await expectNoOverflow(page, path)
  }

  await goto(`/admin/requests/${second}`)
  await button(page, 'Reject').click()
  await dialog(page).getByText(`Reject the request from ${hostile}2?`).waitFor()
  await button(dialog(page), 'Cancel').click()
  await goto('/admin/brands/evil')
  await page.getByLabel('Name', { exact: true }).fill('<b>typed</b>')
  await page.locator('.handset .bubble').getByText('is your <b>typed</b> verification code').first().waitFor()
  expect(await page.locator('body').locator('script, img, b').count()).toBe(0)
  expect(await page.evaluate('globalThis.attacked')).toBeUndefined()
})

/** The most frequent colour of a chart, except the background; '' if there is none. */
const inkOf = (page: Page) =>
  page.evaluate<string>(`(() => {
    const canvas = document.querySelector('.plot canvas')
    if (!canvas?.width) return ''
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
    const counts = new Map()
    for (let at = 0; at < data.length; at += 4) {
      if (data[at + 3] < 255) continue
      const colour = data.slice(at, at + 3).join()
      counts.set(colour, (counts.get(colour) ?? 0) + 1)
    }
    return [...counts].sort(([, a], [, b]) => b - a)[0]?.[0] ?? ''
  })()`)

trace(
  'the overview shows past requests, and updates without a reload',
  async ({ page, server, gateway }) => {
    const figure = (label: string) =>
      page
        .locator('.stat')
        .filter({ has: page.getByText(label, { exact: true }) })
        .locator('.figure')
    const stat = (label: string) => textOf(figure(label))
    const status = (words: string) => page.locator('.pulse').getByText(words).waitFor()
    const verdict = (words: string) => page.getByRole('heading', { level: 2, name: words }).waitFor()
    const codes = part(page, 'Codes')
    const provider = row(part(page, 'Providers'), 'webhook')
    expect(await errorOfSend(server, 'acme', '12025550143')).toBeUndefined()
    const otp = codeIn(gateway.received[0]?.body.text)
    await server.post('/otp/verify', { phone: '12025550143', otp })
    expect(await errorOfSend(server, 'acme', '12025550143')).toBe('cooldown_active')

    await signIn(page, server)
    await verdict('All well: ')
    await status('Live · updated ')
    await page.evaluate('globalThis.sameDocument = true')
    expect(await stat('Codes sent')).toBe('1')
    expect(await stat('Verified')).toBe('1')
    expect(await stat('Conversion')).toBe('100%')
    expect(await stat('Rate-limited')).toBe('1')
    await part(page, 'Active rate limits').getByText('+12*******43').waitFor()
    expect(await page.content()).not.toContain('5550143')
    await provider.getByText('circuit closed', { exact: true }).waitFor()

    gateway.answer(() => new Response(null, { status: 500 }))
    for (const end of [1, 2, 3, 4, 5]) {
      expect(await errorOfSend(server, 'acme', `1202555015${end}`)).toBe('sms_failed')
    }
    await verdict('No SMS since ')
    await provider.getByText(/^circuit open for \d+ s$/).waitFor()
    await provider.getByText('5 failures in a row').waitFor()
    // The charts are above the fold also during an incident, and a phone has at most three screens.
    await page.setViewportSize({ width: 1280, height: 800 })
    const [chart, other] = await Promise.all(
      ['#chart-codes', '#chart-messages'].map((each) => page.locator(each).boundingBox()),
    )
    expect((chart?.y ?? 800) + (chart?.height ?? 0)).toBeLessThan(800)
    expect([other?.y, other?.width]).toEqual([chart?.y, chart?.width])
    await page.setViewportSize({ width: 375, height: 740 })
    expect(Number(await page.evaluate('document.documentElement.scrollHeight'))).toBeLessThan(3 * 740)
    expect((await page.locator('#chart-codes .plot').boundingBox())?.y).toBeLessThan(740)
    await page.locator('#messages > summary').click()
    expect((await page.locator('#chart-messages canvas').boundingBox())?.width).toBeGreaterThan(250)
    await page.locator('#messages > summary').click()
    await page.setViewportSize(wide)
    // The last failure may follow with the next update.
    await figure('Failed')
      .filter({ hasText: /^\s*5\s*$/ })
      .waitFor()

    // The table stays open, and keeps the focus.
    const table = codes.getByRole('table')
    const sums = () =>
      table.locator('tbody').evaluate((body) => {
        const rows = [...body.querySelectorAll('tr')].map((each) => [...each.querySelectorAll('td')])
        return [0, 1, 2].map((column) =>
          rows.reduce((sum, cells) => sum + Number(cells[column]?.textContent), 0),
        )
      })
    await codes.getByText('Show as a table').click()
    expect(await sums()).toEqual([1, 1, 5])
    gateway.answer(() => new Response(null, { status: 204 }))
    expect(await errorOfSend(server, 'acme', '12025550161')).toBeUndefined()
    // The circuit closed, and the failures are in the period.
    await provider.getByText('circuit closed', { exact: true }).waitFor()
    await page
      .locator('.marks')
      .getByText(/Sending failed for 5 of 7/)
      .waitFor()
    expect(await sums()).toEqual([2, 1, 5])
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Show as a table')
    expect(await page.evaluate('globalThis.sameDocument')).toBe(true)

    // The charts stay in the page throughout, and take its colours.
    expect(await page.locator('.plot canvas').count()).toBe(2)
    const byDay = await inkOf(page)
    const drawnByDay = await page.locator('.plot canvas').first().elementHandle()
    await page.emulateMedia({ colorScheme: 'dark' })
    // The chart is drawn again.
    await drawnByDay?.waitForElementState('hidden')
    const byNight = await inkOf(page)
    expect([byDay, byNight]).not.toContain('')
    expect(byNight).not.toBe(byDay)

    for (const [period, hint] of [
      ['Last 30 days', 'Per day, from'],
      ['Last Hour', 'Per minute.'],
    ] as const) {
      await page.getByRole('link', { name: period }).click()
      await codes.getByText(hint).waitFor()
      expect(await page.getByRole('link', { name: period }).getAttribute('aria-current')).toBe('true')
      expect(await stat('Codes sent')).toBe('2')
    }
    expect(await server.command('admin', 'log-out')).toBe('1 session ended.')
    await status('Signed out. Reload the page · updated ')
  },
  // Long enough to be still running when the page is read.
  { isWithGateway: true, env: { SMS_COOLDOWN_SECONDS: '300' } },
)

trace('the delivery log updates without a reload, and can be paused', async ({ page, server, refusals }) => {
  const send = (end: number) => errorOfSend(server, 'acme', `120255501${end}`)
  const status = page.locator('.pulse')
  const rows = page.locator('tbody tr')
  const says = (words: string) => page.locator('[aria-live=polite]').getByText(words).waitFor()
  for (let end = 10; end < 40; end++) await send(end)
  await signIn(page, server)
  await goTo(page, 'Deliveries')
  await status.getByText(/^Live · updated \d\d:\d\d:\d\d$/).waitFor()
  await row(page, '+12*******39').waitFor()

  // An operator reads row 25, has its link in focus, selects text of row 20, and has begun to type.
  const find = page.getByLabel('Search:')
  await find.fill('+1 (202')
  await page.getByText('Filter', { exact: true }).click()
  await page.getByRole('combobox', { name: 'Template' }).fill('LOG')
  const read = row(page, '+12*******15').getByRole('rowheader').getByRole('link')
  await read.focus()
  const link = await read.getAttribute('href')
  await row(page, '+12*******20')
    .getByText('outbox')
    .evaluate((cell) => getSelection()?.selectAllChildren(cell))
  const place = await read.boundingBox()
  await send(40)
  await row(page, '+12*******40').waitFor()
  expect(await rows.first().textContent()).toContain('+12*******40')
  expect(await rows.count()).toBe(31)
  expect((await read.boundingBox())?.y).toBeCloseTo(place?.y ?? 0, -1)
  expect(await page.evaluate('document.activeElement.getAttribute("href")')).toBe(link)
  expect(await page.evaluate('getSelection().toString()')).toBe('outbox')
  expect(await find.inputValue()).toBe('+1 (202')
  expect(await page.getByRole('combobox', { name: 'Template' }).inputValue()).toBe('LOG')

  const address = page.url()
  await button(page, 'Pause updates').focus()
  await page.keyboard.press('Enter')
  await says('Paused')
  await status.getByText(/^Paused · updated/).waitFor()
  const other = await page.context().newPage()
  await other.goto(address)
  await other.locator('.pulse').getByText('Live').waitFor()
  await send(41)
  await row(other, '+12*******41').waitFor()
  await other.close()
  expect(await button(page, 'Resume updates').evaluate((node) => node === document.activeElement)).toBe(true)
  expect(await row(page, '+12*******41').count()).toBe(0)
  await page.keyboard.press('Enter')
  await says('Live')
  await row(page, '+12*******41').waitFor()
  expect(page.url()).toBe(address)
  expect(refusals()).toEqual([])

  await page.getByRole('link', { name: 'API calls' }).click()
  await send(42)
  await row(page, '+12*******42').waitFor()

  await page.route('**/admin/live', (stream) => stream.abort())
  await page.reload()
  await status.getByText(/^Connection lost, retrying · updated/).waitFor()
  await send(43)
  expect(await row(page, '+12*******43').count()).toBe(0)
  await page.unroute('**/admin/live')
  await row(page, '+12*******43').waitFor()
  await status.getByText(/^Live/).waitFor()
})

trace('a price file is chosen, shown as changes, and imported', async ({ page, server, goto }) => {
  await signIn(page, server)
  await goto('/admin/money')
  await page.setViewportSize(narrow)
  const buffer = Buffer.from('prefix;currency;price\n+44;EUR;0,04')
  await page.getByLabel('Choose a file').setInputFiles({ name: 'prices.csv', mimeType: 'text/csv', buffer })
  await button(page, 'Show what it would do').click()
  await page.getByText('+44: new → 0.04 EUR.').waitFor()
  await expectGoodLooks(page, 'what an import would do')
  await button(page, 'Import prices').click()
  await page.getByText('Imported 1 price in EUR.').waitFor()
})

trace(
  'every page is for everyone: on a phone and a desktop, in light and dark, by keyboard, for screen readers',
  async ({ page, server, gateway, goto, another, refusals }) => {
    const stranger = await another('/admin/login')
    await expectKeyboard(stranger, 'login')
    await expectGoodLooks(stranger, 'login')
    await stranger.getByLabel('E-mail address').fill(owner)
    await stranger.getByLabel('Password').fill('wrong')
    await stranger.keyboard.press('Enter')
    await complained(stranger, 'Wrong e-mail address or password.')
    await expectGoodLooks(stranger, 'login with a wrong password')
    await stranger.goto(String(new URL('/admin/link', server.url)))
    await stranger.getByText('The link is incomplete').waitFor()
    await expectGoodLooks(stranger, 'link')
    await stranger.goto(String(new URL('/admin/link#used-up', server.url)))
    await headed(stranger, 'This link is not valid')
    await expectGoodLooks(stranger, 'link that is used up')
    expect(refusals()).toEqual(['401 for /admin/login', '401 for /admin/link'])

    // One provider fails, and one recipient is rate-limited.
    await errorOfSend(server, 'acme', '12025550143')
    gateway.answer(() => new Response(null, { status: 500 }))
    const failed = []
    for (const end of [1, 2, 3, 4, 5]) {
      failed.push(await server.post('/otp/send', { brandId: 'acme', phone: `1202555015${end}` }))
    }
    const refused = await server.post('/otp/send', { brandId: 'acme', phone: '12025550143' })
    await signIn(page, server)
    const places = [
      { path: '/admin', has: 'No SMS since ' },
      { path: '/admin/requests', has: 'Stark Flowers' },
      { path: '/admin/brands', has: 'Umbrella' },
      { path: '/admin/brands/new', has: 'Create brand' },
      { path: '/admin/brands/acme', has: 'Android app hash' },
      { path: '/admin/brands/acme/texts', has: 'ORDER_DELIVERED' },
      { path: '/admin/brands/acme/texts/new', has: 'businessName' },
      { path: '/admin/brands/acme/texts/LOGIN_OTP/sms/ar', has: 'Back to the built-in text' },
      { path: '/admin/brands/acme/texts/LOGIN_OTP/email/en', has: 'Your Acme verification code' },
      { path: '/admin/apps', has: 'globex-app' },
      { path: '/admin/apps/app?app=globex-app', has: 'Most calls of a minute' },
      { path: '/admin/apps/webhook?app=globex-app', has: 'message.delivered' },
      { path: '/admin/deliveries', has: 'plain route' },
      { path: '/admin/deliveries?country=LU', has: 'Nothing found' },
      { path: '/admin/calls', has: '429 rate-limited' },
      { path: '/admin/test?provider=webhook', has: 'Phone number or e-mail address' },
      { path: `/admin/deliveries/${failed[0]?.body.requestId}`, has: 'sms_failed' },
      { path: `/admin/deliveries/${refused.body.requestId}`, has: 'cooldown' },
      { path: '/admin/guard', has: '+371 2000' },
      { path: '/admin/review-numbers', has: 'A fixed code verifies for 1 review number' },
      { path: '/admin/relays', has: 'No relays' },
      { path: '/admin/money', has: 'Each other country' },
      { path: '/admin/destinations', has: 'Set a rule' },
      { path: '/admin/audit', has: 'by command' },
      { path: '/admin/settings', has: 'SMS_WEBHOOK_URL' },
      { path: '/admin/providers', has: 'kannel-get' },
      { path: '/admin/providers/plivo', has: 'Registered-template route' },
      { path: '/admin/health', has: 'Not run since this server started' },
      { path: '/admin/search', has: 'The search covers' },
      { path: '/admin/nothing', has: 'Page not found' },
    ]
    for (const { path, has } of places) {
      await page.setViewportSize(wide)
      await goto(path)
      await page.locator('main').getByText(has).filter({ visible: true }).first().waitFor()
      await expectKeyboard(page, path)
      await expectGoodLooks(page, path)
    }
    expect(refusals()).toEqual(['404 for /admin/nothing'])

    await goto('/admin/requests')
    await page.getByRole('link', { name: 'Globex Corporation' }).click()
    await part(page, 'Decision').waitFor()
    await expectGoodLooks(page, 'a request that is decided')
    await goTo(page, 'Requests')
    await page.getByRole('link', { name: 'Review', exact: true }).click()
    await headed(page, 'Stark Flowers')
    await page.setViewportSize(wide)
    await expectKeyboard(page, 'a request')
    await expectGoodLooks(page, 'a request')
    await button(page, 'Reject').click()
    await dialog(page).waitFor()
    await expectGoodLooks(page, 'a question')
    await page.keyboard.press('Escape')
    await button(page, 'Approve and create API key').click()
    await headed(page, 'API key for stark-flowers')
    await page.setViewportSize(wide)
    await expectKeyboard(page, 'a key')
    await expectGoodLooks(page, 'a key')
  },
  {
    isWithGateway: true,
    prepare: async (context) => {
      await setUp(context)
      const by = context.acting(tester)
      await operate({ app: { context } }, 'guard block', { prefix: '+3712000' })
      const budget = { scope: 'country:*', period: 'day', amount: '50,50', stops: true }
      await operate({ app: { context } }, 'budget set', budget)
      await putBrand(by, 'acme', { dltEnabled: true })
      const text = 'رمز {{businessName}} هو {{otp}}.'
      await setText(by, { brand: 'acme', key: 'LOGIN_OTP', channel: 'SMS', lang: 'ar', text })
      const reviewer = { phone: '+12025550177', brand: 'acme', until: new Date().toISOString().slice(0, 10) }
      await addReviewNumber(
        { ...context.acting(tester), brands: context.brands, contacts: readConfig({}).contacts },
        reviewer,
      )
      const until = context.now()
      // A few rows of each kind: the cost of axe and the Tab key grows with the rows.
      await livePast(context, { from: until - 26 * 3_600_000, until, sends: 40 })
    },
  },
)
