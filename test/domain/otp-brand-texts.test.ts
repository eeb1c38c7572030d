import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { readLang } from '../../src/domain/ground/languages.ts'
import { type BrandText, BrandTexts } from '../../src/domain/texts/brand-texts.ts'
import { otpLanguages } from '../../src/domain/texts/otp-texts.ts'
import { registeredSmsText, type SmsText, smsText } from '../../src/domain/texts/sms.ts'
import { otpTemplateOf, renderOtp } from '../../src/domain/texts/templates.ts'

const text = '{{otp}}'

function ownText(properties: Partial<BrandText>): BrandText {
  const target = { templateKey: 'LOGIN_OTP', channel: 'SMS', lang: 'en' } as const
  return { ...target, subject: null, text, html: null, version: 1, updatedAt: 0, ...properties }
}

/** With texts of LOGIN_OTP in these languages. */
function brandOf(lang: string, own = '', registered = '') {
  const all = own.split(' ').filter(Boolean)
  const keys = registered.split(' ').filter(Boolean)
  return {
    lang,
    texts: new BrandTexts(
      all.map((tag) => ownText({ lang: tag })),
      new Map(),
    ),
    registrations: Object.fromEntries(keys.map((key) => [key, {}])),
  }
}

const loginOtp = otpTemplateOf({})

function named({ lang, isOwn }: SmsText): string {
  return isOwn ? `own ${lang}` : `built-in ${lang}`
}

describe('the text of a code (D47)', () => {
  const rows: readonly (readonly [lang: unknown, brandLang: string, own: string, expected: string])[] = [
    ['pt-BR', 'hi', 'pt-BR pt hi en', 'own pt-BR'],
    ['pt-BR', 'hi', 'pt hi en', 'own pt'],
    ['pt-BR', 'hi', 'hi en', 'built-in pt'],
    ['sv-SE', 'hi', 'sv hi en', 'own sv'],
    ['sv-SE', 'hi', 'hi en', 'own hi'],
    ['sv-SE', 'hi', 'en', 'built-in hi'],
    ['sv-SE', 'da', 'en', 'own en'],
    ['sv-SE', 'da', '', 'built-in en'],
    ['sv-SE', 'pt-BR', '', 'built-in en'],
    ['EN-gb', 'hi', 'hi', 'built-in en'],
    ['en-GB', 'hi', 'en-GB en', 'own en-GB'],
    ['in', 'hi', 'id', 'own id'],
    [undefined, 'hi', 'hi en', 'own hi'],
    [undefined, 'hi', 'en', 'built-in hi'],
    [undefined, 'pt-BR', 'pt', 'own pt'],
    [undefined, 'pt-BR', '', 'built-in pt'],
    [undefined, 'da', 'en', 'own en'],
    [undefined, 'en', 'hi', 'built-in en'],
    [null, 'hi', '', 'built-in hi'],
    ['not a tag', 'hi', 'hi', 'own hi'],
    ['constructor', 'da', '', 'built-in en'],
    [['hi'], 'en', 'hi', 'built-in en'],
  ]
  test.each(rows)(
    'for lang %p, of a brand in %p with the texts %p, is %s',
    (lang, brandLang, own, expected) => {
      expect(named(smsText(brandOf(brandLang, own), loginOtp, readLang({ lang })))).toBe(expected)
    },
  )

  test('is that of its own template: a text of LOGIN_OTP is none of LOGIN_OTP_WITH_ID or of a mail', () => {
    const mail = new BrandTexts([ownText({ channel: 'EMAIL', subject: '' })], new Map())
    expect(named(smsText(brandOf('en', 'en'), otpTemplateOf({ loginId: 'jane' }), undefined))).toBe(
      'built-in en',
    )
    expect(named(smsText({ lang: 'en', texts: mail }, loginOtp, undefined))).toBe('built-in en')
  })

  const tag = fc.constantFrom<string>('pt-BR', 'pt', 'hi', 'en', 'sv', 'da', 'zh-Hant-TW', 'zh')
  test("is the brand's wherever it has one for the language that is chosen", () => {
    fc.assert(
      fc.property(fc.jsonValue(), tag, fc.array(tag), (lang, brandLang, own) => {
        const brand = brandOf(brandLang, own.join(' '))
        const chosen = smsText(brand, loginOtp, readLang({ lang }))
        expect(chosen.isOwn).toBe(own.includes(chosen.lang))
      }),
    )
  })
})

describe('the text of a code on the registered-template route (D47)', () => {
  const key = 'LOGIN_OTP'
  const rows: readonly (readonly [
    lang: string | undefined,
    brandLang: string,
    own: string,
    registered: string,
    expected: string,
  ])[] = [
    ['hi-IN', 'en', '', `${key}`, `built-in en, ${key}`],
    ['hi-IN', 'en', '', `${key} ${key}:hi`, `built-in hi, ${key}:hi`],
    ['hi-IN', 'en', 'hi', `${key} ${key}:hi`, `own hi, ${key}:hi`],
    ['hi-IN', 'en', 'hi-IN hi', `${key}:hi-IN ${key}:hi`, `own hi-IN, ${key}:hi-IN`],
    ['hi-IN', 'en', 'hi', `${key}:hi-IN ${key}:hi`, `own hi, ${key}:hi`],
    ['hi-IN', 'en', 'hi', '', `built-in en, ${key}`],
    ['hi', 'ta', 'ta', `${key} ${key}:en`, `own ta, ${key}`],
    ['en', 'ta', 'ta', `${key} ${key}:en`, `built-in en, ${key}:en`],
    [undefined, 'ta', '', `${key} ${key}:en`, `built-in ta, ${key}`],
    [undefined, 'ta', 'ta', `${key}:ta`, `own ta, ${key}:ta`],
    [undefined, 'kn', '', key, `built-in en, ${key}`],
    [undefined, 'en', '', '', `built-in en, ${key}`],
  ]
  test.each(rows)('for lang %p, of a brand in %p with the texts %p and registrations %p, is %s', (...row) => {
    const [lang, brandLang, own, registered, expected] = row
    const chosen = registeredSmsText(brandOf(brandLang, own, registered), loginOtp, lang)
    expect(`${named(chosen)}, ${chosen.registrationKey}`).toBe(expected)
  })
})

describe('rendering', () => {
  const chosen = (text: string) => ({ lang: 'hi', text })
  const code = '012345'
  const about = { code, businessName: 'Acme', lifetimeSeconds: 300, loginId: undefined }

  test.each([
    [300, '5'],
    [299, '4'],
    [59, '1'],
    [600, '10'],
  ])('%d seconds are %s minutes', (lifetimeSeconds, minutes) => {
    const rendered = renderOtp({ ...about, lifetimeSeconds }, chosen('{{minutes}} {{otp}}'))
    expect(rendered.text).toBe(`${minutes} ${code}`)
    expect(rendered.variables).toMatchObject({ otp: code, businessName: 'Acme', minutes })
  })

  test('keeps every byte of a text, and a value is data', () => {
    const words = fc.constantFrom(' ', '  ', '\n', '\r', '$1', '{', '} ', '।', 'हिं', '🙂', '\u0301', 'a')
    const part = fc.array(words, { maxLength: 5 }).map((all) => `|${all.join('')}|`)
    const value = fc.oneof(
      fc.constantFrom('{{otp}}', '$&', '{{businessName}}', '#'),
      fc.string({ maxLength: 40 }),
    )
    fc.assert(
      fc.property(
        part,
        part,
        part,
        part,
        value,
        value,
        (first, second, third, last, businessName, loginId) => {
          const own = `${first}{{businessName}}${second}{{otp}}${third}{{loginId}}${last}`
          const rendered = renderOtp({ ...about, businessName, loginId }, chosen(own))
          expect(rendered.text).toBe(first + businessName + second + code + third + loginId + last)
          expect(rendered.variables).toMatchObject({ otp: code, businessName, loginId })
        },
      ),
    )
  })

  test('of a built-in text can be read back', () => {
    const word = fc.stringMatching(/^[a-z]{1,20}$/)
    fc.assert(
      fc.property(
        fc.constantFrom(...otpLanguages),
        word,
        fc.option(word, { nil: undefined }),
        (builtIn, businessName, loginId) => {
          const { key } = otpTemplateOf({ loginId })
          const { text: sent, variables } = renderOtp(
            { ...about, businessName, loginId },
            { lang: builtIn.tag, text: builtIn[key] },
          )
          const source = builtIn[key].split(/\{\{(\w+)\}\}/)
          const pattern = source
            .map((part, at) => (at % 2 === 0 ? RegExp.escape(part) : `(?<${part}>.+?)`))
            .join('')
          const found = new RegExp(`^${pattern}$`, 's').exec(sent)?.groups
          expect({ ...variables }).toEqual({ ...found, minutes: '5' })
        },
      ),
    )
  })
})
