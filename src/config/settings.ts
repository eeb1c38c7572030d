import { webhookKey } from '../adapters/crypto/standard-webhooks.ts'
import type { ChoiceSetting, FlagSetting, IntegerSetting, Setting, TextSetting } from './setting.ts'
import { type Env, type SettingSource, sourceOf } from './setting-source.ts'

/** Has every problem, one per line. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'

  constructor(readonly problems: readonly string[]) {
    super(problems.join('\n'))
  }
}

export type SettingInForce = SettingSource & {
  readonly name: string
  /** Null: a secret. Empty: unset, without a default. */
  readonly value: string | null
  readonly meaning: string
}

const leastTokenBytes = 16
/** As Standard Webhooks require. */
const leastWebhookKeyBytes = 24

/** A secret that an attacker could guess. It is accepted, since a server that runs with it must start after an upgrade. */
interface ShortSecret {
  readonly name: string
  /** In bytes. */
  readonly least: number
}

/**
 * Collects all problems, so that operators see them at once. Problems never contain values, which may be secrets. An empty
 * variable counts as unset.
 */
export class Settings {
  readonly problems: string[] = []
  /** Variables that are required and not set. */
  readonly missing = new Set<string>()
  readonly shortSecrets: ShortSecret[] = []
  private readonly read = new Map<string, SettingInForce>()

  constructor(private readonly env: Env) {}

  refuse(name: string, problem: string): void {
    this.problems.push(`${name} ${problem}`)
  }

  /** @throws ConfigError with all problems */
  checked<T>(value: T): T {
    if (this.problems.length > 0) throw new ConfigError([...new Set(this.problems)])
    return value
  }

  /** Undefined also for a value that is not `valid`. */
  optional(setting: TextSetting | IntegerSetting): string | undefined {
    const { name, secret } = setting
    const value = this.valueOf(name)
    // Keeps the value that `show` gave.
    if (!this.read.has(name)) this.note(setting, secret ? null : (value ?? ''))
    return value === undefined ? undefined : this.validated(setting, value)
  }

  /** @param usual the default where it depends on other settings */
  text(setting: TextSetting, usual = setting.default ?? ''): string {
    const value = this.valueOf(setting.name) ?? usual
    this.note(setting, value)
    return this.validated(setting, value) ?? usual
  }

  private validated(
    { name, valid }: TextSetting | (IntegerSetting & { valid?: undefined }),
    value: string,
  ): string | undefined {
    if (!valid || valid[0].test(value)) return value
    this.refuse(name, valid[1])
    return undefined
  }

  inForce(): SettingInForce[] {
    return [...this.read.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  private valueOf(name: string): string | undefined {
    const value = this.env[name]
    return value === undefined || value.trim() === '' ? undefined : value
  }

  private note({ name, meaning }: Setting, shown: string | null): void {
    const from = sourceOf(this.env, name)
    this.read.set(name, {
      name,
      ...from,
      value: shown === null && from.source === 'default' ? '' : shown,
      meaning: meaning.replaceAll('`', ''),
    })
  }

  /** @param why what requires the variable */
  required(setting: TextSetting, why: string): string {
    if (this.valueOf(setting.name) === undefined) {
      this.missing.add(setting.name)
      this.refuse(setting.name, `is not set, but ${why}`)
    }
    return this.optional(setting) ?? ''
  }

  show(setting: TextSetting, shown: string): void {
    this.note(setting, shown)
  }

  integer(setting: IntegerSetting): number {
    const { name, default: usual, min, max } = setting
    const value = this.valueOf(name)
    this.note(setting, value?.trim() ?? String(usual))
    if (value === undefined) return usual
    const number = /^[0-9]{1,15}$/.test(value.trim()) ? Number(value) : Number.NaN
    if (number >= min && number <= max) return number
    this.refuse(name, `must be a whole number from ${min} to ${max}`)
    return usual
  }

  flag(setting: FlagSetting): boolean {
    const { name } = setting
    const value = this.valueOf(name)?.trim().toLowerCase()
    this.note(setting, value ?? '0')
    if (value === undefined || value === '0' || value === 'false') return false
    if (value !== '1' && value !== 'true') this.refuse(name, 'must be 1 or 0')
    return true
  }

  oneOf<Choice extends string>(setting: ChoiceSetting<Choice>): Choice {
    const { name, choices, default: usual } = setting
    const value = this.valueOf(name)?.trim()
    this.note(setting, value ?? usual)
    if (value === undefined) return usual
    const choice = choices.find((known) => known === value)
    if (choice === undefined) this.refuse(name, `must be one of ${choices.join(', ')}`)
    return choice ?? usual
  }

  list(setting: TextSetting): string[] {
    const words = this.text(setting)
      .split(',')
      .map((word) => word.trim())
      .filter((word) => word !== '')
    return words.length > 0 ? words : [setting.default ?? '']
  }

  /** Requires https, or http on this machine. */
  serviceUrl(setting: TextSetting, why: string): string {
    const { name } = setting
    const value = this.required(setting, why)
    if (value !== '') this.requireSafe(name, value)
    // The path may contain a secret.
    if (URL.canParse(value)) this.note(setting, `${new URL(value).origin}/…`)
    return value
  }

  /** Without a trailing slash. `usual` is the default if it depends on other settings. */
  baseUrl(setting: TextSetting, usual?: string): string {
    const { name } = setting
    const value = this.text(setting, usual).trim()
    this.requireSafe(name, value)
    if (/[?#]/.test(value)) this.refuse(name, 'must be a URL that a path can follow, without ? and #')
    return value.replace(/\/+$/, '')
  }

  /** Standard Webhooks: base64 after `whsec_`, or any text. */
  webhookKey(setting: TextSetting, why: string): Buffer {
    const key = webhookKey(this.required(setting, why))
    if (!key) this.refuse(setting.name, 'must be base64 after whsec_')
    else this.noteLength(setting, key.length, leastWebhookKeyBytes)
    return key ?? Buffer.alloc(0)
  }

  /** A bearer token. */
  token(setting: TextSetting): string | undefined {
    const token = this.optional(setting)?.trim()
    if (token === undefined) return undefined
    if (!/^[!-~]+$/.test(token)) {
      this.refuse(setting.name, 'must be ASCII without spaces, such as the output of: openssl rand -hex 32')
    }
    this.noteLength(setting, token.length, leastTokenBytes)
    return token
  }

  private noteLength({ name }: TextSetting, bytes: number, least: number): void {
    if (bytes < least) this.shortSecrets.push({ name, least })
  }

  /** An https URL, or http on this machine, without a user or password. */
  requireSafe(name: string, value: string): void {
    const url = URL.canParse(value) ? new URL(value) : undefined
    if (url && url.username + url.password !== '') {
      this.refuse(name, 'must not contain a user or password: proxies and logs would record it')
    }
    if (url?.protocol !== 'https:' && url?.protocol !== 'http:') {
      this.refuse(name, 'must be an http or https URL')
    } else if (url.protocol === 'http:' && !isLoopback(url.hostname)) {
      this.refuse(name, 'must be an https URL, since messages and credentials cross the network')
    }
  }
}

export function isLoopback(host: string): boolean {
  const name = bareHost(host)
  return /^(?:(?:.+\.)?localhost|::1|127(?:\.\d{1,3}){3})$/.test(name)
}

/** Lower case, without brackets and the trailing dot. */
export function bareHost(host: string): string {
  return host.toLowerCase().replace(/^\[|\]$|\.$/g, '')
}
