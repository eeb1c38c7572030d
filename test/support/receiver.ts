/** A call that the receiver of SMS webhooks got. */
export interface Received {
  readonly headers: Headers
  readonly raw: string
  // biome-ignore lint/suspicious/noExplicitAny: a payload is of any shape until a test has looked at it.
  readonly body: any
}

type Reply = (received: Received) => Response | Promise<Response>

/** A real HTTP server as an operator's SMS gateway: keeps what it got, answers as the test says. */
export function startReceiver(reply: Reply = () => new Response(null, { status: 204 })) {
  const received: Received[] = []
  const state = { reply }
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const raw = await request.text()
      const call = { headers: request.headers, raw, body: raw === '' ? undefined : JSON.parse(raw) }
      received.push(call)
      return state.reply(call)
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}/sms`,
    secret: `whsec_${Buffer.from('a secret of the test, 32 bytes..').toString('base64')}`,
    received,
    /** How the next calls are answered. */
    answer(next: Reply): void {
      state.reply = next
    },
    /** The settings that make this the provider of a server. */
    get env() {
      return { SMS_WEBHOOK_URL: this.url, SMS_WEBHOOK_SECRET: this.secret }
    },
    stop: () => server.stop(true),
  }
}

/** An answer that a test gives when it wants to. */
export function held(): { promise: Promise<Response>; release: (response: Response) => void } {
  const { promise, resolve } = Promise.withResolvers<Response>()
  return { promise, release: resolve }
}
