import { setTimeout as pause } from 'node:timers/promises'
import type { HttpRequests } from './http-request.ts'

/** The part of an HTTP application that a shutdown needs. */
interface Application {
  readonly server: Pick<ReturnType<typeof Bun.serve>, 'stop'> | null
}

/** A shutdown disturbs nobody after so many turns of a millisecond without a request: some round trips. */
const lullTurns = 40

/** The longest wait for such a lull. */
const longestLeaveMs = 1000

/** The time for an answer to reach its client. */
const farewellMs = 300

/** The time that requests may take beyond their deliveries. */
const drainMarginMs = 3000

/**
 * Answers every request with `connection: close`, and returns in a lull of requests. A closed socket resets what it has
 * not read: connections that are not yet accepted, and a request that a client has just sent on a kept connection. Where
 * other clients go on connecting, an ever shorter lull is enough.
 */
export async function closeConnections({ server }: Application, httpRequests: HttpRequests): Promise<void> {
  if (!server) return
  const startedAt = performance.now()
  httpRequests.isClosing = true
  let [seen, quietTurns] = [httpRequests.requestCount, 0]
  while (quietTurns < lullTurns * (1 - (performance.now() - startedAt) / longestLeaveMs)) {
    // Turns rather than time: on a busy machine the clients are as slow as this loop.
    await pause(1)
    quietTurns = httpRequests.requestCount === seen ? quietTurns + 1 : 0
    seen = httpRequests.requestCount
  }
}

/**
 * Refuses new connections, waits for the requests under way, then closes connections without a request.
 *
 * @param longestMs the longest time that a delivery may take
 */
export async function drain(
  { server }: Application,
  httpRequests: HttpRequests,
  longestMs: number,
): Promise<void> {
  if (!server) return
  const done = new AbortController()
  const waitMs = (ms: number) => pause(ms, undefined, { signal: done.signal }).catch(() => undefined)
  const giveUpAt = performance.now() + longestMs + drainMarginMs
  const closed = server.stop()
  // Again where a request that began before the stop has been received meanwhile.
  do {
    await Promise.race([httpRequests.idle(), waitMs(giveUpAt - performance.now())])
    await Promise.race([closed, waitMs(farewellMs)])
  } while (httpRequests.busy && performance.now() < giveUpAt)
  await server.stop(true)
  done.abort()
}
