import { describe, expect, test } from 'bun:test'
import type { BrowserContextOptions, Locator, Page } from 'playwright-core'
import { codeIn, otherThan } from '../support/app.ts'
import { browserPath, type DemoProcess, startDemo } from '../support/browser.ts'
import { useBrowser } from '../support/use-browser.ts'

// The outbox page in a real browser, against `otpost demo`. Each scenario has its own demo, since the app of a demo
// may make ten calls a minute.

const narrow = { width: 375, height: 740 }
const wide = { width: 1280, height: 800 }
const sizes = [narrow, wide]

const browser = useBrowser()

interface RequestTrace {
  readonly page: Page
  readonly demo: DemoProcess
}

/** A scenario on the page. At its end the page must have reported no problem. */
function trace(
  name: string,
  tell: (trace: RequestTrace) => Promise<void>,
  {
    hash = '',
    hostileMail = false,
    ...options
  }: BrowserContextOptions & { hash?: string; hostileMail?: boolean } = {},
): void {
  const run = async () => {
    const opening = browser.visit({ viewport: wide, ...options })
    await using demo = await startDemo()
    await using visitor = await opening
    await visitor.open(demo, hash)
    await tell({ page: visitor.page, demo })
    expect(visitor.complaints).toEqual([])
    // The browser logs what it blocks in a hostile e-mail to the same console.
    if (!hostileMail) expect(visitor.errors).toEqual([])
  }
  test.skipIf(!browserPath)(name, run, 120_000)
}

const live = (page: Page) => page.locator('#live[data-state=connected]')
const articles = (page: Page) => page.locator('#messages article[data-id]')
const recipients = (page: Page) => page.locator('#recipients a[data-to]')
const good = (page: Page) => page.locator('#result[data-tone=good]')
const bad = (page: Page) => page.locator('#result[data-tone=bad]')
const conversation = (page: Page) => page.locator('#messages').getByRole('region', { name: 'Conversation' })

const textOf = async (locator: Locator) => (await locator.textContent()) ?? ''
const recipientsInOrder = (page: Page) =>
  recipients(page).evaluateAll<(string | undefined)[], void, HTMLElement>((buttons) =>
    buttons.map(({ dataset }) => dataset.to),
  )
/** The focused element: its id, or the recipient that it shows. */
const focused = (page: Page) =>
  page.evaluate('document.activeElement?.dataset.to ?? document.activeElement?.id')

/** Sends a code with the form. Resolves to the code once the call is answered and the message is displayed. */
async function sendCode(page: Page): Promise<string> {
  await page.locator('#send').click()
  await good(page).getByText('200 OK').waitFor()
  await page.locator('#use-code').waitFor()
  return codeIn(await textOf(page.locator('#arrival')))
}

/** On a phone and on a desktop, all visible elements fit the window, and no text is cut off. */
async function expectNoOverflow(page: Page): Promise<void> {
  for (const viewport of sizes) {
    await page.setViewportSize(viewport)
    const outside = await page.evaluate(`
      [document.documentElement.scrollWidth > innerWidth ? 'the page' : '']
        .concat([...document.querySelectorAll('button, input, h2, h3, p, pre, article, iframe')]
          .filter((node) => node.checkVisibility({ visibilityProperty: true }) && !node.closest('.sr-only'))
          .filter((node) => {
            const { left, right } = node.getBoundingClientRect()
            const isCut = node.matches('p, pre') && node.scrollWidth > node.clientWidth
            return left < 0 || right > innerWidth || isCut
          })
          .map((node) => node.outerHTML.slice(0, 80)))
        .filter(Boolean)`)
    expect(outside, `outside of ${viewport.width} px`).toEqual([])
  }
  await page.setViewportSize(wide)
}

describe('a newcomer', () => {
  trace('sends a code by SMS, sees it arrive as on a phone, and verifies it', async ({ page }) => {
    await page.getByText('No messages yet').waitFor()
    await page.locator('#no-recipients', { hasText: 'No recipients' }).waitFor()
    expect(await textOf(page.locator('#messages pre'))).toContain('/otp/send')
    await expectNoOverflow(page)

    const code = await sendCode(page)
    await articles(page).waitFor()
    const screen = conversation(page)
    expect(await textOf(screen.getByRole('heading'))).toBe('Acme')
    expect(await textOf(screen.locator('article p').first())).toStartWith(
      `${code} is your Acme verification code.`,
    )
    expect(await textOf(screen.locator('mark'))).toBe(code)
    const frame = await page.locator('#messages .phone').boundingBox()
    expect(frame?.height).toBeGreaterThan(frame?.width ?? Number.POSITIVE_INFINITY)
    expect(await recipientsInOrder(page)).toEqual(['12025550143'])
    expect(await page.locator('#stage-title .digits span').allTextContents()).toEqual([
      '+1',
      '202',
      '555',
      '0143',
    ])
    await expectNoOverflow(page)

    await page.locator('#use-code').click()
    expect(await page.locator('#try input[name=otp]').inputValue()).toBe(code)
    expect(await focused(page)).toBe('verify')
    await page.keyboard.press('Enter')
    await good(page).getByRole('heading', { name: 'Verified' }).waitFor()
    await expectNoOverflow(page)

    await page.locator('#verify').click()
    await bad(page).getByText('not_found', { exact: true }).waitFor()
    await bad(page).getByText('404').first().waitFor()
    await expectNoOverflow(page)
  })

  trace('sends a code by e-mail, sees the mail in a frame and as text, and verifies it', async ({ page }) => {
    await page.getByRole('radio', { name: 'E-mail' }).check()
    expect(await page.locator('#try input[name=recipient]').inputValue()).toBe('ada@example.com')
    const code = await sendCode(page)

    const frame = page.locator('#messages iframe')
    await frame.contentFrame().getByText(code, { exact: true }).waitFor()
    expect(await frame.getAttribute('sandbox')).toBe('')
    expect(await textOf(articles(page).getByRole('heading'))).toContain('Your Acme verification code')
    await expectNoOverflow(page)

    const [html, text] = [
      page.getByRole('radio', { name: 'HTML' }),
      page.getByRole('radio', { name: 'Text' }),
    ]
    expect(await html.isChecked()).toBe(true)
    expect(await page.locator('#messages .opened > .text').isVisible()).toBe(false)
    await text.check()
    await frame.waitFor({ state: 'hidden' })
    expect(await textOf(page.locator('#messages .opened > .text').filter({ visible: true }))).toMatch(
      new RegExp(`Enter this code to continue with Acme:\\s+${code}`),
    )
    await expectNoOverflow(page)
    await page.keyboard.press('ArrowLeft')
    await frame.contentFrame().getByText(code, { exact: true }).waitFor()

    await page.locator('#use-code').click()
    await page.locator('#verify').click()
    await good(page).getByRole('heading', { name: 'Verified' }).waitFor()
  })
})

describe('the form', () => {
  trace('shows the cooldown in words, and the code from before it stays good', async ({ page }) => {
    await sendCode(page)
    await page.locator('#resend').click()
    await bad(page).getByText('cooldown_active', { exact: true }).waitFor()
    const [, header, words] =
      /Retry-After (\d+): retry in (\d+) seconds?, at /.exec(await textOf(bad(page))) ?? []
    expect(words).toBe(header)
    expect(Number(header)).toBeWithin(1, 31)

    await page.locator('#use-code').click()
    await page.locator('#verify').click()
    await good(page).getByRole('heading', { name: 'Verified' }).waitFor()
    expect(await articles(page).count()).toBe(1)
  })

  trace('shows a mismatch for a wrong code, and the lock after three', async ({ page }) => {
    const code = await sendCode(page)
    await page.locator('#try input[name=otp]').fill(otherThan(code))
    for (const guess of [1, 2, 3]) {
      const answer = page.waitForResponse('**/otp/verify')
      await page.locator('#verify').click()
      expect((await answer).status(), `guess ${guess}`).toBe(401)
      await bad(page).getByText('mismatch', { exact: true }).waitFor()
    }
    await page.locator('#use-code').click()
    await page.locator('#verify').click()
    await bad(page).getByText('max_attempts', { exact: true }).waitFor()
  })
})

describe('messages', () => {
  trace('of another client appear without a reload, and wait unread beside the chosen ones', async (at) => {
    const { page, demo } = at
    const sms = (to: string, message: string) => demo.post('/notify', { channel: 'SMS', to: [to], message })
    await live(page).waitFor()
    await page.evaluate('globalThis.sameDocument = true')

    await sms('+1 202 555 0100', 'The first one')
    await conversation(page).getByText('The first one').waitFor()
    await sms('+1 202 555 0199', 'To somebody else')
    await recipients(page).and(page.locator('[data-to="12025550199"][data-unread]')).waitFor()
    expect(await page.title()).toStartWith('(1)')
    await sms('12025550100', 'The second one')
    await conversation(page).getByText('The second one').waitFor()

    expect(await articles(page).count()).toBe(2)
    expect(await recipientsInOrder(page)).toEqual(['12025550100', '12025550199'])
    // The first page that is loaded may show the second already.
    await Promise.all(['12025550197', '12025550198'].map((to) => sms(to, 'At once')))
    for (const to of ['12025550197', '12025550198'])
      await recipients(page)
        .and(page.locator(`[data-to="${to}"][data-unread]`))
        .waitFor()
    expect(await page.title()).toStartWith('(3)')
    expect(await page.evaluate('globalThis.sameDocument')).toBe(true)
  })

  trace(
    'to one recipient are shown by a link, however the number is spelled, and come in live there',
    async ({ page, demo }) => {
      await page.getByText('No messages for this recipient').waitFor()
      await demo.post('/notify', { channel: 'SMS', to: ['12025550100'], message: 'For another' })
      await recipients(page).and(page.locator('[data-to="12025550100"]')).waitFor({ state: 'attached' })
      await demo.post('/notify', { channel: 'SMS', to: ['12025550143'], message: 'For the link' })
      await conversation(page).getByText('For the link').waitFor()
      expect(await articles(page).count()).toBe(1)

      await page.locator('#back').click()
      await recipients(page).first().waitFor()
      expect(await focused(page)).toBe('12025550143')
      await page.goBack()
      await conversation(page).getByText('For the link').waitFor()
      await expectNoOverflow(page)
    },
    { viewport: narrow, hash: `#to=${encodeURIComponent('+1 (202) 555-0143')}` },
  )

  trace(
    'are reached by keyboard: one tab stop for the list, arrow keys within it',
    async ({ page, demo }) => {
      const numbers = ['12025550101', '12025550102', '12025550103']
      for (const to of numbers) await demo.post('/notify', { channel: 'SMS', to: [to], message: `For ${to}` })
      await recipients(page).nth(2).waitFor()
      const [top, middle, bottom] = numbers.toReversed()
      expect(await recipientsInOrder(page)).toEqual([top, middle, bottom])

      await page.locator('#recipients a[aria-current=true]').click()
      await page.locator('#filter').focus()
      await page.keyboard.press('Tab')
      const chosen = String(await focused(page))
      expect(numbers).toContain(chosen)
      const presses = [
        { key: 'Home', to: top },
        { key: 'ArrowDown', to: middle },
        { key: 'ArrowDown', to: bottom },
        { key: 'ArrowDown', to: bottom },
        { key: 'ArrowUp', to: middle },
        { key: 'End', to: bottom },
        { key: 'Home', to: top },
        { key: 'ArrowUp', to: top },
        { key: 'ArrowDown', to: middle },
      ]
      for (const { key, to } of presses) {
        await page.keyboard.press(key)
        expect(await focused(page), key).toBe(to)
      }
      await page.keyboard.press('Enter')
      await conversation(page).getByText(`For ${middle}`).waitFor()
      expect(await focused(page)).toBe(middle)
      await page.keyboard.press('Tab')
      expect(numbers).not.toContain(String(await focused(page)))
      await page.keyboard.press('Shift+Tab')
      expect(await focused(page)).toBe(middle)
    },
  )

  trace(
    'are only ever text, and a mail can do nothing',
    async ({ page, demo }) => {
      const asked: string[] = []
      using elsewhere = Bun.serve({
        port: 0,
        hostname: '127.0.0.1',
        fetch: ({ url }) => {
          asked.push(url)
          return new Response()
        },
      })
      const hostile = `<img src="x" onerror="globalThis.attacked = true"><script>globalThis.attacked = true</script><b>${'long'.repeat(80)}</b>`
      await demo.post('/notify', { channel: 'SMS', to: ['12025550143'], message: hostile })
      await articles(page).waitFor()
      expect(await textOf(articles(page).locator('p').first())).toBe(hostile)
      expect(await textOf(recipients(page))).toContain(hostile.slice(0, 40))
      await expectNoOverflow(page)

      await demo.post('/notify', {
        channel: 'EMAIL',
        to: ['eve@example.com'],
        subject: hostile.slice(0, 200),
        html: `
          <meta http-equiv="refresh" content="0;url=${elsewhere.url}refresh">
          <link rel="stylesheet" href="${elsewhere.url}style.css">
          <body onload="document.body.dataset.attacked = 1; parent.attacked = true">
          <script>document.body.dataset.attacked = 1; parent.attacked = true; top.location = '${elsewhere.url}'</script>
          <img src="${elsewhere.url}image.png" onerror="document.body.dataset.attacked = 1">
          <iframe src="${elsewhere.url}frame"></iframe>
          <form action="${elsewhere.url}form"><button>Claim the prize</button></form>
          <a href="${elsewhere.url}link" target="_top">Leave</a>`,
      })
      await page.locator('#recipients a[data-to="eve@example.com"]').click()
      const mail = page.locator('#messages iframe').contentFrame()
      await mail.getByRole('button', { name: 'Claim the prize' }).click()
      await mail.getByRole('link', { name: 'Leave' }).click()
      expect(await mail.locator('body').getAttribute('data-attacked')).toBeNull()
      expect(await textOf(articles(page).getByRole('heading'))).toContain(hostile.slice(0, 200))
      await page.getByRole('radio', { name: 'Text' }).check()
      expect(await textOf(page.locator('#messages .opened > .text').filter({ visible: true }))).toContain(
        'Leave',
      )

      const injected = page.locator('#messages, #recipients, #result').locator('script, b, img')
      expect(await injected.count()).toBe(0)
      expect(await page.evaluate('globalThis.attacked')).toBeUndefined()
      expect(page.url()).toStartWith(String(demo.page))
      expect(asked).toEqual([])
      await expectNoOverflow(page)
    },
    { hostileMail: true },
  )
})

trace(
  'a server that was away is noticed, and what it sends after it has come back',
  async ({ page, demo }) => {
    await demo.post('/notify', { channel: 'SMS', to: ['12025550143'], message: 'Before' })
    await conversation(page).getByText('Before').waitFor()

    // The waiting time between two attempts is not under test.
    await page.clock.install()
    await demo.stop()
    await page.clock.fastForward(1_000)
    await page.locator('#live[data-state=disconnected]', { hasText: 'Disconnected' }).waitFor()
    await conversation(page).getByText('Before').waitFor()
    await page.locator('#send').click()
    await bad(page).getByText('The server is not reachable.').waitFor()

    await demo.start()
    await page.clock.fastForward(15_000)
    await live(page).waitFor()
    await demo.post('/notify', { channel: 'SMS', to: ['12025550143'], message: 'After' })
    await conversation(page).getByText('After').waitFor()
    expect(await articles(page).count()).toBe(2)
  },
)
