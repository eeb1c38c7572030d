export type Channel = 'SMS' | 'EMAIL'

export const channelNames: Readonly<Record<Channel, string>> = { SMS: 'SMS', EMAIL: 'e-mail' }

export interface Recipient {
  readonly channel: Channel
  /** E.164 digits without `+`, or the e-mail address. Limits and codes use it as key. */
  readonly to: string
}

/** `phone` and `email` return undefined for invalid text. */
export interface Contacts {
  phone(raw: unknown): Recipient | undefined
  email(raw: unknown): Recipient | undefined
  /**
   * Why text is no phone number or e-mail address, as the end of a sentence that begins with its name.
   * @param channel left out: the text may be either
   */
  faultOf(raw: unknown, channel?: Channel): string
}

/** The digits of a phone number, as they were written. */
export interface Dialed {
  /** Without a leading `00`. */
  readonly digits: string
  readonly dialed: string
  /** Begins with `+` or `00`, so it is no national number. */
  readonly isInternational: boolean
}

/**
 * Design D5. Numbers outside all numbering plans stay unchanged.
 * @returns undefined: the digits are a national number and also a number of another country
 */
export type ReadE164 = (number: Dialed) => string | undefined

/** UTS 46 (design D6). Returns an empty string for an invalid domain. */
export type ToAsciiDomain = (domain: string) => string

/** Case-insensitive (design D27). */
export function parseChannel(value: unknown): Channel | undefined {
  if (typeof value !== 'string') return undefined
  // Not `toUpperCase`: it turns some non-ASCII letters (ſ, ı) into ASCII.
  const lower = value.toLowerCase()
  return lower === 'sms' ? 'SMS' : lower === 'email' ? 'EMAIL' : undefined
}

export function contactsOf(e164: ReadE164, toAscii: ToAsciiDomain): Contacts {
  return {
    phone: (raw) => phone(raw, e164),
    email: (raw) => email(raw, toAscii),
    faultOf(raw, channel) {
      if (typeof raw !== 'string') return 'must be a string.'
      const isPhone = channel === 'SMS' || (channel === undefined && !raw.includes('@') && /[0-9]/.test(raw))
      if (isPhone) return phoneFault(raw, e164)
      return channel === 'EMAIL'
        ? 'must be an e-mail address, such as pat@example.com.'
        : 'must be a phone number or an e-mail address.'
    },
  }
}

/** Spec 1, design D5. */
export function phone(raw: unknown, e164: ReadE164): Recipient | undefined {
  const number = dialedIn(raw)
  const to = number && e164(number)
  return to === undefined || to.length < 7 || to.length > 15 ? undefined : { channel: 'SMS', to }
}

/** Digits of other scripts are rejected, since dropping them changes the number. */
function dialedIn(raw: unknown): Dialed | undefined {
  if (typeof raw !== 'string' || !phonePattern.test(raw)) return undefined
  const dialed = raw.replace(/[^0-9]/g, '')
  const digits = dialed.replace(/^(?:00)+/, '')
  if (digits.length > longestSpelling) return undefined
  // No country code begins with 0.
  return { digits, dialed, isInternational: digits !== dialed || beginsWithPlus.test(raw) }
}

const beginsWithPlus = /^[^0-9+]*\+[^0-9]*[1-9]/

const phonePattern = /^[0-9 +\-().]*$/

const longestSpelling = 20

function phoneFault(raw: string, e164: ReadE164): string {
  const number = dialedIn(raw)
  if (!phonePattern.test(raw)) return 'must have only digits, spaces and the characters + - ( ) .'
  return number && e164(number) === undefined
    ? 'is a national number and also a number of another country. Begin it with + and the country code.'
    : 'must have 7 to 15 digits.'
}

/** Design D6. RFC 5322 specials are rejected, so that one recipient cannot become two. */
export function email(raw: unknown, toAscii: ToAsciiDomain): Recipient | undefined {
  if (typeof raw !== 'string' || raw.length > 1024 || !raw.isWellFormed()) return undefined
  const [local = '', host = '', ...others] = raw.trim().split('@')
  if (others.length > 0) return undefined
  const name = lowerCase(local)
  const domain = domainOf(host, toAscii)
  const to = `${name}@${domain}`
  // RFC 5321 section 4.5.3.1: 64 octets for the local part, 254 for the e-mail address.
  const isDeliverable =
    isLocalPart.test(name) && octets(name) <= 64 && isDomain.test(domain) && to.length <= 254
  return isDeliverable ? { channel: 'EMAIL', to } : undefined
}

const isLocalPart = /^(?!\.)(?!.*\.\.)[^\s\p{C}\p{Default_Ignorable_Code_Point}@()<>[\]:;,"\\]+(?<!\.)$/u

const isDomain = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.(?!$)|$))+$/

function lowerCase(text: string): string {
  // Lower-casing may undo NFC.
  return text.normalize('NFC').toLowerCase().normalize('NFC')
}

function octets(text: string): number {
  return new TextEncoder().encode(text).length
}

/** Only Punycode and non-ASCII domains need the library. */
function domainOf(host: string, toAscii: ToAsciiDomain): string {
  const isAscii = /^[a-z0-9.-]*$/i.test(host) && !/xn--/i.test(host)
  return (isAscii ? host.toLowerCase() : isInternational.test(host) ? toAscii(host) : '').replace(/\.$/, '')
}

const isInternational = /^(?:[a-z0-9.-]|(?!\p{C})[^\p{ASCII}])+$/iu

/** Design D6. */
export function mailboxOf({ to }: Recipient): string {
  return to.replace(/\+[^@]*/, '')
}

export function mask({ channel, to }: Recipient): string {
  return channel === 'SMS' ? maskPhone(to) : maskEmail(to)
}

export function maskPhone(digits: string): string {
  return `${digits.slice(0, 2)}${'*'.repeat(digits.length - 4)}${digits.slice(-2)}`
}

export function maskEmail(address: string): string {
  return `${address.slice(0, 1)}***${address.slice(address.indexOf('@'))}`
}
