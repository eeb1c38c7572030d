import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { segmentsOf } from '../../src/adapters/sms/segments.ts'
import { preferredTags, readLang } from '../../src/domain/ground/languages.ts'
import { freshBrand } from '../../src/domain/operator/brands.ts'
import { noTexts } from '../../src/domain/texts/brand-texts.ts'
import { otpMail } from '../../src/domain/texts/emails.ts'
import { otpLanguageOf, otpLanguages } from '../../src/domain/texts/otp-texts.ts'
import { smsText } from '../../src/domain/texts/sms.ts'
import {
  boundText,
  firstSentence,
  type OtpValues,
  otpTemplateOf,
  renderOtp,
} from '../../src/domain/texts/templates.ts'
import { transactionRules } from '../../src/domain/texts/transaction.ts'
import { formatted } from '../../src/domain/texts/variables.ts'

/** Of each language its script, and whether its SMS are GSM-7 (design D47). */
const languages: Readonly<Record<string, readonly [script: string, 'GSM-7' | 'UCS-2']>> = {
  en: ['Latin', 'GSM-7'],
  hi: ['Devanagari', 'UCS-2'],
  es: ['Latin', 'GSM-7'],
  fr: ['Latin', 'GSM-7'],
  de: ['Latin', 'GSM-7'],
  pt: ['Latin', 'GSM-7'],
  it: ['Latin', 'GSM-7'],
  ar: ['Arabic', 'UCS-2'],
  ja: ['Hiragana}\\p{Script=Katakana}\\p{Script=Han', 'UCS-2'],
  zh: ['Han', 'UCS-2'],
  ru: ['Cyrillic', 'UCS-2'],
  tr: ['Latin', 'GSM-7'],
  id: ['Latin', 'GSM-7'],
  vi: ['Latin', 'UCS-2'],
  bn: ['Bengali', 'UCS-2'],
  ta: ['Tamil', 'UCS-2'],
  te: ['Telugu', 'UCS-2'],
  mr: ['Devanagari', 'UCS-2'],
  gu: ['Gujarati', 'UCS-2'],
  ur: ['Arabic', 'UCS-2'],
  pl: ['Latin', 'GSM-7'],
  nl: ['Latin', 'GSM-7'],
  uk: ['Cyrillic', 'UCS-2'],
  th: ['Thai', 'UCS-2'],
  ko: ['Hangul', 'UCS-2'],
}
const tags = Object.keys(languages)

const code = '493027'
const businessName = 'Acme Bank Co'
const loginId = 'jane.doe'
const transaction = { amount: '1250', currency: 'INR', payee: 'City Water' }
const domain = 'shop.example.com'
const bound = { domain, androidHash: null }
const shortened = { segmentsOf, mayShorten: true }
const brand = { lang: 'en', texts: noTexts }
const count = (text: string, part: string | RegExp) => text.split(part).length - 1

test('the languages are those of design D47', () => {
  expect(otpLanguages.map(({ tag }) => tag)).toEqual(tags)
})

describe.each(tags)('%s', (tag) => {
  const [script, encoding] = languages[tag] ?? []
  const language = otpLanguageOf(tag)
  const rendered = (about: OtpValues) => renderOtp(about, smsText(brand, otpTemplateOf(about), tag))
  const letters = (text: string) => text.match(/\p{L}/gu) ?? []
  const isOwn = new RegExp(`^[\\p{Script=${script}}\\p{Script=Common}]$`, 'u')
  /** Words of the text itself; OTP is a word in many languages. */
  const ownWords = (text: string) => text.replace(/\{\w+\}|OTP/g, ' ')

  test.each([60, 300, 600, 90, 30])('has codes of one segment, valid for %d seconds', (lifetimeSeconds) => {
    for (const login of [undefined, loginId]) {
      const about = { code, businessName, lifetimeSeconds, loginId: login }
      const { text } = rendered(about)
      expect(segmentsOf(text)).toEqual({ count: 1, encoding: encoding ?? 'UCS-2' })
      expect(text.match(/\d+/g)).toHaveLength(2)
      const amount = lifetimeSeconds % 60 === 0 ? lifetimeSeconds / 60 : lifetimeSeconds
      expect(count(text, new RegExp(`(?<!\\d)${amount}(?!\\d)`))).toBe(1)
      for (const part of [code, businessName]) expect(count(text, part)).toBe(1)
      expect(count(text, loginId)).toBe(login ? 1 : 0)
      expect(text).not.toMatch(/[{}]|undefined/)
      expect(text).toBe(text.normalize('NFC'))
    }
  })

  test('names a transaction in three sentences, in one segment of GSM-7 or at most two of UCS-2', () => {
    const { text } = rendered({ code, businessName, lifetimeSeconds: 300, transaction })
    const { count: segments } = segmentsOf(text)
    expect(segments).toBeLessThanOrEqual(encoding === 'GSM-7' ? 1 : 2)
    expect(segmentsOf(text).encoding).toBe(encoding ?? 'UCS-2')
    const amount = formatted('number', '1250.00', tag)
    for (const part of [code, businessName, amount, 'INR', 'City Water']) expect(count(text, part)).toBe(1)
    const first = firstSentence(language.TRANSACTION_OTP)
    for (const name of ['otp', 'businessName', ...Object.keys(transactionRules)])
      expect(first).toContain(`{{${name}}}`)
    expect(text).toBe(text.normalize('NFC'))
    expect(boundText(text, code, bound, shortened)).toStartWith(firstSentence(text))
  })

  test('keeps the code and the brand in one segment with the Web OTP line', () => {
    for (const login of [undefined, loginId]) {
      const about = { code, businessName, lifetimeSeconds: 300, loginId: login }
      const text = boundText(rendered(about).text, code, bound, shortened)
      expect(text).toEndWith(`\n\n@${domain} #${code}`)
      expect(text).toContain(businessName)
      expect(count(text, code)).toBe(2)
      expect(segmentsOf(text).count).toBe(1)
    }
  })

  test('is written in its script', () => {
    const { tag: _, lifetime: __, ...texts } = language
    for (const text of Object.values(texts)) {
      expect(letters(ownWords(text)).filter((letter) => !isOwn.test(letter))).toEqual([])
      expect(letters(ownWords(text)).length).toBeGreaterThan(3)
    }
    if (script !== 'Arabic') return
    for (const text of [texts.LOGIN_OTP, texts.LOGIN_OTP_WITH_ID, texts.TRANSACTION_OTP, texts.subject])
      expect(text.match(/\p{L}/u)?.[0]).toMatch(/\p{Script=Arabic}/u)
  })

  const logins: readonly (readonly [loginId: string | undefined, inHtml: string])[] = [
    [undefined, ''],
    ['<i>"pat"', '<bdi>&lt;i&gt;&quot;pat&quot;</bdi>'],
  ]
  test.each(logins)('has a mail with its language and direction, with the loginId %p', (loginId, inHtml) => {
    const { subject, html, text } = otpMail(
      freshBrand('acme'),
      { code, businessName, lifetimeSeconds: 300, loginId },
      tag,
    )
    expect(html).toContain(inHtml)
    expect(html).not.toContain('<i>')
    expect(count(text, loginId ?? '{{loginId}}')).toBe(loginId === undefined ? 0 : 1)
    const direction = ['ar', 'ur'].includes(tag) ? 'rtl' : 'ltr'
    expect(count(html, `lang="${tag}" dir="${direction}"`)).toBe(2)
    expect(html).toContain(`<td class="code" dir="ltr" `)
    for (const part of [html, text]) {
      expect(count(part, new RegExp(`(?<!\\d)${code}(?!\\d)`))).toBe(1)
      expect(part).toContain(language.lifetime(300))
    }
    for (const part of [subject, html, text]) {
      expect(part).toContain(businessName)
      expect(part).not.toMatch(/\{\w+\}|undefined/)
    }
    expect(subject).not.toContain(code)
  })
})

test.each([
  [60, '1 دقيقة'],
  [300, '5 دقائق'],
  [660, '11 دقيقة'],
  [5, '5 ثوان'],
  [90, '90 ثانية'],
  [105, '105 ثوان'],
])('the Arabic noun after %d seconds has its number: %s', (seconds, words) => {
  expect(otpLanguageOf('ar').lifetime(seconds)).toBe(words)
})

describe('the language of a request', () => {
  const rows: readonly (readonly [unknown, string])[] = [
    ['hi', 'hi'],
    ['HI-in', 'hi'],
    ['pt-BR', 'pt'],
    ['zh-Hant-TW', 'zh'],
    ['ar-u-nu-arab', 'ar'],
    // The former tag of Indonesian, which Android still uses.
    ['in', 'id'],
    ['sv', 'en'],
    ['en-GB', 'en'],
    ['hindi', 'en'],
    ['hi_IN', 'en'],
    ['', 'en'],
    [' hi', 'en'],
    ['*', 'en'],
    ['und', 'en'],
    ['constructor', 'en'],
    // Accept-Language headers.
    ['fr-CH, fr;q=0.9, en;q=0.8, *;q=0.5', 'fr'],
    ['en;q=0.5, de-AT;q=0.7,ja;q=0.6', 'de'],
    ['sv, da;q=0.9, nl;q=0.1', 'nl'],
    ['sv-SE,sv;q=0.9', 'en'],
    ['fr;q=0, it;q=0.1', 'it'],
    ['it ; Q=0.2 , pl;q=1.000', 'pl'],
    ['hi;q=2, x_y, ;;, de;q=0.5', 'de'],
    ['ko;q=0.8', 'ko'],
    ['*', 'en'],
    [',', 'en'],
    [`${'sv,'.repeat(19)}tr`, 'tr'],
    [`${'sv,'.repeat(20)}tr`, 'en'],
    [`tr,${' '.repeat(1000)}`, 'en'],
    [`hi-${'x-abcdefgh'.repeat(10)}`, 'en'],
    [null, 'en'],
    [7, 'en'],
    [['hi'], 'en'],
    [{}, 'en'],
  ]
  test.each(rows)('for lang %p is %s', (lang, tag) => {
    expect(otpLanguageOf(readLang({ lang })).tag).toBe(tag)
  })

  test('is that of the base language for any region or script, and English for any other value', () => {
    const known = fc.constantFrom(...tags)
    const region = fc.constantFrom('', '-IN', '-us', '-419', '-Latn', '-Latn-US', '-u-nu-latn')
    fc.assert(
      fc.property(known, region, (tag, rest) => {
        expect(otpLanguageOf(readLang({ lang: tag + rest })).tag).toBe(tag)
      }),
    )
    fc.assert(
      fc.property(fc.jsonValue(), (lang) => {
        fc.pre(typeof lang !== 'string' || !/[,;]/.test(lang))
        const expected = typeof lang === 'string' ? lang.slice(0, 2).toLowerCase() : 'en'
        expect(['en', expected]).toContain(otpLanguageOf(readLang({ lang })).tag)
      }),
    )
  })

  test.each([
    ['pt-BR', 'hi', ['pt-BR', 'pt', 'hi', 'en']],
    ['sv', 'de-AT', ['sv', 'de-AT', 'en']],
    ['fr-CH,fr,de', 'hi-IN', ['fr-CH', 'fr', 'de', 'hi-IN', 'en']],
    [undefined, 'hi-IN', ['hi-IN', 'hi', 'en']],
    [undefined, 'hi', ['hi', 'en']],
    [undefined, undefined, ['en']],
  ])('%p of a brand with %p prefers %p', (lang, brandLang, expected) => {
    expect(preferredTags(lang, brandLang)).toEqual(expected)
  })
})
