import type { SmsMessage } from '../ground/providers.ts'

// What a call says (design D54): the brand, a short sentence, and each digit of the code by itself.

/** `sentence`: after the name of the brand, before the digits. */
const spokenLanguages = [
  { tag: 'en', locale: 'en-US', sentence: 'Your code is' },
  { tag: 'hi', locale: 'hi-IN', sentence: 'आपका कोड है' },
  { tag: 'es', locale: 'es-ES', sentence: 'Tu código es' },
  { tag: 'fr', locale: 'fr-FR', sentence: 'Votre code est' },
  { tag: 'de', locale: 'de-DE', sentence: 'Ihr Code lautet' },
  { tag: 'pt', locale: 'pt-PT', sentence: 'O seu código é' },
  { tag: 'it', locale: 'it-IT', sentence: 'Il tuo codice è' },
  { tag: 'ar', locale: 'ar', sentence: 'رمزك هو' },
  { tag: 'ja', locale: 'ja-JP', sentence: '認証コードは次の通りです' },
  { tag: 'zh', locale: 'cmn-CN', sentence: '您的验证码是' },
  { tag: 'ru', locale: 'ru-RU', sentence: 'Ваш код' },
  { tag: 'tr', locale: 'tr-TR', sentence: 'Kodunuz' },
  { tag: 'id', locale: 'id-ID', sentence: 'Kode Anda adalah' },
  { tag: 'vi', locale: 'vi-VN', sentence: 'Mã của bạn là' },
  { tag: 'bn', locale: 'bn-IN', sentence: 'আপনার কোড হলো' },
  { tag: 'ta', locale: 'ta-IN', sentence: 'உங்கள் குறியீடு' },
  { tag: 'te', locale: 'te-IN', sentence: 'మీ కోడ్' },
  { tag: 'mr', locale: 'mr-IN', sentence: 'तुमचा कोड आहे' },
  { tag: 'gu', locale: 'gu-IN', sentence: 'તમારો કોડ છે' },
  { tag: 'ur', locale: 'ur-PK', sentence: 'آپ کا کوڈ ہے' },
  { tag: 'pl', locale: 'pl-PL', sentence: 'Twój kod to' },
  { tag: 'nl', locale: 'nl-NL', sentence: 'Uw code is' },
  { tag: 'uk', locale: 'uk-UA', sentence: 'Ваш код' },
  { tag: 'th', locale: 'th-TH', sentence: 'รหัสของคุณคือ' },
  { tag: 'ko', locale: 'ko-KR', sentence: '인증번호는 다음과 같습니다' },
] as const

type SpokenLanguage = (typeof spokenLanguages)[number]

/** The language of a call: that of the message, else the brand's, else English. @param silent those without a voice */
export function spokenLanguageOf(
  { lang = '', brandLang = '' }: Pick<SmsMessage, 'lang' | 'brandLang'>,
  silent: ReadonlySet<string>,
): SpokenLanguage {
  const tags = [lang, brandLang].map((tag) => tag.replace(/-.*/, ''))
  const spoken = tags.map((tag) => spokenLanguages.find((each) => each.tag === tag && !silent.has(tag)))
  return spoken.find((each) => each !== undefined) ?? spokenLanguages[0]
}

/** In milliseconds. */
const pauses = { digit: 700, sentence: 500, again: 1200 }

/** The most seconds of a call, after which the provider ends it. */
export const longestCallSeconds = 40
export const ringingSeconds = 25

/** The content of an SSML document, which is to be spoken twice. A break separates the digits, so that each is a number of its own. */
export function spokenCode(brandName: string, code: string, { sentence }: SpokenLanguage): string {
  const pause = (ms: number) => `<break time="${ms}ms"/>`
  const digits = [...code].join(`,${pause(pauses.digit)} `)
  return `${escaped(brandName)}.${pause(pauses.sentence)} ${escaped(sentence)}:${pause(pauses.sentence)} ${digits}.${pause(pauses.again)}`
}

/** As text of XML. */
function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}
