import { ConfigError } from '../../config/settings.ts'
import { OperatorError } from '../../domain/ground/operator-error.ts'

/**
 * An error of listening, in words for the operator; any other error is returned as it is.
 *
 * @param mayShare whether REUSE_PORT is a setting of this server
 */
export function portError(
  error: unknown,
  prefix: '' | 'METRICS_' | 'TLS_' | 'ACME_HTTP_',
  { host, port }: { readonly host: string; readonly port: number },
  mayShare = true,
): unknown {
  const name = `${prefix}PORT`
  const label = prefix === '' ? 'Port' : name
  const other = prefix === '' ? 'another port with --port or PORT' : `another ${name}`
  switch (error instanceof Error && 'code' in error && error.code) {
    case 'EADDRINUSE': {
      const ways = mayShare
        ? `, choose ${other}, or set REUSE_PORT=1 on both servers for a zero-downtime restart.`
        : ` or choose ${other}.`
      return new OperatorError(
        `${label} ${port} on ${host} is already in use. Stop the program that listens there${ways}`,
      )
    }
    case 'EACCES':
      return new OperatorError(
        `${label} ${port} needs more privileges than this user has. Choose a ${name} above 1023, or give the service the capability CAP_NET_BIND_SERVICE.`,
      )
    case 'EADDRNOTAVAIL':
    case 'EINVAL':
    case 'ENOTFOUND':
      return new ConfigError([`${prefix}HOST is ${host}, but this machine has no such IP address`])
    default:
      return error
  }
}
