import { domainToASCII } from 'node:url'
import type { ToAsciiDomain } from '../../domain/contact.ts'

/** By UTS 46 (design D6). With a further label, since a domain that ends in a number is read as an IP address. */
export const toAsciiDomain: ToAsciiDomain = (domain) => domainToASCII(`${domain}.a`).slice(0, -2)
