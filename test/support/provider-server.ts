import { expect } from 'bun:test'
import type { ProviderTools } from '../../src/adapters/sms/provider.ts'
import type { Sms } from '../../src/domain/ground/providers.ts'

/** Longer than any answer on this machine takes; a test that waits so long has failed. */
export const patienceMs = 10_000

/** A time-out that is to pass, once the call that is never answered has come through a busy machine. */
export const passingMs = 2000

/** An SMS on the plain route with nothing special about it. */
export const anySms: Sms = {
  id: '0b54a5a2-6a3c-4d8e-9a39-0f6a3f0d7c11',
  requestId: 'd2a0b3f6-70ff-4a9c-9c05-1d1f5c6c8e77',
  brandSlug: 'acme',
  brandName: 'Acme',
  to: '919812345678',
  route: 'plain',
  text: '123456 is your Acme code.\n\n@acme.example #123456',
  code: '123456',
  template: null,
  senderId: null,
  validitySeconds: null,
  expectsFeedback: false,
  callbackUrl: null,
}

const unused = () => Promise.reject(new Error('a message to a provider must not reach the outbox'))

export const providerTools: ProviderTools = {
  now: Date.now,
  outbox: { add: unused, list: unused, get: unused, clear: unused, wait: unused },
  reportLater: () => {},
}

/** A call to a provider. */
export interface ProviderCall {
  readonly method: string
  /** With its query. */
  readonly path: string
  readonly headers: Headers
  readonly body: string
}

export type Reply = () => Response | Promise<Response>

/** A real HTTP server in place of a provider: records its calls, and answers as the test says. */
export function startProviderDouble(usual: Reply) {
  const received: ProviderCall[] = []
  let reply = usual
  const awaited: { calls: number; resolve: () => void }[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const { method, headers } = request
      const { pathname, search } = new URL(request.url)
      received.push({ method, path: pathname + search, headers, body: await request.text() })
      const response = reply()
      for (const { calls, resolve } of awaited) if (received.length >= calls) resolve()
      return response
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}`,
    host: `127.0.0.1:${server.port}`,
    received,
    /** Resolves when so many calls were received. */
    calls(calls: number): Promise<void> {
      if (received.length >= calls) return Promise.resolve()
      return new Promise((resolve) => awaited.push({ calls, resolve }))
    },
    /** How the next calls are answered. */
    answer(next: Reply): void {
      reply = next
    },
    onlyCall(): ProviderCall {
      expect(received).toHaveLength(1)
      const [call] = received
      if (!call) throw new Error('nothing was received')
      return call
    },
    stop: () => server.stop(true),
  }
}
