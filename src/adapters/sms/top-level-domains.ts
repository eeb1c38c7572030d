import { domainToUnicode } from 'node:url'
import tlds from 'tlds'

const delegated = new Set(tlds)

/** By the list of IANA, in Unicode or as `xn--`. */
export function isTopLevelDomain(label: string): boolean {
  return delegated.has(label.startsWith('xn--') ? domainToUnicode(label) : label)
}
