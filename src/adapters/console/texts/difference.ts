import { type ChangeObject, diffArrays } from 'diff'

export type TextChange = Pick<ChangeObject<readonly string[]>, 'value' | 'added' | 'removed'>

/** Beyond it, which takes some milliseconds, a text counts as new. */
const mostChanges = 300

/** What changed from one text to another, by word. */
export function textDifference(before: string, after: string): readonly TextChange[] {
  const [old, fresh] = [wordsIn(before), wordsIn(after)]
  return (
    diffArrays(old, fresh, { maxEditLength: mostChanges }) ?? [
      { value: old, added: false, removed: true },
      { value: fresh, added: true, removed: false },
    ]
  )
}

/** Each with the spaces after it. */
function wordsIn(text: string): string[] {
  return text.match(/(?:\{\{\w+(?::raw)?\}\}|[\p{L}\p{M}\p{N}]+|\S)\s*|\s+/gu) ?? []
}

type Parts = Readonly<Partial<Record<'subject' | 'text' | 'html', string | null>>>

/** Of each part that changed. */
export function textDifferences(
  before: Parts | null,
  after: Parts,
): Readonly<Record<string, readonly TextChange[]>> {
  const changed = (['subject', 'text', 'html'] as const).flatMap((part) => {
    const [was, is] = [before?.[part] ?? '', after[part] ?? '']
    return was === is ? [] : [[part, textDifference(was, is)] as const]
  })
  return Object.fromEntries(changed)
}
