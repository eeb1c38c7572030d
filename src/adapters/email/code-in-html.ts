const code = '{{otp}}'
const end = '{{end}}'

/**
 * The text before `{{otp}}` in its text node. Undefined: `{{otp}}` is not in text for every mail client, but in an attribute, a
 * comment, a style or a script, or the HTML has an element that programs parse differently.
 */
export function textBeforeCode(html: string): string | undefined {
  const before = textBefore(html, code)
  // Outlook on Windows shows or hides what is between these comments, so each part must begin and end in text.
  const parts = html.split(conditionalComment)
  const areText = parts.every(
    (part) =>
      !unknownCondition.test(part) &&
      textBefore(part + end, end) !== undefined &&
      (!part.includes(code) || textBefore(part, code) !== undefined),
  )
  return areText ? before : undefined
}

const conditionalComment =
  /<!--\s*\[if\b[^\]<>]*\]>(?:\s*<!-->|\s*<!--\s*-->|-->)?|<!\[if\b[^\]<>]*\]>|(?:<!--\s*)?<!\[endif\]\s*(?:-->|>)/i
const unknownCondition = /\[\s*(?:if\b|endif)/i

/** Elements whose content is text, markup or nothing, depending on the program. */
const ambiguous =
  'noscript, noembed, noframes, iframe, xmp, plaintext, listing, template, textarea, select, svg, math'

/** @param mark is in the HTML once. Undefined: it is not in text */
function textBefore(html: string, mark: string): string | undefined {
  let node = ''
  let before: string | undefined
  let unseen = ''
  let hasAmbiguous = false
  const rewriter = new HTMLRewriter()
    .on(ambiguous, {
      element() {
        hasAmbiguous = true
      },
    })
    .on('style, script, title', {
      text({ text }) {
        unseen += text
      },
    })
    .onDocument({
      text({ text, lastInTextNode }) {
        node += text
        const index = node.indexOf(mark)
        if (index >= 0) before = node.slice(0, index)
        if (lastInTextNode) node = ''
      },
    })
  try {
    rewriter.transform(html)
  } catch {
    // It cannot be parsed with certainty.
    return undefined
  }
  const isUnseen = unseen.includes(mark) || unseen.replaceAll('<!--', '').includes('<')
  return hasAmbiguous || isUnseen ? undefined : before
}
