import { bareHost, isLoopback } from '../../config/settings.ts'

/** Whether /outbox and /admin answer to a Host name (design D29); undefined: the request has none. */
export type IsKnownHost = (host: string | undefined) => boolean

/**
 * The Host names of a server: those of this machine, HOST, and that of PUBLIC_URL. So a site whose DNS name leads to this
 * server reads nothing (DNS rebinding). Ports are not compared.
 */
export function knownHosts(host: string, publicUrl: string | undefined): IsKnownHost {
  const own = [host, ...(publicUrl === undefined ? [] : [new URL(publicUrl).hostname])].map(bareHost)
  return (name) => name !== undefined && (isLoopback(name) || own.includes(bareHost(name)))
}

/** The Host of a request, without its port; undefined: it is missing or invalid. */
export function hostOf({ headers, url }: Request): string | undefined {
  // Bun gives only the path where the Host is missing or invalid.
  const host = headers.get('host') ?? (url.startsWith('/') ? '' : new URL(url).host)
  return /^(\[[0-9a-f:.]+\]|[\w-][\w.-]*)(?::\d*)?$/i.exec(host)?.[1]
}
