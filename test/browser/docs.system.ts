import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createTestApp, type TestApp } from '../support/app.ts'
import { browserPath, browserPatienceMs, launchBrowser } from '../support/browser.ts'

let app: TestApp

beforeAll(async () => {
  app = await createTestApp({ PORT: '0' })
})
afterAll(() => app.close())

if (!browserPath) console.warn('The page /docs is not tried in a browser: there is no Chromium.')

test.skipIf(!browserPath)(
  'the API reference shows every operation and event, calls no other host, and can send a request',
  async () => {
    const origin = app.app.listen().origin
    const browser = await launchBrowser()
    try {
      const page = await browser.newPage({ viewport: { width: 390, height: 844 } })
      page.setDefaultTimeout(browserPatienceMs)
      const complaints: string[] = []
      const asked: string[] = []
      // The browser logs a violation of the policy as an error.
      page.on('console', (message) => {
        if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text())
      })
      page.on('pageerror', (error) => complaints.push(error.message))
      page.on('request', (request) => asked.push(request.url()))
      await page.goto(`${origin}/docs`)

      const health = page.locator('#operations-Operation-getHealth')
      await health.waitFor()
      const { paths, webhooks } = (await app.get('/openapi.json')).body
      expect((await page.locator('.opblock-summary-path').allInnerTexts()).map(visible).sort()).toEqual(
        [...Object.keys(paths), ...Object.keys(webhooks)].sort(),
      )

      await health.locator('.opblock-summary-control').click()
      await health.getByRole('button', { name: 'Try it out' }).click()
      await health.getByRole('button', { name: 'Execute' }).click()
      const answer = health.locator('.live-responses-table')
      await answer.waitFor()
      expect(await answer.textContent()).toContain('"database": "ok"')

      expect(complaints).toEqual([])
      const elsewhere = asked.filter((url) => !url.startsWith(`${origin}/`) && !url.startsWith('data:'))
      expect(elsewhere).toEqual([])
      const isTooWide = await page.evaluate('document.documentElement.scrollWidth > innerWidth')
      expect(isTooWide).toBe(false)
    } finally {
      await browser.close()
    }
  },
  120_000,
)

/** A path as displayed, without the characters at which a browser may wrap it. */
function visible(text: string): string {
  return text.replace(/[\s\u200B]/g, '')
}
