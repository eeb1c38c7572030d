import { domainToASCII } from 'node:url'
import type { ToAsciiDomain } from '../../domain/ground/contact.ts'

/** UTS 46 (design D6). The added label prevents reading a numeric domain as an IP address. */
export const toAsciiDomain: ToAsciiDomain = (domain) => domainToASCII(`${domain}.a`).slice(0, -2)
