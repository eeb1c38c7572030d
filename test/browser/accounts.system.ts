import { expect, test } from 'bun:test'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { roles } from '../../src/domain/ground/role.ts'
import { addAccount, codeOf } from '../support/accounts.ts'
import { addAuthenticator, browserPath, type PageVisitor } from '../support/browser.ts'
import {
  type ConsoleScene,
  type ConsoleServer,
  signInWithCode,
  startConsole,
} from '../support/console-browser.ts'
import { expectGoodLooks, expectKeyboard, narrow, sections, wide } from '../support/looks.ts'
import { freePorts } from '../support/ports.ts'
import { useBrowser } from '../support/use-browser.ts'

// Accounts of operators in a real browser, against a real server. test/http/accounts.test.ts has the rules.

const browser = useBrowser()

interface Scene {
  readonly page: Page
  readonly server: ConsoleServer
  readonly goto: (path: string) => Promise<unknown>
  /** Another browser with its own cookies. */
  readonly another: (options?: BrowserContextOptions) => Promise<Page>
  /** The rejected requests since the last call. Any that are left at the end fail the test. */
  readonly refusals: () => string[]
}

/** At localhost, as through an SSH tunnel to a server whose proxy does not forward the console. */
function scene(
  name: string,
  play: (scene: Scene) => Promise<void>,
  { prepare, ...options }: Pick<ConsoleScene, 'prepare'> & BrowserContextOptions = {},
): void {
  const run = async () => {
    await using visitors = new AsyncDisposableStack()
    const [port] = freePorts(1)
    const origin = `http://localhost:${port}`
    await using server = await startConsole({
      env: { PORT: String(port), PUBLIC_URL: 'https://otp.example.com' },
      ...(prepare ? { prepare } : {}),
    })
    const all: PageVisitor[] = []
    const another = async (own: BrowserContextOptions = {}) => {
      const visitor = visitors.use(await browser.visit({ viewport: wide, ...options, ...own }))
      all.push(visitor)
      // Sets its server.
      await visitor.open({ page: new URL('/admin/link', origin) })
      return visitor.page
    }
    const page = await another()
    await play({
      page,
      server,
      another,
      goto: (path) => page.goto(`${origin}${path}`),
      refusals: () => all.flatMap(({ complaints }) => complaints.splice(0)),
    })
    for (const { complaints, errors } of all) expect([...complaints, ...errors]).toEqual([])
  }
  test.skipIf(!browserPath)(name, run, 300_000)
}

type Person = Awaited<ReturnType<typeof addAccount>>

/** Accounts that are set up, one for each role, such as `viewer@example.com`. */
function everyRole(people: Map<string, Person>): Required<Pick<ConsoleScene, 'prepare'>> {
  const longName = `${'maximiliana.'.repeat(4)}m@customer-operations.international.example.com`
  return {
    prepare: async (context) => {
      const clock = {
        get now() {
          return Date.now()
        },
      }
      const app = { app: { context }, clock }
      for (const role of roles) people.set(role, await addAccount(app, `${role}@example.com`, role))
      await addAccount(app, longName, 'viewer')
    },
  }
}

const headed = (page: Page, name: string) => page.getByRole('heading', { level: 1, name }).waitFor()
const said = (page: Page, words: string) => page.getByRole('status').getByText(words).waitFor()
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).press('Enter')
const fieldOf = (page: Page, label: string) => page.getByLabel(label, { exact: true })
const textOf = async (page: Page, selector: string) =>
  ((await page.locator(selector).first().textContent()) ?? '').trim()
const type = async (page: Page, text: string) => {
  await page.keyboard.insertText(text)
  await page.keyboard.press('Enter')
}

/** Until the focus is on the control with this label, by the Tab key alone. */
async function tabTo(page: Page, label: string): Promise<void> {
  const target = page
    .getByLabel(label, { exact: true })
    .or(page.getByRole('button', { name: label, exact: true }))
  for (let pressed = 0; pressed < 60; pressed++) {
    if (await target.evaluate((node) => node === document.activeElement)) return
    await page.keyboard.press('Tab')
  }
  throw new Error(`The Tab key does not reach ${label}`)
}

/** As if each sign-in was 16 minutes ago: its code is used, and the present one is not. */
function letConfirmationsExpire(server: ConsoleServer): Promise<void> {
  return server.change(async ({ sessions }) => {
    const now = Date.now()
    for (const account of await sessions.accounts()) {
      const saveAccount = { ...account, totpStep: account.totpStep - 32 }
      await sessions.change({ now }, () => ({ saveAccount, entry: null }))
    }
    for (const session of await sessions.list(now)) {
      const saveSession = { ...session, confirmedAt: session.confirmedAt - 16 * 60_000 }
      await sessions.change({ now }, () => ({ saveSession, entry: null }))
    }
  })
}

const newPassword = 'vessel-19-quartz-lantern'

scene(
  'the first owner invites herself, sets up a password and an app, and signs in again, by keyboard',
  async ({ page, server, goto, another, refusals }) => {
    await page.goto(await server.command('admin', 'link'))
    await headed(page, 'Overview')
    await page.getByRole('link', { name: 'Server administrator' }).press('Enter')
    await page.getByRole('link', { name: 'Invite yourself' }).press('Enter')
    await headed(page, 'Operators')
    await expectGoodLooks(page, 'operators without accounts')
    await tabTo(page, 'E-mail address')
    await type(page, 'ana@example.com')
    await headed(page, 'Invitation')
    await expectKeyboard(page, 'invitation')
    await expectGoodLooks(page, 'invitation')
    const link = await textOf(page, '.key-value')
    await tabTo(page, 'Copy link')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Copied' }).waitFor()
    expect(await page.evaluate<string>('navigator.clipboard.readText()')).toBe(link)

    const own = await another()
    await own.goto(link)
    await headed(own, 'Set up your account')
    // The console is locked until the account is set up.
    expect(await sections(own).count()).toBe(0)
    await own.setViewportSize(wide)
    await expectKeyboard(own, 'set-up')
    await expectGoodLooks(own, 'set-up')
    // What password managers store the password under.
    expect(await own.locator('form:has(#app-password) [autocomplete=username]').inputValue()).toBe(
      'ana@example.com',
    )
    const secret = await textOf(own, 'details code')
    const code = () => codeOf(`otpauth://totp/ana?secret=${secret}`, Date.now())
    await tabTo(own, 'New password')
    await own.keyboard.insertText('correcthorsebattery')
    await tabTo(own, 'Code that the app shows')
    await type(own, code())
    await own.getByRole('alert').waitFor()
    await expectGoodLooks(own, 'set-up with a weak password')
    expect(refusals()).toEqual(['409 for /admin/account/app'])
    // The app has the secret already.
    expect(await textOf(own, 'details code')).toBe(secret)
    await tabTo(own, 'New password')
    await own.keyboard.insertText(newPassword)
    await tabTo(own, 'Code that the app shows')
    await type(own, code())
    await headed(own, 'Recovery codes')
    await own.setViewportSize(wide)
    await expectKeyboard(own, 'recovery codes')
    await expectGoodLooks(own, 'recovery codes')
    const codes = await own.locator('.codes code').allTextContents()
    expect(codes).toHaveLength(10)

    await tabTo(own, 'Sign out')
    await own.keyboard.press('Enter')
    await headed(own, 'Sign in')
    await own.locator('#email:focus').waitFor()
    await expectKeyboard(own, 'sign-in')
    await expectGoodLooks(own, 'sign-in')
    await own.getByLabel('E-mail address').focus()
    await own.keyboard.insertText('ana@example.com')
    await own.keyboard.press('Tab')
    await type(own, 'not the password')
    await own.getByRole('alert').getByText('Wrong e-mail address or password.').waitFor()
    await own.locator('#password:focus').waitFor()
    await type(own, newPassword)
    await headed(own, 'Enter the code')
    await own.locator('#code:focus').waitFor()
    await type(own, '000000')
    await own.getByRole('alert').getByText('Wrong code.').waitFor()
    await expectKeyboard(own, 'code')
    await expectGoodLooks(own, 'code')
    expect(refusals()).toEqual(['401 for /admin/login', '401 for /admin/login/code'])
    // The code of the app was used by the set-up.
    await own.getByText('Use a recovery code').press('Enter')
    await tabTo(own, 'Recovery code')
    await type(own, (codes[0] ?? '').toLowerCase())
    await headed(own, 'Overview')
    await own.getByText('2 attempts to sign in to your account failed').waitFor()
    await own.getByRole('link', { name: 'ana@example.com' }).press('Enter')
    await own.getByText('You have 9 unused codes.').waitFor()
    await own.setViewportSize(wide)
    await expectKeyboard(own, 'account')
    await expectGoodLooks(own, 'account')

    await goto('/admin/operators')
    await page.getByText('password and app').waitFor()
    await goto('/admin/audit')
    await page.getByText('ana@example.com').first().waitFor()
    await goto('/admin/settings')
    await page
      .getByRole('row')
      .filter({ hasText: 'ana@example.com' })
      .getByText('password and code')
      .waitFor()
    await expectGoodLooks(page, 'sessions')
  },
  { permissions: ['clipboard-read', 'clipboard-write'] },
)

const people = new Map<string, Person>()
const codeNow = (role: string) => people.get(role)?.code() ?? ''
const enter = (page: Page, role: string) =>
  signInWithCode(page, { email: `${role}@example.com`, code: () => codeNow(role) })

scene(
  'a passkey is added, signs in, confirms a sensitive change, and is removed',
  async ({ page, server, goto, refusals }) => {
    await addAuthenticator(page)
    await goto('/admin/login')
    await enter(page, 'owner')
    await goto('/admin/account')
    await fieldOf(page, 'Name of the passkey').focus()
    await type(page, 'Laptop')
    await said(page, 'Added the passkey.')
    await page.getByRole('row').filter({ hasText: 'Laptop' }).getByText('never').waitFor()
    await expectKeyboard(page, 'account with a passkey')
    await expectGoodLooks(page, 'account with a passkey')

    await press(page, 'Sign out')
    await headed(page, 'Sign in')
    await expectKeyboard(page, 'sign-in with passkeys')
    await expectGoodLooks(page, 'sign-in with passkeys')
    await press(page, 'Sign in with a passkey')
    await headed(page, 'Overview')

    await letConfirmationsExpire(server)
    await goto('/admin/money')
    await page.getByLabel('Scope').selectOption('server')
    await page.getByLabel('Amount').fill('12.50')
    await press(page, 'Save budget')
    await headed(page, 'Confirm that it is you')
    await page.setViewportSize(wide)
    await expectKeyboard(page, 'confirmation')
    await expectGoodLooks(page, 'confirmation')
    await press(page, 'Confirm with a passkey')
    await headed(page, 'Money')
    await page.getByRole('row').filter({ hasText: '12.50' }).first().waitFor()
    expect(refusals()).toEqual(['403 for /admin/money'])

    await goto('/admin/account')
    await press(page, 'Remove Laptop')
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).press('Enter')
    await said(page, 'Removed the passkey.')
  },
  everyRole(people),
)

scene(
  'the confirmation by a code keeps the entries, also after a wrong code, without JavaScript',
  async ({ page, server, goto, refusals }) => {
    await goto('/admin/login')
    await enter(page, 'operator')
    await letConfirmationsExpire(server)
    await goto('/admin/money')
    await page.getByLabel('Scope').selectOption('server')
    await page.getByLabel('Amount').fill('77')
    await page.getByLabel('Alerts').fill('60')
    await press(page, 'Save budget')
    await headed(page, 'Confirm that it is you')
    await fieldOf(page, 'Code of your authenticator app').fill('000000')
    await press(page, 'Confirm')
    await page.getByRole('alert').getByText('This is not correct').waitFor()
    expect(await page.locator('input[name=amount]').first().inputValue()).toBe('77')
    expect(await page.locator('input[name=alertAt]').first().inputValue()).toBe('60')
    await fieldOf(page, 'Code of your authenticator app').fill(codeNow('operator'))
    await press(page, 'Confirm')
    await headed(page, 'Money')
    await goto('/admin/money?scope=server')
    expect(await fieldOf(page, 'Alerts').inputValue()).toBe('60')
    expect(refusals()).toEqual(['403 for /admin/money', '401 for /admin/money'])
    await goto('/admin/account')
    await page.locator('noscript').filter({ visible: true }).first().waitFor()
    await press(page, 'Sign out')
    await headed(page, 'Sign in')
  },
  { ...everyRole(people), javaScriptEnabled: false },
)

scene(
  'a viewer sees what a viewer cannot do, before a click',
  async ({ page, goto, another }) => {
    await goto('/admin/login')
    await enter(page, 'viewer')
    const note = page.getByText('You are signed in as a viewer. You can read, not change.')
    const usable = page.locator('main .locked').locator('input, select, textarea, button')
    const visible = { visible: true } as const
    for (const [path, has] of [
      ['/admin', 'Pause outbox'],
      ['/admin/brands/acme', 'Save'],
      ['/admin/brands/acme/texts/LOGIN_OTP/sms/en', 'Publish'],
      ['/admin/apps', 'Create app'],
      ['/admin/money', 'Save budget'],
      ['/admin/guard', 'Save'],
      ['/admin/destinations', 'Save rule'],
      ['/admin/operators', 'Invite'],
    ] as const) {
      await page.setViewportSize(wide)
      await goto(path)
      await note.waitFor()
      expect(await page.getByRole('button', { name: has, exact: true }).isDisabled(), path).toBe(true)
      expect(await usable.evaluateAll((all) => all.every((each) => each.matches(':disabled'))), path).toBe(
        true,
      )
      await expectKeyboard(page, `${path} of a viewer`)
      await expectGoodLooks(page, `${path} of a viewer`)
    }
    await goto('/admin/destinations')
    expect(await page.getByRole('button', { name: 'Check', exact: true }).isEnabled()).toBe(true)
    // Previews have the fields that are disabled.
    await goto('/admin/brands/acme/texts/LOGIN_OTP_WITH_ID/sms/en')
    await page.getByLabel('loginId').fill('jo.doe')
    await page.locator('.bubble').getByText('Acme verification code for jo.doe').waitFor()
    await goto('/admin/brands/acme/texts/LOGIN_OTP/email/en')
    await page.frameLocator('iframe[name=mail-1]').getByText('123456').first().waitFor()
    await goto('/admin/brands')
    expect(await page.getByRole('link', { name: 'New brand' }).count()).toBe(0)
    for (const path of ['/admin/deliveries', '/admin/account', '/admin/settings']) {
      await goto(path)
      await headed(page, '')
      expect(await note.filter(visible).count(), path).toBe(0)
    }
    // A viewer ends her own session.
    expect(await page.getByRole('button', { name: /^End session/ }).isEnabled()).toBe(true)

    const other = await another()
    await other.goto(String(new URL('/admin/login', page.url())))
    await enter(other, 'operator')
    await other.goto(String(new URL('/admin/operators', page.url())))
    await other.getByText('You are signed in as an operator. Only owners change accounts.').waitFor()
    expect(await other.getByRole('button', { name: 'Invite' }).isDisabled()).toBe(true)
    await other.setViewportSize(narrow)
    await expectGoodLooks(other, 'operators, as an operator')
    await other.goto(String(new URL('/admin/money', page.url())))
    expect(await other.getByRole('button', { name: 'Save budget' }).isEnabled()).toBe(true)
  },
  everyRole(people),
)
