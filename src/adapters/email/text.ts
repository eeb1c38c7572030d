import { convert } from 'html-to-text'

/** The conversion blocks the event loop. */
const maxSource = 32_000

const cut = '\n\n[…]'

/** In at most `maxBytes` of UTF-8; a very long mail is truncated. */
export function textOf(html: string, maxBytes: number): string {
  const text = convert(html.slice(0, maxSource), {
    wordwrap: 78,
    limits: { maxDepth: 50 },
    selectors: [
      { selector: 'img', format: 'skip' },
      // Quote marks and long lines would multiply the size.
      { selector: 'blockquote', format: 'block' },
      { selector: 'hr', options: { length: 3 } },
      { selector: 'a', options: { hideLinkHrefIfSameAsText: true } },
    ],
  })
  const whole = html.length > maxSource ? text + cut : text
  if (Buffer.byteLength(whole) <= maxBytes) return whole
  const room = Math.max(0, maxBytes - Buffer.byteLength(cut))
  // `stream` drops an incomplete last character.
  return new TextDecoder().decode(Buffer.from(text).subarray(0, room), { stream: true }) + cut
}
