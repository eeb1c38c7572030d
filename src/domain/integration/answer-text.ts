/** Characters of the body of an answer that otpost stores. */
const mostCharacters = 500

/** What hides each secret. */
const hidden = '[hidden]'

/**
 * The body of a receiver's answer, as operators see it: short, and without secrets and personal data, which an error page can contain.
 * Null: nothing is left.
 * @param secrets of the webhook and its URL
 */
export function answerText(body: string, secrets: readonly string[]): string | null {
  const known = secrets
    .flatMap((secret) => [secret, secret.replace(/^whsec_/, ''), encodeURIComponent(secret)])
    .filter(({ length }) => length >= 4)
    .sort((one, other) => other.length - one.length)
  const visible = body.replace(/[^\P{C}\n\t]/gu, ' ')
  const scrubbed = [...new Set(known)].reduce((text, secret) => text.replaceAll(secret, hidden), visible)
  const text = secretShapes
    .reduce((rest, [shape, to]) => rest.replace(shape, to), scrubbed)
    .replace(/[^\S\n]+/g, ' ')
    .replace(/\s*\n\s*/g, '\n')
    .trim()
  const characters = [...text]
  if (characters.length <= mostCharacters) return text || null
  return `${characters.slice(0, mostCharacters - 1).join('')}…`
}

const secretShapes: readonly (readonly [RegExp, string])[] = [
  [/whsec_[\w+/=-]+|\bv1a?,[\w+/=-]+/g, hidden],
  [/\b(bearer|basic|digest|token)(\s+)["']?[\w.+/=~-]{6,}/gi, `$1$2${hidden}`],
  // Credentials and the query of a URL.
  [/\/\/[^\s/@"'<>]+@/g, `//${hidden}@`],
  [/(\bhttps?:\/\/[^\s?"'<>]*)\?[^\s"'<>]+/gi, `$1?${hidden}`],
  [
    /([\w-]*(?:secret|passw(?:or)?d|pwd|token|api[_-]?key|authorization|cookie|signature|session)[\w-]*["']?\s*[:=]\s*)(?:"[^"\n]*"?|'[^'\n]*'?|(?:(?!\[hidden\])[^\s,;&<>"'}])+)/gi,
    `$1${hidden}`,
  ],
  [/[^\s@<>"'(),;:]+@[^\s@<>"'(),;:]+\.[^\s@<>"'(),;:]+/g, hidden],
  // A code or a phone number, also in groups.
  [/\+?\d(?:[ .()-]{0,2}\d){5,}/g, hidden],
  // A key that nothing names.
  [/(?=[\w+/=-]*\d)(?=[\w+/=-]*[A-Za-z])[\w+/=-]{24,}/g, hidden],
]
