import { directionOf } from '../ground/languages.ts'
import type { Brand } from './brand.ts'

/** Of a brand, in its mails. */
export type MailLook = Pick<Brand, 'displayName' | 'logoUrl' | 'color'>

const fonts = 'system-ui,-apple-system,Segoe UI,Roboto,Helvetica,Arial,sans-serif'
const ink = '#10131a'
const dim = '#5b6372'
const line = '#e3e6ec'

/** A paragraph. @param html its content */
export function paragraph(html: string): string {
  return `<p style="margin:0 0 16px;font:400 16px/1.6 ${fonts};color:${ink}">${html}</p>`
}

export function smallPrint(html: string): string {
  return `<p class="dim" style="margin:24px 0 0;padding:16px 0 0;border-top:1px solid ${line};font:400 13px/1.6 ${fonts};color:${dim}">${html}</p>`
}

/** A table cell, since Outlook on Windows has no padding elsewhere. The right padding makes up for the last letter space. */
export function codeBox(color: string | null, html: string): string {
  const look =
    color === null ? `background:#f1f3f7;color:${ink}` : `background:${color};color:${textOn(color)}`
  const inDark = color === null ? ' class="code"' : ''
  return `<table role="presentation" width="100%" cellpadding="0" cellspacing="0" style="margin:0 0 16px"><tr><td${inDark} dir="ltr" align="center" style="padding:20px 4px 20px 12px;border-radius:12px;${look};font:700 36px/1.2 ui-monospace,Menlo,Consolas,monospace;letter-spacing:8px">${html}</td></tr></table>`
}

/** A link that shows where it leads, without the fragment. */
export function linkBox(url: string, html: string): string {
  return `<p style="margin:0 0 16px;font:600 16px/1.6 ${fonts};text-align:center"><a href="${html}" rel="noreferrer">${literal(url.replace('https://', ''))}</a></p>`
}

/** @returns the rows of `dataTable`, for a mail in the language */
export function dataRow(lang: string): (name: string, value: string) => string {
  const [side, padding] =
    directionOf(lang) === 'rtl' ? ['right', '8px 0 8px 12px'] : ['left', '8px 12px 8px 0']
  const cell = `padding:${padding};border-top:1px solid ${line};text-align:${side};vertical-align:top`
  return (name, value) =>
    `<tr><th scope="row" width="30%" style="${cell};color:${dim};font-weight:400">${escapeHtml(name)}</th><td style="${cell};color:${ink}">${escapeHtml(value)}</td></tr>`
}

export function dataTable(rows: readonly string[]): string {
  return `<table class="data" style="width:100%;margin:24px 0 0;border-collapse:collapse;word-break:break-word;font:400 15px/1.5 ${fonts}">\n${rows.join('\n')}\n</table>`
}

/** Black or white: the one with the greater contrast (WCAG 2), at least 4.58. @param color as `#rrggbb` */
export function textOn(color: string): '#000000' | '#ffffff' {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const value = Number.parseInt(color.slice(at, at + 2), 16) / 255
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
  })
  const luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
  return (luminance + 0.05) / 0.05 > 1.05 / (luminance + 0.05) ? '#000000' : '#ffffff'
}

// Gmail ignores `prefers-color-scheme`, and converts the colors itself. A space before `!important`, or Outlook ignores it.
const styleSheet = `:root{color-scheme:light dark}
@media (prefers-color-scheme:dark){
body,.page{background:#0e1116 !important}
.card{background:#1a1e25 !important}
.card h1,.card p,.data td{color:#f0f2f6 !important}
.data td,.data th,.card .dim{border-color:#3a414d !important}
.data th,.card .dim{color:#a8b0bd !important}
.code{background:#2c323d !important;color:#ffffff !important}
.logo{background:#ffffff !important;color:#10131a !important;box-sizing:border-box !important;height:52px !important;padding:6px 8px !important;border-radius:6px !important}
}`

/**
 * A mail in the look of a brand. The parts are HTML.
 * Inline styles are the base, since some clients drop the style sheet. Some also drop the attributes of `html`.
 * @param lang a canonical tag
 * @param heading.withLogo also with the brand's logo; otherwise the logo replaces it
 */
export function layout(
  look: MailLook | undefined,
  lang: string,
  parts: {
    readonly title: string
    readonly preheader: string
    readonly heading: { readonly html: string; readonly withLogo: boolean }
    readonly content: string
  },
): string {
  const { title, preheader, heading, content } = parts
  const inLanguage = `lang="${lang}" dir="${directionOf(lang)}"`
  const hidden =
    preheader === '' ? '' : `<div style="display:none;max-height:0;overflow:hidden">${preheader}</div>\n`
  const logo = look?.logoUrl ? logoImage(look.displayName, look.logoUrl) : ''
  const h1 = (html: string) =>
    `<h1 style="margin:0 0 24px;font:700 20px/1.3 ${fonts};color:${ink}">${html}</h1>`
  const top =
    logo === '' ? h1(heading.html) : heading.withLogo ? paragraph(logo) + h1(heading.html) : h1(logo)
  const accent = look?.color ? `;border-top:6px solid ${look.color}` : ''
  return `<!doctype html>
<html ${inLanguage}>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<meta name="supported-color-schemes" content="light dark">
<title>${title}</title>
<style>
${styleSheet}
</style>
</head>
<body style="margin:0;padding:0;background:#f6f7f9">
${hidden}<table role="presentation" class="page" width="100%" cellpadding="0" cellspacing="0" style="background:#f6f7f9"><tr><td align="center" style="padding:32px 16px">
<table role="presentation" class="card" width="100%" cellpadding="0" cellspacing="0" style="max-width:520px;table-layout:fixed;background:#ffffff;border-radius:16px${accent}"><tr><td style="padding:32px;overflow-wrap:break-word;word-wrap:break-word">
<div ${inLanguage}>
${top}
${content}
</div>
</td></tr></table>
</td></tr></table>
</body>
</html>
`
}

/** The alternative text looks like the heading without a logo. */
function logoImage(name: string, url: string): string {
  const style = 'height:40px;width:auto;max-width:100%;border:0;object-fit:contain;vertical-align:middle'
  return `<bdi><img class="logo" src="${literal(url)}" alt="${literal(name)}" height="40" style="${style}"></bdi>`
}

/** As it is, also where it looks like a placeholder. */
function literal(text: string): string {
  return escapeHtml(text).replaceAll('{', '&#123;')
}

export function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;')
}
