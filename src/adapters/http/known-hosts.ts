import { isIP } from 'node:net'
import { bareHost, isLoopback } from '../../config/settings.ts'
import { Failure } from '../../domain/ground/failures.ts'

export type IsKnownHost = (host: string | undefined) => boolean

/** The Host names that /outbox and /admin accept, which stops DNS rebinding (design D29). Ports are ignored. */
export function knownHosts(hosts: readonly string[], publicUrl: string | undefined): IsKnownHost {
  const own = [...hosts, ...(publicUrl === undefined ? [] : [new URL(publicUrl).hostname])].map(bareHost)
  return (name) => name !== undefined && (isLoopback(name) || own.includes(bareHost(name)))
}

/**
 * The Host names that METRICS_PORT accepts without a token: also IP addresses, and names that only an own network has, such as
 * `otpost` and `otpost.monitoring.svc`. A site that rebinds its name to this server has a public one.
 */
export function scrapedHosts(isKnown: IsKnownHost): IsKnownHost {
  return (name) => {
    if (name === undefined) return false
    const bare = bareHost(name)
    return isKnown(name) || isIP(bare) !== 0 || !bare.includes('.') || ofOwnNetwork.test(bare)
  }
}

const ofOwnNetwork = /\.(?:svc|local|internal|lan|home\.arpa)$/

/** A proxy may have checked one of them, and this server would use the other. Bun joins them. @throws Failure */
export function refuseSecondHost({ headers }: Request): void {
  if (headers.get('host')?.includes(','))
    throw new Failure('validation_error', 'A request must have one Host header, with one host name.')
}

export function hostOf({ headers, url }: Request): string | undefined {
  // Bun sets only the path if Host is missing or invalid.
  const host = headers.get('host') ?? (url.startsWith('/') ? '' : new URL(url).host)
  return /^(\[[0-9a-f:.]+\]|[\w-][\w.-]*)(?::\d*)?$/i.exec(host)?.[1]
}
