import { accessSync, constants, readFileSync, statSync } from 'node:fs'
import { serverSettings } from './server-settings.ts'
import { noteFile, noteUnread } from './setting-source.ts'
import { ConfigError, Settings } from './settings.ts'

type MutableEnv = Record<string, string | undefined>

/** Where the deployment files of this repository put the settings of the server. */
const usualEnvFile = '/etc/otpost/otpost.env'

/**
 * Adds the settings of the file that --env-file names.
 * @throws ConfigError with line numbers, never with values: those may be secrets
 */
export function readEnvFile(file: string, env: MutableEnv): void {
  addSettings(env, file, textOf(file, '--env-file'))
}

/**
 * Without --env-file: adds the settings of OTPOST_ENV_FILE, else those of the usual file if this user can read it (design
 * D51).
 * @throws ConfigError if OTPOST_ENV_FILE cannot be read, or a line of the file has no setting
 */
export function readUsualEnvFile(env: MutableEnv, usual = usualEnvFile): void {
  const named = new Settings(env).optional(serverSettings.OTPOST_ENV_FILE)?.trim()
  if (named !== undefined) addSettings(env, named, textOf(named, 'OTPOST_ENV_FILE'))
  else {
    const access = accessTo(usual)
    if (access === 'yes') addSettings(env, usual, textOf(usual, 'the file'))
    if (access === 'denied') noteUnread(env, usual)
  }
}

function accessTo(file: string): 'yes' | 'denied' | 'no file' {
  try {
    accessSync(file, constants.R_OK)
    return statSync(file).isFile() ? 'yes' : 'no file'
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    return ['ENOENT', 'ENOTDIR'].includes(code) ? 'no file' : 'denied'
  }
}

function textOf(file: string, option: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new ConfigError([`${option} ${file} cannot be read (${(error as NodeJS.ErrnoException).code})`])
  }
}

/**
 * The format is that of a systemd EnvironmentFile (systemd.exec(5)). Environment variables take precedence unless they are
 * empty.
 */
function addSettings(env: MutableEnv, file: string, text: string): void {
  const { settings, lost } = parseEnvFile(text)
  if (lost.length > 0) {
    throw new ConfigError(lost.map(({ line, why }) => `line ${line} of ${file} ${why}`))
  }
  for (const [name, value] of settings) {
    if (env[name]) continue
    env[name] = value
    noteFile(env, name, file)
  }
}

/**
 * Parses NAME=value lines. `#` and `;` begin a comment only at the start of a line. A backslash escapes the next character
 * or joins lines. Quoted values may have several lines.
 * @returns `lost`: lines that systemd ignores silently
 */
export function parseEnvFile(text: string) {
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

/** Undefined: the quotes are not closed. */
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
      // Escaped white space at the end belongs to the value.
      return value + unescaped(/^(?:\\[\s\S]|[^\\])*?(?=[ \t]*$)/.exec(plain)?.[0] ?? '', /\\([\s\S]|$)/g)
    }
  }
}

function unescaped(text: string, escapes: RegExp): string {
  return text.replace(escapes, (_, escaped: string) => (escaped === '\n' ? '' : escaped))
}

class Reader {
  private at = 0

  constructor(private readonly text: string) {}

  get isOver(): boolean {
    return this.at >= this.text.length
  }

  /** From 1. */
  get line(): number {
    return this.text.slice(0, this.at).split('\n').length
  }

  /** Consumes and returns the match of a sticky pattern; empty without a match. */
  take(pattern: RegExp): string {
    pattern.lastIndex = this.at
    const found = pattern.exec(this.text)?.[0] ?? ''
    this.at += found.length
    return found
  }
}
