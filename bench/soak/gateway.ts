import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { Random } from './random.ts'

/** One SMS that the gateway accepted, with an answer. */
export interface Delivery {
  readonly to: string
  readonly text: string
}

type Behaviour = 'accept' | 'fail' | 'slow' | 'drip' | 'reset'

/** The longest time of a slow answer: three times the time-out of the server. */
export const providerTimeoutMs = 500

/**
 * A real SMS gateway that sometimes fails, answers late or never, or closes the connection, before or after the message.
 * Keeps the accepted messages by request, until the caller reads them.
 */
export class Gateway {
  /** The ids of messages that arrived twice: the server must never repeat one. */
  readonly repeated: string[] = []

  private readonly deliveries = new Map<string, Delivery[]>()
  private readonly seen = new Set<string>()
  private readonly server = createServer((request, response) => void this.answer(request, response))

  constructor(private readonly random: Random) {}

  /** Starts to listen; resolves to the server settings that make this its provider. */
  async start(): Promise<Readonly<Record<string, string>>> {
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve))
    const { port } = this.server.address() as AddressInfo
    return {
      SMS_PLAIN: 'webhook',
      SMS_WEBHOOK_URL: `http://127.0.0.1:${port}/sms`,
      SMS_WEBHOOK_SECRET: 'a secret of the soak, of 32 bytes.',
      PROVIDER_TIMEOUT_MS: String(providerTimeoutMs),
    }
  }

  stop(): void {
    this.server.close()
    this.server.closeAllConnections()
  }

  /** Returns the accepted messages of a request, and deletes them. */
  taken(requestId: string): readonly Delivery[] {
    const deliveries = this.deliveries.get(requestId) ?? []
    this.deliveries.delete(requestId)
    return deliveries
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { id, requestId, to, text: message } = JSON.parse(await text(request))
    if (this.seen.has(id)) this.repeated.push(id)
    this.seen.add(id)
    const behaviour = this.random.weighted<Behaviour>([
      [92, 'accept'],
      [4, 'fail'],
      [2, 'slow'],
      [1, 'drip'],
      [1, 'reset'],
    ])
    switch (behaviour) {
      case 'accept':
        this.take(requestId, { to, text: message })
        response.writeHead(204).end()
        return
      case 'fail':
        response.writeHead(this.random.of([400, 429, 500, 503])).end('{"error":"out of order"}')
        return
      case 'slow':
        await Bun.sleep(this.random.integer(0, 3 * providerTimeoutMs))
        this.take(requestId, { to, text: message })
        response.writeHead(202).end()
        return
      case 'drip':
        // The status comes at once, and its body takes longer than the server waits.
        this.take(requestId, { to, text: message })
        response.writeHead(200).write('.')
        await Bun.sleep(2 * providerTimeoutMs)
        response.end('.')
        return
      case 'reset':
        if (this.random.chance(0.5)) response.writeHead(200).write('')
        request.socket.destroy()
    }
  }

  private take(requestId: string, delivery: Delivery): void {
    const deliveries = this.deliveries.get(requestId)
    if (deliveries) deliveries.push(delivery)
    else this.deliveries.set(requestId, [delivery])
  }
}
