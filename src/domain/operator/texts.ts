import { advice, see } from '../ground/advice.ts'
import type { AuditReader } from '../ground/audit.ts'
import type { Channel } from '../ground/contact.ts'
import { docsAt } from '../ground/docs.ts'
import { canonicalTag, wrongTag } from '../ground/languages.ts'
import { InvalidInput, OperatorError } from '../ground/operator-error.ts'
import { type BrandWithTexts, nameKey, ownTemplateKeys } from '../texts/brand.ts'
import {
  type BrandDraft,
  type BrandText,
  type DeclaredVariable,
  isSameTarget,
  registeredTarget,
  type TextTarget,
  type VariableType,
  variableTypes,
} from '../texts/brand-texts.ts'
import { withText } from '../texts/drafts.ts'
import { isOtpKey } from '../texts/otp-texts.ts'
import type { PreviewSettings } from '../texts/preview.ts'
import { templateOf } from '../texts/templates.ts'
import { declarationProblems, type TextBeforeCode, textLimits, textProblems } from '../texts/text-problems.ts'
import { action, type Group } from './action.ts'
import { noBrand } from './brands.ts'
import { type ChangePorts, change, type Decision, differences, refuse } from './changes.ts'
import { changeList, field, flag, type InputOf, optional, removable, text } from './fields.ts'
import { textRecords, textVersions } from './text-versions.ts'

type TextPorts = ChangePorts & Pick<PreviewSettings, 'textBeforeCode'>

interface Target {
  readonly slug: string
  readonly key: string
  readonly channel: Channel
  /** Undefined: the brand's language. */
  readonly lang: string | undefined
}

function changeText<D extends Decision>(
  ports: ChangePorts,
  { slug, key: templateKey, channel, lang }: Target,
  decide: (brand: BrandWithTexts, target: TextTarget) => D,
): Promise<D> {
  const brandSlug = nameKey(slug)
  return change(ports, { brandSlug }, ({ brand }) => {
    if (!brand) throw noBrand(brandSlug)
    return decide(brand, { templateKey, channel, lang: tagOf(lang, brand) })
  })
}

/** The content of a text. `variables`: undefined and null are unchanged. */
interface Content extends Pick<BrandText, 'subject' | 'text' | 'html'> {
  readonly variables?: readonly DeclaredVariable[] | null | undefined
}

/** The variables that the text may have. @throws OperatorError if the text cannot be sent */
function checked(
  { textBeforeCode }: TextPorts,
  brand: BrandWithTexts,
  target: TextTarget,
  { variables, ...fields }: Content,
): readonly DeclaredVariable[] {
  const { templateKey } = target
  const declared = variables ?? brand.texts.variables.get(templateKey) ?? []
  refuse([
    ...(variables ? declarationProblems(templateKey, variables) : []),
    ...textProblems({ ...target, ...fields }, declared, textBeforeCode),
  ])
  refuse([
    ...countProblems(brand, target),
    ...(variables ? otherProblems(brand, target, variables, textBeforeCode) : []),
  ])
  return declared
}

/** The text is what otpost sends from the next request on. */
function publication(
  ports: TextPorts,
  brand: BrandWithTexts,
  target: TextTarget,
  content: Content,
  action: 'text.set' | 'text.published' | 'text.restored' = 'text.set',
) {
  const { texts, slug: brandSlug } = brand
  const { templateKey } = target
  const declared = checked(ports, brand, target, content)
  const { variables, ...fields } = content
  const before = texts.get(target)
  const { subject = null, text: earlierText = null, html = null } = before ?? {}
  const declaredBefore = texts.variables.get(templateKey) ?? []
  const changes = differences(
    { subject, text: earlierText, html, variables: declaredBefore.map(inWords).join(', ') },
    { ...fields, variables: declared.map(inWords).join(', ') },
  )
  const isSame = Object.keys(changes).length === 0
  if (before && isSame) return { brandSlug, text: before, variables: declared, entry: null }
  const text = { ...target, ...fields, version: (before?.version ?? 0) + 1, updatedAt: ports.now() }
  return {
    brandSlug,
    text,
    variables: declared,
    saveText: text,
    ...(variables && { declare: { templateKey, variables } }),
    entry: { action, target: brandSlug, details: { ...aboutText(text), ...changes } },
  }
}

export const textGroup: Group = {
  name: 'text',
  does: "store and test a brand's own texts, in place of the built-in ones and for new templates",
  entries: 'texts',
  target: 'brand',
}

const targetFields = {
  slug: field(nameKey, { label: 'Brand', help: 'the brandId' }),
  key: field(text, { label: 'Template', help: 'the template, such as LOGIN_OTP' }),
  lang: optional((tag) => canonicalTag(tag) ?? tag, {
    label: 'Language',
    as: '--lang <tag>',
    help: "the language of the text; the default is the brand's",
  }),
  email: flag({ label: 'E-mail', as: '--email', help: 'the e-mail of a code, instead of the SMS' }),
}

type TargetInput = InputOf<typeof targetFields>

function targetOf({ email, ...target }: TargetInput): Target {
  return { ...target, channel: email ? 'EMAIL' : 'SMS' }
}

const isOfCode = ({ key }: TargetInput) => isOtpKey(key)

const variablesWords = {
  label: 'Variables',
  as: '--var <name:type:max>',
  help: 'a variable of a new template, such as guest:text:30; replaces all earlier variables',
}

export const textSet = action(textGroup, 'set', {
  role: 'operator',
  isSensitive: (input) => isOfCode(input) && !input.draft,
  does: 'store a text; a running server sends it from the next request on',
  note: `A placeholder is {{name}}. ${docsAt('texts.md')} has those of each template, and examples.`,
  fields: {
    ...targetFields,
    key: field(text, {
      label: 'Key',
      help: 'the template, such as LOGIN_OTP',
    }),
    text: field(withLineFeeds, {
      label: 'Text',
      as: '--file <file>',
      help: 'the text, in UTF-8; - for standard input',
      isFile: true,
    }),
    variables: changeList(readVariables, { ...variablesWords, rows: 3 }),
    subject: removable(text, {
      label: 'Subject',
      as: '--subject <subject>',
      help: 'the subject of the e-mail',
    }),
    html: removable(withLineFeeds, {
      label: 'HTML',
      as: '--html <file>',
      help: 'the HTML of the e-mail; by default, otpost builds it',
      isFile: true,
    }),
    draft: flag({
      label: 'Draft',
      as: '--draft',
      help: 'store a draft; text publish sends it',
    }),
    ...seen('version', 'the version that it replaces; 0: none'),
    ...seen('updatedAt', 'when that version was stored'),
    ...seen('draftAt', 'when the draft was stored that it replaces; 0: none'),
    seenVariables: changeList(readVariables, {
      ...variablesWords,
      help: 'the variables that you have seen; the same as `variables`: they stay as they are',
      hasNoOption: true,
      rows: 3,
    }),
    mustBeNew: flag({ label: 'New', as: '', help: 'reject a template that exists', hasNoOption: true }),
    removesDraft: flag({
      label: 'Remove draft',
      as: '',
      help: 'delete the draft of the text',
      hasNoOption: true,
    }),
  },
  audit: { 'text.set': 'Text set', 'text.drafted': 'Draft of a text stored' },
  form: { path: 'brands/{slug}/texts', page: 'brands/{slug}/texts/new' },
  run: (ports: TextPorts, { subject = null, html = null, draftAt, ...input }) =>
    changeText(ports, targetOf(input), (brand, target) => {
      const { slug: brandSlug, texts } = brand
      const { templateKey } = target
      if (input.mustBeNew && (templateOf(templateKey) || ownTemplateKeys(brand).includes(templateKey)))
        throw new OperatorError(`The template ${templateKey} already exists.`)
      const before = texts.get(target)
      refuseOther(before, input)
      const draft = texts.draft(target)
      if (draftAt !== undefined && (draft?.updatedAt ?? 0) !== draftAt) {
        throw new OperatorError(
          'The draft was changed or published in the meantime. Compare it with your text, then save again.',
        )
      }
      const isSame = JSON.stringify(input.variables) === JSON.stringify(input.seenVariables)
      const variables = isSame ? undefined : input.variables
      const fields = { subject, text: input.text, html }
      if (!input.draft) {
        const published = publication(ports, brand, target, { ...fields, variables })
        return { ...published, ...(input.removesDraft && { removeDraft: target }) }
      }
      const declared = checked(ports, brand, target, { ...fields, variables })
      if (!draft && texts.drafts.length >= textLimits.texts)
        throw new OperatorError(
          `Brand ${brandSlug} already has ${textLimits.texts} drafts. Delete one first.`,
        )
      const about = { version: before?.version ?? 0, updatedAt: ports.now(), variables: variables ?? null }
      const text = { ...target, ...fields, ...about }
      const entry = { action: 'text.drafted', target: brandSlug, details: aboutText(text) }
      return { brandSlug, text, variables: declared, saveDraft: text, entry }
    }),
  said: ({ brandSlug, text, variables }, { draft }) => ({
    text: draft
      ? 'Saved the draft. otpost sends it after you publish it.'
      : `Published version ${text.version}. Takes effect immediately.`,
    row: textRow(brandSlug, text, variables),
  }),
})

/** What the operator has seen of the text that they replace. */
function seen<Name extends string>(name: Name, help: string) {
  const words = { label: name, help, hasNoOption: true } as const
  return { [name]: optional(Number, words) } as Record<Name, ReturnType<typeof optional<number>>>
}

/** As in JSON. */
export function textRow(brandId: string, text: BrandText, variables: readonly DeclaredVariable[]) {
  const { templateKey, channel, lang, version, updatedAt, ...parts } = text
  const stored = new Date(updatedAt).toISOString()
  return { brandId, templateKey, channel, lang, version, updatedAt: stored, ...parts, variables }
}

const draftForm = { path: 'brands/{slug}/texts/draft', page: 'brands/{slug}/texts' }

export const textPublish = action(textGroup, 'publish', {
  role: 'operator',
  isSensitive: isOfCode,
  does: 'send the draft of a text from the next request on',
  fields: targetFields,
  audit: { 'text.published': 'Text published' },
  form: draftForm,
  run: (ports: TextPorts, input) =>
    changeText(ports, targetOf(input), (brand, target) => {
      const draft = existingDraft(brand, target)
      const version = brand.texts.get(target)?.version ?? 0
      if (version !== draft.version) {
        throw new OperatorError(
          `The draft replaces ${nameOf(draft.version)}, but ${nameOf(version)} is published now. Compare the two, and store the draft again.`,
        )
      }
      const published = publication(ports, brand, target, draftContent(draft), 'text.published')
      return { ...published, removeDraft: target }
    }),
  said: ({ text }) => `Published version ${text.version} of ${wordsOf(text)}. Takes effect immediately.`,
})

export const textDiscard = action(textGroup, 'discard', {
  role: 'operator',
  isSensitive: false,
  does: 'delete the draft of a text',
  fields: targetFields,
  audit: { 'text.discarded': 'Draft of a text deleted' },
  form: draftForm,
  run: (ports: ChangePorts, input) =>
    changeText(ports, targetOf(input), (brand, target) => {
      const draft = existingDraft(brand, target)
      const entry = { action: 'text.discarded', target: brand.slug, details: aboutText(draft) }
      return { draft, removeDraft: target, entry }
    }),
  said: ({ draft }) => `Deleted the draft of ${wordsOf(draft)}.`,
})

export const textRestore = action(textGroup, 'restore', {
  role: 'operator',
  isSensitive: isOfCode,
  does: 'send an earlier version of a text again, as a new version',
  note: 'The audit log has the earlier versions. A draft stays as it is.',
  fields: {
    ...targetFields,
    version: field(versionIn, { label: 'Version', help: 'the earlier version, such as 3' }),
  },
  audit: { 'text.restored': 'Earlier text restored' },
  form: { path: 'brands/{slug}/texts/restore', page: 'brands/{slug}/texts' },
  run: async (ports: RestorePorts, { version, ...input }) => {
    const records = await textRecords(ports.audit, input.slug)
    return changeText(ports, targetOf(input), (brand, target) => {
      const found = textVersions(target, brand.texts.get(target), records).find(
        (each) => each.version === version && each.isStored,
      )
      if (!found) {
        throw new OperatorError(`The audit log has no version ${version} of ${wordsOf(target)}.`)
      }
      return publication(ports, brand, target, found.content, 'text.restored')
    })
  },
  said: ({ text }, { version }) =>
    `Restored version ${version} of ${wordsOf(text)}, as version ${text.version}. Takes effect immediately.`,
})

export const textRemove = action(textGroup, 'remove', {
  role: 'operator',
  isSensitive: isOfCode,
  does: 'remove a text; the built-in text, if any, is used again',
  fields: targetFields,
  audit: { 'text.removed': 'Text removed' },
  form: { path: 'brands/{slug}/texts/remove', page: 'brands/{slug}/texts' },
  run: (ports: ChangePorts, input) =>
    changeText(ports, targetOf(input), (brand, target) => {
      const { templateKey } = target
      const removed = existingText(brand, target)
      const isLast = !templateOf(templateKey) && othersOf(brand, target).length === 0
      if (isLast) refuseUsed(brand, templateKey)
      const { subject, text, html } = removed
      const variables = isLast ? (brand.texts.variables.get(templateKey) ?? []).map(inWords).join(', ') : ''
      const changes = differences({ subject, text, html, variables }, {})
      return {
        removed,
        removeText: target,
        ...(isLast && { declare: { templateKey, variables: [] } }),
        entry: { action: 'text.removed', target: brand.slug, details: { ...aboutText(removed), ...changes } },
      }
    }),
  said: ({ removed: { templateKey, channel, lang } }) =>
    `Removed the ${channel === 'SMS' ? 'SMS' : 'e-mail'} text of ${templateKey} in ${lang}.`,
})

export interface RestorePorts extends TextPorts {
  readonly audit: AuditReader
}

export const textActions = [textSet, textPublish, textDiscard, textRestore, textRemove]

function draftContent({ subject, text, html, variables }: BrandDraft): Content {
  return { subject, text, html, variables }
}

/** The brand as if the draft were published, for previews and test messages. @throws OperatorError without a draft */
export function asPublished(brand: BrandWithTexts, target: TextTarget): BrandWithTexts {
  const { variables, ...draft } = existingDraft(brand, target)
  const declared = variables ?? brand.texts.variables.get(draft.templateKey) ?? []
  return withText(brand, draft, declared)
}

function existingDraft(brand: BrandWithTexts, target: TextTarget): BrandDraft {
  const draft = brand.texts.draft(target)
  if (draft) return draft
  throw new OperatorError(`Brand ${brand.slug} has no draft of ${wordsOf(target)}.`)
}

function wordsOf({ templateKey, channel, lang }: TextTarget): string {
  return `${templateKey}${channel === 'EMAIL' ? ' e-mail' : ''} in ${lang}`
}

function nameOf(version: number): string {
  return version === 0 ? 'the built-in text' : `version ${version}`
}

/** @throws InvalidInput */
function versionIn(written: string): number {
  if (/^[1-9][0-9]{0,8}$/.test(written)) return Number(written)
  throw new InvalidInput('The version must be a whole number, such as 3.')
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

function readVariables(words: readonly string[]): readonly DeclaredVariable[] {
  return words.map(readVariable)
}

/** As `readVariable` reads it. */
export function inWords({ name, type, max }: DeclaredVariable): string {
  return `${name}:${type}:${max}`
}

function aboutText({ templateKey, lang, channel, version }: BrandText) {
  return { template: templateKey, lang, channel, version: String(version) }
}

/** In canonical form. @throws OperatorError */
export function tagOf(lang: string | undefined, brand: BrandWithTexts): string {
  const tag = lang === undefined ? brand.lang : canonicalTag(lang)
  if (tag !== undefined) return tag
  throw new InvalidInput(wrongTag)
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
  { version, updatedAt }: { readonly version: number | undefined; readonly updatedAt: number | undefined },
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
      advice`Run ${see('brand put', { slug, notifyTemplates: notify })}.`,
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
