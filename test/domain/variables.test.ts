import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { isTopLevelDomain } from '../../src/adapters/sms/top-level-domains.ts'
import { characters } from '../../src/domain/ground/body.ts'
import {
  type BrandText,
  BrandTexts,
  type DeclaredVariable,
  type VariableType,
  variableTypes,
} from '../../src/domain/texts/brand-texts.ts'
import { filledText, notifyTemplateOf } from '../../src/domain/texts/notify-texts.ts'
import { otpLanguages } from '../../src/domain/texts/otp-texts.ts'
import { templateVariables } from '../../src/domain/texts/templates.ts'
import { formatted, readValue, ruleOf, sampleOf } from '../../src/domain/texts/variables.ts'

const read = (type: VariableType, max: number, given: unknown) =>
  readValue(ruleOf({ name: 'x', type, max }), given, isTopLevelDomain)

describe('a value of a declared variable (design D47)', () => {
  const accepted: readonly (readonly [VariableType, number, unknown, string?])[] = [
    ['text', 5, 'hello'],
    ['text', 5, '😀😀😀😀😀'],
    ['text', 5, ' a '],
    ['text', 40, 'e\u0301 क्‍ष'],
    ['number', 10, 10, '10'],
    ['number', 10, '10.0'],
    ['number', 10, -1e6, '-1000000'],
    ['number', 1e15, 999_999_999_999_999, '999999999999999'],
    ['number', 10, 0.000001, '0.000001'],
    ['number', 10, -0, '0'],
    ['number', 10, '0.00'],
    ['date', 1, '2024-02-29'],
    ['datetime', 1, '2026-11-21T14:30:15.123456789+05:30'],
    ['url', 21, 'https://example.com/a'],
    ['url', 40, 'https://example.com/a@b?c=d#e'],
  ]
  test.each(accepted)('%s of at most %d: %p is accepted', (type, max, given, value = String(given)) => {
    expect(read(type, max, given)).toBe(value)
  })

  const refused: readonly (readonly [VariableType, number, readonly unknown[]])[] = [
    ['text', 5, ['', ' ', 'hello!', 'a\nb', 'a\u0007', 'a\u202eb', '\ud800', 7, true, ['a'], {}]],
    ['text', 40, ['see evil.com', 'https://a', 'www.a']],
    [
      'number',
      10,
      [11, 10.01, '11', '', ' 1', '1 ', '+1', '1,5', '1e1', '0x1', '01', '.5', '5.', '--1', '١'],
    ],
    ['number', 10, [true, null, [1], {}, Number.NaN, Number.POSITIVE_INFINITY, 1e-7, 0.1 + 0.2]],
    ['number', 1e15, ['1234567890123456', 1e15, '0.123456789012345', 1e21]],
    ['date', 40, ['2026-02-30', '2026-1-1', '2026-11-21T14:30', ' 2026-11-21', 20261121, '٢٠٢٦-١١-٢١']],
    ['datetime', 40, ['2026-11-21', '2026-11-21T24:00', '2026-11-21 14:30', '2026-02-30T14:30', 1]],
    [
      'url',
      21,
      ['https://example.com/ab', 'http://example.com', 'HTTPS://a.b', 'https:/a', 'https://', 'a.b', 1],
    ],
    [
      'url',
      99,
      [
        'https://u@a.b',
        'https://u:p@a.b',
        'https://:p@a.b',
        'https://a.b/ c',
        'https://a\\@b.c',
        'https://a"',
      ],
    ],
  ]
  test.each(refused)('%s of at most %d: any other value is refused', (type, max, values) => {
    expect(values.filter((given) => read(type, max, given) !== undefined)).toEqual([])
  })

  test.each([...variableTypes])('of type %s has a sample, which is accepted', (type) => {
    for (const max of [9, 20, 21, 1000]) {
      const rule = ruleOf({ name: 'x', type, max })
      expect(readValue(rule, sampleOf(rule), isTopLevelDomain)).toBe(sampleOf(rule))
    }
  })
})

describe('the form of a value in a language', () => {
  const forms: readonly (readonly [VariableType, string, string, string])[] = [
    ['date', '2026-11-21', 'en', '21 November 2026'],
    ['datetime', '2026-11-21T14:30', 'en', '21 November 2026, 14:30'],
    ['datetime', '2026-11-21T00:05:59.9-08:00', 'en', '21 November 2026, 00:05'],
    ['date', '2026-11-21', 'en-US', 'November 21, 2026'],
    ['date', '2026-11-21', 'de', '21. November 2026'],
    ['datetime', '2026-11-21T14:30Z', 'de', '21. November 2026, 14:30'],
    ['date', '2026-11-21', 'hi', '21 नवंबर 2026'],
    ['date', '2026-11-21', 'fa', '21 نوامبر 2026'],
    ['date', '2026-11-21', 'th', '21 พฤศจิกายน ค.ศ. 2026'],
    ['date', '2026-11-21', 'ar-u-ca-islamic-nu-arab', '21 نوفمبر 2026'],
    // Without data of the language, the form is English in any locale of the process.
    ['date', '2026-11-21', 'tlh', '21 November 2026'],
    ['number', '1250', 'en', '1,250'],
    ['number', '19.90', 'en', '19.90'],
    ['number', '19.90', 'de', '19,90'],
    ['number', '1234567', 'hi', '12,34,567'],
    ['number', '1234567', 'fr', '1 234 567'],
    ['number', '-1234.5', 'sv', '-1 234,5'],
    ['number', '-5', 'fa', '-5'],
    ['number', '999999999999999', 'en', '999,999,999,999,999'],
    ['text', '2026-11-21', 'de', '2026-11-21'],
    ['url', 'https://example.com/1250', 'de', 'https://example.com/1250'],
  ]
  test.each(forms)('%s %p in %s: %p', (type, value, lang, form) => {
    expect(formatted(type, value, lang)).toBe(form)
  })

  const day = fc.date({ min: new Date('1000-01-01'), max: new Date('9999-12-31'), noInvalidDate: true })
  const number = fc.integer({ min: -999_999_999_999_999, max: 999_999_999_999_999 })
  const tags = [
    ...otpLanguages.map(({ tag }) => tag),
    'fa',
    'he',
    'ckb',
    'ps',
    'ne',
    'my',
    'dz',
    'sv',
    'de-CH',
  ]

  test('has European digits, and no characters that are invisible or change the direction', () => {
    fc.assert(
      fc.property(day, number, fc.constantFrom(...tags), (date, amount, lang) => {
        const iso = date.toISOString()
        const shown = [
          formatted('date', iso.slice(0, 10), lang),
          formatted('datetime', iso.slice(0, 16), lang),
          formatted('number', String(amount), lang),
        ]
        for (const text of shown)
          expect(text).not.toMatch(/[\p{Nd}--[0-9]]|[\p{Cf}--[\u200c\u200d]]|[\p{Zs}--[ ]]/v)
        expect(shown[0]).toContain(String(date.getUTCFullYear()))
        expect(shown[1]).toContain(String(date.getUTCDate()))
        expect((shown[2] ?? '').replaceAll(/[^0-9-]/g, '')).toBe(String(amount))
      }),
    )
  })
})

describe("a brand's own template", () => {
  function templateWith(text: string, variables: readonly DeclaredVariable[], lang = 'en') {
    const about = {
      templateKey: 'OWN',
      channel: 'SMS',
      subject: null,
      html: null,
      version: 1,
      updatedAt: 0,
    } as const
    const stored: BrandText = { ...about, lang, text }
    const texts = new BrandTexts([stored], new Map([['OWN', variables]]))
    const template = notifyTemplateOf({ texts }, 'OWN')
    if (!template) throw new Error('the brand has no template OWN')
    return { template, stored }
  }

  test('renders each value that it accepts within its maximum, and the rest byte for byte', () => {
    const given: Readonly<Record<VariableType, fc.Arbitrary<unknown>>> = {
      text: fc.string({ unit: 'grapheme' }),
      number: fc.oneof(fc.integer(), fc.double(), fc.integer().map(String)),
      date: fc.constantFrom('2026-11-21', '2026-02-30', '1999-01-01'),
      datetime: fc.constantFrom('2026-11-21T14:30', '2026-11-21T14:30:00.123456789+05:30'),
      url: fc.webUrl().map((url) => url.replace('http:', 'https:')),
    }
    const tried = new Set<string>()
    fc.assert(
      fc.property(
        fc.constantFrom(...variableTypes).chain((type) => fc.tuple(fc.constant(type), given[type])),
        fc.integer({ min: 1, max: 40 }),
        fc.string({ unit: 'grapheme' }).map((text) => text.replaceAll(/[{}]/g, '')),
        fc.constantFrom('', ':raw'),
        ([type, value], max, around, raw) => {
          const { template, stored } = templateWith(`${around}{{x${raw}}}${around}`, [
            { name: 'x', type, max },
          ])
          let text: string
          try {
            text = filledText(
              template,
              stored,
              templateVariables(template, { x: value }, isTopLevelDomain),
              'B',
            ).text
          } catch {
            return
          }
          tried.add(type)
          expect(text.startsWith(around) && text.endsWith(around)).toBe(true)
          const shown = text.slice(around.length, text.length - around.length)
          if (type !== 'number') expect(characters(shown)).toBeLessThanOrEqual(max)
          else expect(Number(shown.replaceAll(',', ''))).toBeLessThanOrEqual(max)
          if (raw !== '' || type === 'text' || type === 'url') expect(shown).toBe(String(value))
        },
      ),
      { numRuns: 200 },
    )
    expect(tried.size).toBe(variableTypes.length)
  })

  test('refuses a date that is too long in its language, and names the variable', () => {
    const when = { name: 'when', type: 'date', max: 16 } as const
    const fill = (text: string, lang: string) => {
      const { template, stored } = templateWith(text, [when], lang)
      return filledText(template, stored, { when: '2026-11-21' }, 'B').text
    }
    expect(fill('{{when}}', 'en')).toBe('21 November 2026')
    expect(() => fill('{{when}}', 'es')).toThrow('`variables.when` must have at most 16 characters')
    expect(fill('{{when:raw}} {{businessName}}', 'es')).toBe('2026-11-21 B')
  })
})
