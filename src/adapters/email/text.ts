import { convert } from 'html-to-text'

/** The conversion blocks the event loop. */
const maxSource = 64_000

/** The plain text part of an HTML mail; a very long one is truncated. */
export function textOf(html: string): string {
  const text = convert(html.slice(0, maxSource), {
    wordwrap: 78,
    // Against hostile nesting.
    limits: { maxDepth: 50 },
    selectors: [
      { selector: 'img', format: 'skip' },
      { selector: 'a', options: { hideLinkHrefIfSameAsText: true } },
    ],
  })
  return html.length > maxSource ? `${text}\n\n[…]` : text
}
