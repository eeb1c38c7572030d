import { segmentsOf } from '../adapters/sms/segments.ts'
import { isTopLevelDomain } from '../adapters/sms/top-level-domains.ts'
import { docsAt } from '../domain/ground/docs.ts'
import { type Finding, warn } from '../domain/health/problem.ts'
import type { BrandWithTexts } from '../domain/texts/brand.ts'
import { type DltRule, lintText, registeredTexts } from '../domain/texts/dlt.ts'

const required: readonly DltRule[] = ['entity-id', 'template-id']

/** The texts of brands with DLT that carriers may drop. */
export function dltFindings(brands: readonly BrandWithTexts[], otpTtlSeconds: number): readonly Finding[] {
  const settings = { segmentsOf, isTopLevelDomain, otpTtlSeconds }
  const scrubbed = brands.filter(({ dltEnabled, status }) => dltEnabled && status !== 'suspended')
  return scrubbed.flatMap((brand) => {
    const texts = registeredTexts(brand).flatMap((text) => {
      const found = lintText(text, settings).filter(
        ({ rule, level }) => level === 'error' || required.includes(rule),
      )
      const rules = new Set(found.map(({ rule }) => rule))
      return rules.size === 0 ? [] : [`${text.templateKey} ${text.lang} (${[...rules].join(', ')})`]
    })
    if (texts.length === 0) return []
    return warn(
      'DLT',
      `Carriers in India may drop SMS of brand ${brand.slug} on the registered route: ${texts.join('; ')}.`,
      `\`otpost text lint ${brand.slug}\` says how to fix each text. See ${docsAt('dlt-rules.md')}.`,
    )
  })
}
