import jsTokens from 'js-tokens'

/** A comment, or a text that somebody may read. */
export interface Prose {
  /** The line of the file that it begins at, from 1. */
  readonly line: number
  readonly text: string
}

/** The comments of a source file, and its texts of three words or more. */
export function proseInCode(source: string): readonly Prose[] {
  const found: Prose[] = []
  let line = 1
  let comment: Prose | undefined
  const endComment = () => {
    if (comment) found.push(comment)
    comment = undefined
  }
  for (const { type, value } of jsTokens(source, { jsx: true })) {
    if (type === 'SingleLineComment') {
      const text = value.slice(2)
      // Comments on successive lines are one text.
      comment = comment ? { ...comment, text: `${comment.text}\n${text}` } : { line, text }
    } else if (type !== 'WhiteSpace' && type !== 'LineTerminatorSequence') {
      endComment()
      if (type === 'MultiLineComment') found.push({ line, text: commentText(value) })
      else if (isText(type) && words(value) >= 3) found.push({ line, text: value.replace(quotes, ' ') })
    }
    line += value.split('\n').length - 1
  }
  endComment()
  return found
}

/** The texts of `# …` lines and of quoted or plain values, line by line: YAML, shell and Dockerfiles. */
export function proseInLines(source: string): readonly Prose[] {
  return source
    .split('\n')
    .map((text, index) => ({ line: index + 1, text: text.replace(/^[\s#]*(?:[\w.-]+:)?/, '') }))
}

function isText(type: string): boolean {
  return /^(?:StringLiteral|NoSubstitutionTemplate|Template(?:Head|Middle|Tail)|JSXString|JSXText)$/.test(
    type,
  )
}

const quotes = /^[`'"}]|[`'"]$|\$\{$/g

function words(text: string): number {
  return text.match(/\p{L}[\p{L}'’-]*/gu)?.length ?? 0
}

function commentText(comment: string): string {
  return comment
    .slice(2, -2)
    .split('\n')
    .map((text) => text.replace(/^\s*\*/, '').replace(/@(?:param \S+|returns|throws)/, ''))
    .join('\n')
}
