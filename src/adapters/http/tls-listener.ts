import { statSync } from 'node:fs'
import type { Log } from '../../domain/ground/ports.ts'
import { type Clock, hourMs } from '../../domain/ground/time.ts'
import { acmeRemedy, obtainCertificate, renewalTime } from './acme.ts'
import { portError } from './port-error.ts'
import { readPair, type TlsConfig } from './tls-settings.ts'

const challengePath = '/.well-known/acme-challenge/'

type Listening = Pick<Bun.Server<unknown>, 'port' | 'stop'> | null
type Address = { hostname: string; port: number; tls: Bun.TLSOptions }
type Listener = { readonly startTls: (address: Address) => Listening }

/** https on TLS_PORT: the certificate is a pair of files. ACME renews them; otherwise another program does. */
export function tlsListener(config: TlsConfig, { startTls }: Listener, now: Clock, log: Log) {
  const { acme, certFile, keyFile, host } = config
  const challenges = new Map<string, string>()
  let server: Listening = null
  let challengeServer: Listening = null
  /** Of the files, when they were read. */
  let marks = ''
  let nextTryAt = 0

  function answerChallenge(request: Request): Response {
    const { pathname } = new URL(request.url)
    const answer = pathname.startsWith(challengePath) && challenges.get(pathname.slice(challengePath.length))
    // No redirect to https: it would hide from a client that it sent its API key without TLS.
    return answer ? new Response(answer) : new Response('Use https.\n', { status: 403 })
  }

  /** Empty unless both files can be seen. */
  function marksOfFiles(): string {
    try {
      const stats = [certFile, keyFile].map((file) => statSync(file))
      return stats.map(({ ino, mtimeMs, size }) => `${ino} ${mtimeMs} ${size}`).join('')
    } catch {
      return ''
    }
  }

  /** Listens with the certificate in the files. Bun cannot change it in place; open connections keep theirs. */
  function load(): void {
    marks = marksOfFiles()
    const { cert, key, validTo } = readPair(config)
    const port = server?.port ?? config.port
    server?.stop()
    server = inWords('TLS_', host, port, () => startTls({ hostname: host, port, tls: { cert, key } }))
    log.info({ port: server?.port, validTo }, 'listening for https')
  }

  /** Reads changed files, and renews a certificate when its time has come. */
  function tick(): void {
    try {
      if (marksOfFiles() !== marks) load()
    } catch (err) {
      log.error({ err }, 'the changed certificate was not used; the server continues with the previous one')
    }
    if (!acme || now() < nextTryAt) return
    nextTryAt = now() + hourMs
    if (now() < renewalTime(certFile, acme.domain)) return
    obtainCertificate(config, acme, challenges).catch(({ message }: Error) => {
      const remedy = acmeRemedy(message, acme)
      log.error({ domain: acme.domain, remedy }, `no certificate by ACME: ${message}; next try in an hour`)
    })
  }

  return {
    /** @throws when a port is in use or not permitted, or the files of TLS_CERT_FILE cannot be used */
    start(): void {
      if (acme) {
        const address = { hostname: host, port: acme.httpPort, fetch: answerChallenge }
        challengeServer = inWords('ACME_HTTP_', host, acme.httpPort, () => Bun.serve(address))
      } else load()
      tick()
    },
    tick,
    stop(): void {
      void challengeServer?.stop()
      void server?.stop()
    },
  }
}

function inWords(prefix: 'TLS_' | 'ACME_HTTP_', host: string, port: number, listen: () => Listening) {
  try {
    return listen()
  } catch (error) {
    throw portError(error, prefix, { host, port }, false)
  }
}
