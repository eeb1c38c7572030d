export type Channel = 'SMS' | 'EMAIL'

/** A normalized recipient. */
export interface Recipient {
  readonly channel: Channel
  /** E.164 digits without `+`, or the e-mail address: what limits and codes are keyed by, and where messages go. */
  readonly identity: string
}

/** Reads recipients as callers and operators write them. Undefined: normalization fails. */
export interface Contacts {
  phone(raw: unknown): Recipient | undefined
  email(raw: unknown): Recipient | undefined
}

/**
 * E.164 digits of a number that a numbering plan has; the digits themselves otherwise (design D5).
 *
 * @param dialed the digits with a leading `00`, if there is one
 */
export type ReadE164 = (digits: string, dialed: string) => string

/** A domain in ASCII, by UTS 46; an empty string for an invalid one (design D6). */
export type ToAsciiDomain = (domain: string) => string

/** In any case (design D27). */
export function parseChannel(value: unknown): Channel | undefined {
  if (typeof value !== 'string') return undefined
  // Not upper case: some letters outside ASCII (ſ, ı) become ASCII ones.
  const lower = value.toLowerCase()
  return lower === 'sms' ? 'SMS' : lower === 'email' ? 'EMAIL' : undefined
}

/**
 * A phone number (spec 1, design D5): 7 to 15 digits, and only `+ - ( ) .` and spaces beside them. Digits of other scripts are
 * rejected, since dropping them would change the number.
 */
export function phone(raw: unknown, e164: ReadE164): Recipient | undefined {
  if (typeof raw !== 'string' || !/^[0-9 +\-().]*$/.test(raw)) return undefined
  const dialed = raw.replace(/[^0-9]/g, '')
  const digits = dialed.replace(/^(?:00)+/, '')
  if (digits.length > longestSpelling) return undefined
  const identity = e164(digits, dialed)
  return identity.length < 7 || identity.length > 15 ? undefined : { channel: 'SMS', identity }
}

/** Digits of a number behind the longest trunk or international prefix. */
const longestSpelling = 20

/**
 * An e-mail address (design D6). RFC 5322 specials are rejected, so that one recipient can never become two. Checks come after
 * the conversion, since a character may become `@` or a dot.
 */
export function email(raw: unknown, toAscii: ToAsciiDomain): Recipient | undefined {
  if (typeof raw !== 'string' || raw.length > 1024 || !raw.isWellFormed()) return undefined
  const [local = '', host = '', ...others] = raw.trim().split('@')
  if (others.length > 0) return undefined
  const name = lowerCase(local)
  const domain = domainOf(host, toAscii)
  const identity = `${name}@${domain}`
  // RFC 5321 section 4.5.3.1: 64 octets for the local part, 254 for the longest deliverable address.
  const isDeliverable =
    isLocalPart.test(name) && octets(name) <= 64 && isDomain.test(domain) && identity.length <= 254
  return isDeliverable ? { channel: 'EMAIL', identity } : undefined
}

const isLocalPart = /^(?!\.)(?!.*\.\.)[^\s\p{C}@()<>[\]:;,"\\]+(?<!\.)$/u

const isDomain = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.(?!$)|$))+$/

function lowerCase(text: string): string {
  // Lower case may take NFC away.
  return text.normalize('NFC').toLowerCase().normalize('NFC')
}

function octets(text: string): number {
  return new TextEncoder().encode(text).length
}

/** In lower case, without a trailing dot. ASCII needs no library, except for labels in Punycode. */
function domainOf(host: string, toAscii: ToAsciiDomain): string {
  const isAscii = /^[a-z0-9.-]*$/i.test(host) && !/xn--/i.test(host)
  return (isAscii ? host.toLowerCase() : isInternational.test(host) ? toAscii(host) : '').replace(/\.$/, '')
}

const isInternational = /^(?:[a-z0-9.-]|(?!\p{C})[^\p{ASCII}])+$/iu

/**
 * The recipient that earlier versions read the text as: digits and addresses as written, in lower case. Their records are
 * still kept by that.
 */
export function formerRecipient({ channel }: Recipient, text: string): Recipient {
  const identity = channel === 'SMS' ? text.replace(/[^0-9]/g, '') : lowerCase(text.trim())
  return { channel, identity }
}

/** The mailbox that an e-mail address delivers to: its local part up to the first `+`, with its domain (design D6). */
export function mailboxOf({ identity }: Recipient): string {
  return identity.replace(/\+[^@]*/, '')
}

/** A recipient in logs. */
export function mask({ channel, identity }: Recipient): string {
  return channel === 'SMS' ? maskPhone(identity) : maskEmail(identity)
}

export function maskPhone(digits: string): string {
  return `${digits.slice(0, 2)}${'*'.repeat(digits.length - 4)}${digits.slice(-2)}`
}

export function maskEmail(address: string): string {
  return `${address.slice(0, 1)}***${address.slice(address.indexOf('@'))}`
}
