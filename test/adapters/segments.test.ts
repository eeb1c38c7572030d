import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { SegmentedMessage } from 'sms-segments-calculator'
import { segmentsOf } from '../../src/adapters/sms/segments.ts'

const rows: readonly (readonly [string, string, 'GSM-7' | 'UCS-2', number])[] = [
  ['160 septets', 'a'.repeat(160), 'GSM-7', 1],
  ['161 septets', 'a'.repeat(161), 'GSM-7', 2],
  ['two full parts', 'a'.repeat(306), 'GSM-7', 2],
  ['one more', 'a'.repeat(307), 'GSM-7', 3],
  ['a euro, which takes two septets', `${'a'.repeat(158)}€`, 'GSM-7', 1],
  ['a euro too many', `${'a'.repeat(159)}€`, 'GSM-7', 2],
  ['70 of UCS-2', `ç${'a'.repeat(69)}`, 'UCS-2', 1],
  ['71 of UCS-2', `ç${'a'.repeat(70)}`, 'UCS-2', 2],
  ['a backtick, which is not of GSM', '`', 'UCS-2', 1],
  ['an emoji', '123456 👍', 'UCS-2', 1],
  ['Hindi', 'आपका कोड 123456 है', 'UCS-2', 1],
  ['lines', 'a\n\n@shop.example #123456', 'GSM-7', 1],
]

describe('segments of a text (GSM 03.38)', () => {
  test.each(rows)('%s', (_, text, encoding, count) => {
    expect(segmentsOf(text)).toEqual({ count, encoding })
  })

  test('equal the count of the library, with and without the cache', () => {
    // Every character of the basic alphabet, of its extension, and some of neither.
    const alphabet = [
      ...'@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !"#¤%&\'()*+,-./09:;<=>?¡AZÄÖÑÜ§¿azäöñüà',
      ...'^{}\\[~]|€',
      ...'ç`Яक가😀',
    ]
    const text = fc.oneof(
      ...[80, 84, alphabet.length].map((size) =>
        fc
          .array(fc.constantFrom(...alphabet.slice(0, size)), { maxLength: 180 })
          .map((chars) => chars.join('')),
      ),
    )
    fc.assert(
      fc.property(text, (given) => {
        const { segmentsCount, encodingName } = new SegmentedMessage(given)
        expect(segmentsOf(given)).toEqual({ count: Math.max(1, segmentsCount), encoding: encodingName })
      }),
      { numRuns: 200 },
    )
  })

  test('of texts that differ only in digits are the same', () => {
    expect(segmentsOf('ç 123456')).toBe(segmentsOf('ç 654321'))
    expect(segmentsOf('ç 123456')).not.toBe(segmentsOf('ç: 123456'))
  })
})
