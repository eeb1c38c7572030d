import { characters, judged } from '../ground/body.ts'
import { type Failure, invalid, invalidField } from '../ground/failures.ts'
import type { Registration } from '../ground/providers.ts'
import { type BrandWithTexts, ownTemplateKeys, registrationOf } from './brand.ts'
import { registeredSmsText, type SmsContent, type SmsText, smsText } from './sms.ts'
import { partsOf, refuseLongValue, render, type Template, templateOf } from './templates.ts'
import { formatted, ruleOf } from './variables.ts'

/** In characters (design D4). */
export const longestSms = 1600

type Texts = Pick<BrandWithTexts, 'texts'>

/** A template of /notify: a built-in one, or one of the brand (design D47). */
export function notifyTemplateOf(brand: Texts, key: string): Template | undefined {
  const template = templateIn(brand, key)
  return template?.audience === 'notify' ? template : undefined
}

/** A built-in template, or one of the brand. */
export function templateIn(brand: Texts, key: string): Template | undefined {
  const builtIn = templateOf(key)
  if (builtIn) return builtIn
  const { all, variables } = brand.texts
  const first = all.find(({ templateKey }) => templateKey === key)
  if (!first) return undefined
  const { lang, text } = first
  return { key, audience: 'notify', lang, text, variables: (variables.get(key) ?? []).map(ruleOf) }
}

/** Those of the brand that are not built in. */
export function ownTemplates(brand: Texts): Template[] {
  return ownTemplateKeys(brand)
    .map((key) => templateIn(brand, key))
    .filter((template) => template !== undefined)
}

/** What apps can send beside the built-in templates, of active brands. */
export function enabledOwnTemplates(
  brands: readonly BrandWithTexts[],
): { readonly slug: string; readonly template: Template }[] {
  return brands
    .filter(({ status }) => status === 'active')
    .flatMap((brand) =>
      ownTemplates(brand)
        .filter(({ key }) => brand.notifyTemplates.includes(key))
        .map((template) => ({ slug: brand.slug, template })),
    )
}

/**
 * The text with its values in the form of its language.
 * @param variables as `templateVariables` returns them
 * @returns also the values, by placeholder
 */
export function filledText(
  { key, variables: rules }: Template,
  { lang, text }: Pick<SmsText, 'lang' | 'text'>,
  variables: Readonly<Record<string, string>>,
  businessName: string,
): { readonly text: string; readonly values: ReadonlyMap<string, string> } {
  const values = new Map([['businessName', businessName]])
  for (const [place, placeholder] of partsOf(text).entries()) {
    if (place % 2 === 0) continue
    const isRaw = placeholder.endsWith(':raw')
    const name = isRaw ? placeholder.slice(0, -4) : placeholder
    const rule = rules.find((each) => each.name === name)
    const given = variables[name]
    if (!rule || given === undefined) continue
    const { type, max } = rule
    const value = isRaw ? given : formatted(type, given, lang)
    const length = characters(value)
    if (type !== 'number' && max !== undefined && length > max) {
      throw invalidField(
        `variables.${name}`,
        `must have at most ${max} characters in the text, but "${value}" has ${length}.`,
      )
    }
    values.set(placeholder, value)
  }
  const { text: filled } = render({ key, text }, Object.fromEntries(values))
  const length = characters(filled)
  if (length > longestSms) {
    throw invalid(
      `The message must have at most ${longestSms} characters, but with these variables it has ${length}.`,
    )
  }
  return { text: filled, values }
}

/**
 * @param variables as `templateVariables` returns them
 * @returns `tooLong`: why carriers would reject the registered text
 */
export function notifySms(
  brand: BrandWithTexts,
  template: Template,
  variables: Readonly<Record<string, string>>,
  lang: string | undefined,
): { readonly content: SmsContent; readonly tooLong: Failure | undefined } {
  const { displayName } = brand
  const source = smsText(brand, template, lang)
  const plain = filledText(template, source, variables, displayName)
  const { registrationKey, ...registeredSource } = registeredSmsText(brand, template, lang)
  const isSame = registeredSource.text === source.text && registeredSource.lang === source.lang
  const registered = isSame ? plain : filledText(template, registeredSource, variables, displayName)
  const byName = [...registered.values].filter(([placeholder]) => !placeholder.endsWith(':raw'))
  const about = { ...variables, businessName: displayName }
  return {
    content: {
      text: plain.text,
      lang: source.lang,
      template: {
        key: template.key,
        registrationKey,
        lang: registeredSource.lang,
        text: registered.text,
        variables: about,
        values: { ...about, ...Object.fromEntries(byName) },
      },
    },
    tooLong: brand.dltEnabled
      ? longValue(registered.values, registrationOf(brand, registrationKey))
      : undefined,
  }
}

/** The brand's name is not a variable of the registered text. */
function longValue(values: ReadonlyMap<string, string>, registration: Registration): Failure | undefined {
  return judged(() => {
    for (const [placeholder, value] of values) {
      if (placeholder === 'businessName') continue
      refuseLongValue(`variables.${placeholder.replace(':raw', '')}`, value, registration)
    }
    return undefined
  })
}
