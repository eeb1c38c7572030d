import { afterAll, beforeAll } from 'bun:test'
import type { Browser, BrowserContextOptions } from 'playwright-core'
import { browserPath, launchBrowser, newVisitor, withoutBrowser } from './browser.ts'

/** Chromium for the tests of a file: launched before the first, closed after the last. */
export function useBrowser() {
  let browser: Browser | undefined
  const launched = (): Browser => {
    if (!browser) throw new Error(withoutBrowser)
    return browser
  }
  if (!browserPath) console.warn(withoutBrowser)
  beforeAll(async () => {
    if (browserPath) browser = await launchBrowser()
  }, 120_000)
  afterAll(() => browser?.close())
  return {
    context: (options: BrowserContextOptions) => launched().newContext(options),
    /** A page in its own browser profile, which records problems. */
    visit: (options: BrowserContextOptions = {}) => newVisitor(launched(), options),
  }
}
