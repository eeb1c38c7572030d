/** Ports that nobody listens on at this moment, each a different one, for programs that can not take one of chance. */
export function freePorts(count: number): number[] {
  const listeners = Array.from({ length: count }, () =>
    Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } }),
  )
  const ports = listeners.map(({ port }) => port)
  for (const listener of listeners) listener.stop(true)
  return ports
}
