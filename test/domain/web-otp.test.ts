import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { segmentsOf } from '../../src/adapters/sms/segments.ts'
import { noTexts } from '../../src/domain/texts/brand-texts.ts'
import { smsText } from '../../src/domain/texts/sms.ts'
import {
  boundText,
  notifyTemplates,
  otpTemplateOf,
  render,
  renderOtp,
} from '../../src/domain/texts/templates.ts'

const code = '012345'
const domain = 'shop.example'
const brand = { lang: 'en', texts: noTexts }

function otpText(
  properties: { businessName?: string; loginId?: string; lifetimeSeconds?: number } = {},
): string {
  const { loginId, ...rest } = {
    businessName: 'Acme',
    loginId: undefined,
    lifetimeSeconds: 300,
    ...properties,
  }
  const { text } = renderOtp(
    { code, loginId, ...rest },
    smsText(brand, otpTemplateOf({ loginId }), undefined),
  )
  return text
}

const bound = (text: string, host: string | null = domain, androidHash: string | null = null) =>
  boundText(text, code, { domain: host, androidHash }, { segmentsOf, mayShorten: true })

describe('a text with a Web OTP line', () => {
  test('is the text itself if the brand has no domain', () => {
    expect(bound(otpText(), null)).toBe(otpText())
  })

  test('ends with exactly that line, after an empty one', () => {
    expect(bound(otpText())).toBe(`${otpText()}\n\n@shop.example #012345`)
  })

  test('keeps all sentences up to the last character of one segment, then drops the last sentence', () => {
    const room = 160 - otpText().length - '\n\n@ #012345'.length
    const fits = `${'x'.repeat(room - 3)}.de`
    expect(segmentsOf(bound(otpText(), fits))).toEqual({ count: 1, encoding: 'GSM-7' })
    expect(bound(otpText(), fits)).toStartWith(otpText())
    expect(bound(otpText(), `x${fits}`)).toBe(
      `012345 is your Acme verification code. It expires in 5 minutes.\n\n@x${fits} #012345`,
    )
  })

  test('ends with the hash of the Android app after that line, or in its place', () => {
    const hash = 'FA+9qCX9VSu'
    expect(bound(otpText(), domain, hash)).toBe(`${otpText()}\n\n@shop.example #012345 ${hash}`)
    expect(bound(otpText(), null, hash)).toBe(`${otpText()}\n\n${hash}`)
    // WICG: what follows the code in the last line is ignored, unless it begins with @.
    const [, host, found] = /(?:^|\n)@(\S+) #(\S+)(?: [^@].*)?$/.exec(bound(otpText(), domain, hash)) ?? []
    expect([host, found]).toEqual([domain, code])
  })

  test('has that line once, also if the text of the brand ends with it', () => {
    const own = `Your code of Acme:\n\n@${domain} #${code}`
    expect(bound(own)).toBe(own)
    expect(bound(own, `x${domain}`)).toEndWith(`\n\n@${domain} #${code}\n\n@x${domain} #${code}`)
  })

  test('has at most 140 characters with the hash of an Android app, if it can', () => {
    const hash = 'A/+23456789'
    const line = `\n\n@shop.example #012345 ${hash}`
    for (let length = 1; length <= 40; length++) {
      const text = otpText({ businessName: 'x'.repeat(length) })
      const made = bound(text, domain, hash)
      expect(made.length).toBeLessThanOrEqual(140)
      expect(made).toStartWith(text.slice(0, text.indexOf('. ')))
      expect(made).toEndWith(line)
      expect(made === text + line).toBe(text.length + line.length <= 140)
    }
  })

  test('of a text of the brand is only added', () => {
    const own = 'One. Two. Three. '.repeat(9)
    const marks = { domain, androidHash: null }
    expect(boundText(own, code, marks, { segmentsOf, mayShorten: false })).toBe(
      `${own}\n\n@shop.example #012345`,
    )
  })

  test('drops two sentences if dropping one is not enough', () => {
    const host = `${'x'.repeat(90)}.example`
    expect(bound(otpText(), host)).toBe(`012345 is your Acme verification code.\n\n@${host} #012345`)
  })

  test('drops none if that would not help, or if the text exceeds one segment without the line', () => {
    const longest = `${'x'.repeat(63)}.${'y'.repeat(63)}.example`
    expect(bound(otpText(), longest)).toBe(`${otpText()}\n\n@${longest} #012345`)
    const long = otpText({ loginId: 'x'.repeat(64), businessName: 'y'.repeat(40) })
    expect(segmentsOf(long).count).toBe(2)
    expect(bound(long)).toBe(`${long}\n\n@shop.example #012345`)
    const cyrillic = otpText({ businessName: 'Пример' })
    expect(segmentsOf(cyrillic).count).toBeGreaterThan(1)
    expect(bound(cyrillic)).toBe(`${cyrillic}\n\n@shop.example #012345`)
  })

  test('has the code and the line for all names, and no more segments than necessary', () => {
    const host = fc
      .tuple(fc.stringMatching(/^[a-z0-9-]{1,63}$/), fc.stringMatching(/^[a-z0-9-]{1,40}(\.[a-z]{2,10})$/))
      .map((parts) => parts.join('.'))
    const name = fc.oneof(
      fc.string({ minLength: 1, maxLength: 40 }),
      fc.constantFrom('St. John', 'A. B. C.', 'Пример', 'Ünlü €'),
    )
    fc.assert(
      fc.property(host, name, fc.option(name, { nil: undefined }), (given, businessName, loginId) => {
        const text = otpText({ businessName, ...(loginId === undefined ? {} : { loginId }) })
        const whole = `${text}\n\n@${given} #${code}`
        const made = bound(text, given)
        expect(made.startsWith(code)).toBe(true)
        expect(made.endsWith(`\n\n@${given} #${code}`)).toBe(true)
        expect(made.split('\n\n@').at(-1)).toBe(`${given} #${code}`)
        if (made !== whole) {
          expect(segmentsOf(whole).count).toBeGreaterThan(1)
          expect(segmentsOf(made).count).toBe(1)
        }
      }),
      { numRuns: 200 },
    )
  })
})

describe('one segment of GSM-7 is enough', () => {
  const one = { count: 1, encoding: 'GSM-7' } as const
  const businessName = 'Twenty Letter Bakers'
  const host = 'twenty.bakery.exampl'
  const values = {
    businessName,
    customerName: 'Christopher Richardson',
    orderId: 'ORD-2026-0001234',
    orderDate: '2026-01-31',
    deliveryDateTime: '2026-01-31T10:30:15+05:30',
  }

  test('with values of the documented maximum length', () => {
    expect([businessName.length, host.length]).toEqual([20, 20])
  })

  test.each(notifyTemplates.map((template) => [template.key, template] as const))('for %s', (_, template) => {
    expect(segmentsOf(render(template, values).text)).toEqual(one)
  })

  test.each([
    ['LOGIN_OTP', undefined],
    ['LOGIN_OTP_WITH_ID', 'christopher@example.com'],
  ])('for %s, with and without the Web OTP line', (_, loginId) => {
    const text = otpText({ businessName, ...(loginId === undefined ? {} : { loginId }) })
    expect(segmentsOf(text)).toEqual(one)
    expect(segmentsOf(bound(text, host))).toEqual(one)
  })

  test('for a code with all its sentences and the Web OTP line', () => {
    const text = otpText({ businessName })
    expect(bound(text, host)).toBe(`${text}\n\n@${host} #${code}`)
  })
})
