// Parses the shell scripts of pages, which have no functions and no loops.

/** One simple command. */
export interface ShellCommand {
  /** Names of the variables that it sets. */
  readonly assigned: readonly string[]
  readonly words: readonly string[]
}

/**
 * The simple commands of a script, also those in `$(…)`. Quotes are removed; each substitution becomes `$`.
 *
 * @throws if a quote or a substitution is not closed
 */
export function commandsIn(script: string): readonly ShellCommand[] {
  const commands: ShellCommand[] = []
  let words: string[] = []
  /** Undefined between words; an empty string is a quoted empty word. */
  let word: string | undefined
  let at = 0

  const endWord = () => {
    if (word !== undefined) words.push(word)
    word = undefined
  }
  const endCommand = () => {
    endWord()
    const first = words.findIndex((each) => !/^[A-Za-z_][A-Za-z0-9_]*=/.test(each))
    const assignments = words.slice(0, first < 0 ? words.length : first)
    // Without redirections, such as `> file`.
    const rest =
      first < 0 ? [] : words.slice(first).filter((each, index, all) => each !== '>' && all[index - 1] !== '>')
    const exported = /^(?:export|env|alias)$/.test(rest[0] ?? '')
      ? rest.filter((each) => /^\w+=/.test(each))
      : []
    const assigned = [...assignments, ...exported].map((each) => each.slice(0, each.indexOf('=')))
    if (words.length > 0) commands.push({ assigned, words: rest })
    words = []
  }
  /** Reads the text after a `$`. */
  const substitute = (): string => {
    if (script.startsWith('((', at)) {
      const end = closing(script, at)
      at = end + 1
      return '$'
    }
    if (script[at] === '(') {
      const end = closing(script, at)
      commands.push(...commandsIn(script.slice(at + 1, end)))
      at = end + 1
      return '$'
    }
    const [name = ''] = /^(?:\{[^}]*\}|\w+|[@*#?$!-])?/.exec(script.slice(at)) ?? []
    at += name.length
    return '$'
  }

  while (at < script.length) {
    const char = script[at] ?? ''
    at++
    if (char === "'") {
      const end = script.indexOf("'", at)
      if (end < 0) throw new Error(`a quote is not closed: ${script.slice(at, at + 40)}`)
      word = (word ?? '') + script.slice(at, end)
      at = end + 1
    } else if (char === '"') {
      word ??= ''
      while (script[at] !== '"') {
        if (at >= script.length) throw new Error('a double quote is not closed')
        const inner = script[at] ?? ''
        at++
        if (inner === '\\') word += script[at++] ?? ''
        else word += inner === '$' ? substitute() : inner
      }
      at++
    } else if (char === '\\') {
      if (script[at] !== '\n') word = (word ?? '') + (script[at] ?? '')
      at++
    } else if (char === '$') word = (word ?? '') + substitute()
    else if (char === '#' && word === undefined) {
      const end = script.indexOf('\n', at)
      at = end < 0 ? script.length : end
    } else if (/[ \t]/.test(char)) endWord()
    else if (/[\n;|&()]/.test(char)) endCommand()
    else word = (word ?? '') + char
  }
  endCommand()
  return commands
}

/** The index of the parenthesis that closes the one at `open`. */
function closing(script: string, open: number): number {
  let depth = 0
  for (let at = open; at < script.length; at++) {
    const char = script[at]
    if (char === "'") at = script.indexOf("'", at + 1)
    else if (char === '(') depth++
    else if (char === ')' && --depth === 0) return at
    if (at < open) break
  }
  throw new Error(`a substitution is not closed: ${script.slice(open, open + 40)}`)
}
