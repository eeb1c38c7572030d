export type Channel = 'SMS' | 'EMAIL'

/** A recipient in its normal form. */
export interface Recipient {
  readonly channel: Channel
  /** Where messages go: E.164 digits without `+`, or the address as it was written, trimmed and in NFC. */
  readonly address: string
  /** What tells one person from another: the digits, or the address in lower case. */
  readonly identity: string
}

/** SMS or EMAIL in any case (design D27); anything else is undefined. */
export function parseChannel(value: unknown): Channel | undefined {
  if (typeof value !== 'string') return undefined
  // Lower case, since some letters that are not of ASCII (ſ, ı) become ones that are in upper case.
  const lower = value.toLowerCase()
  return lower === 'sms' ? 'SMS' : lower === 'email' ? 'EMAIL' : undefined
}

/** Turns what may be a national number into E.164 digits; given by an adapter when a default region is set. */
export type Nationalize = (raw: string) => string

/**
 * A phone number as its digits (spec 1, design D5), or undefined when it fails normalization: only digits, spaces and
 * `+ - ( ) .` may appear and 7 to 15 digits must remain. Digits of other scripts are refused, not dropped, since
 * dropping them would make a different number.
 */
export function phone(raw: unknown, nationalize?: Nationalize): Recipient | undefined {
  if (typeof raw !== 'string' || !/^[0-9 +\-().]*$/.test(raw)) return undefined
  const digits = (nationalize ? nationalize(raw) : raw).replace(/[^0-9]/g, '')
  if (digits.length < 7 || digits.length > 15) return undefined
  return { channel: 'SMS', address: digits, identity: digits }
}

/**
 * One mail address (design D6), or undefined when it fails normalization. Beyond the one `@` and the absence of white
 * space, the characters that have a meaning in a header's address list (RFC 5322 specials) are refused, so that a
 * recipient can never become two. Normalization comes before the checks: a character that folds into `@` is seen.
 */
export function email(raw: unknown): Recipient | undefined {
  if (typeof raw !== 'string' || raw.length > 1024 || !raw.isWellFormed()) return undefined
  const address = raw.trim().normalize('NFC')
  // RFC 5321 section 4.5.3.1.3: a path of 254 characters is the longest that can be delivered to.
  if (address.length > 254 || !addrSpec.test(address)) return undefined
  const domain = address.slice(address.indexOf('@') + 1)
  if (domain.split('.').includes('')) return undefined
  return { channel: 'EMAIL', address, identity: address.toLowerCase() }
}

const addrSpec = /^[^\s\p{C}@()<>[\]:;,"\\]+@[^\s\p{C}@()<>[\]:;,"\\]+$/u

/** A recipient as it may appear in a log: enough to recognize one that is known, not enough to learn it. */
export function mask({ channel, address }: Recipient): string {
  return channel === 'SMS' ? maskPhone(address) : maskEmail(address)
}

/** The first two digits and the last two. */
export function maskPhone(digits: string): string {
  return `${digits.slice(0, 2)}${'*'.repeat(digits.length - 4)}${digits.slice(-2)}`
}

/** The first character and the domain. */
export function maskEmail(address: string): string {
  return `${address.slice(0, 1)}***${address.slice(address.indexOf('@'))}`
}
