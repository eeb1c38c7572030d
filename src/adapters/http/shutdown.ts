import { setTimeout as pause } from 'node:timers/promises'
import type { HttpRequests } from './http-request.ts'

interface Application {
  readonly server: Pick<ReturnType<typeof Bun.serve>, 'stop'> | null
}

/** A lull is this many turns of a millisecond without a request: a few round trips. */
const lullTurns = 40

const longestLeaveMs = 1000

/** Lets the last answers reach their clients. */
const farewellMs = 300

/** The time that requests take beyond their deliveries. */
const drainMarginMs = 3000

/**
 * Answers with `connection: close` until a lull. Closing a socket resets unaccepted connections and unread requests. If
 * other clients keep connecting, an ever shorter lull is enough.
 */
export async function closeConnections({ server }: Application, httpRequests: HttpRequests): Promise<void> {
  if (!server) return
  const startedAt = performance.now()
  httpRequests.isClosing = true
  let [seen, quietTurns] = [httpRequests.requestCount, 0]
  while (quietTurns < lullTurns * (1 - (performance.now() - startedAt) / longestLeaveMs)) {
    // Counts turns, not time: on a busy machine clients are slow too.
    await pause(1)
    quietTurns = httpRequests.requestCount === seen ? quietTurns + 1 : 0
    seen = httpRequests.requestCount
  }
}

/** @param longestMs the longest time that a delivery may take */
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
  // Requests may have arrived during the wait.
  do {
    await Promise.race([httpRequests.idle(), waitMs(giveUpAt - performance.now())])
    await Promise.race([closed, waitMs(farewellMs)])
  } while (httpRequests.busy && performance.now() < giveUpAt)
  await server.stop(true)
  done.abort()
}
