import { convert } from 'html-to-text'

/** As much of a mail as its text part is made from: what it takes grows with it, and everybody waits meanwhile. */
const maxSource = 64_000

/** The plain text part of a mail that was given as HTML only; that of a very long one ends early, and says so. */
export function textOf(html: string): string {
  const text = convert(html.slice(0, maxSource), {
    wordwrap: 78,
    // A mail that is nested deeper means to break whoever reads it.
    limits: { maxDepth: 50 },
    selectors: [
      { selector: 'img', format: 'skip' },
      { selector: 'a', options: { hideLinkHrefIfSameAsText: true } },
    ],
  })
  return html.length > maxSource ? `${text}\n\n[…]` : text
}
