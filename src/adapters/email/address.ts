import { email } from '../../domain/contact.ts'
import type { MailAddress } from './smtp.ts'

/** A sender as an operator writes it: `address` or `Name <address>`; undefined when it is neither. */
export function mailAddress(text: string): MailAddress | undefined {
  const [, name, bracketed] = /^\s*(.*?)\s*<([^<>]*)>\s*$/.exec(text) ?? []
  const address = email(bracketed ?? text)?.address
  if (address === undefined) return undefined
  const words = name?.replace(/^"(.*)"$/, '$1').trim()
  return { name: words ? words : null, address }
}
