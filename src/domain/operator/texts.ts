import { advice, see } from '../ground/advice.ts'
import { canonicalTag } from '../ground/languages.ts'
import { InvalidInput, OperatorError } from '../ground/operator-error.ts'
import { type BrandWithTexts, nameKey, ownTemplateKeys } from '../texts/brand.ts'
import {
  type BrandText,
  type DeclaredVariable,
  isSameTarget,
  registeredTarget,
  type TextTarget,
  type VariableType,
  variableTypes,
} from '../texts/brand-texts.ts'
import { templateOf } from '../texts/templates.ts'
import { declarationProblems, type TextBeforeCode, textLimits, textProblems } from '../texts/text-problems.ts'
import { noBrand } from './brands.ts'
import { type ChangePorts, differences, refuse } from './changes.ts'

/** A text as operators name it. */
interface TextRequest extends Pick<TextTarget, 'channel'> {
  /** The slug. */
  readonly brand: string
  readonly key: string
  /** A BCP 47 tag. Undefined: the brand's language. */
  readonly lang?: string | undefined
  /** The version that the operator has seen; 0: none. Undefined: any. */
  readonly version?: number | undefined
  /** When that version was stored: after a removal, versions begin at 1 again. Undefined: at any time. */
  readonly updatedAt?: number | undefined
}

export interface NewText extends TextRequest {
  readonly subject?: string | null | undefined
  readonly text: string
  readonly html?: string | null | undefined
  /** Undefined: unchanged. */
  readonly variables?: readonly DeclaredVariable[] | undefined
}

/** `text set` (design D47). @throws OperatorError */
export async function setText(
  { operator, actor, now: clock, textBeforeCode }: ChangePorts & { readonly textBeforeCode: TextBeforeCode },
  { brand: slug, key: templateKey, channel, lang, version, updatedAt, variables, ...parts }: NewText,
): Promise<{
  readonly brandSlug: string
  readonly text: BrandText
  readonly variables: readonly DeclaredVariable[]
}> {
  const brandSlug = nameKey(slug)
  const now = clock()
  return operator.change({ brandSlug }, { actor, now }, ({ brand }) => {
    if (!brand) throw noBrand(brandSlug)
    const { texts } = brand
    const target = { templateKey, channel, lang: tagOf(lang, brand) }
    const { subject = null, html = null } = parts
    const fields = { subject, text: withLineFeeds(parts.text), html: html && withLineFeeds(html) }
    const declaredBefore = texts.variables.get(templateKey) ?? []
    const declared = variables ?? declaredBefore
    const before = texts.get(target)
    refuseOther(before, { version, updatedAt })
    refuse([
      ...(variables ? declarationProblems(templateKey, variables) : []),
      ...textProblems({ ...target, ...fields }, declared, textBeforeCode),
    ])
    refuse([
      ...countProblems(brand, target),
      ...(variables ? otherProblems(brand, target, variables, textBeforeCode) : []),
    ])
    const {
      subject: earlierSubject = null,
      text: earlierText = null,
      html: earlierHtml = null,
    } = before ?? {}
    const changes = differences(
      {
        subject: earlierSubject,
        text: earlierText,
        html: earlierHtml,
        variables: declaredBefore.map(inWords).join(', '),
      },
      { ...fields, variables: declared.map(inWords).join(', ') },
    )
    const isSame = Object.keys(changes).length === 0
    if (before && isSame) return { brandSlug, text: before, variables: declared, entry: null }
    const text = { ...target, ...fields, version: (before?.version ?? 0) + 1, updatedAt: now }
    return {
      brandSlug,
      text,
      variables: declared,
      saveText: text,
      ...(variables && { declare: { templateKey, variables } }),
      entry: { action: 'text.set', target: brandSlug, details: { ...about(text), ...changes } },
    }
  })
}

/** `text remove`: the built-in text is used again. @throws OperatorError */
export async function removeText(
  { operator, actor, now }: ChangePorts,
  { brand: slug, key: templateKey, channel, lang, version, updatedAt }: TextRequest,
): Promise<BrandText> {
  const brandSlug = nameKey(slug)
  const { removed } = await operator.change({ brandSlug }, { actor, now: now() }, ({ brand }) => {
    if (!brand) throw noBrand(brandSlug)
    const target = { templateKey, channel, lang: tagOf(lang, brand) }
    const removed = existingText(brand, target)
    refuseOther(removed, { version, updatedAt })
    const isLast = !templateOf(templateKey) && othersOf(brand, target).length === 0
    if (isLast) refuseUsed(brand, templateKey)
    const { subject, text, html } = removed
    const variables = isLast ? (brand.texts.variables.get(templateKey) ?? []).map(inWords).join(', ') : ''
    const changes = differences({ subject, text, html, variables }, {})
    return {
      removed,
      removeText: target,
      ...(isLast && { declare: { templateKey, variables: [] } }),
      entry: { action: 'text.removed', target: brandSlug, details: { ...about(removed), ...changes } },
    }
  })
  return removed
}

/** A variable as operators write it: `name:type:max`. @throws OperatorError */
export function readVariable(words: string): DeclaredVariable {
  const [, name = '', type, max = ''] = /^([^:]+):([^:]+):([1-9][0-9]{0,15})$/.exec(words.trim()) ?? []
  const isType = (each: string): each is VariableType => each === type
  const known = variableTypes.find(isType)
  if (known) return { name, type: known, max: Number(max) }
  throw new InvalidInput(
    `The variable ${JSON.stringify(words)} must be name:type:max, such as orderId:text:40. The types are ${variableTypes.join(', ')}.`,
  )
}

/** As `readVariable` reads it. */
export function inWords({ name, type, max }: DeclaredVariable): string {
  return `${name}:${type}:${max}`
}

function about({ templateKey, lang, channel, version }: BrandText) {
  return { template: templateKey, lang, channel, version: String(version) }
}

/** In canonical form. @throws OperatorError */
export function tagOf(lang: string | undefined, brand: BrandWithTexts): string {
  const tag = lang === undefined ? brand.lang : canonicalTag(lang)
  if (tag !== undefined) return tag
  throw new InvalidInput('The language must be a BCP 47 tag, such as hi or pt-BR.')
}

function existingText(brand: BrandWithTexts, target: TextTarget): BrandText {
  const text = brand.texts.get(target)
  if (text) return text
  const what = target.channel === 'EMAIL' ? 'e-mail text' : 'text'
  throw new OperatorError(
    `Brand ${brand.slug} has no ${what} of ${target.templateKey} in ${target.lang}.`,
    advice`${see('text list', { slug: brand.slug })} lists its texts.`,
  )
}

/** Browsers and files of Windows have CRLF. */
function withLineFeeds(text: string): string {
  return text.replaceAll('\r\n', '\n')
}

/** @throws OperatorError if the operator has seen another text */
function refuseOther(
  current: BrandText | undefined,
  { version, updatedAt }: Pick<TextRequest, 'version' | 'updatedAt'>,
): void {
  if (version === undefined) return
  const is = current?.version ?? 0
  const isSame = is === version && (updatedAt === undefined || updatedAt === current?.updatedAt)
  if (isSame) return
  const seen = version === 0 ? 'the built-in text' : is === version ? 'an earlier one' : `version ${version}`
  throw new OperatorError(
    is === 0
      ? `Version ${version} of this text was removed in the meantime. Save again to store the text as a new one.`
      : `This text was changed in the meantime: version ${is} replaced ${seen}. Compare it with your text, then save again.`,
  )
}

function countProblems(brand: BrandWithTexts, target: TextTarget): string[] {
  const { texts, slug } = brand
  if (texts.get(target)) return []
  if (texts.all.length >= textLimits.texts) {
    return [`Brand ${slug} already has ${textLimits.texts} texts. Remove one first.`]
  }
  const own = ownTemplateKeys(brand)
  const isNew = !templateOf(target.templateKey) && !own.includes(target.templateKey)
  if (!isNew || own.length < textLimits.ownTemplates) return []
  return [`Brand ${slug} already has ${textLimits.ownTemplates} templates of its own. Remove one first.`]
}

/** The texts of the same template in other languages. */
function othersOf({ texts }: BrandWithTexts, target: TextTarget): BrandText[] {
  return texts.all.filter((each) => each.templateKey === target.templateKey && !isSameTarget(each, target))
}

/** A new declaration must fit the texts in other languages. */
function otherProblems(
  brand: BrandWithTexts,
  target: TextTarget,
  declared: readonly DeclaredVariable[],
  textBeforeCode: TextBeforeCode,
): string[] {
  return othersOf(brand, target).flatMap((other) =>
    textProblems(other, declared, textBeforeCode).map(
      (problem) => `The variables do not fit the text in ${other.lang}: ${problem}`,
    ),
  )
}

/** @throws OperatorError if the template is enabled or registered */
function refuseUsed({ slug, notifyTemplates, registrations }: BrandWithTexts, templateKey: string): void {
  const last = `This is the last text of ${templateKey}, and removing it removes the template.`
  if (notifyTemplates.includes(templateKey)) {
    const notify = notifyTemplates.filter((key) => key !== templateKey).join(',')
    throw new OperatorError(
      `${last} Disable it on /notify first.`,
      advice`Run ${see('brand put', { slug, notify })}.`,
    )
  }
  const registered = Object.keys(registrations)
    .map(registeredTarget)
    .find((each) => each.templateKey === templateKey)
  if (!registered) return
  const lang = registered.lang === undefined ? {} : { lang: registered.lang }
  throw new OperatorError(
    `${last} Remove its registration first.`,
    advice`Run ${see('brand template', { slug, key: templateKey, ...lang, remove: '' })}.`,
  )
}
