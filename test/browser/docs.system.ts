import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { createTestApp, type TestApp } from '../support/app.ts'
import { browserPath } from '../support/browser.ts'
import { useBrowser } from '../support/use-browser.ts'

const axe = await Bun.file(Bun.resolveSync('axe-core/axe.min.js', import.meta.dir)).text()

let app: TestApp
const browser = useBrowser()
let place: { readonly page: URL }

beforeAll(async () => {
  app = await createTestApp({ PORT: '0' })
  place = { page: new URL('/docs', app.app.listen().origin) }
})
afterAll(() => app.close())

const looks = (['light', 'dark'] as const).flatMap((colorScheme) =>
  [375, 1280].map((width) => ({ colorScheme, width })),
)

test.skipIf(!browserPath).each(looks)(
  'the API reference is accessible in $colorScheme at $width px',
  async ({ colorScheme, width }) => {
    await using visitor = await browser.visit({ colorScheme, viewport: { width, height: 800 } })
    const { page, complaints, errors } = visitor
    await visitor.open(place)
    await page.evaluate(`for (const part of document.querySelectorAll('details')) part.open = true`)
    for (const part of ['start', 'Notifications', 'errors']) {
      await page.evaluate(`location.hash = '${part}'`)
      expect([part, await violationsOn(page)]).toEqual([part, []])
      expect([part, await page.evaluate('document.documentElement.scrollWidth > innerWidth')]).toEqual([
        part,
        false,
      ])
    }
    expect({ complaints, errors }).toEqual({ complaints: [], errors: [] })
  },
  120_000,
)

test.skipIf(!browserPath)(
  'the API reference works with the keyboard and without scripts',
  async () => {
    await using visitor = await browser.visit({ javaScriptEnabled: false })
    const { page } = visitor
    await visitor.open(place)
    await page.keyboard.press('Tab')
    expect(await page.locator(':focus').textContent()).toBe('Skip to content')
    await page.getByRole('navigation').getByRole('link', { name: '/notify' }).focus()
    await page.keyboard.press('Enter')
    const notify = page.getByRole('article', { name: 'Send an SMS or an e-mail' })
    await expect(notify.evaluate((node) => node.matches(':target'))).resolves.toBe(true)
    const mail = notify.getByText('"template": "Hi {{name}}')
    expect(await mail.isVisible()).toBe(false)
    await notify.getByText('E-mail, template', { exact: true }).focus()
    await page.keyboard.press('Enter')
    expect(await mail.isVisible()).toBe(true)
    // One call at a time.
    expect(await page.locator('article:visible').count()).toBe(1)
    await page.goto(String(place.page))
    expect(await page.locator('article:visible').count()).toBe(0)
    await page.getByRole('radio', { name: 'curl' }).focus()
    for (const key of ['ArrowRight', 'ArrowRight']) await page.keyboard.press(key)
    expect(await page.locator('.sample:visible').textContent()).toContain('http.client')
    // Without scripts there is nothing to copy or search with.
    expect(await page.getByRole('button', { name: 'Copy' }).count()).toBe(0)
    expect(await page.getByRole('searchbox').count()).toBe(0)
  },
  120_000,
)

test.skipIf(!browserPath)(
  'the API reference is searched with the keyboard, for all words',
  async () => {
    await using visitor = await browser.visit({ viewport: { width: 1280, height: 800 } })
    const { page, complaints, errors } = visitor
    await visitor.open(place)
    // The first call is on the first screen.
    const first = await page.locator('.start .examples').boundingBox()
    expect((first?.y ?? 800) + (first?.height ?? 0)).toBeLessThan(800)
    await page.keyboard.press('/')
    await page.keyboard.type('Revoked mailbox')
    const links = page.getByRole('navigation').locator('.calls a:visible')
    expect(await links.count()).toBe(await page.locator('article:visible').count())
    expect(await page.getByRole('status').textContent()).toMatch(/^\d+ of \d+ sections$/)
    await page.keyboard.press('Control+A')
    await page.keyboard.type('nonsense in no section')
    expect(await links.count()).toBe(0)
    await page.keyboard.press('Control+A')
    await page.keyboard.type('three attempts')
    await page.keyboard.press('Enter')
    await page.waitForFunction('document.querySelectorAll("article:target").length === 1')
    expect(await page.locator('article:visible').count()).toBe(1)
    expect({ complaints, errors }).toEqual({ complaints: [], errors: [] })
  },
  120_000,
)

async function violationsOn(page: Page): Promise<unknown> {
  await page.evaluate(axe)
  return page.evaluate(`
    axe.run(document, { resultTypes: ['violations'], preload: false }).then(({ violations }) =>
      violations.flatMap(({ id, nodes }) => nodes.map((node) => [id, node.target.join(' '), node.failureSummary])))`)
}
