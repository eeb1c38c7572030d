import type { AnyElysia } from 'elysia'

/** @throws when the port is in use or not permitted */
export function listen(
  http: AnyElysia,
  { host: hostname, port, reusePort }: { host: string; port: number; reusePort: boolean },
): URL {
  http.listen({
    hostname,
    port,
    reusePort,
    development: false,
    idleTimeout: 30,
    // Bun's limit would answer without a body; the body reader answers with an envelope.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
  })
  if (!http.server) throw new Error('the server did not start')
  return http.server.url
}
