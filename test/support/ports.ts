/** Below what systems give out by themselves: nothing that takes a port of chance, or connects, gets one of these. */
const lowest = 20_000
const highest = 29_998

/** What keeps this process's ports from other processes of the same tests, until it ends. */
const kept = new Set<unknown>()

/**
 * Ports of this process's own, each a different one, for programs that can not take one of chance: free now, and given to
 * no other test, so that a program that is started again finds its port as it left it. For that the port above each is
 * listened on until this process ends.
 */
export function freePorts(count: number): number[] {
  return Array.from({ length: count }, freePort)
}

function freePort(): number {
  for (let tries = 0; tries < 1_000; tries++) {
    const port = lowest + 2 * Math.floor((Math.random() * (highest - lowest)) / 2)
    const keeper = listen(port + 1)
    if (keeper === undefined) continue
    const listener = listen(port)
    listener?.stop(true)
    if (listener !== undefined) {
      keeper.unref()
      kept.add(keeper)
      return port
    }
    keeper.stop(true)
  }
  throw new Error(`no port from ${lowest} to ${highest} is free`)
}

function listen(port: number): Bun.TCPSocketListener | undefined {
  try {
    return Bun.listen({ hostname: '127.0.0.1', port, socket: { data() {} } })
  } catch {
    return undefined
  }
}
