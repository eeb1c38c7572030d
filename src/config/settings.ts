/** Everything wrong with the environment, one problem a line. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'

  constructor(readonly problems: readonly string[]) {
    super(problems.join('\n'))
  }
}

/** A setting in force, as it may be shown. */
export interface SettingInForce {
  readonly name: string
  readonly source: 'environment' | 'default'
  /** Null: it may be a secret, and is hidden. Empty: it is unset, and nothing stands in for it. */
  readonly value: string | null
}

/** Names of texts that are no secrets; numbers, choices, lists and addresses of services are none either. */
const plainNames = /_(?:FROM|SENDER|SENDER_ID|REGION|SELECTOR|DOMAIN|FILE|METHOD|NAME)$|^NODE_ENV$/

/**
 * Reads variables of an environment and collects what is wrong with them, so that an operator learns of everything at
 * once. A variable that is set to nothing counts as unset. Values never appear in a problem: they may be secrets.
 */
export class Settings {
  readonly problems: string[] = []
  private readonly read = new Map<string, SettingInForce>()

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
    const value = this.valueOf(name)
    // What has been shown as something better stays.
    if (!this.read.has(name)) this.note(name, plainNames.test(name) ? (value ?? '') : null)
    return value
  }

  text(name: string, fallback: string): string {
    const value = this.valueOf(name) ?? fallback
    this.note(name, value)
    return value
  }

  /** Every setting that was read, by name. */
  inForce(): SettingInForce[] {
    return [...this.read.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  private valueOf(name: string): string | undefined {
    const value = this.env[name]
    return value === undefined || value.trim() === '' ? undefined : value
  }

  private note(name: string, shown: string | null): void {
    const isSet = this.valueOf(name) !== undefined
    this.read.set(name, {
      name,
      source: isSet ? 'environment' : 'default',
      value: shown === null && !isSet ? '' : shown,
    })
  }

  /** A variable that must be set; `why` says what needs it. */
  required(name: string, why: string): string {
    const value = this.optional(name)
    if (value === undefined) this.refuse(name, `is not set, but ${why}`)
    return value ?? ''
  }

  /** Shows a variable that was read as this, which holds no secret. */
  show(name: string, shown: string): void {
    this.note(name, shown)
  }

  integer(name: string, fallback: number, range: { min: number; max: number }): number {
    const value = this.valueOf(name)
    this.note(name, value?.trim() ?? String(fallback))
    if (value === undefined) return fallback
    const number = /^[0-9]{1,15}$/.test(value.trim()) ? Number(value) : Number.NaN
    if (number >= range.min && number <= range.max) return number
    this.refuse(name, `must be a whole number from ${range.min} to ${range.max}`)
    return fallback
  }

  flag(name: string): boolean {
    const value = this.valueOf(name)?.trim().toLowerCase()
    this.note(name, value ?? '0')
    if (value === undefined || value === '0' || value === 'false') return false
    if (value !== '1' && value !== 'true') this.refuse(name, 'must be 1 or 0')
    return true
  }

  oneOf<const Choice extends string>(name: string, choices: readonly Choice[], fallback: Choice): Choice {
    const value = this.valueOf(name)?.trim()
    this.note(name, value ?? fallback)
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
    // Its path may be what keeps others out.
    if (URL.canParse(value)) this.note(name, `${new URL(value).origin}/…`)
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
