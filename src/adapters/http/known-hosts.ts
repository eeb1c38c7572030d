import { bareHost, isLoopback } from '../../config/settings.ts'

export type IsKnownHost = (host: string | undefined) => boolean

/** The Host names that /outbox and /admin accept, which stops DNS rebinding (design D29). Ports are ignored. */
export function knownHosts(host: string, publicUrl: string | undefined): IsKnownHost {
  const own = [host, ...(publicUrl === undefined ? [] : [new URL(publicUrl).hostname])].map(bareHost)
  return (name) => name !== undefined && (isLoopback(name) || own.includes(bareHost(name)))
}

export function hostOf({ headers, url }: Request): string | undefined {
  // Bun sets only the path if Host is missing or invalid.
  const host = headers.get('host') ?? (url.startsWith('/') ? '' : new URL(url).host)
  return /^(\[[0-9a-f:.]+\]|[\w-][\w.-]*)(?::\d*)?$/i.exec(host)?.[1]
}
