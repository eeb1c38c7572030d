/** A part of two texts: of both, of the earlier or of the later. */
export interface TextChange {
  readonly of: 'both' | 'before' | 'after'
  readonly text: string
}

/** Of comparisons: two texts of 1,000 words. Longer ones are compared as a whole, without their common beginning and end. */
const mostCells = 1_000_000

/** What changed from one text to another, by word. */
export function textDifference(before: string, after: string): readonly TextChange[] {
  const [old, fresh] = [wordsIn(before), wordsIn(after)]
  let start = 0
  while (start < old.length && old[start] === fresh[start]) start++
  let end = 0
  while (end < Math.min(old.length, fresh.length) - start && old.at(-1 - end) === fresh.at(-1 - end)) end++
  const middle = between(old.slice(start, old.length - end), fresh.slice(start, fresh.length - end))
  const words = [
    ...old.slice(0, start).map((text): TextChange => ({ of: 'both', text })),
    ...middle,
    ...old.slice(old.length - end).map((text): TextChange => ({ of: 'both', text })),
  ]
  const parts: TextChange[] = []
  for (const { of, text } of words) {
    const last = parts.at(-1)
    if (last?.of === of) parts.splice(-1, 1, { of, text: last.text + text })
    else parts.push({ of, text })
  }
  return parts
}

/** Each with the spaces after it. */
function wordsIn(text: string): readonly string[] {
  return text.match(/(?:\{\{\w+(?::raw)?\}\}|[\p{L}\p{M}\p{N}]+|\S)\s*|\s+/gu) ?? []
}

/** By the longest common subsequence. */
function between(old: readonly string[], fresh: readonly string[]): readonly TextChange[] {
  const removed = (from: number, to: number) =>
    old.slice(from, to).map((text): TextChange => ({ of: 'before', text }))
  const added = (from: number, to: number) =>
    fresh.slice(from, to).map((text): TextChange => ({ of: 'after', text }))
  if (old.length * fresh.length > mostCells) return [...removed(0, old.length), ...added(0, fresh.length)]
  const width = fresh.length + 1
  // The length of the common subsequence from each place to the end.
  const common = new Uint16Array((old.length + 1) * width)
  const at = (row: number, column: number) => common[row * width + column] ?? 0
  for (let row = old.length - 1; row >= 0; row--) {
    for (let column = fresh.length - 1; column >= 0; column--) {
      const isSame = old[row] === fresh[column]
      common[row * width + column] = isSame
        ? at(row + 1, column + 1) + 1
        : Math.max(at(row + 1, column), at(row, column + 1))
    }
  }
  const parts: TextChange[] = []
  let row = 0
  let column = 0
  while (row < old.length && column < fresh.length) {
    if (old[row] === fresh[column]) {
      parts.push({ of: 'both', text: old[row++] ?? '' })
      column++
    } else if (at(row + 1, column) >= at(row, column + 1)) parts.push(...removed(row, ++row))
    else parts.push(...added(column, ++column))
  }
  return [...parts, ...removed(row, old.length), ...added(column, fresh.length)]
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
