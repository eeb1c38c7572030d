import { textBeforeCode } from '../../adapters/email/code-in-html.ts'
import type { PolicyFacts } from '../../adapters/store/condition.ts'
import { isCodeInText } from '../../domain/texts/text-problems.ts'
import { type Finding, warn } from './finding.ts'

/** Texts that an earlier version stored (design D47). */
export function mailTextFindings(texts: PolicyFacts['mailTexts']): readonly Finding[] {
  return texts
    .filter(({ html }) => !isCodeInText(html, textBeforeCode))
    .map(({ brandSlug, templateKey, lang }) =>
      warn(
        'texts',
        `The HTML of the e-mail text of brand ${brandSlug} in ${lang} has {{otp}} outside displayed text, such as in a URL. otpost sends the built-in text instead.`,
        `Move {{otp}} into the text, and store the HTML with \`otpost text set ${brandSlug} ${templateKey} --email --lang ${lang}\`. See docs/texts.md.`,
      ),
    )
}
