/** `private`: every other IP address that is not on the Internet, such as link-local ones and those of cloud metadata. */
type HostKind = 'public' | 'loopback' | 'private'

/** The kind of an IP address, or of a name that is always loopback. Undefined: a name that must be resolved. */
export type HostKindOf = (host: string) => HostKind | undefined

const longestUrl = 2000

/**
 * Why events cannot go to this URL (design D45), as a sentence. The server checks the resolved IP addresses too, at each delivery.
 * @param isProduction NODE_ENV=production
 */
export function webhookUrlProblem(
  text: string,
  isProduction: boolean,
  kindOf: HostKindOf,
): string | undefined {
  const url = URL.parse(text)
  if (!url || text.length > longestUrl || /[\s\\]/.test(text))
    return `The URL must be absolute, such as https://shop.example/otpost, and at most ${longestUrl} characters long.`
  const kind = kindOf(hostOf(url))
  const isLocalHttp = url.protocol === 'http:' && kind === 'loopback' && !isProduction
  if (url.protocol !== 'https:' && !isLocalHttp)
    return isProduction
      ? 'The URL must begin with https://.'
      : 'The URL must begin with https://, or with http:// and a loopback host such as localhost.'
  if (url.username !== '' || url.password !== '') return 'The URL must not contain a user name or a password.'
  if (text.includes('#')) return 'The URL must not contain a fragment (#).'
  if (isProduction && kind !== undefined && kind !== 'public')
    return 'The URL must not have a private, loopback, link-local or other IP address that is not public.'
  return undefined
}

/** Without the brackets of IPv6. */
export function hostOf({ hostname }: Pick<URL, 'hostname'>): string {
  return hostname.replace(/^\[|\]$/g, '')
}

/** Whether a delivery may connect to an IP address to which the host of the URL resolves. */
export function mayConnect(
  { protocol }: Pick<URL, 'protocol'>,
  isProduction: boolean,
  kind: HostKind,
): boolean {
  if (isProduction) return kind === 'public'
  return protocol === 'https:' || kind === 'loopback'
}
