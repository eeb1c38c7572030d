import { expect, test } from 'bun:test'
import type { Locator } from 'playwright-core'
import { browserPath, startDemo } from '../support/browser.ts'
import { useBrowser } from '../support/use-browser.ts'

// Checks the pages of a brand and of a text in a real browser against `otpost demo`: the preview shows what the operator types.

const browser = useBrowser()

const shows = (place: Locator, text: string) => place.filter({ hasText: text }).waitFor()

test.skipIf(!browserPath)(
  'a preview shows typed text, escapes it, and reports when it can not be updated',
  async () => {
    const opening = browser.visit()
    await using demo = await startDemo()
    await using visitor = await opening
    const { page } = visitor
    await visitor.open(demo)
    await page.goto(await demo.consoleLink())
    await page.waitForURL(/\/admin$/)
    const brand = `${demo.page.origin}/admin/brands/acme`
    await page.goto(brand)
    const bubble = page.locator('.handset .bubble')
    await shows(bubble, 'is your Acme verification code')
    const named = '<img src=x onerror=alert(1)>'
    await page.getByLabel('Name', { exact: true }).fill(named)
    await shows(bubble, `is your ${named} verification code`)
    const code = page.locator('[data-preview=LOGIN_OTP]')
    await shows(code.getByRole('status'), '1 segment · GSM-7')
    await page.getByLabel('Domain').fill('shop.example')
    await shows(bubble, '@shop.example #')
    await page.getByLabel('Language', { exact: true }).fill('ar')
    await shows(bubble, 'صالح لمدة 5 دقائق')
    await shows(code.getByRole('status'), 'UCS-2')

    // Nothing has been saved.
    const brands = await fetch(new URL('/platform/brands', demo.page))
    expect(await brands.json()).toMatchObject({ brands: [{ brandId: 'acme', displayName: 'Acme' }] })

    await page.goto(`${brand}/texts/ORDER_PLACED/sms/en`)
    const placed = page.locator('[data-preview=ORDER_PLACED]')
    const customer = placed.getByLabel('customerName')
    await customer.fill('Zoë')
    await shows(placed.locator('.reading'), 'ë is not in GSM-7')
    await customer.fill('x'.repeat(41))
    await shows(placed.locator('.unreadable'), 'variables.customerName must be')
    await customer.fill('Jane')
    await shows(bubble, 'Hi Jane,')
    await page.context().clearCookies()
    await customer.fill('Joe')
    await shows(placed.getByRole('status'), 'not up to date')
    await shows(bubble, 'Hi Jane,')
    const expected = /^(303 for \/admin\/link|40[14] for \/admin\/brands\/acme\/texts\/preview)$/
    expect(visitor.complaints.filter((complaint) => !expected.test(complaint))).toEqual([])
    expect(visitor.errors).toEqual([])
  },
  120_000,
)
