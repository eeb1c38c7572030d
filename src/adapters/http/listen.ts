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
    // The body reader has a limit of its own, which answers with an envelope; this one would answer without a body.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
  })
  if (!http.server) throw new Error('the server did not start')
  return http.server.url
}
