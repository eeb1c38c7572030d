import type { TextlintRuleModule } from '@textlint/types'
import { SentenceSplitterSyntax, split } from 'sentence-splitter'
import { StringSource } from 'textlint-util-to-string'
import { exceptions, terms } from './terms.ts'

const mostWords = 35

/** The full stops of Hindi and Urdu. */
const foreignStops = /[।۔]/g

/** Reports each of `terms` that no exception allows in the file. */
export function wordChoice(file: string): TextlintRuleModule {
  const allowed = exceptions.filter(({ path }) => file.startsWith(path))
  return ({ Syntax, RuleError, report, getSource, locator }) => ({
    [Syntax.Str](node) {
      let text = getSource(node)
      for (const { pattern } of allowed) {
        text = text.replace(new RegExp(pattern, 'g'), (found) => '-'.repeat(found.length))
      }
      for (const { pattern, use } of terms) {
        for (const { 0: found, index } of text.matchAll(pattern)) {
          const padding = locator.range([index, index + found.length])
          report(node, new RuleError(`"${found}": use ${use}`, { padding }))
        }
      }
    },
  })
}

/** Reports sentences that are too long to be understood at once. */
export const longSentences: TextlintRuleModule = ({ Syntax, RuleError, report, locator }) => ({
  [Syntax.Paragraph](node) {
    const source = new StringSource({ ...node, children: [...node.children] })
    const text = source.toString().replace(foreignStops, '.')
    // Most paragraphs are too short for a long sentence, and the splitter is slow.
    if (wordsIn(text) <= mostWords) return
    for (const { type, raw, range } of split(text)) {
      if (type !== SentenceSplitterSyntax.Sentence) continue
      const words = wordsIn(raw)
      if (words <= mostWords) continue
      const padding = locator.at(source.originalIndexFromIndex(range[0]) ?? 0)
      report(node, new RuleError(`a sentence of ${words} words: at most ${mostWords}`, { padding }))
    }
  },
})

function wordsIn(text: string): number {
  return text.match(/[\p{L}\p{N}]\S*/gu)?.length ?? 0
}
