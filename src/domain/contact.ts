export type Channel = 'SMS' | 'EMAIL'

/** A normalized recipient. */
export interface Recipient {
  readonly channel: Channel
  /** E.164 digits without `+`, or the e-mail address as written, trimmed and in NFC. */
  readonly address: string
  /** The key of a person: the digits, or the e-mail address in lower case. */
  readonly identity: string
}

/** In any case (design D27). */
export function parseChannel(value: unknown): Channel | undefined {
  if (typeof value !== 'string') return undefined
  // Not upper case: some letters outside ASCII (ſ, ı) become ASCII ones.
  const lower = value.toLowerCase()
  return lower === 'sms' ? 'SMS' : lower === 'email' ? 'EMAIL' : undefined
}

/** Converts a possibly national number to E.164 digits, where a default region is set. */
export type Nationalize = (raw: string) => string

/**
 * The digits of a phone number (spec 1, design D5): 7 to 15 digits, and only `+ - ( ) .` and spaces beside them. Digits of
 * other scripts are rejected, since dropping them would change the number.
 */
export function phone(raw: unknown, nationalize?: Nationalize): Recipient | undefined {
  if (typeof raw !== 'string' || !/^[0-9 +\-().]*$/.test(raw)) return undefined
  const digits = (nationalize ? nationalize(raw) : raw).replace(/[^0-9]/g, '')
  if (digits.length < 7 || digits.length > 15) return undefined
  return { channel: 'SMS', address: digits, identity: digits }
}

/**
 * One e-mail address (design D6). RFC 5322 specials are rejected, so that one recipient can never become two. Normalization
 * comes first, since a character may fold into `@`.
 */
export function email(raw: unknown): Recipient | undefined {
  if (typeof raw !== 'string' || raw.length > 1024 || !raw.isWellFormed()) return undefined
  const address = raw.trim().normalize('NFC')
  // RFC 5321 section 4.5.3.1.3: 254 is the longest deliverable path.
  if (address.length > 254 || !addrSpec.test(address)) return undefined
  const domain = address.slice(address.indexOf('@') + 1)
  if (domain.split('.').includes('')) return undefined
  return { channel: 'EMAIL', address, identity: address.toLowerCase() }
}

const addrSpec = /^[^\s\p{C}@()<>[\]:;,"\\]+@[^\s\p{C}@()<>[\]:;,"\\]+$/u

/** The mailbox that an e-mail address delivers to: its local part up to the first `+`, with its domain (design D6). */
export function mailboxOf({ identity }: Recipient): string {
  return identity.replace(/\+[^@]*/, '')
}

/** A recipient in logs. */
export function mask({ channel, address }: Recipient): string {
  return channel === 'SMS' ? maskPhone(address) : maskEmail(address)
}

export function maskPhone(digits: string): string {
  return `${digits.slice(0, 2)}${'*'.repeat(digits.length - 4)}${digits.slice(-2)}`
}

export function maskEmail(address: string): string {
  return `${address.slice(0, 1)}***${address.slice(address.indexOf('@'))}`
}
