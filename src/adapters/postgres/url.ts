import { isLoopback } from '../../config/settings.ts'
import type { PostgresTarget } from './pool.ts'

const tlsModes = {
  disable: 'off',
  require: 'require',
  'verify-ca': 'verify-ca',
  'verify-full': 'verify-full',
} as const
const parameters = ['sslmode', 'sslrootcert', 'sslcert', 'sslkey'] as const

export interface PostgresUrl {
  /** For display: without user, password and parameters. */
  readonly name: string
  readonly server: Pick<PostgresTarget, 'url' | 'tls'>
  readonly problems: readonly string[]
}

/** Reads `postgres://user:password@host:port/database?sslmode=verify-full&sslrootcert=ca.pem`. */
export function readPostgresUrl(text: string): PostgresUrl {
  const problems: string[] = []
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || url.hostname === '' || !/^\/[^/]+$/.test(url.pathname)) {
    problems.push(
      'must name a host and a database, such as postgres://otpost:password@db.example.com/otpost; what is special in a password is written as %40 for @, and so on',
    )
    return { name: 'postgres://', server: { url: text, tls: { mode: 'verify-full' } }, problems }
  }
  const given = url.searchParams
  for (const parameter of new Set(given.keys())) {
    if (given.getAll(parameter).length > 1) problems.push(`must say ${parameter} once`)
    if (given.get(parameter) === '') problems.push(`must give ${parameter} a value, or leave it out`)
    if (!(parameters as readonly string[]).includes(parameter)) {
      problems.push(`has the parameter ${parameter}, which is not known: there are ${parameters.join(', ')}`)
    }
  }
  const mode = given.get('sslmode')
  const tlsMode =
    mode !== null && Object.hasOwn(tlsModes, mode) ? tlsModes[mode as keyof typeof tlsModes] : undefined
  if (mode === null && !isLoopback(url.hostname)) {
    problems.push(
      'must say sslmode, since codes and keys cross a network: sslmode=verify-full, with sslrootcert=FILE where its certificate is of an authority of your own; or sslmode=disable where no other machine is on that network',
    )
  } else if (mode !== null && tlsMode === undefined) {
    problems.push(
      `must have one of these as sslmode: ${Object.keys(tlsModes).join(', ')}. With prefer or allow, an attacker on the network could turn TLS off`,
    )
  }
  const file = (parameter: string) => given.get(parameter) ?? undefined
  const [caFile, certFile, keyFile] = [file('sslrootcert'), file('sslcert'), file('sslkey')]
  if ((certFile === undefined) !== (keyFile === undefined)) {
    problems.push('must have both of sslcert and sslkey, or neither')
  }
  if ((mode === 'disable' || mode === 'require') && caFile !== undefined) {
    problems.push(
      `has sslrootcert, but sslmode=${mode}, which checks nothing by it: say sslmode=verify-full, or verify-ca where its host has another name`,
    )
  }
  if (![url.username, url.password, url.pathname].every(isDecodable)) {
    problems.push(
      'has a % that is no code of a character: in a user, a password and the name of a database, % itself is written as %25',
    )
  }
  const bare = new URL(url)
  bare.search = ''
  bare.hash = ''
  return {
    name: `postgres://${url.host}${url.pathname}`,
    server: {
      url: bare.href,
      tls: {
        mode: tlsMode ?? 'off',
        ...(caFile === undefined ? {} : { caFile }),
        ...(certFile === undefined ? {} : { certFile }),
        ...(keyFile === undefined ? {} : { keyFile }),
      },
    },
    problems,
  }
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}
