/** Everything wrong with the environment, one problem a line. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'

  constructor(readonly problems: readonly string[]) {
    super(problems.join('\n'))
  }
}

/**
 * Reads variables of an environment and collects what is wrong with them, so that an operator learns of everything at
 * once. A variable that is set to nothing counts as unset. Values never appear in a problem: they may be secrets.
 */
export class Settings {
  readonly problems: string[] = []

  constructor(private readonly env: Readonly<Record<string, string | undefined>>) {}

  /** A problem with a variable: its name, then what to do. */
  refuse(name: string, problem: string): void {
    this.problems.push(`${name} ${problem}`)
  }

  /** What was read, if nothing was wrong with it; throws all problems otherwise. */
  checked<T>(value: T): T {
    if (this.problems.length > 0) throw new ConfigError([...new Set(this.problems)])
    return value
  }

  optional(name: string): string | undefined {
    const value = this.env[name]
    return value === undefined || value.trim() === '' ? undefined : value
  }

  text(name: string, fallback: string): string {
    return this.optional(name) ?? fallback
  }

  /** A variable that must be set; `why` says what needs it. */
  required(name: string, why: string): string {
    const value = this.optional(name)
    if (value === undefined) this.refuse(name, `is not set, but ${why}`)
    return value ?? ''
  }

  integer(name: string, fallback: number, range: { min: number; max: number }): number {
    const value = this.optional(name)
    if (value === undefined) return fallback
    const number = /^[0-9]{1,15}$/.test(value.trim()) ? Number(value) : Number.NaN
    if (number >= range.min && number <= range.max) return number
    this.refuse(name, `must be a whole number from ${range.min} to ${range.max}`)
    return fallback
  }

  flag(name: string): boolean {
    const value = this.optional(name)?.trim().toLowerCase()
    if (value === undefined || value === '0' || value === 'false') return false
    if (value !== '1' && value !== 'true') this.refuse(name, 'must be 1 or 0')
    return true
  }

  oneOf<const Choice extends string>(name: string, choices: readonly Choice[], fallback: Choice): Choice {
    const value = this.optional(name)?.trim()
    if (value === undefined) return fallback
    const choice = choices.find((known) => known === value)
    if (choice === undefined) this.refuse(name, `must be one of ${choices.join(', ')}`)
    return choice ?? fallback
  }

  /** Comma-separated words; at least one. */
  list(name: string, fallback: string): string[] {
    const words = this.text(name, fallback)
      .split(',')
      .map((word) => word.trim())
      .filter((word) => word !== '')
    return words.length > 0 ? words : [fallback]
  }

  /** The address of another service that must be set: https, or http on this machine. */
  serviceUrl(name: string, why: string): string {
    const value = this.required(name, why)
    if (value !== '') this.requireSafe(name, value)
    return value
  }

  /** The address of another service where it is not the usual one, without a slash at its end. */
  baseUrl(name: string, usual: string): string {
    const value = this.text(name, usual).trim()
    this.requireSafe(name, value)
    if (/[?#]/.test(value)) this.refuse(name, 'must be a URL that a path can follow, without ? and #')
    return value.replace(/\/+$/, '')
  }

  /** A credential that must be set, and goes into an HTTP header. */
  credential(name: string, why: string): string {
    const value = this.required(name, why)
    if (!/^[ -~]*$/.test(value)) this.refuse(name, 'must be printable ASCII, since it becomes an HTTP header')
    return value
  }

  private requireSafe(name: string, value: string): void {
    const url = URL.canParse(value) ? new URL(value) : undefined
    if (url && url.username + url.password !== '') {
      this.refuse(name, 'must not hold a user or password: proxies and logs would have it too')
    }
    if (url?.protocol !== 'https:' && url?.protocol !== 'http:') {
      this.refuse(name, 'must be an http or https URL')
    } else if (url.protocol === 'http:' && !isLoopback(url.hostname)) {
      this.refuse(name, 'must be an https URL, since messages and credentials cross the network')
    }
  }
}

/** Whether a URL's host is this machine. */
export function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname)
}
