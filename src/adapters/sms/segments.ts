import { SegmentedMessage } from 'sms-segments-calculator'
import type { Segments } from '../../domain/ground/providers.ts'
import { remembered } from '../../domain/ground/remember.ts'

/** GSM 03.38; each character is one septet. */
const basicAlphabet = /^[@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !"#¤%&'()*+,\-./0-9:;<=>?¡A-ZÄÖÑÜ§¿a-zäöñüà]*$/

/** Septets in a single message, and in each part of a longer one. */
const [single, part] = [160, 153]

/** Scripts without a letter in GSM 03.38: Cyrillic to Thai, kana, ideographs, Hangul. */
const outsideGsm = /[\u0400-\u0eff\u3040-\ud7a3]/

/** No message is so long, and the library would take seconds. */
const tooLong = 10_000

const oneOfUcs2: Segments = { count: 1, encoding: 'UCS-2' }

/** The library takes 1 to 30 ms a text. @param text at most 1,600 characters (design D4) */
const countSegments = remembered(500, (text): Segments => {
  const { segmentsCount, encodingName } = new SegmentedMessage(text)
  return { count: segmentsCount, encoding: encodingName === 'UCS-2' ? 'UCS-2' : 'GSM-7' }
})

export function segmentsOf(text: string): Segments {
  if (basicAlphabet.test(text)) {
    const { length } = text
    return { count: length <= single ? 1 : Math.ceil(length / part), encoding: 'GSM-7' }
  }
  if (text.length > tooLong) return { count: Math.ceil(text.length / 67), encoding: 'UCS-2' }
  if (text.length <= 70 && outsideGsm.test(text)) return oneOfUcs2
  // Texts with different codes share a result.
  return countSegments(text.replace(/[0-9]/g, '0'))
}
