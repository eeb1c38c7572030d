import type { AnyElysia } from 'elysia'
import type { HttpRequests } from './http-request.ts'
import { closeConnections, drain } from './shutdown.ts'

interface ListenSettings {
  readonly host: string
  readonly port: number
  readonly reusePort: boolean
  /** The longest time that a delivery may take. */
  readonly longestMs: number
}

/** @param stopping is aborted once no connection waits, and before the requests in progress are awaited */
export function createListener(
  http: AnyElysia,
  httpRequests: HttpRequests,
  { host: hostname, port, reusePort, longestMs }: ListenSettings,
  stopping: AbortController,
) {
  const listen = (address: { hostname: string; port: number; tls?: Bun.TLSOptions }) =>
    http.listen({
      ...address,
      reusePort,
      development: false,
      idleTimeout: 30,
      // Bun's limit would answer without a body; the body reader answers with an envelope.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    })
  return {
    /** @throws when the port is in use or not permitted */
    start(): void {
      listen({ hostname, port })
    },
    /** One more server with the same routes. Throws as `start` does. */
    startTls(address: { hostname: string; port: number; tls: Bun.TLSOptions }) {
      const { server } = http
      const { server: added } = listen(address)
      http.server = server
      return added
    },
    get url(): URL {
      if (!http.server) throw new Error('the server did not start')
      return http.server.url
    },
    async finish(): Promise<void> {
      await closeConnections(http, httpRequests)
      stopping.abort()
      await drain(http, httpRequests, longestMs)
    },
  }
}
