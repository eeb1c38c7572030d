import { describe, expect, test } from 'bun:test'
import { textOf } from '../../src/adapters/email/text.ts'

describe('the text part of a mail that is given as HTML', () => {
  test('says what the HTML says, without its marks', () => {
    const html = '<h1>Hello</h1><p>Your <b>order</b> &amp; more: <a href="https://example.com/1">look</a></p>'
    expect(textOf(html)).toBe('HELLO\n\nYour order & more: look [https://example.com/1]')
  })

  test('shows no image, script or style', () => {
    const html =
      '<style>p{}</style><script>alert(1)</script><img src="https://example.com/a.png" alt="a"><p>Hi</p>'
    expect(textOf(html)).toBe('Hi')
  })

  // Each is as long as /notify takes, and made to break or stall whoever walks it.
  const hostile: readonly (readonly [string, string])[] = [
    ['blocks in blocks', '<div>'.repeat(40_000)],
    ['tables in tables', '<table><tr><td>'.repeat(13_000)],
    ['lists in lists', '<ul><li>'.repeat(24_000)],
    ['marks in marks', '<b>'.repeat(60_000)],
    ['links in links', '<a href=x>'.repeat(20_000)],
    ['nothing but angle brackets', '<'.repeat(200_000)],
  ]
  test.each(hostile)('is made of %s without a fault', (_, html) => {
    expect(typeof textOf(html)).toBe('string')
  })

  test('ends early in a very long mail, and says so', () => {
    const text = textOf('<p>word</p>'.repeat(18_000))
    expect(text.startsWith('word\n\nword')).toBe(true)
    expect(text.endsWith('[…]')).toBe(true)
  })
})
