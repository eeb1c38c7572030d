import { convert } from 'html-to-text'

/** The conversion blocks the event loop. */
const maxSource = 32_000

const cut = '\n\n[…]'

/** The plain text part of an HTML mail, in at most `maxBytes` of UTF-8; of a very long mail the beginning. */
export function textOf(html: string, maxBytes: number): string {
  const text = convert(html.slice(0, maxSource), {
    wordwrap: 78,
    // Against hostile nesting.
    limits: { maxDepth: 50 },
    selectors: [
      { selector: 'img', format: 'skip' },
      // A mark on each line, and lines across the page, would multiply the size.
      { selector: 'blockquote', format: 'block' },
      { selector: 'hr', options: { length: 3 } },
      { selector: 'a', options: { hideLinkHrefIfSameAsText: true } },
    ],
  })
  const whole = html.length > maxSource ? text + cut : text
  if (Buffer.byteLength(whole) <= maxBytes) return whole
  const room = Math.max(0, maxBytes - Buffer.byteLength(cut))
  // `stream` leaves a character out that is cut in two.
  return new TextDecoder().decode(Buffer.from(text).subarray(0, room), { stream: true }) + cut
}
