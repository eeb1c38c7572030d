import { type TextRule, textProblem } from '../ground/body.ts'
import { endsInUrl } from '../ground/words.ts'
import type { BrandText, DeclaredVariable } from './brand-texts.ts'
import { english, isOtpKey, otpKeysInWords } from './otp-texts.ts'
import { splitText, templateKeys, templateOf } from './templates.ts'
import { transactionRules } from './transaction.ts'

export type TextFields = Pick<BrandText, 'templateKey' | 'channel' | 'subject' | 'text' | 'html'>

/** Of a brand. */
export const textLimits = { texts: 100, ownTemplates: 50, variables: 20 } as const

/** In characters. A mail's HTML may have invisible ones. */
const rules = {
  subject: { max: 255 },
  text: { max: 1000, lines: 'many' },
  html: { max: 20_000, lines: 'html' },
} as const satisfies Record<string, TextRule>

const placeholder = /(?<!\{)\{\{([A-Za-z]\w*)(:raw)?\}\}(?!\})/g

/** `isRaw`: `{{name:raw}}` */
function placeholdersOf(text: string) {
  return Array.from(text.matchAll(placeholder), ([, name = '', raw]) => ({ name, isRaw: raw !== undefined }))
}

/**
 * The text before `{{otp}}` in its text node. Undefined: `{{otp}}` is not in text, as in an attribute, a style, a script or a
 * comment, or mail clients may parse the HTML differently.
 */
export type TextBeforeCode = (html: string) => string | undefined

/** Programs that display or check a mail load URLs, so a URL with the code would send it to a server (design D47). */
function isCodeInText(html: string, textBeforeCode: TextBeforeCode): boolean {
  if (tagFromPlaceholder.test(html)) return false
  const before = textBeforeCode(html)
  return before !== undefined && !endsInUrl(decodedReferences(before))
}

/** The value can make an element of it, such as `<{{businessName}} src="…">` with the name `img`. */
const tagFromPlaceholder = /<[^\s>]*\{\{/

/** Mail clients make links of displayed text. */
function decodedReferences(html: string): string {
  return html.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|(\w{3,6}));?/gi, (reference, decimal, hex, name) => {
    if (name !== undefined) return urlCharacters.get(name.toLowerCase()) ?? reference
    const codePoint = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal)
    return codePoint <= 0x10ffff ? String.fromCodePoint(codePoint) : reference
  })
}

const urlCharacters: ReadonlyMap<string, string> = new Map([
  ['colon', ':'],
  ['sol', '/'],
  ['period', '.'],
  ['quest', '?'],
  ['num', '#'],
  ['nbsp', '\u00a0'],
])

/** Why a text of a brand cannot be stored (design D47), as sentences. */
export function textProblems(
  fields: TextFields,
  declared: readonly DeclaredVariable[],
  textBeforeCode: TextBeforeCode,
): readonly string[] {
  const problem = keyProblem(fields)
  if (problem !== undefined) return [problem]
  const { templateKey, channel, subject, text, html } = fields
  const template = templateOf(templateKey)
  const hasCode = template?.audience === 'otp'
  const own = { allowed: placeholdersFor(templateKey, declared), hasCode, mayDeclare: !template }
  if (channel === 'SMS') {
    const others = subject === null && html === null ? [] : ['Only an e-mail has a subject and HTML.']
    return [...others, ...partProblems('text', text, own)]
  }
  const withoutCode = new Map([...own.allowed].filter(([name]) => name !== 'otp'))
  if (templateKey !== 'TRANSACTION_OTP') own.allowed.set('link', false)
  return [
    ...partProblems('subject', subject, { ...own, allowed: withoutCode, hasCode: false }),
    ...partProblems('text', text, own),
    ...(html === null ? [] : htmlProblems(html, own, textBeforeCode)),
  ]
}

const linkTag =
  /<a(\s+(class|style|target|rel)="[^"<>]*")*\s+href="\{\{link\}\}"(\s+(class|style|target|rel)="[^"<>]*")*\s*>/gi

function htmlProblems(html: string, own: PartRule, textBeforeCode: TextBeforeCode): string[] {
  const problems = partProblems('html', html, own)
  if (html.replaceAll(linkTag, '').includes('{{link}}'))
    problems.push('The HTML may have {{link}} only in <a href="{{link}}">, since the link contains the code.')
  if (problems.length > 0 || !own.hasCode || isCodeInText(html, textBeforeCode)) return problems
  return [
    'The HTML must have {{otp}} in displayed text, not in an attribute, a URL, a style, a script, a title or a comment. Close each tag and quote, and do not use elements such as <svg>, <noscript>, <template> and <textarea>.',
  ]
}

/** The key of a template that is not built in. */
const newTemplateKey = /^[A-Z][A-Z0-9_]{2,39}$/

function keyProblem({ templateKey, channel }: TextFields): string | undefined {
  if (channel === 'EMAIL' && !isOtpKey(templateKey)) return `Only ${otpKeysInWords} have e-mail texts.`
  if (templateOf(templateKey) || newTemplateKey.test(templateKey)) return undefined
  return `The template must be ${templateKeys.join(', ')}, or a new key: a letter and 2 to 39 more characters of A-Z, 0-9 and _.`
}

/** The names of the placeholders that a text may have, with whether `:raw` is allowed. */
export function placeholdersFor(
  templateKey: string,
  declared: readonly DeclaredVariable[],
): Map<string, boolean> {
  if (isOtpKey(templateKey)) {
    // Those of the built-in text.
    const names = splitText(english[templateKey]).filter((_, place) => place % 2 === 1)
    return new Map(names.map((name) => [name === 'lifetime' ? 'minutes' : name, false]))
  }
  const variables = (templateOf(templateKey)?.variables ?? declared).map(
    ({ name, type }) => [name, type !== 'text' && type !== 'url'] as const,
  )
  return new Map([['businessName', false], ...variables])
}

interface PartRule {
  readonly allowed: ReadonlyMap<string, boolean>
  readonly hasCode: boolean
  readonly mayDeclare: boolean
}

const partNames = { subject: 'The subject', text: 'The text', html: 'The HTML' } as const

function partProblems(
  part: keyof typeof partNames,
  value: string | null,
  { allowed, hasCode, mayDeclare }: PartRule,
): string[] {
  const name = partNames[part]
  const problem = textProblem(name, value, rules[part])
  if (problem !== undefined || value === null) return problem === undefined ? [] : [problem]
  const problems: string[] = []
  if (/\{\{|\}\}/.test(value.replaceAll(placeholder, ' '))) {
    problems.push(
      `${name} has {{ or }} outside a placeholder. A placeholder is {{name}} or {{name:raw}}, without spaces.`,
    )
  }
  const found = placeholdersOf(value)
  const known = [...allowed.keys()].map((each) => `{{${each}}}`).join(', ')
  const words = mayDeclare ? `${known} and other variables that you declare` : known
  for (const unknown of new Set(found.map((each) => each.name).filter((each) => !allowed.has(each)))) {
    problems.push(`${name} must not have the placeholder {{${unknown}}}. It may have ${words}.`)
  }
  for (const raw of found.filter((each) => each.isRaw && allowed.get(each.name) === false)) {
    problems.push(
      `${name} must not have {{${raw.name}:raw}}: only dates, times and numbers have a raw form. Write {{${raw.name}}}.`,
    )
  }
  const codes = found.filter((each) => each.name === 'otp').length
  if (hasCode && codes !== 1) {
    problems.push(`${name} must have the code, {{otp}}, ${codes === 0 ? 'once' : 'only once'}.`)
  }
  const needed = hasCode ? Object.keys(transactionRules).filter((each) => allowed.has(each)) : []
  for (const missing of needed.filter((each) => found.every((other) => other.name !== each))) {
    problems.push(`${name} must name the transaction: it must have {{${missing}}}.`)
  }
  return problems
}

/** Of which `/notify` knows another meaning. */
const reservedNames = ['otp', 'businessname']

const maxOf = { text: 1000, number: 1e15, date: 1000, datetime: 1000, url: 1000 } as const

/** Why the variables of a template cannot be declared (design D47), as sentences. */
export function declarationProblems(
  templateKey: string,
  variables: readonly DeclaredVariable[],
): readonly string[] {
  if (templateOf(templateKey)) {
    return [`${templateKey} is built in, with its variables. Only a new template declares variables.`]
  }
  const problems: string[] = []
  if (variables.length > textLimits.variables) {
    problems.push(`A template has at most ${textLimits.variables} variables.`)
  }
  for (const [index, { name, type, max }] of variables.entries()) {
    if (!/^[A-Za-z][A-Za-z0-9_]{0,39}$/.test(name)) {
      problems.push(
        `The variable ${JSON.stringify(name)} must have a name of 1 to 40 characters: a letter, then letters, digits and _.`,
      )
    } else if (reservedNames.includes(name.toLowerCase())) {
      problems.push(`A variable must not have the name ${name}: otpost uses it. Choose another name.`)
    } else if (variables.findIndex((each) => each.name === name) !== index) {
      problems.push(`The variable ${name} is declared twice.`)
    }
    if (!Number.isInteger(max) || max < 1 || max > maxOf[type]) {
      problems.push(`The maximum of the variable ${name} must be a whole number from 1 to ${maxOf[type]}.`)
    }
  }
  return problems
}
