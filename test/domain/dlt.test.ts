import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { segmentsOf } from '../../src/adapters/sms/segments.ts'
import { isTopLevelDomain } from '../../src/adapters/sms/top-level-domains.ts'
import { BrandTexts, type DeclaredVariable, noTexts } from '../../src/domain/texts/brand-texts.ts'
import {
  compareRegistered,
  type DltBrand,
  type DltRule,
  type DltText,
  dltRules,
  dltText,
  dltTexts,
  exportText,
  lintText,
} from '../../src/domain/texts/dlt.ts'
import { isOtpKey, otpLanguages } from '../../src/domain/texts/otp-texts.ts'
import { registeredSmsText } from '../../src/domain/texts/sms.ts'
import { otpTemplateOf, renderOtp, templateKeys } from '../../src/domain/texts/templates.ts'
import { worded } from '../support/explained.ts'

const settings = { segmentsOf, isTopLevelDomain, otpTtlSeconds: 300 }
const registration = { id: '1107000000000000001', ids: {}, senderId: 'ACMEIN', maxLength: null }

/** Everything is registered. */
const acme: DltBrand = {
  slug: 'acme',
  displayName: 'Acme',
  notifyTemplates: ['ORDER_PLACED', 'OUT_FOR_DELIVERY', 'ORDER_DELIVERED'],
  dltEnabled: true,
  loginIdEnabled: true,
  domain: null,
  entityId: '1101000000000000001',
  registrations: Object.fromEntries([...templateKeys, 'NOTICE'].map((key) => [key, registration])),
  lang: 'en',
  androidHash: null,
  dltAllowList: [
    'https://acme.example',
    'example.com',
    'https://cdn.acme.example/Go',
    'https://s.example/p?',
    '+91-9876543210',
  ],
  texts: noTexts,
}

const variables: readonly DeclaredVariable[] = [
  { name: 'name', type: 'text', max: 30 },
  { name: 'long', type: 'text', max: 31 },
  { name: 'amount', type: 'number', max: 5000 },
  { name: 'points', type: 'number', max: 999 },
  { name: 'day', type: 'date', max: 20 },
  { name: 'at', type: 'datetime', max: 30 },
  { name: 'link', type: 'url', max: 30 },
]

function notice(text: string, change: Partial<DltBrand> = {}): DltText {
  const stored = {
    templateKey: 'NOTICE',
    channel: 'SMS',
    lang: 'en',
    subject: null,
    text,
    html: null,
  } as const
  const texts = new BrandTexts([{ ...stored, version: 1, updatedAt: 0 }], new Map([['NOTICE', variables]]))
  return { brand: { ...acme, texts, ...change }, templateKey: 'NOTICE', lang: 'en', text }
}

function code(text: string, change: Partial<DltBrand> = {}): DltText {
  return { brand: { ...acme, ...change }, templateKey: 'LOGIN_OTP', lang: 'en', text }
}

const plain = 'Acme: your order is ready.'
const withRegistration = (change: object) => ({ registrations: { NOTICE: { ...registration, ...change } } })

interface Row {
  readonly rule: DltRule
  readonly level: 'error' | 'warning'
  readonly found: DltText
  readonly says: string
  readonly clean: DltText
}

const row = (
  rule: DltRule,
  level: Row['level'],
  found: DltText | string,
  says: string,
  clean: DltText | string,
) => ({
  rule,
  level,
  found: typeof found === 'string' ? notice(found) : found,
  says,
  clean: typeof clean === 'string' ? notice(clean) : clean,
})

const rows: readonly Row[] = [
  row('entity-id', 'warning', notice(plain, { entityId: null }), 'no principal entity id', plain),
  row(
    'template-id',
    'warning',
    notice(plain, withRegistration({ id: null })),
    'no template id',
    notice(plain, withRegistration({ id: null, ids: { kannel: '1' } })),
  ),
  row('template-id', 'warning', { ...notice(plain), lang: 'hi' }, 'no template id', {
    ...notice(plain, { registrations: { 'NOTICE:hi': registration } }),
    lang: 'hi',
  }),
  row(
    'sender-header',
    'error',
    notice(plain, withRegistration({ senderId: 'ACMEI1' })),
    'ACMEI1',
    notice(plain, withRegistration({ senderId: null })),
  ),
  row('sender-header', 'error', notice(plain, withRegistration({ senderId: 'ACME' })), 'six letters', plain),
  row(
    'variable-tag',
    'error',
    'Acme: your order {#var#} is ready.',
    '14 January 2026',
    'Acme: your order {{name}} is ready.',
  ),
  row('variable-tag', 'error', 'Acme: your order {#numeric#} is ready.', '{#numeric#} as it is', plain),
  row('variable-tag', 'error', 'Acme: your order ##name## is ready.', '##name##', plain),
  row(
    'variable-count',
    'warning',
    'Acme: {{name}}, {{points}}, {{day}}, {{name}} are ready.',
    '4 variables',
    '{{businessName}}: {{name}}, {{points}}, {{day}} are ready.',
  ),
  row(
    'adjacent-variables',
    'error',
    'Acme: your order {{name}} {{day}} is ready.',
    '{{name}} and {{day}}',
    'Acme: your order {{name}}, {{day}} is ready.',
  ),
  row(
    'adjacent-variables',
    'error',
    'Acme: your order {{name}}{{points}} is ready.',
    '{{name}} and {{points}}',
    'Acme: your order {{name}} {{businessName}} {{points}} is ready.',
  ),
  row(
    'variable-length',
    'error',
    'Acme: your order {{long}} is ready.',
    '31 characters',
    notice('Acme: your order {{long}} is ready.', withRegistration({ maxLength: 40 })),
  ),
  row('variable-length', 'error', 'Acme: your order {{long}} is ready.', 'Carriers accept 30', {
    ...notice('Acme: your order {{long}} is ready.'),
    maxLength: 31,
  }),
  row(
    'variable-length',
    'warning',
    { ...notice('Acme: ready at {{at}} for you.'), lang: 'es' },
    'Write {{at:raw}}',
    { ...notice('Acme: ready at {{at:raw}} for you.'), lang: 'es' },
  ),
  row(
    'variable-length',
    'warning',
    { ...notice('Acme: ready on {{day}} for you.'), lang: 'es' },
    '--var day:date:24',
    'Acme: ready on {{day}}, {{at}} for you.',
  ),
  row(
    'variable-format',
    'error',
    'Acme: you have {{amount}} points.',
    '{{amount}} has separators',
    'Acme: you have {{amount:raw}} points, {{points}} new.',
  ),
  row('fixed-text', 'error', 'Acme {{name}} pays', '8 fixed characters', 'Acme {{name}} pays: ok'),
  row(
    'brand-name',
    'error',
    'Your order {{name}} is ready.',
    "the brand's name, Acme",
    'Your {{businessName}} order {{name}} is ready.',
  ),
  row(
    'brand-name',
    'error',
    'Your Acmex or Macme order {{name}} is ready.',
    "the brand's name, Acme",
    "ACME's order {{name}} is ready.",
  ),
  row(
    'brand-name',
    'error',
    'Your 1Acme2 order {{name}} is ready.',
    "the brand's name, Acme",
    'Acmeలో order {{name}} is ready.',
  ),
  row('spaces', 'error', 'Acme: your  order is ready.', 'two adjacent spaces', plain),
  row('spaces', 'error', 'Acme: your \u00a0order is ready.', 'two adjacent spaces', plain),
  row('spaces', 'error', `${plain} `, 'ends with a space', `${plain}\n\nThe Acme team`),
  row('angle-brackets', 'error', 'Acme: your order is > ready.', '< or >', plain),
  row(
    'text-length',
    'error',
    `${plain}${' Thank you.'.repeat(200)}`,
    '2226 characters',
    `${plain}${' Thank you.'.repeat(179)}`,
  ),
  row(
    'allow-list',
    'error',
    `${plain} See https://evil.example/x.`,
    'https://evil.example/x is not',
    `${plain} See https://ACME.example/x.`,
  ),
  row(
    'allow-list',
    'error',
    `${plain} See acme.example.com`,
    'acme.example.com is not',
    `${plain} See example.com or info@other.com`,
  ),
  row(
    'allow-list',
    'error',
    `${plain} See www.acme.example`,
    'www.acme.example is not',
    `${plain} See https://acme.example?o={{name}}`,
  ),
  row(
    'allow-list',
    'error',
    `${plain} See https://cdn.acme.example/Gone`,
    'cdn.acme.example/Gone',
    `${plain} See https://cdn.acme.example/Go/{{name}}`,
  ),
  row(
    'allow-list',
    'error',
    `${plain} See https://cdn.acme.example/go/1`,
    'cdn.acme.example/go/1',
    `${plain} See https://cdn.acme.example/Go?x=1`,
  ),
  row(
    'allow-list',
    'error',
    `${plain} See https://{{name}}.acme.example`,
    'https://….acme.example',
    `${plain} See https://acme.example/{{name}}`,
  ),
  row(
    'allow-list',
    'error',
    `${plain} See https://s.example/p`,
    'https://s.example/p',
    `${plain} See https://s.example/p?id={{name}}`,
  ),
  row(
    'allow-list',
    'error',
    `${plain} Call 98765 43211.`,
    '98765 43211',
    `${plain} Call 09876543210 or 91 98765-43210 by 2026-11-21.`,
  ),
  row(
    'allow-list',
    'error',
    `${plain} Call 1800 123 456`,
    '1800 123 456',
    notice(`${plain} Call 1800 123 456`, { dltAllowList: ['1800123456'] }),
  ),
  row(
    'allow-list',
    'error',
    notice(`${plain} See {{link}}`, { dltAllowList: ['1800123456'] }),
    'The URL of {{link}}',
    `${plain} See {{link}}`,
  ),
  row(
    'characters',
    'warning',
    `${plain} It’s yours.`,
    '’ (U+2019, curly quote) outside GSM-7. An SMS has up to 1 segment',
    `${plain} It's yours.`,
  ),
  row(
    'characters',
    'warning',
    `${plain} आपका ऑर्डर तैयार है। हम आपके घर पर इसे जल्दी पहुंचा देंगे। धन्यवाद।`,
    '2 segments',
    plain,
  ),
  row(
    'last-line',
    'warning',
    code('{{otp}} is your Acme code.', { domain: 'acme.example' }),
    'a line of `@acme.example #{{otp}}`',
    code('Your Acme code:\n\n@acme.example #{{otp}}', { domain: 'acme.example' }),
  ),
  row(
    'last-line',
    'warning',
    code('{{otp}} is your Acme code.', { androidHash: 'FA+9qCX9VSu' }),
    'FA+9qCX9VSu',
    code('{{otp}} is your Acme code.\nFA+9qCX9VSu', { androidHash: 'FA+9qCX9VSu' }),
  ),
  row(
    'last-line',
    'warning',
    code('Your Acme code:\n\n@acme.example #{{otp}}', { domain: 'acme.example', androidHash: 'FA+9qCX9VSu' }),
    'a line of `@acme.example #{{otp}} FA+9qCX9VSu`',
    code('Your Acme code:\n\n@acme.example #{{otp}} FA+9qCX9VSu', {
      domain: 'acme.example',
      androidHash: 'FA+9qCX9VSu',
    }),
  ),
]

const rulesOf = (text: DltText) => lintText(text, settings).map(({ rule }) => rule)

test.each(rows)('$rule: $says', ({ rule, level, found, says, clean }) => {
  const [finding] = lintText(found, settings).filter((each) => each.rule === rule)
  expect(finding?.level).toBe(level)
  expect(`${finding?.message} ${worded(finding?.fix ?? [])}`).toContain(says)
  expect(rulesOf(clean)).not.toContain(rule)
})

test('every rule has a row, and findings are in the order of the rules', () => {
  const tested = new Set<DltRule>([...rows.map(({ rule }) => rule), 'registered-text'])
  expect(dltRules.filter((rule) => !tested.has(rule))).toEqual([])
  const bad = notice(' <{#var#}{{long}}{{amount}} {{link}} {{link}}’ http://evil.example', {
    entityId: null,
    registrations: { NOTICE: { ...registration, id: null, senderId: '1' } },
  })
  const found = [...new Set(rulesOf(bad))]
  expect(found.length).toBeGreaterThan(10)
  expect(found).toEqual(dltRules.filter((rule) => found.includes(rule)))
})

test('docs/dlt-rules.md has each rule, in order', async () => {
  const page = await Bun.file(`${import.meta.dir}/../../docs/dlt-rules.md`).text()
  expect(Array.from(page.matchAll(/^- `([a-z-]+)`, /gm), ([, rule]) => rule)).toEqual([...dltRules])
})

test('a fix names the language of the registration, and is given once for each variable', () => {
  const unregistered = { registrations: {}, lang: 'sv' }
  const fixes = (lang: string, change: Partial<DltBrand>) =>
    lintText({ ...notice('Acme: {{long}} follows {{long}}', change), lang }, settings).map(({ fix }) =>
      worded(fix),
    )
  expect(fixes('en', unregistered)).toEqual([
    expect.stringContaining('acme NOTICE --id ID'),
    expect.stringContaining('acme NOTICE --max-length 40'),
  ])
  expect(fixes('hi', unregistered)).toEqual([
    expect.stringContaining('acme NOTICE --lang hi --id ID'),
    expect.stringContaining('acme NOTICE --lang hi --max-length 40'),
  ])
})

describe('built-in texts', () => {
  const builtIn = (key: string, lang: string) => dltText(acme, key, lang)
  const languages = otpLanguages.map(({ tag }) => tag)

  test.each(templateKeys)('%s has no error in any language, a transaction in those of India', (key) => {
    const ofIndia = ['en', 'hi', 'bn', 'ta', 'te', 'mr', 'gu', 'ur']
    const translated = key === 'TRANSACTION_OTP' ? ofIndia : languages
    for (const lang of isOtpKey(key) ? translated : ['en']) {
      const registrations = { [key]: registration, [`${key}:${lang}`]: registration }
      const text = builtIn(key, lang)
      expect(text?.lang).toBe(lang)
      if (!text) continue
      const subject = { ...text, brand: { ...acme, registrations } }
      const findings = lintText(subject, settings)
      expect(findings.filter(({ level }) => level === 'error')).toEqual([])
      const isOfMany = key === 'TRANSACTION_OTP'
      const expected = [
        'characters',
        ...(key === 'LOGIN_OTP' ? [] : ['variable-length']),
        ...(isOfMany ? ['variable-count'] : []),
      ]
      expect(findings.map(({ rule }) => rule).filter((rule) => !expected.includes(rule))).toEqual([])
      expect(compareRegistered(subject, exportText(subject, settings), settings)).toEqual([])
    }
  })

  test.each(['LOGIN_OTP', 'LOGIN_OTP_WITH_ID'] as const)('%s is exported as it is sent', (key) => {
    for (const lang of languages) {
      const text = builtIn(key, lang)
      if (!text) throw new Error(`There is no text in ${lang}.`)
      const values: Record<string, string> = { otp: '493027', lifetime: '5', loginId: 'jane' }
      const placeholders = text.text.match(/(?<=\{\{)(?!businessName)\w+/g)?.values()
      const filled = exportText(text, settings).replace(
        /\{#\w+#\}/g,
        () => values[placeholders?.next().value ?? ''] ?? '',
      )
      const loginId = key === 'LOGIN_OTP' ? undefined : 'jane'
      const about = { code: '493027', businessName: 'Acme', lifetimeSeconds: 300, loginId }
      const { text: sent } = renderOtp(
        about,
        registeredSmsText({ ...acme, lang }, otpTemplateOf(about), undefined),
      )
      expect(filled).toBe(sent)
    }
  })

  test('are exported with the brand in the fixed text', () => {
    const exported = (key: string, lang: string) => {
      const text = builtIn(key, lang)
      return text && exportText(text, settings)
    }
    expect(exported('LOGIN_OTP', 'en')).toBe(
      '{#numeric#} is your Acme verification code. It expires in {#numeric#} minutes. Do not share it with anyone.',
    )
    expect(exported('LOGIN_OTP', 'hi')).toBe(
      'आपका Acme कोड {#numeric#} है। {#numeric#} मिनट तक मान्य। किसी को न बताएं।',
    )
    expect(exported('ORDER_PLACED', 'en')).toBe(
      'Hi {#alphanumeric#}, we received your Acme order {#alphanumeric#} on {#alphanumeric#}. Thank you!',
    )
  })

  test('are those that a brand uses without a text of its own', () => {
    const keys = (brand: DltBrand) => dltTexts(brand).map(({ templateKey, lang }) => `${templateKey} ${lang}`)
    const { brand } = notice(plain, { loginIdEnabled: false, notifyTemplates: ['ORDER_PLACED', 'NOTICE'] })
    expect(keys(brand)).toEqual(['NOTICE en', 'LOGIN_OTP en', 'TRANSACTION_OTP en', 'ORDER_PLACED en'])
    expect(keys({ ...brand, dltEnabled: false })).toEqual(['NOTICE en'])
    expect(keys({ ...brand, lang: 'hi' })).toEqual([
      'NOTICE en',
      'LOGIN_OTP hi',
      'TRANSACTION_OTP hi',
      'ORDER_PLACED en',
    ])
    const own = { ...brand.texts.all[0], templateKey: 'LOGIN_OTP', lang: 'en' } as const
    const texts = new BrandTexts(
      [{ ...notice(plain), ...own, channel: 'SMS', subject: null, html: null, version: 1, updatedAt: 0 }],
      new Map(),
    )
    expect(keys({ ...brand, texts, registrations: { 'LOGIN_OTP:ta': registration } })).toEqual([
      'LOGIN_OTP en',
      'LOGIN_OTP ta',
      'ORDER_PLACED en',
    ])
  })
})

const tags: Readonly<Record<string, string>> = {
  '{{name}}': 'alphanumeric',
  '{{amount:raw}}': 'numeric',
  '{{day}}': 'alphanumeric',
  '{{link}}': 'url',
}
const texts = fc
  .array(
    fc.constantFrom(
      'Acme',
      'é',
      '।',
      ' ',
      '  ',
      '.',
      '#',
      '{#',
      '\n',
      '😀',
      '{{businessName}}',
      ...Object.keys(tags),
    ),
    { minLength: 1 },
  )
  .map((parts) => notice(parts.join('')))

describe('the text of a portal', () => {
  test('has the tags of the placeholders, in order, and is equal to the text', () => {
    fc.assert(
      fc.property(texts, (text) => {
        const registered = exportText(text, settings)
        const placeholders = text.text.match(/\{\{(?!businessName)[\w:]+\}\}/g) ?? []
        expect([...registered.matchAll(/\{#(\w+)#\}/g)].map(([, tag]) => tag)).toEqual(
          placeholders.map((placeholder) => tags[placeholder]),
        )
        expect(compareRegistered(text, registered, settings)).toEqual([])
      }),
    )
  })

  test('differs after a change of any byte', () => {
    fc.assert(
      fc.property(texts, fc.nat(), fc.integer({ min: 1, max: 255 }), (text, place, change) => {
        const bytes = new TextEncoder().encode(exportText(text, settings))
        const at = place % bytes.length
        bytes[at] = (bytes[at] ?? 0) ^ change
        const changed = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)
        expect(compareRegistered(text, changed, settings).map(({ rule }) => rule)).toContain(
          'registered-text',
        )
      }),
    )
  })

  const sent = 'Acme: your order {{name}} is ready. Thanks.'
  test.each([
    [
      'Acme: your order {#alphanumeric#} is ready.\u00a0Thanks.',
      'Character 44 differs',
      'has U+00A0 (no-break space) in "',
      'ready.‹no-break space›Thanks.',
    ],
    [
      'Acme: your order {#alphanumeric#} is ready.  Thanks.',
      'Character 45',
      'a second space, U+0020 (space) in',
      'sends T (U+0054)',
    ],
    [
      'Acme: your order {#alphanumeric#} is ready. Thanks',
      'Character 51',
      'its end after',
      'sends . (U+002E)',
    ],
    [
      'Acme: your order {#alphanumeric#} is ready. Thanks.\r\n',
      'Character 52',
      'U+000D (carriage return)',
      'sends its end',
    ],
    [
      'Acme: your order {#numeric#} is ready. Thanks.',
      'Character 18',
      'has {#numeric#} in',
      '{#alphanumeric#} for {{name}}',
    ],
    ['Acme: your order {#foo#} is ready. Thanks.', 'Character 18', 'has {#foo#} in', '{{name}}'],
    ['\u0410cme: your order {#alphanumeric#} is ready. Thanks.', 'Character 1 ', 'А (U+0410)', 'A (U+0041)'],
  ])('%s', (registered, position, theirs, ours) => {
    const [finding] = compareRegistered(notice(sent), registered, settings)
    expect(finding).toMatchObject({ rule: 'registered-text', level: 'error' })
    for (const part of [position, theirs, ours]) expect(finding?.message).toContain(part)
  })

  test('may have the old tag, which is reported', () => {
    const registered = 'Acme: your order {#var#} is ready. Thanks.'
    expect(compareRegistered(notice(sent), registered, settings)).toEqual([
      expect.objectContaining({ rule: 'variable-tag', level: 'warning' }),
    ])
    expect(compareRegistered(notice('{{link}} of Acme'), '{#urlott#} of Acme', settings)).toEqual([])
  })
})
