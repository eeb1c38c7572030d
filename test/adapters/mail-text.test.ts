import { describe, expect, test } from 'bun:test'
import { textOf as textWithin } from '../../src/adapters/email/text.ts'

const maxBytes = 256 * 1024
const textOf = (html: string) => textWithin(html, maxBytes)

describe('the text part of an HTML mail', () => {
  test('has the text of the HTML without markup', () => {
    const html = '<h1>Hello</h1><p>Your <b>order</b> &amp; more: <a href="https://example.com/1">look</a></p>'
    expect(textOf(html)).toBe('HELLO\n\nYour order & more: look [https://example.com/1]')
  })

  test('has no image, script or style', () => {
    const html =
      '<style>p{}</style><script>alert(1)</script><img src="https://example.com/a.png" alt="a"><p>Hi</p>'
    expect(textOf(html)).toBe('Hi')
  })

  // Each has the maximum size of /notify, and could break or stall a parser.
  const hostile: readonly (readonly [string, string])[] = [
    ['blocks in blocks', '<div>'.repeat(40_000)],
    ['tables in tables', '<table><tr><td>'.repeat(13_000)],
    ['lists in lists', '<ul><li>'.repeat(24_000)],
    ['marks in marks', '<b>'.repeat(60_000)],
    ['links in links', '<a href=x>'.repeat(20_000)],
    ['nothing but angle brackets', '<'.repeat(200_000)],
    ['lines across the page', '<hr>'.repeat(50_000)],
    ['lines across quotations', '<blockquote>'.repeat(40) + '<hr>'.repeat(50_000)],
    ['lines in quotations', '<blockquote>'.repeat(49) + 'a<br>'.repeat(40_000)],
    ['paragraphs in lists', '<ul><li>'.repeat(49) + '<p>a</p>'.repeat(24_000)],
  ]
  test.each(hostile)('is created from %s without an error', (_, html) => {
    expect(Buffer.byteLength(textOf(html))).toBeLessThanOrEqual(maxBytes)
  })

  test('is cut at its maximum bytes, and not within a character', () => {
    expect(textWithin('<p>\u20ac\u20ac\u20ac\u20ac</p>', 12)).toBe('\u20ac\u20ac\u20ac\u20ac')
    expect(textWithin('<p>\u20ac\u20ac\u20ac\u20ac</p>', 11)).toBe('\u20ac\n\n[\u2026]')
  })

  test('is cut early in a very long mail, with a notice', () => {
    const text = textOf('<p>word</p>'.repeat(18_000))
    expect(text.startsWith('word\n\nword')).toBe(true)
    expect(text.endsWith('[…]')).toBe(true)
  })
})
