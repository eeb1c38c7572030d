import { domainToUnicode } from 'node:url'
import tlds from 'tlds'

const delegated = new Set(tlds)

/** In IANA's list, in Unicode or as `xn--`. */
export function isTopLevelDomain(label: string): boolean {
  return delegated.has(label.startsWith('xn--') ? domainToUnicode(label) : label)
}
