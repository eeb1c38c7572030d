import { readFileSync } from 'node:fs'
import { ConfigError } from '../config/settings.ts'

/**
 * Adds the settings of a file to an environment, whose own go before them unless they are set to nothing. The file is
 * read as systemd reads an EnvironmentFile (systemd.exec(5)), so that a unit and the commands beside it have the same.
 *
 * @throws ConfigError naming the lines that say nothing, and never a value: it may be a secret
 */
export function readEnvFile(file: string, env: Record<string, string | undefined>): void {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw new ConfigError([`--env-file ${file} cannot be read (${(error as NodeJS.ErrnoException).code})`])
  }
  const { settings, lost } = parseEnvFile(text)
  if (lost.length > 0) {
    throw new ConfigError(lost.map(({ line, why }) => `line ${line} of ${file} ${why}`))
  }
  for (const [name, value] of settings) env[name] ||= value
}

interface EnvFile {
  readonly settings: ReadonlyMap<string, string>
  /** Lines that systemd would pass over in silence. */
  readonly lost: readonly { readonly line: number; readonly why: string }[]
}

/**
 * What a file of settings says. Each begins a line as NAME=; `#` and `;` begin a line that is a comment, and stand for
 * themselves anywhere else. White space around a value goes. A backslash takes the next character as it is, and joins
 * the next line to this one. Quotes that begin a value, or stand right behind such quotes, may hold several lines.
 */
export function parseEnvFile(text: string): EnvFile {
  const settings = new Map<string, string>()
  const lost: { line: number; why: string }[] = []
  const rest = new Reader(text.replace(/^\uFEFF/, '').replaceAll('\r\n', '\n'))
  for (;;) {
    rest.take(/[ \t\n]*/y)
    if (rest.isOver) return { settings, lost }
    if (rest.take(/[#;](?:\\\n|[^\n])*/y) !== '') continue
    const { line } = rest
    const name = rest.take(/[A-Za-z_][A-Za-z0-9_]*(?=[ \t]*=)/y)
    if (name === '') {
      lost.push({ line, why: 'must be NAME=value, or a comment that begins with #' })
      rest.take(/[^\n]*/y)
      continue
    }
    rest.take(/[ \t]*=/y)
    const value = valueIn(rest)
    if (value === undefined) lost.push({ line, why: 'opens quotes that are never closed' })
    else settings.set(name, value)
  }
}

/** The value that begins here, to the end of its last line; undefined where its quotes are never closed. */
function valueIn(rest: Reader): string | undefined {
  let value = ''
  for (;;) {
    rest.take(/[ \t]*/y)
    if (rest.take(/'/y) !== '') {
      value += rest.take(/[^']*/y)
      if (rest.take(/'/y) === '') return undefined
    } else if (rest.take(/"/y) !== '') {
      value += unescaped(rest.take(/(?:\\(?:[\s\S]|$)|[^"\\])*/y), /\\(["\\`$\n])/g)
      if (rest.take(/"/y) === '') return undefined
    } else {
      const plain = rest.take(/(?:\\(?:[\s\S]|$)|[^\n\\])*/y)
      // White space that a backslash keeps is no longer the end of the line.
      return value + unescaped(/^(?:\\[\s\S]|[^\\])*?(?=[ \t]*$)/.exec(plain)?.[0] ?? '', /\\([\s\S]|$)/g)
    }
  }
}

/** Text without the backslashes before these characters; a line that one of them ends is joined to the next. */
function unescaped(text: string, escapes: RegExp): string {
  return text.replace(escapes, (_, escaped: string) => (escaped === '\n' ? '' : escaped))
}

/** A text that is read from its beginning to its end. */
class Reader {
  private at = 0

  constructor(private readonly text: string) {}

  get isOver(): boolean {
    return this.at >= this.text.length
  }

  /** The number of the line that comes next, from 1. */
  get line(): number {
    return this.text.slice(0, this.at).split('\n').length
  }

  /** Takes what a sticky pattern finds here; nothing where it finds nothing. */
  take(pattern: RegExp): string {
    pattern.lastIndex = this.at
    const found = pattern.exec(this.text)?.[0] ?? ''
    this.at += found.length
    return found
  }
}
