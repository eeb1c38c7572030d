import { type Body, isGiven, textProblem } from '../body.ts'
import { Failure, invalid } from '../failures.ts'
import { english, type OtpLanguage } from './otp-texts.ts'
import { render } from './templates.ts'

export interface MailContent {
  readonly subject: string
  readonly html: string
  readonly text: string
}

export function otpMail(
  otp: { code: string; businessName: string; lifetimeSeconds: number },
  language: OtpLanguage = english,
): MailContent {
  const { code, businessName } = otp
  const variables = { businessName, lifetime: language.lifetime(otp.lifetimeSeconds) }
  const fill = (text: string) => render({ key: 'LOGIN_OTP', text }, variables).text
  // A name such as "Acme Inc." keeps its own direction in a right-to-left mail.
  const name = `<bdi>${escapeHtml(businessName)}</bdi>`
  const fillHtml = (text: string) =>
    render({ key: 'LOGIN_OTP', text: escapeHtml(text) }, { ...variables, businessName: name }).text
  const { intro, unrequested } = language.mail
  const subject = fill(language.mail.subject)
  const expiry = fill(language.mail.expiry)
  const html = layout(
    subject,
    `<p style="${paragraph}">${fillHtml(intro)}</p>
<p dir="ltr" style="margin:24px 0;padding:18px 8px;border-radius:12px;background:#f1f3f7;text-align:center;font:700 36px/1.2 ui-monospace,Menlo,Consolas,monospace;letter-spacing:8px;color:#10131a">${code}</p>
<p style="${paragraph}">${escapeHtml(expiry)}</p>
<p style="${smallPrint}">${fillHtml(unrequested)}</p>`,
    { heading: name, preheader: expiry, language },
  )
  return { subject, html, text: `${fill(intro)}\n\n    ${code}\n\n${expiry}\n\n${fill(unrequested)}\n` }
}

/** Spec 4.4 rule 9, design D11. Checks the size while rendering: a small request can become a huge mail. */
export function renderMail(subject: string, template: string, data: Body): Omit<MailContent, 'subject'> {
  const used = new Map<string, string>()
  const addWords = sizeLimit()
  addWords(template)
  const filled = template.replace(/\{\{([^{}\r\n]{1,80})\}\}/g, (_, placeholder: string) => {
    const name = placeholder.trim()
    if (!Object.hasOwn(data, name) || !isGiven(data[name])) {
      throw new Failure(
        'missing_variable',
        `Missing required variable: ${name}. \`data\` needs a value for {{${name}}}.`,
      )
    }
    const words = used.get(name) ?? inWords(data[name])
    used.set(name, words)
    return addWords(words)
  })
  const add = sizeLimit()
  const paragraphs = filled
    .split(/\r?\n(?:[ \t]*\r?\n)+/)
    .map((part) => add(`<p style="${paragraph}">${escapeHtml(part).replace(/\r?\n/g, '<br>')}</p>`))
    .join('\n')
  const rows: string[] = []
  const lines: string[] = []
  for (const [name, value] of Object.entries(data)) {
    if (used.has(name) || !isGiven(value)) continue
    const words = inWords(value)
    rows.push(
      add(
        `<tr><th scope="row" style="${cell};color:#5b6372;font-weight:400">${escapeHtml(name)}</th><td style="${cell};color:#10131a">${escapeHtml(words)}</td></tr>`,
      ),
    )
    lines.push(`${name}: ${words}`)
  }
  const table =
    rows.length === 0
      ? ''
      : `\n<table style="width:100%;margin:24px 0 0;border-collapse:collapse;font:400 15px/1.5 ${fonts}">\n${rows.join('\n')}\n</table>`
  const html = layout(subject, paragraphs + table, { heading: escapeHtml(subject), preheader: '' })
  const text = `${[subject, filled, lines.join('\n')].filter((part) => part !== '').join('\n\n')}\n`
  const problem = textProblem('`data`', text, { max: Number.POSITIVE_INFINITY, lines: 'many' })
  if (problem !== undefined) throw invalid(problem)
  if (bytes(text) > mailRoom(html)) throw tooLarge()
  return { html, text }
}

/** Both parts in UTF-8 (design D30). */
const maxMailBytes = 256 * 1024

export function mailRoom(html: string): number {
  const room = maxMailBytes - bytes(html)
  if (room < 0) throw tooLarge()
  return room
}

/** Adds up sizes; throws at the limit. The UTF-16 length is a quick lower bound of the bytes. */
function sizeLimit(): (part: string) => string {
  let size = 0
  return (part) => {
    size += part.length
    if (size > maxMailBytes) throw tooLarge()
    return part
  }
}

function tooLarge(): Failure {
  return invalid(`The rendered e-mail must have at most ${maxMailBytes / 1024} KiB.`)
}

function bytes(text: string): number {
  return new TextEncoder().encode(text).length
}

export function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;')
}

function inWords(value: unknown): string {
  if (typeof value === 'string') return value
  if (typeof value !== 'object') return String(value)
  if (isDeeper(value, maxDepth)) throw invalid(`\`data\` must be nested at most ${maxDepth} levels deep.`)
  return JSON.stringify(value)
}

/** Deeper JSON can be parsed but not serialized. */
const maxDepth = 100

function isDeeper(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return depth === 0 || Object.values(value).some((inner) => isDeeper(inner, depth - 1))
}

const fonts = 'system-ui,-apple-system,Segoe UI,Roboto,Helvetica,Arial,sans-serif'
const paragraph = `margin:0 0 16px;font:400 16px/1.6 ${fonts};color:#10131a`
const smallPrint = `margin:24px 0 0;padding:16px 0 0;border-top:1px solid #e3e6ec;font:400 13px/1.6 ${fonts};color:#5b6372`
const cell = 'padding:8px 12px 8px 0;border-top:1px solid #e3e6ec;text-align:left;vertical-align:top'

/** Inline styles, since mail clients drop style sheets. Some also drop the attributes of `html`. */
function layout(
  title: string,
  content: string,
  words: { /** HTML. */ heading: string; preheader: string; language?: OtpLanguage },
): string {
  const { tag, direction } = words.language ?? english
  const inLanguage = `lang="${tag}" dir="${direction}"`
  const preheader =
    words.preheader === ''
      ? ''
      : `<div style="display:none;max-height:0;overflow:hidden">${escapeHtml(words.preheader)}</div>\n`
  return `<!doctype html>
<html ${inLanguage}>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light">
<title>${escapeHtml(title)}</title>
</head>
<body style="margin:0;padding:0;background:#f6f7f9">
${preheader}<table role="presentation" width="100%" cellpadding="0" cellspacing="0"><tr><td align="center" style="padding:32px 16px">
<table role="presentation" width="100%" cellpadding="0" cellspacing="0" style="max-width:520px;background:#ffffff;border-radius:16px"><tr><td ${inLanguage} style="padding:32px">
<h1 style="margin:0 0 24px;font:700 20px/1.3 ${fonts};color:#10131a">${words.heading}</h1>
${content}
</td></tr></table>
</td></tr></table>
</body>
</html>
`
}
