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
    expect(await violationsOn(page)).toEqual([])
    expect(await page.evaluate('document.documentElement.scrollWidth > innerWidth')).toBe(false)
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
    // Without scripts there is nothing to copy with.
    expect(await page.getByRole('button').count()).toBe(0)
  },
  120_000,
)

async function violationsOn(page: Page): Promise<unknown> {
  await page.evaluate(axe)
  return page.evaluate(`
    axe.run(document, { resultTypes: ['violations'], preload: false }).then(({ violations }) =>
      violations.flatMap(({ id, nodes }) => nodes.map((node) => [id, node.target.join(' '), node.failureSummary])))`)
}
