import { SegmentedMessage } from 'sms-segments-calculator'
import type { Segments } from '../../domain/ground/providers.ts'

/** GSM 03.38; each character is one septet. */
const basicAlphabet = /^[@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !"#¤%&'()*+,\-./0-9:;<=>?¡A-ZÄÖÑÜ§¿a-zäöñüà]*$/

/** Septets in a single message, and in each part of a longer one. */
const [single, part] = [160, 153]

/** Scripts without a letter in GSM 03.38: Cyrillic to Thai, kana, ideographs, Hangul. */
const outsideGsm = /[\u0400-\u0eff\u3040-\ud7a3]/

const oneOfUcs2: Segments = { count: 1, encoding: 'UCS-2' }

/** By text of at most 1,600 characters (design D4), with every digit replaced by 0. */
const known = new Map<string, Segments>()
const maxKnown = 500

/** The library takes 1 to 30 ms a text. It is not used for the basic alphabet, and its results are cached. */
export function segmentsOf(text: string): Segments {
  if (basicAlphabet.test(text)) {
    const { length } = text
    return { count: length <= single ? 1 : Math.ceil(length / part), encoding: 'GSM-7' }
  }
  if (text.length <= 70 && outsideGsm.test(text)) return oneOfUcs2
  const shape = text.replace(/[0-9]/g, '0')
  const before = known.get(shape)
  if (before) return before
  const { segmentsCount, encodingName } = new SegmentedMessage(text)
  const segments: Segments = { count: segmentsCount, encoding: encodingName === 'UCS-2' ? 'UCS-2' : 'GSM-7' }
  if (known.size >= maxKnown) known.clear()
  known.set(shape, segments)
  return segments
}
