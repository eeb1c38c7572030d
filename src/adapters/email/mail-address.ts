import { email } from '../../domain/ground/contact.ts'
import { toAsciiDomain } from './domain.ts'
import type { MailAddress } from './smtp.ts'

/** `address` or `Name <address>`; undefined for anything else. */
export function mailAddress(text: string): MailAddress | undefined {
  const [, name, bracketed] = /^\s*(.*?)\s*<([^<>]*)>\s*$/.exec(text) ?? []
  const address = email(bracketed ?? text, toAsciiDomain)?.to
  if (address === undefined) return undefined
  const words = name?.replace(/^"(.*)"$/, '$1').trim()
  return { name: words ? words : null, address }
}
