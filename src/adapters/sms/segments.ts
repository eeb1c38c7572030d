import { SegmentedMessage } from 'sms-segments-calculator'
import type { Segments } from '../../domain/messages/providers.ts'

/** The basic alphabet of GSM 03.38, each of whose characters takes one septet. */
const basicAlphabet = /^[@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !"#¤%&'()*+,\-./0-9:;<=>?¡A-ZÄÖÑÜ§¿a-zäöñüà]*$/

/** Septets in a message of its own, and in each part of a longer one, which begins with 6 bytes of header. */
const single = 160
const part = 153

/** Texts whose segments are known, digits aside. */
const known = new Map<string, Segments>()
const keptTexts = 500

/**
 * How many segments a text takes, and in which encoding. The library takes milliseconds for a text, and tens of them for a
 * long one, so what is plain arithmetic does without it, and texts that differ in their digits alone are counted once.
 */
export function segmentsOf(text: string): Segments {
  if (basicAlphabet.test(text)) {
    const { length } = text
    return { count: length <= single ? 1 : Math.ceil(length / part), encoding: 'GSM-7' }
  }
  // All digits are of the basic alphabet.
  const shape = text.replace(/[0-9]/g, '0')
  const before = known.get(shape)
  if (before) return before
  const { segmentsCount, encodingName } = new SegmentedMessage(text)
  const segments: Segments = { count: segmentsCount, encoding: encodingName === 'UCS-2' ? 'UCS-2' : 'GSM-7' }
  if (known.size >= keptTexts) known.clear()
  known.set(shape, segments)
  return segments
}
