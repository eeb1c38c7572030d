import { expect, test } from 'bun:test'
import type { Locator } from 'playwright-core'
import { browserPath, startDemo } from '../support/browser.ts'
import { useBrowser } from '../support/use-browser.ts'

// Checks the page of a brand in a real browser against `otpost demo`: the preview shows what the operator types.

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
    await page.goto(`${demo.page.origin}/admin/brands/acme`)

    const beside = page.locator('[data-follows-brand]')
    const placed = page.locator('[data-preview=ORDER_PLACED]')
    await shows(beside, 'is your Acme verification code')
    const named = '<img src=x onerror=alert(1)>'
    await page.getByLabel('Name', { exact: true }).fill(named)
    await shows(beside.locator('.handset .bubble'), `is your ${named} verification code`)
    await shows(placed.locator('.handset .bubble'), `your ${named} order`)
    await shows(beside.getByRole('status'), '1 segment · GSM-7')
    await page.getByLabel('Domain').fill('shop.example')
    await shows(beside.locator('.handset .bubble'), '@shop.example #')

    const customer = placed.getByLabel('customerName')
    await customer.fill('Zoë')
    await shows(placed.locator('.reading'), 'ë is not in GSM-7')
    await customer.fill('x'.repeat(41))
    await shows(placed.locator('.unreadable'), 'variables.customerName must be')
    await customer.fill('Jane')
    await shows(placed.locator('.handset .bubble'), 'Hi Jane,')

    const otp = page.locator('.template [data-preview=LOGIN_OTP]')
    await otp.getByLabel('lang').fill('ar')
    await shows(otp.locator('.handset .bubble'), 'صالح لمدة 5 دقائق')
    await shows(otp.getByRole('status'), 'UCS-2')

    // Nothing has been saved.
    const brands = await fetch(new URL('/platform/brands', demo.page))
    expect(await brands.json()).toMatchObject({ brands: [{ brandId: 'acme', displayName: 'Acme' }] })

    await page.context().clearCookies()
    await customer.fill('Joe')
    await shows(placed.getByRole('status'), 'not up to date')
    await shows(placed.locator('.handset .bubble'), 'Hi Jane,')
    const expected = /^(303 for \/admin\/link|40[14] for \/admin\/preview)$/
    expect(visitor.complaints.filter((complaint) => !expected.test(complaint))).toEqual([])
    expect(visitor.errors).toEqual([])
  },
  120_000,
)
