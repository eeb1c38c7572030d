import { describe, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { type BrandChange, freshBrand } from '../../src/domain/operator/brands.ts'
import { BrandTexts } from '../../src/domain/texts/brand-texts.ts'
import { otpMail, renderMail } from '../../src/domain/texts/emails.ts'
import { browserPath } from '../support/browser.ts'
import { useBrowser } from '../support/use-browser.ts'

// Mails as a client shows them that keeps the style sheet, and as one that drops it.

const browser = useBrowser()
const width = 'document.documentElement.scrollWidth'
const axe = await Bun.file(Bun.resolveSync('axe-core/axe.min.js', import.meta.dir)).text()

const hebrew = {
  templateKey: 'LOGIN_OTP',
  channel: 'EMAIL',
  lang: 'he',
  subject: 'הקוד שלך',
  text: 'שלום מ-{{businessName}}!\n\n{{otp}}\n\nבתוקף ל-{{minutes}} דקות.',
  html: null,
  version: 1,
  updatedAt: 0,
} as const

function brandWith(look: BrandChange) {
  const acme = { ...freshBrand('acme'), displayName: 'Acme', texts: new BrandTexts([hebrew], new Map()) }
  return { ...acme, ...look } as typeof acme
}

const logoUrl = 'https://images.example/logo.svg'
const wideLogo =
  '<svg xmlns="http://www.w3.org/2000/svg" width="800" height="80" viewBox="0 0 800 80"><rect width="800" height="80" fill="#0b57d0"/></svg>'
const longName = { displayName: 'W'.repeat(40) }

const code = { code: '493027', businessName: undefined, lifetimeSeconds: 300 }
const codeMail = (look: BrandChange, lang: string) => otpMail(brandWith(look), code, lang).html
const notification = (look: BrandChange, lang?: string) => {
  const data = { orderId: 'A-1042', address: 'x'.repeat(120), [`of ${'y'.repeat(60)}`]: 'z' }
  return renderMail('Your order has shipped', 'Hello', data, { look: brandWith(look), lang }).html
}

const mails: readonly (readonly [name: string, html: string, direction: 'ltr' | 'rtl'])[] = [
  ['a code in English', codeMail({}, 'en'), 'ltr'],
  ['a code in Arabic, with a logo', codeMail({ logoUrl, color: '#ffd400' }, 'ar'), 'rtl'],
  ['a code in the words of the brand', codeMail({ color: '#0b57d0' }, 'he'), 'rtl'],
  ['a code in Thai of a brand with a long name', codeMail({ ...longName, color: '#777777' }, 'th'), 'ltr'],
  ['a code with a wide logo, in black', codeMail({ ...longName, logoUrl, color: '#000000' }, 'de'), 'ltr'],
  ['a code in white', codeMail({ color: '#ffffff' }, 'ta'), 'ltr'],
  ['a notification', notification({ logoUrl, color: '#137333' }), 'ltr'],
  ['a notification in Urdu', notification({ ...longName }, 'ur'), 'rtl'],
]

const clients = [
  ['light', { colorScheme: 'light', dropsStyles: false }],
  ['dark', { colorScheme: 'dark', dropsStyles: false }],
  ['dark, which drops style sheets', { colorScheme: 'dark', dropsStyles: true }],
] as const

describe.skipIf(!browserPath).each(clients)('in a client that is %s', (_, client) => {
  test.each(mails)(
    '%s is readable, and fits a window of 320 pixels',
    async (_, html, direction) => {
      await using mail = await opened(html, { ...client, blocksImages: false })
      const { page } = mail
      expect(await page.evaluate(width)).toBe(320)
      expect(await violations(page)).toEqual([])
      expect(await page.evaluate("getComputedStyle(document.querySelector('h1')).direction")).toBe(direction)
      const logo = page.locator('img')
      if (await logo.count()) {
        const box = await logo.boundingBox()
        expect(box?.height).toBeLessThanOrEqual(52)
        expect(box?.width).toBeLessThanOrEqual(224)
      }
    },
    120_000,
  )

  test('the name is readable in the place of a blocked logo', async () => {
    await using mail = await opened(codeMail({ ...longName, logoUrl }, 'en'), {
      ...client,
      blocksImages: true,
    })
    const { page } = mail
    expect(await page.getByRole('heading').getByRole('img', { name: longName.displayName }).count()).toBe(1)
    expect(await page.evaluate(width)).toBe(320)
    // axe does not look at alternative text.
    await page.evaluate(`
      const img = document.querySelector('img')
      const span = document.createElement('span')
      Object.assign(span, { className: img.className, textContent: img.alt }).style.cssText = img.style.cssText
      img.replaceWith(span)`)
    expect(await violations(page)).toEqual([])
  }, 120_000)
})

type Client = (typeof clients)[number][1]

async function opened(
  html: string,
  { colorScheme, dropsStyles, blocksImages }: Client & { readonly blocksImages: boolean },
) {
  const context = await browser.context({ colorScheme, viewport: { width: 320, height: 640 } })
  const page = await context.newPage()
  await page.route('**/*', (route) =>
    blocksImages ? route.abort() : route.fulfill({ contentType: 'image/svg+xml', body: wideLogo }),
  )
  await page.setContent(dropsStyles ? html.replace(/<style>.*?<\/style>/s, '') : html)
  return { page, [Symbol.asyncDispose]: () => context.close() }
}

/** Of the rules for contents; a mail is no page with landmarks. */
async function violations(page: Page): Promise<unknown> {
  await page.evaluate(axe)
  return page.evaluate(`
    axe.run(document, { resultTypes: ['violations'], preload: false, runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa'] }).then(({ violations }) =>
      violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => [id, html.slice(0, 200), failureSummary])))`)
}
