import { type Body, isGiven, textFault } from '../ground/body.ts'
import { Failure, invalid, invalidField } from '../ground/failures.ts'
import { preferredTags, regionalTag } from '../ground/languages.ts'
import type { Mail } from '../ground/providers.ts'
import type { Brand, BrandWithTexts } from './brand.ts'
import type { BrandText } from './brand-texts.ts'
import {
  codeBox,
  dataRow,
  dataTable,
  escapeHtml,
  layout,
  linkBox,
  type MailLook,
  paragraph,
  smallPrint,
} from './mail-layout.ts'
import { english, languageByTag, type OtpKey, type OtpLanguage, otpLanguageOf } from './otp-texts.ts'
import { filled, firstSentence, type OtpValues, otpTemplateOf, otpVariables, splitText } from './templates.ts'
import { isolated } from './transaction.ts'

export type MailContent = Pick<Mail, 'subject' | 'html' | 'text' | 'lang'>

/** @param brand undefined: of no brand */
export function mailOf(
  brand: Pick<Brand, 'slug' | 'displayName'> | undefined,
  content: MailContent,
  sending: Pick<Mail, 'requestId' | 'to' | 'recipientHash' | 'position' | 'template'>,
): Mail {
  const { slug: brandSlug = null, displayName: brandName = null } = brand ?? {}
  return { brandSlug, brandName, ...content, ...sending }
}

/** What a code's mail depends on. */
type MailBrand = MailLook & Pick<BrandWithTexts, 'lang' | 'texts' | 'linkUrl'>

/**
 * The mail of a code: the brand's text, else the built-in one (design D47).
 * @param otp `businessName` undefined: the brand's name
 * @param lang of the request, as `readLang` returns it
 */
export function otpMail(
  brand: MailBrand,
  otp: Omit<OtpValues, 'businessName'> & {
    readonly businessName: string | undefined
    /** The e-mail address. Undefined: no link, as `linkUrl` is for codes that its page can verify. */
    readonly to?: string | undefined
  },
  lang: string | undefined,
): MailContent {
  const { code, businessName = brand.displayName, to } = otp
  const { key } = otpTemplateOf(otp)
  const link = to === undefined ? null : linkOf(brand, code, to)
  const mail = otpMailOf(brand, key, lang, link !== null)
  const shown =
    otp.transaction && isolated(otp.transaction, mail.text.filter((_, at) => at % 2 === 0).join(' '))
  const numbers = regionalTag(mail.lang, lang, brand.lang)
  const values = otpVariables({ ...otp, transaction: shown, businessName }, mail.lang, numbers)
  values.link = link ?? ''
  const subject = filled(key, mail.subject, values)
  const text = filled(key, mail.text, values)
  for (const [name, value] of Object.entries(values)) values[name] = escapeHtml(value)
  return { subject, text, html: filled(key, mail.html, values), lang: mail.lang }
}

/** The code is in the fragment, which browsers do not send: a scanner that opens the link uses up no code. */
function linkOf({ linkUrl }: MailBrand, code: string, to: string): string | null {
  return linkUrl === null ? null : `${linkUrl}#${new URLSearchParams({ code, email: to })}`
}

/** The parts as `splitText` returns them. */
interface OtpMail extends Readonly<Record<'subject' | 'text' | 'html', readonly string[]>> {
  readonly lang: string
}

/** By brand, template and language of the text. A brand that changes is a new object. */
const otpMails = new WeakMap<MailBrand, Map<string, OtpMail>>()

function otpMailOf(brand: MailBrand, key: OtpKey, requested: string | undefined, isLinked: boolean): OtpMail {
  const ownIn = (lang: string) => brand.texts.get({ templateKey: key, channel: 'EMAIL', lang })
  const isKnown = (tag: string) => ownIn(tag) !== undefined || languageByTag.has(tag)
  const lang = preferredTags(requested, brand.lang).find(isKnown) ?? english.tag
  const mails = otpMails.getOrInsertComputed(brand, () => new Map<string, OtpMail>())
  return mails.getOrInsertComputed(`${key} ${lang} ${isLinked}`, () => {
    const own = ownIn(lang)
    const link = isLinked ? brand.linkUrl : null
    const mail = own ? ownMail(brand, own, link) : builtInMail(brand, key, otpLanguageOf(lang), link)
    return splitMail(mail, lang)
  })
}

/** A text without the placeholder has the link at its end. Without a link, HTML with its anchor is replaced by the text. */
function ownMail(look: MailLook, own: BrandText, link: string | null): MailContent {
  const text =
    link === null || own.text.includes('{{link}}') ? own.text : `${own.text.trimEnd()}\n\n{{link}}\n`
  const html = link === null && own.html?.includes('{{link}}') ? null : own.html
  return { subject: own.subject ?? '', text, html: html ?? ownHtml(look, { ...own, text }, link) }
}

function splitMail({ subject, text, html }: MailContent, lang: string): OtpMail {
  return { lang, subject: splitText(subject), text: splitText(text), html: splitText(html) }
}

/** A name such as "Acme Inc." keeps its own direction in a right-to-left mail. */
const name = '<bdi>{{businessName}}</bdi>'

function withNames(text: string): string {
  return escapeHtml(text).replaceAll(/\{\{(?:businessName|loginId|payee)\}\}/g, '<bdi>$&</bdi>')
}

/** With a loginId or a transaction, the first sentence of the SMS, around the code. */
export function introOf(key: OtpKey, language: OtpLanguage): readonly string[] {
  if (key === 'LOGIN_OTP') return [language.intro, '{{otp}}']
  const sentence = firstSentence(language[key])
  // "123456 is your code.": without the code and the verb, it is the line before the code.
  const [, first, rest] = /^\{\{otp\}\} \S+ (.)(.*)\.$/u.exec(sentence) ?? []
  if (first !== undefined) return [`${first.toLocaleUpperCase(language.tag)}${rest}:`, '{{otp}}']
  const parts = sentence.split(/(\{\{otp\}\})/)
  return parts.map((part) => part.trim()).filter((part) => /\p{L}/u.test(part))
}

function builtInMail(look: MailLook, key: OtpKey, language: OtpLanguage, link: string | null): MailContent {
  const { tag, subject, expiry, unrequested } = language
  const intro = introOf(key, language)
  const html = layout(look, tag, {
    title: escapeHtml(subject),
    preheader: escapeHtml(expiry),
    heading: { html: name, withLogo: false },
    content: [
      ...intro.map((part) => (part === '{{otp}}' ? codeBox(look.color, part) : paragraph(withNames(part)))),
      ...(link === null ? [] : [linkBox(link, '{{link}}')]),
      paragraph(escapeHtml(expiry)),
      smallPrint(withNames(unrequested)),
    ].join('\n'),
  })
  const lines = intro.map((part) => (part === '{{otp}}' ? `    ${part}` : part))
  if (link !== null) lines.push('{{link}}')
  return { subject, html, text: `${[...lines, expiry, unrequested].join('\n\n')}\n` }
}

/** The code alone in its paragraph becomes the box. */
function ownHtml(look: MailLook, { subject, text, lang }: BrandText, link: string | null): string {
  const content = paragraphsOf(text.trim()).map((each) =>
    each.trim() === '{{otp}}'
      ? codeBox(look.color, '{{otp}}')
      : link !== null && each.trim() === '{{link}}'
        ? linkBox(link, '{{link}}')
        : paragraph(withLineBreaks(withNames(each)).replace('{{otp}}', '<b dir="ltr">{{otp}}</b>')),
  )
  return layout(look, lang, {
    title: escapeHtml(subject ?? ''),
    preheader: '',
    heading: { html: name, withLogo: false },
    content: content.join('\n'),
  })
}

function paragraphsOf(text: string): string[] {
  return text.split(/\r?\n(?:[ \t]*\r?\n)+/)
}

function withLineBreaks(html: string): string {
  return html.replace(/\r?\n/g, '<br>')
}

/**
 * Spec 4.4 rule 9, design D11. Checks the size while rendering: a small request can become a huge mail.
 * @param lang of the caller's words
 */
export function renderMail(
  subject: string,
  template: string,
  data: Body,
  {
    look,
    lang = english.tag,
  }: { readonly look?: MailLook | undefined; readonly lang?: string | undefined } = {},
): Omit<MailContent, 'subject'> {
  const used = new Map<string, string>()
  const addWords = sizeLimit()
  addWords(template)
  const filledIn = template.replace(/\{\{([^{}\r\n]{1,80})\}\}/g, (_, placeholder: string) => {
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
  const paragraphs = paragraphsOf(filledIn)
    .map((part) => add(paragraph(withLineBreaks(escapeHtml(part)))))
    .join('\n')
  const row = dataRow(lang)
  const rows: string[] = []
  const lines: string[] = []
  for (const [name, value] of Object.entries(data)) {
    if (used.has(name) || !isGiven(value)) continue
    const words = inWords(value)
    rows.push(add(row(name, words)))
    lines.push(`${name}: ${words}`)
  }
  const title = escapeHtml(subject)
  const html = layout(look, lang, {
    title,
    preheader: '',
    heading: { html: title, withLogo: true },
    content: rows.length === 0 ? paragraphs : `${paragraphs}\n${dataTable(rows)}`,
  })
  const text = `${[subject, filledIn, lines.join('\n')].filter((part) => part !== '').join('\n\n')}\n`
  const fault = textFault(text, { max: Number.POSITIVE_INFINITY, lines: 'many' })
  if (fault !== undefined) throw invalidField('data', fault)
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

function inWords(value: unknown): string {
  if (typeof value === 'string') return value
  if (typeof value !== 'object') return String(value)
  if (isDeeper(value, maxDepth)) throw invalidField('data', `must be nested at most ${maxDepth} levels deep.`)
  return JSON.stringify(value)
}

/** Deeper JSON can be parsed but not serialized. */
const maxDepth = 100

function isDeeper(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return depth === 0 || Object.values(value).some((inner) => isDeeper(inner, depth - 1))
}
