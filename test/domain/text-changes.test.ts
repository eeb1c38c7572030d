import { describe, expect, test } from 'bun:test'
import { segmentsOf } from '../../src/adapters/sms/segments.ts'
import type { AuditRecord } from '../../src/domain/ground/audit.ts'
import { costOfSegments } from '../../src/domain/money/text-cost.ts'
import { freshBrand } from '../../src/domain/operator/brands.ts'
import { textVersions } from '../../src/domain/operator/text-versions.ts'
import { type BrandText, BrandTexts } from '../../src/domain/texts/brand-texts.ts'
import { builtInParts } from '../../src/domain/texts/drafts.ts'
import { english, isOtpKey, otpLanguages } from '../../src/domain/texts/otp-texts.ts'
import { templateKeys } from '../../src/domain/texts/templates.ts'
import { languageName, textMatrix } from '../../src/domain/texts/text-matrix.ts'
import { textProblems } from '../../src/domain/texts/text-problems.ts'

const target = { templateKey: 'LOGIN_OTP', channel: 'SMS', lang: 'en' } as const

describe('earlier versions follow from the audit log', () => {
  const record = (
    id: number,
    action: string,
    version: string,
    changes: Record<string, string>,
  ): AuditRecord => ({
    id,
    at: id,
    actor: { by: 'console', name: 'ana' },
    action,
    target: 'acme',
    details: { template: 'LOGIN_OTP', channel: 'SMS', lang: 'en', version, ...changes },
  })
  const published: BrandText = {
    ...target,
    subject: null,
    html: null,
    text: 'b → c',
    version: 2,
    updatedAt: 5,
  }
  const records = [
    record(5, 'text.published', '2', { text: 'a → b → b → c' }),
    record(4, 'text.set', '1', { text: '- → a → b' }),
    record(3, 'text.removed', '1', { text: 'first → -' }),
    { ...record(2, 'text.set', '9', { text: '- → else' }), details: { template: 'ORDER_PLACED' } },
    record(1, 'text.set', '1', { text: '- → first' }),
  ]
  const found = (of: BrandText | undefined, all = records) =>
    textVersions(target, of, all).map(({ version, isStored, content }) => [version, isStored, content.text])

  test('also for texts with an arrow, and before a removal', () => {
    expect(found(published)).toEqual([
      [2, true, 'b → c'],
      [1, true, 'a → b'],
      [1, false, ''],
      [1, true, 'first'],
    ])
  })

  test('after a removal', () => {
    expect(found(undefined, records.slice(2))).toEqual([
      [1, false, ''],
      [1, true, 'first'],
    ])
  })

  test('not from entries that do not end in the published text', () => {
    expect(found({ ...published, text: 'other' })).toEqual([[2, true, 'other']])
  })
})

describe('what other segments cost', () => {
  const day = { brand: 'acme', country: 'LV', app: 'shop', provider: 'twilio' }
  // 600 segments of codes, and 400 of news: 0.05 EUR each.
  const sms = {
    spending: [
      { ...day, at: 0, currency: 'USD', micros: 9_000_000 },
      { ...day, at: 1, currency: 'EUR', micros: 50_000_000 },
    ],
    messages: new Map([
      ['LOGIN_OTP', 600],
      ['NEWS', 200],
    ]),
    segments: new Map([
      ['LOGIN_OTP', 1],
      ['NEWS', 2],
    ]),
  }
  test.each([
    ['LOGIN_OTP', 1, 2, '600 more segments, about 30 EUR more.'],
    ['NEWS', 2, 1, '200 fewer segments, about 10 EUR less.'],
    ['OTHER', 1, 2, '1 segment now, 2 with this text. No SMS of OTHER was sent in the last 30 days.'],
  ])('of %s, from %d to %d: %s', (key, now, later, expected) => {
    expect(costOfSegments(key, sms, { now, later })).toEndWith(expected)
  })
  test('without prices has segments only', () => {
    const free = { ...sms, spending: [], messages: new Map([['LOGIN_OTP', 1]]) }
    expect(costOfSegments('LOGIN_OTP', free, { now: 1, later: 2 })).toEndWith('30 days: 1 more segment.')
  })
})

const settings = { segmentsOf, otpTtlSeconds: 300, isTopLevelDomain: () => false, textBeforeCode: () => '' }

test.each(templateKeys)(
  'the built-in text of %s can be stored as it is, in every language and channel',
  (templateKey) => {
    for (const { tag: lang } of isOtpKey(templateKey) ? otpLanguages : [english]) {
      for (const channel of isOtpKey(templateKey) ? (['SMS', 'EMAIL'] as const) : (['SMS'] as const)) {
        const parts = builtInParts({ templateKey, channel, lang }, settings)
        const fields = {
          templateKey,
          channel,
          text: parts?.text ?? '',
          html: null,
          subject: parts?.subject || null,
        }
        expect(textProblems(fields, [], settings.textBeforeCode)).toEqual([])
      }
    }
  },
)

describe('the texts of a brand by template and language', () => {
  const of = (change: Partial<BrandText>): BrandText => ({
    ...target,
    subject: null,
    html: null,
    text: '{{otp}}',
    version: 1,
    updatedAt: 0,
    ...change,
  })
  const texts = new BrandTexts(
    [of({ lang: 'sw' }), of({ lang: 'pt-BR', version: 3 }), of({ lang: 'hi', text: 'no code' })],
    new Map(),
    [{ ...of({ templateKey: 'TABLE_READY', lang: 'pt-BR', text: 'x' }), variables: [] }],
  )
  const { languages, rows } = textMatrix({ ...freshBrand('acme'), texts }, settings)
  const row = (key: string, channel = 'SMS') =>
    rows
      .find(([first]) => first?.templateKey === key && first.channel === channel)
      ?.map(({ own, draft, usedLang, problems }) =>
        [own && `version ${own.version}`, draft && 'draft', usedLang, problems.length || '']
          .filter(Boolean)
          .join(' '),
      )

  test('has the language of the brand, and those of its texts and drafts', () => {
    expect(languages).toEqual(['en', 'hi', 'pt-BR', 'sw'])
  })
  test.each([
    ['LOGIN_OTP', 'SMS', ['en', 'version 1 hi 1', 'version 3 pt-BR', 'version 1 sw']],
    ['LOGIN_OTP', 'EMAIL', ['en', 'hi', 'pt', 'en']],
    ['ORDER_PLACED', 'SMS', ['en', 'en', 'en', 'en']],
    ['TABLE_READY', 'SMS', ['', '', 'draft', '']],
  ])('%s %s', (key, channel, expected) => {
    expect(row(key, channel)).toEqual(expected)
  })
  test('leaves out codes with a login ID, unless the brand has them', () => {
    expect(row('LOGIN_OTP_WITH_ID')).toBeUndefined()
    expect(textMatrix({ ...freshBrand('acme'), loginIdEnabled: true }, settings).rows).toHaveLength(9)
  })
  test.each([
    ['hi', 'Hindi'],
    ['pt-BR', 'Brazilian Portuguese'],
    ['zz', 'zz'],
    ['-', '-'],
  ])('the language %s is %s', (tag, name) => {
    expect(languageName(tag)).toBe(name)
  })
})
