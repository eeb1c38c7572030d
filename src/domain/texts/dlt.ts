import { type Advice, advice, see } from '../ground/advice.ts'
import { characters } from '../ground/body.ts'
import { counted } from '../ground/format.ts'
import { type BrandWithTexts, registrationOf } from './brand.ts'
import { type DeclaredVariable, registeredTarget, registrationKeyOf } from './brand-texts.ts'
import { templateIn } from './notify-texts.ts'
import { otpLanguageOf } from './otp-texts.ts'
import type { PreviewSettings } from './preview.ts'
import { smsText } from './sms.ts'
import { marksOf, splitText, templateOf } from './templates.ts'
import { longestMomentIn } from './variables.ts'

// India's carriers compare each SMS with a text that the sender has registered on a DLT portal. docs/dlt-rules.md names
// the sources of these rules.

export type DltBrand = Omit<BrandWithTexts, 'status' | 'logoUrl' | 'linkUrl' | 'color'>

/** A text of the registered-template route. */
export interface DltText {
  readonly brand: DltBrand
  readonly templateKey: string
  readonly lang: string
  /** With `{{name}}` placeholders, as it is stored. */
  readonly text: string
  /** Of a new template. Undefined: those that are stored. */
  readonly variables?: readonly DeclaredVariable[] | undefined
  /** The greatest length of a value, 30 to 40. Undefined: that of the registration, else 30. */
  readonly maxLength?: number | undefined
}

export type DltSettings = Pick<PreviewSettings, 'segmentsOf' | 'isTopLevelDomain' | 'otpTtlSeconds'>

/** In the order of findings. */
export const dltRules = [
  'entity-id',
  'template-id',
  'sender-header',
  'variable-tag',
  'variable-count',
  'adjacent-variables',
  'variable-length',
  'variable-format',
  'fixed-text',
  'brand-name',
  'spaces',
  'angle-brackets',
  'text-length',
  'allow-list',
  'characters',
  'last-line',
  'registered-text',
] as const
export type DltRule = (typeof dltRules)[number]

/** `error`: carriers or portals refuse the text. `warning`: some do, or it costs more. */
export interface DltFinding {
  readonly rule: DltRule
  readonly level: 'error' | 'warning'
  readonly message: string
  readonly fix: Advice
}

interface Variable {
  /** As in the text: `{{name}}` or `{{name:raw}}`. */
  readonly placeholder: string
  readonly tag: 'numeric' | 'alphanumeric' | 'url'
  /** The length of the longest value. */
  readonly longest: number
  /** The length of the longest date or time in the language of the text. 0: another type, or the raw value. */
  readonly longestMoment: number
  /** Undefined: one of otpost. */
  readonly declared: DeclaredVariable | undefined
}

/** Fixed text, with the brand's name and the unit of the lifetime, or a variable. No two fixed texts are adjacent. */
type Part = string | Variable

/** The tags that a registered text may have for a variable. Jio and SmartPing also write `number`. */
const acceptedTags: Readonly<Record<Variable['tag'], readonly string[]>> = {
  numeric: ['numeric', 'number', 'alphanumeric'],
  alphanumeric: ['alphanumeric', 'cbn', 'email'],
  url: ['url', 'urlott'],
}
/** Of templates from before 14 January 2026. */
const oldTag = '{#var#}'

const longestText = 2000
const leastFixed = 10
const mostVariables = 3
const defaultMaxLength = 30

/** Of content templates; an operator chooses it on the portal. Banks alone use Transactional. */
export function dltCategory(templateKey: string): string {
  return templateOf(templateKey)
    ? 'Service Implicit'
    : 'Service Implicit, or Service Explicit for what the customer did not ask for'
}

/** Of the registration whose id an SMS of this text has. Without a registration, requests never choose it on that route. */
function keyOf({ brand, templateKey, lang }: DltText): string {
  const key = registrationKeyOf(templateKey, lang)
  const isDefault = dltText(brand, templateKey)?.lang === lang
  return isDefault && !Object.hasOwn(brand.registrations, key) ? templateKey : key
}

/**
 * The texts that `text lint` reads: the stored SMS texts and, for a brand with DLT, the built-in ones that it uses.
 * @param templateKey undefined: of all templates
 */
export function dltTexts(brand: DltBrand, templateKey?: string): readonly DltText[] {
  const stored = brand.texts.all
    .filter((each) => each.channel === 'SMS' && [each.templateKey, undefined].includes(templateKey))
    .map(({ templateKey: key, lang, text }): DltText => ({ brand, templateKey: key, lang, text }))
  if (templateKey === undefined) return distinct([...stored, ...registeredTexts(brand)])
  return stored.length > 0 ? stored : [dltText(brand, templateKey)].filter((text) => text !== undefined)
}

/** The texts that a brand sends on the registered route: of each template the default one, and those registered by language. */
export function registeredTexts(brand: DltBrand): readonly DltText[] {
  if (!brand.dltEnabled) return []
  const targets = Object.keys(brand.registrations).map(registeredTarget)
  const codes = ['LOGIN_OTP', ...(brand.loginIdEnabled ? ['LOGIN_OTP_WITH_ID'] : [])]
  // Most brands confirm no transactions.
  if (targets.some(({ templateKey }) => templateKey === 'TRANSACTION_OTP')) codes.push('TRANSACTION_OTP')
  const keys = [...codes, ...brand.notifyTemplates]
  return distinct(
    keys.flatMap((key) => {
      const registered = targets.filter(({ templateKey }) => templateKey === key)
      const tags = [undefined, ...registered.map(({ lang }) => lang)]
      return tags.map((tag) => dltText(brand, key, tag)).filter((text) => text !== undefined)
    }),
  )
}

function distinct(texts: readonly DltText[]): readonly DltText[] {
  return [...new Map(texts.map((text) => [`${text.templateKey} ${text.lang}`, text])).values()]
}

/**
 * The text of a template, as `lang` of a request chooses it.
 * @returns undefined: the brand has no such template
 */
export function dltText(brand: DltBrand, templateKey: string, lang?: string): DltText | undefined {
  const template = templateIn(brand, templateKey)
  if (!template) return undefined
  const chosen = smsText(brand, template, lang)
  return { brand, templateKey, lang: chosen.lang, text: chosen.text }
}

/** The text as a DLT portal takes it: the brand's name is fixed text, and each variable has its tag. */
export function exportText(text: DltText, settings: Pick<DltSettings, 'otpTtlSeconds'>): string {
  return partsOf(text, settings).map(exported).join('')
}

function exported(part: Part): string {
  return typeof part === 'string' ? part : `{#${part.tag}#}`
}

function partsOf(subject: DltText, { otpTtlSeconds }: Pick<DltSettings, 'otpTtlSeconds'>): readonly Part[] {
  const { brand, lang, text } = subject
  const parts: Part[] = ['']
  const add = (part: Part) => {
    const last = parts.at(-1)
    if (typeof part === 'string' && typeof last === 'string') parts[parts.length - 1] = last + part
    else parts.push(part)
  }
  for (const [place, piece] of splitText(text).entries()) {
    if (place % 2 === 0) {
      add(piece)
    } else if (piece === 'businessName') {
      add(brand.displayName)
    } else {
      add(variableOf(piece, subject))
      // The lifetime has a number and a unit, such as "5 minutes".
      if (piece === 'lifetime') add(otpLanguageOf(lang).lifetime(otpTtlSeconds).replace(/^\d+/, ''))
    }
  }
  return parts.filter((part) => part !== '')
}

/** @param words between the braces of the placeholder */
function variableOf(words: string, { brand, templateKey, lang, variables }: DltText): Variable {
  const name = words.replace(':raw', '')
  const declared = (variables ?? brand.texts.variables.get(templateKey))?.find((each) => each.name === name)
  const { type, max } = declared ?? { type: types[name] ?? 'text', max: longestOf(name, templateKey) }
  const momentType =
    declared?.type ?? templateOf(templateKey)?.variables.find((rule) => rule.name === name)?.type
  const isMoment = (momentType === 'date' || momentType === 'datetime') && words === name
  return {
    placeholder: `{{${words}}}`,
    tag: type === 'number' ? 'numeric' : type === 'url' ? 'url' : 'alphanumeric',
    longest: declared && type === 'number' ? String(max).length : max,
    longestMoment: isMoment ? longestMomentIn(lang, momentType) : 0,
    declared,
  }
}

const types: Readonly<Record<string, 'number'>> = { otp: 'number', minutes: 'number', lifetime: 'number' }

/** The amount has three separators of thousands. */
const longestOfOtp: Readonly<Record<string, number>> = { loginId: 64, amount: 19, currency: 3, payee: 40 }

function longestOf(name: string, templateKey: string): number {
  if (templateOf(templateKey)?.audience === 'otp') return longestOfOtp[name] ?? 6
  return templateOf(templateKey)?.variables.find((rule) => rule.name === name)?.maxLength ?? defaultMaxLength
}

/** Checks a text against what DLT portals and carriers check. Findings are in the order of `dltRules`. */
export function lintText(subject: DltText, settings: DltSettings): readonly DltFinding[] {
  const { brand, templateKey, lang, text } = subject
  const registrationKey = keyOf(subject)
  const registration = registrationOf(brand, registrationKey)
  const maxLength = subject.maxLength ?? registration.maxLength ?? defaultMaxLength
  const parts = partsOf(subject, settings)
  const variables = parts.filter((part) => typeof part !== 'string')
  const different = [...new Map(variables.map((variable) => [variable.placeholder, variable])).values()]
  /** A control character for each variable: no text and no pattern has one. */
  const fixed = parts.map((part) => (typeof part === 'string' ? part : '\0')).join('')
  const portalText = parts.map(exported).join('')
  const fixedCount = characters(fixed.replace(/[\s\0]/g, ''))
  const template = {
    slug: brand.slug,
    key: templateKey,
    ...(registrationKey === templateKey ? {} : { lang }),
  }
  return [
    ...when(brand.entityId === null, {
      rule: 'entity-id',
      level: 'warning',
      message: 'The brand has no principal entity id.',
      fix: advice`Set it with ${see('brand put', { slug: brand.slug, entityId: 'ID' })}, unless the SMS provider adds it.`,
    }),
    ...when(registration.id === null && Object.keys(registration.ids).length === 0, {
      rule: 'template-id',
      level: 'warning',
      message: 'The text has no template id. Carriers drop an SMS without one.',
      fix: advice`Register the text, then set the id with ${see('brand template', { ...template, ids: 'ID' })}.`,
    }),
    ...when(registration.senderId !== null && !/^[A-Za-z]{6}$/.test(registration.senderId), {
      rule: 'sender-header',
      level: 'error',
      message: `The header ${registration.senderId} does not have six letters.`,
      fix: advice`Set the header as the portal shows it, without operator prefix and suffix: ${see('brand template', { ...template, senderId: 'HEADER' })}.`,
    }),
    ...tagFindings(text),
    ...when(variables.length > mostVariables, {
      rule: 'variable-count',
      level: 'warning',
      message: `The text has ${variables.length} variables. Some portals accept at most ${mostVariables}.`,
      fix: [
        `Remove ${counted(variables.length - mostVariables, 'variable')}, or write the value as fixed text.`,
      ],
    }),
    ...adjacentFindings(parts),
    ...different.flatMap((variable) => lengthFindings(variable, maxLength, template)),
    ...different.flatMap(formatFindings),
    ...when(fixedCount < leastFixed, {
      rule: 'fixed-text',
      level: 'error',
      message: `The text has ${fixedCount} fixed characters beside spaces. Portals require at least ${leastFixed}.`,
      fix: ['Add words that say what the message is for.'],
    }),
    ...when(!hasWord(comparable(fixed), comparable(brand.displayName)), {
      rule: 'brand-name',
      level: 'error',
      message: `The text does not have the brand's name, ${brand.displayName}.`,
      fix: ['Add {{businessName}}. The registered text has the name in its place.'],
    }),
    ...when(/[\p{Zs}\t]{2}|^\s|\s$/u.test(portalText), {
      rule: 'spaces',
      level: 'error',
      message: 'The text has two adjacent spaces, or begins or ends with a space or line break.',
      fix: ['Leave one space between words, and none at the beginning and the end.'],
    }),
    ...when(/[<>]/.test(fixed), {
      rule: 'angle-brackets',
      level: 'error',
      message: 'The text has < or >, which portals refuse.',
      fix: ['Replace the character with words.'],
    }),
    ...when(characters(portalText) > longestText, {
      rule: 'text-length',
      level: 'error',
      message: `The text has ${characters(portalText)} characters with its tags. Portals accept at most ${longestText}.`,
      fix: ['Shorten the text.'],
    }),
    ...allowListFindings(brand, fixed, variables, settings),
    ...characterFindings(parts, settings),
    ...lastLineFindings(subject, portalText),
  ]
}

function when(isFound: boolean, finding: DltFinding): readonly DltFinding[] {
  return isFound ? [finding] : []
}

function comparable(text: string): string {
  return text.normalize('NFC').toLowerCase()
}

const latin = /[\p{Script=Latin}\p{Nd}]/u

/** Not inside a longer word. Other scripts can join a suffix to a name, so only Latin letters and digits count. */
function hasWord(text: string, word: string): boolean {
  const isJoined = (one = '', other = '') => latin.test(one) && latin.test(other)
  for (let at = text.indexOf(word); at !== -1; at = text.indexOf(word, at + 1)) {
    const end = at + word.length
    if (!isJoined(text[at - 1], word[0]) && !isJoined(word.at(-1), text[end])) return true
  }
  return false
}

function tagFindings(text: string): readonly DltFinding[] {
  return [...new Set(text.match(/\{#[^{}]*\}|##\w+##/g))].map((tag) => ({
    rule: 'variable-tag',
    level: 'error',
    message:
      tag === oldTag
        ? `otpost would send ${tag} as it is, and portals refuse it in templates created after 14 January 2026.`
        : `otpost would send ${tag} as it is.`,
    fix: advice`Write {{name}} for each variable. ${see('text export')} prints the text with the tags of the portals.`,
  }))
}

function adjacentFindings(parts: readonly Part[]): readonly DltFinding[] {
  return parts.flatMap((part, place) => {
    const between = parts[place + 1]
    const isBlank = typeof between === 'string' && between.trim() === ''
    const next = isBlank ? parts[place + 2] : between
    if (typeof part === 'string' || next === undefined || typeof next === 'string') return []
    return [
      {
        rule: 'adjacent-variables',
        level: 'error',
        message: `${part.placeholder} and ${next.placeholder} have no fixed text between them.`,
        fix: ['Write a word or a punctuation mark between them, or declare one variable for both.'],
      },
    ]
  })
}

type TemplateFields = Readonly<Record<'slug' | 'key', string>>

function declareWith(template: TemplateFields, { name, type }: DeclaredVariable, max: number): Advice {
  return advice`Declare the variable with ${see('text set', { ...template, var: `${name}:${type}:${max}` })}.`
}

function lengthFindings(
  { placeholder, longest, longestMoment, declared }: Variable,
  maxLength: number,
  template: TemplateFields,
): readonly DltFinding[] {
  if (longest <= maxLength) {
    const raw = `Write ${placeholder.replace('}}', ':raw}}')}`
    return when(longestMoment > longest, {
      rule: 'variable-length',
      level: 'warning',
      message: `Values of ${placeholder} may have ${longestMoment} characters in the language of the text. otpost rejects those of more than ${longest} with validation_error.`,
      fix:
        declared && longestMoment <= maxLength
          ? declareWith(template, declared, longestMoment)
          : [`${raw}, or send it as text.`],
    })
  }
  const register =
    maxLength < 40
      ? advice` If the carriers accept 40 characters, run ${see('brand template', { ...template, maxLength: '40' })}.`
      : []
  return [
    declared
      ? {
          rule: 'variable-length',
          level: 'error',
          message: `Values of ${placeholder} may have ${longest} characters. Carriers accept ${maxLength}.`,
          fix: [...declareWith(template, declared, maxLength), ...register],
        }
      : {
          rule: 'variable-length',
          level: 'warning',
          message: `Values of ${placeholder} may have ${longest} characters. On the registered route to India, otpost rejects those of more than ${maxLength} with validation_error.`,
          fix: [`Send at most ${maxLength} characters.`, ...register],
        },
  ]
}

/** Numbers from 1,000 on have separators of the language, which `{#numeric#}` does not allow. */
function formatFindings({ placeholder, declared, longest }: Variable): readonly DltFinding[] {
  return when(declared?.type === 'number' && longest > 3 && !placeholder.includes(':raw'), {
    rule: 'variable-format',
    level: 'error',
    message: `${placeholder} has separators from 1,000 on. Carriers accept only digits for {#numeric#}.`,
    fix: [`Write {{${declared?.name}:raw}}.`],
  })
}

function characterFindings(parts: readonly Part[], { segmentsOf }: DltSettings): readonly DltFinding[] {
  const sample = parts
    .map((part) =>
      typeof part === 'string' ? part : (part.tag === 'numeric' ? '0' : 'x').repeat(part.longest),
    )
    .join('')
  const { count, encoding } = segmentsOf(sample)
  if (encoding === 'GSM-7') return []
  const outside = [...new Set(sample)].filter((each) => segmentsOf(each).encoding !== 'GSM-7')
  const few = outside.length <= 5
  return [
    {
      rule: 'characters',
      level: 'warning',
      message: `The text has ${few ? outside.map(named).join(', ') : `${outside.length} characters`} outside GSM-7. An SMS has up to ${counted(count, 'segment')} (one: 70 characters).`,
      fix: [`Register it with the message type Unicode${few ? ', or replace these characters' : ''}.`],
    },
  ]
}

/** On the registered route, nothing is added to the text. */
function lastLineFindings({ brand, templateKey }: DltText, portalText: string): readonly DltFinding[] {
  if (templateOf(templateKey)?.audience !== 'otp') return []
  const marks = marksOf(brand, '{#numeric#}')
  return when(marks !== undefined && !portalText.endsWith(`\n${marks}`), {
    rule: 'last-line',
    level: 'warning',
    message: `SMS of this text do not end with the line from which ${brand.domain === null ? 'the Android app reads' : 'browsers and apps read'} the code. otpost adds no line to a registered text.`,
    fix: [
      `To have the line, store and register a text that ends with a line of \`${marksOf(brand, '{{otp}}')}\`.`,
    ],
  })
}

/** URLs and numbers of the fixed text that the entity has not registered; a URL variable requires a registered URL. */
function allowListFindings(
  { slug, dltAllowList }: DltBrand,
  fixed: string,
  variables: readonly Variable[],
  { isTopLevelDomain }: DltSettings,
): readonly DltFinding[] {
  const numbers = new Set(dltAllowList.filter((entry) => phoneEntry.test(entry)).map(nationalDigits))
  const entries = dltAllowList.filter((entry) => !phoneEntry.test(entry))
  const urls = [...fixed.matchAll(urlLike)].flatMap(([url, scheme, host = '']) => {
    const label = host.split('.').at(-1) ?? ''
    return scheme !== undefined || isTopLevelDomain(label.toLowerCase())
      ? [url.replace(/[.,;:!?)\]'"’”।。]+$/u, '')]
      : []
  })
  const withoutUrls = fixed.replace(urlLike, ' ')
  const phones = (withoutUrls.match(phoneLike) ?? []).filter(isCallBackNumber)
  const finding = (what: string, entry: string): DltFinding => ({
    rule: 'allow-list',
    level: 'error',
    message: `${what} is not on the brand's DLT allow-list. Carriers drop an SMS with a URL or call-back number that the entity has not registered.`,
    fix: advice`Register it on the portal, then add it: ${see('brand put', { slug, dltAllowList: [...dltAllowList, entry].join(',') })}.`,
  })
  return [
    ...urls
      .filter((url) => !entries.some((entry) => isAllowed(url, entry)))
      .map((url) => finding(url.replaceAll('\0', '…'), url.replace(/\0.*/s, ''))),
    ...phones
      .filter((phone) => !numbers.has(nationalDigits(phone)))
      .map((phone) => finding(phone, nationalDigits(phone))),
    ...(entries.length > 0 ? [] : variables.filter(({ tag }) => tag === 'url')).map(({ placeholder }) =>
      finding(`The URL of ${placeholder}`, 'URL'),
    ),
  ]
}

/** With a scheme or `www.`, or a host name of two labels or more; not after `@`, as in e-mail addresses and WebOTP. */
const urlLike =
  /(?<![\p{L}\p{M}\p{N}@.-])(https?:\/\/|www\.)?((?:[\p{L}\p{M}\p{N}\0_-]+\.)+[\p{L}\p{M}\p{N}-]+|(?<=\/\/)[^\s/?#]+)(?::\d+)?(?:[/?#]\S*)?/giu

/**
 * Without scheme; the host in lower case.
 * The entry allows the same URL, and longer ones that continue it after its host or a `/` or `?` of its path. A host is
 * compared in full: an entry of `acme.example` does not allow `www.acme.example`.
 */
function isAllowed(url: string, entry: string): boolean {
  const [allowed, given] = [entry, url].map((each) =>
    each.replace(/^https?:\/\//i, '').replace(/^[^/?#]+/, (host) => host.toLowerCase()),
  )
  const start = allowed?.replace(/\/$/, '') ?? ''
  const rest = given?.startsWith(start) ? given.slice(start.length) : undefined
  return rest !== undefined && (rest === '' || start.endsWith('?') || /^[/?#]/.test(rest))
}

const phoneEntry = /^\+?[\d()-]+$/
const phoneLike = /(?<![\p{L}\p{N}])\+?\d(?:[ ()-]?\d){7,14}(?![\p{L}\p{N}])/gu

/** Toll-free numbers have 8 to 11 digits, other ones of India 10 after the country code or 0. */
function isCallBackNumber(text: string): boolean {
  const digits = nationalDigits(text)
  return text.startsWith('+') || digits.length === 10 || /^18[06]0\d{4,7}$/.test(digits)
}

function nationalDigits(text: string): string {
  return text.replace(/\D/g, '').replace(/^(?:91|0)(?=\d{10}$)/, '')
}

/**
 * Compares the text as registered on a portal with what otpost sends, character by character.
 * @returns empty: they are equal
 */
export function compareRegistered(
  text: DltText,
  registered: string,
  settings: Pick<DltSettings, 'otpTtlSeconds'>,
): readonly DltFinding[] {
  const sent = partsOf(text, settings).flatMap((part): readonly Part[] =>
    typeof part === 'string' ? charactersAndTags(part) : [part],
  )
  const theirs = charactersAndTags(registered)
  const at = [...sent, undefined].findIndex((part, place) => !isSame(part, theirs[place]))
  const end = at === -1 ? theirs.length : at
  const isEqual = end === sent.length && theirs.length === sent.length
  const position = characters(theirs.slice(0, end).join('')) + 1
  return [
    ...when(registered.includes(oldTag), {
      rule: 'variable-tag',
      level: 'warning',
      message: `The registered text has ${oldTag}. Portals refuse it in templates created after 14 January 2026.`,
      fix: advice`Register the text that ${see('text export')} prints. On SmartPing and Tata, choose the tag of each variable in the form beside the text.`,
    }),
    ...when(!isEqual, {
      rule: 'registered-text',
      level: 'error',
      message: `Character ${position} differs. The registered text has ${described(theirs, end)}, and otpost sends ${described(sent, end)}.`,
      fix: advice`Store the registered text with ${see('text set')}, or register the text that ${see('text export')} prints.`,
    }),
  ]
}

function charactersAndTags(text: string): readonly string[] {
  return text.split(/(\{#[^{}]*\})/).flatMap((piece, place) => (place % 2 === 0 ? [...piece] : [piece]))
}

function isSame(sent: Part | undefined, theirs: string | undefined): boolean {
  if (sent === undefined || typeof sent === 'string' || theirs === undefined) return sent === theirs
  return theirs === oldTag || acceptedTags[sent.tag].some((tag) => theirs === `{#${tag}#}`)
}

/** The character at a place, with what is around it. */
function described(all: readonly Part[], place: number): string {
  const part = all[place]
  const shown = (each: Part) => (typeof each === 'string' && each.length > 2 ? each : visible(exported(each)))
  const around = all
    .slice(Math.max(0, place - 12), place + 12)
    .map(shown)
    .join('')
  if (part === undefined) return `its end after "${around}"`
  if (typeof part !== 'string') return `${exported(part)} for ${part.placeholder} in "${around}"`
  const second = part === ' ' && all[place - 1] === ' ' ? 'a second space, ' : ''
  return `${part.length > 2 ? part : second + named(part)} in "${around}"`
}

const names: Readonly<Record<string, string>> = {
  ' ': 'space',
  '\t': 'tab',
  '\n': 'line break',
  '\r': 'carriage return',
  '\u00a0': 'no-break space',
  '\u202f': 'narrow no-break space',
  '\u200b': 'zero-width space',
  '\u200c': 'zero-width non-joiner',
  '\u200d': 'zero-width joiner',
  '\ufeff': 'byte order mark',
  '\u00ad': 'soft hyphen',
  '\u2018': 'curly quote',
  '\u2019': 'curly quote',
  '\u201c': 'curly quote',
  '\u201d': 'curly quote',
  '\u2013': 'en dash',
  '\u2014': 'em dash',
}

function named(character: string): string {
  const code = `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`
  const name = names[character]
  if (!/[\p{L}\p{N}\p{P}\p{S}]/u.test(character)) return name ? `${code} (${name})` : code
  return `${character} (${name ? `${code}, ${name}` : code})`
}

/** Invisible characters as `‹name›`; a space is itself. */
function visible(character: string): string {
  if (/^[\p{L}\p{M}\p{N}\p{P}\p{S} ]+$/u.test(character)) return character
  return `‹${names[character] ?? named(character)}›`
}
