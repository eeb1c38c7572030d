import { describe, expect, test } from 'bun:test'
import { otpLanguages } from '../../src/domain/texts/otp-texts.ts'
import { longestCallSeconds, spokenCode, spokenLanguageOf } from '../../src/domain/texts/spoken.ts'

const none: ReadonlySet<string> = new Set()
const tags = otpLanguages.map(({ tag }) => tag)
const said = (lang: string, brandName = 'Acme', code = '493817') =>
  spokenCode(brandName, code, spokenLanguageOf({ lang }, none))

describe('each language of the codes', () => {
  test.each(tags)('%s has a sentence and a locale of its own', (lang) => {
    const language = spokenLanguageOf({ lang }, none)
    expect<string>(language.tag).toBe(lang)
    // Chinese is Mandarin.
    expect(language.locale).toMatch(new RegExp(`^${lang === 'zh' ? 'cmn' : lang}(-[A-Z]{2})?$`))
    const same = tags.filter((tag) => spokenLanguageOf({ lang: tag }, none).sentence === language.sentence)
    expect(['ru', 'uk'].includes(lang) ? ['ru', 'uk'] : [lang]).toEqual(same)
  })

  /** Slow speech: 2 words a second; of a script without spaces, 4 characters. */
  function secondsOf(ssml: string): number {
    const breaks = [...ssml.matchAll(/<break time="(\d+)ms"\/>/g)].map(([, ms]) => Number(ms))
    const text = ssml.replace(/<[^>]*>/g, ' ')
    const unspaced =
      text.match(/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/gu) ?? []
    const words =
      text.match(/[^\s\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]+/gu) ?? []
    const syllables = words.reduce((sum, word) => sum + Math.max(1, word.length / 6), 0)
    return unspaced.length / 4 + syllables / 2 + breaks.reduce((sum, ms) => sum + ms, 0) / 1000
  }

  test.each(tags)('%s is spoken twice within the longest call', (lang) => {
    // The longest name of a brand.
    const longest = secondsOf(said(lang, 'Extraordinarily Long Brands Incorporated', '777777'))
    expect(1 + 2 * longest).toBeLessThan(longestCallSeconds)
    expect(1 + 2 * secondsOf(said(lang))).toBeLessThan(30)
  })
})

test('the digits are numbers of their own, with breaks between them', () => {
  expect(said('en')).toBe(
    'Acme.<break time="500ms"/> Your code is:<break time="500ms"/> 4,<break time="700ms"/> 9,<break time="700ms"/> 3,<break time="700ms"/> 8,<break time="700ms"/> 1,<break time="700ms"/> 7.<break time="1200ms"/>',
  )
})

test('a name cannot add markup', () => {
  expect(said('en', `A&B <Dial>"+1"</Dial> 'x'`)).toStartWith(
    'A&#38;B &#60;Dial&#62;&#34;+1&#34;&#60;/Dial&#62; &#39;x&#39;.<break',
  )
})

test('a language without a voice is that of the brand, else English', () => {
  const silent = new Set(['ur', 'mr'])
  const of = (lang?: string, brandLang?: string) =>
    spokenLanguageOf({ lang, ...(brandLang && { brandLang }) }, silent).tag
  expect([of('hi'), of('pt-BR'), of('zh-Hant-TW')]).toEqual(['hi', 'pt', 'zh'])
  expect([of('ur', 'hi'), of('ur', 'mr'), of('ur'), of(), of('sw', 'fr-CA')]).toEqual([
    'hi',
    'en',
    'en',
    'en',
    'fr',
  ])
})
