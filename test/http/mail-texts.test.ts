import { afterAll, describe, expect, test } from 'bun:test'
import { codeIn, createTestApp } from '../support/app.ts'
import { setText, tester } from '../support/operator.ts'
import { expectSuccess } from '../support/rows.ts'
import { startSmtp } from '../support/smtp.ts'

// Design D47: mails in a brand's own words and look, as a mail server receives them.

const smtp = await startSmtp()
const app = await createTestApp({ SMTP_URL: smtp.url, MAIL_FROM: 'Codes <codes@shop.example>' })
await app.brand('shop', {
  displayName: 'Shop & Söhne',
  logoUrl: 'https://shop.example/l.png',
  color: '#0b57d0',
})
afterAll(async () => {
  await app.close()
  await smtp.stop()
})

const email = 'jane@example.com'
const html = `<!doctype html>\n<p title="{{businessName}}">{{otp}}</p>\t<!-- € {curly} ${'long '.repeat(300)}-->\n`
const texts = {
  ar: ['رمز {{businessName}}', 'مرحبًا،\n\nرمزك هو:\n\n{{otp}}\n\nصالح لمدة {{minutes}} دقائق.', null],
  hi: ['{{businessName}} का कोड', 'नमस्ते,\n\nआपका कोड {{otp}} है।  {{minutes}} मिनट।', null],
  th: ['รหัสจาก {{businessName}}', '{{otp}}\nคือรหัสของคุณ = {{minutes}} นาที.', html],
} as const

async function received(path: string, fields: Readonly<Record<string, unknown>>) {
  expectSuccess(await app.post(path, { brandId: 'shop', ...fields }), [
    path === '/notify' ? 'channel' : 'expiresIn',
  ])
  const mail = smtp.received.at(-1)?.mail
  return { subject: mail?.subject, text: mail?.text ?? '', html: mail?.html ?? '' }
}

describe("a brand's own mail of a code", () => {
  test.each(Object.entries(texts))(
    'arrives byte for byte in %s, and its code verifies',
    async (lang, parts) => {
      const [subject, text, ownHtml] = parts
      await setText(app.app.context.acting(tester), {
        ...{ brand: 'shop', key: 'LOGIN_OTP', channel: 'EMAIL', lang },
        ...{ subject, text, html: ownHtml },
      })
      const mail = await received('/otp/send', { channel: 'EMAIL', email, lang })
      const otp = codeIn(mail.text)
      const filled = (source: string, name: string) =>
        source.replace('{{otp}}', otp).replace('{{minutes}}', '5').replace('{{businessName}}', name)
      expect(mail.subject).toBe(filled(subject, 'Shop & Söhne'))
      expect(mail.text.replace(/\n$/, '')).toBe(filled(text, 'Shop & Söhne'))
      if (ownHtml) expect(mail.html.trimEnd()).toBe(filled(ownHtml, 'Shop &amp; Söhne').trimEnd())
      else {
        expect(mail.html).toContain(`<html lang="${lang}" dir="${lang === 'ar' ? 'rtl' : 'ltr'}">`)
        expect(mail.html).toContain('src="https://shop.example/l.png" alt="Shop &amp; Söhne"')
        expect(mail.html.split(otp)).toHaveLength(2)
      }
      expectSuccess(await app.post('/otp/verify', { brandId: 'shop', email, otp }))
    },
  )
})

test('the mail of a code has the loginId as text, if the brand has it enabled (D13)', async () => {
  const loginId = "o'neil & co"
  const rows = [
    { brandId: 'with-logins', loginIdEnabled: true, template: 'LOGIN_OTP_WITH_ID' },
    { brandId: 'without-logins', loginIdEnabled: false, template: 'LOGIN_OTP' },
  ]
  for (const { brandId, loginIdEnabled, template } of rows) {
    await app.brand(brandId, { displayName: 'Logins', loginIdEnabled })
    const sent = await app.post('/otp/send', { brandId, channel: 'EMAIL', email, loginId })
    expectSuccess(sent, ['expiresIn'])
    const { text = '', html = '' } = smtp.received.at(-1)?.mail ?? {}
    expect(text.includes(loginId)).toBe(loginIdEnabled)
    expect(String(html).includes('for <bdi>o&#39;neil &amp; co</bdi>:')).toBe(loginIdEnabled)
    expect((await app.eventsOf(sent)).deliveries.map((delivery) => delivery.template)).toEqual([template])
  }
  await setText(app.app.context.acting(tester), {
    ...{ brand: 'with-logins', key: 'LOGIN_OTP_WITH_ID', channel: 'EMAIL', lang: 'en' },
    ...{ subject: 'For {{loginId}}', text: '{{otp}} for {{loginId}}', html: null },
  })
  const own = await received('/otp/send', { brandId: 'with-logins', channel: 'EMAIL', email, loginId })
  expect(own).toMatchObject({ subject: `For ${loginId}`, text: expect.stringContaining(`for ${loginId}`) })
  expect(own.html).toContain('for <bdi>o&#39;neil &amp; co</bdi>')
})

describe('a mail of /notify', () => {
  const about = { channel: 'EMAIL', to: [email], subject: 'Hi' }

  test("has the brand's look around a template, in the language of the request", async () => {
    const mail = await received('/notify', { ...about, template: 'שלום', lang: 'he' })
    expect(mail.html).toContain('<html lang="he" dir="rtl">')
    expect(mail.html).toContain('src="https://shop.example/l.png"')
    expect(mail.html).toContain('solid #0b57d0')
  })

  test("has the caller's HTML as it is, and no look of a brand that it does not name", async () => {
    const source = '<p>only this</p>'
    expect((await received('/notify', { ...about, html: source })).html.trim()).toBe(source)
    const other = await received('/notify', { ...about, brandId: undefined, template: 'Hello' })
    expect(other.html).not.toContain('shop.example')
    expect(other.html).toContain('<html lang="en" dir="ltr">')
  })
})
