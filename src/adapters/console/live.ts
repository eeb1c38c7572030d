import { type Clock, type EpochMs, minuteMs } from '../../domain/ground/time.ts'

interface Stream {
  readonly session: string
  readonly isSignedIn: () => Promise<boolean>
  readonly controller: ReadableStreamDefaultController<Uint8Array>
  readonly endsAt: EpochMs
  checkedAt: EpochMs
  mark: string
}

interface LivePorts {
  /** Changes with the figures of the console. */
  readonly mark: (now: EpochMs) => Promise<string>
  readonly now: Clock
  readonly stopping: AbortSignal
}

const mostStreams = 30

/** Browsers open six connections to a server of HTTP/1.1. Two of them stay free for pages. */
const mostOfSession = 4

const checkMs = 10_000
const longestMs = 10 * minuteMs

/** A second. An overview takes up to 60 ms. */
const mostUpdates = 4

/** Messages that a client may leave unread. */
const mostUnread = 8

/**
 * Informs browsers by server-sent events that the figures changed. They then get the page. One query a second serves all
 * streams; without streams there is none.
 */
export class LiveStreams {
  private readonly streams = new Set<Stream>()
  private isTicking = false

  constructor(private readonly ports: LivePorts) {
    ports.stopping.addEventListener('abort', () => {
      for (const stream of this.streams) this.end(stream)
    })
  }

  get size(): number {
    return this.streams.size
  }

  /** @param isSignedIn whether the session continues; asked again while the stream is open */
  open(session: string, isSignedIn: () => Promise<boolean>): ReadableStream<Uint8Array> {
    const { now, stopping } = this.ports
    let stream: Stream | undefined
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          const ofSession = [...this.streams].filter((each) => each.session === session)
          if (stopping.aborted) return controller.close()
          if (this.streams.size >= mostStreams || ofSession.length >= mostOfSession) {
            controller.enqueue(event('full'))
            return controller.close()
          }
          const at = now()
          stream = { session, isSignedIn, controller, endsAt: at + longestMs, checkedAt: at, mark: '' }
          this.streams.add(stream)
          // Proxies and browsers then see the answer at once.
          controller.enqueue(heartbeat)
        },
        cancel: () => void (stream && this.streams.delete(stream)),
      },
      { highWaterMark: mostUnread },
    )
  }

  /** Once a second. */
  async tick(): Promise<void> {
    if (this.streams.size === 0 || this.isTicking) return
    this.isTicking = true
    try {
      const now = this.ports.now()
      const due = [...this.streams].filter(({ checkedAt }) => Math.abs(now - checkedAt) >= checkMs)
      await Promise.all(due.map((stream) => this.check(stream, now)))
      // While the database is not available, the pages stay as they are.
      const mark = await this.ports.mark(now).catch(() => undefined)
      if (mark === undefined) return
      const outdated = [...this.streams].filter((stream) => stream.mark !== mark)
      for (const stream of outdated.slice(0, mostUpdates)) {
        stream.mark = mark
        // To the end, so that all streams take turns.
        this.streams.delete(stream)
        this.streams.add(stream)
        this.send(stream, event('changed'))
      }
    } finally {
      this.isTicking = false
    }
  }

  private async check(stream: Stream, now: EpochMs): Promise<void> {
    stream.checkedAt = now
    if (!(await stream.isSignedIn().catch(() => true))) return this.end(stream)
    const isOver = now >= stream.endsAt || now < stream.endsAt - longestMs
    this.send(stream, isOver ? event('renew') : heartbeat)
    if (isOver) this.end(stream)
  }

  private send(stream: Stream, bytes: Uint8Array): void {
    if (!this.streams.has(stream)) return
    if ((stream.controller.desiredSize ?? 0) > 0) stream.controller.enqueue(bytes)
    else this.end(stream)
  }

  private end(stream: Stream): void {
    if (this.streams.delete(stream)) stream.controller.close()
  }
}

const encoder = new TextEncoder()
const heartbeat = encoder.encode(':\n\n')

function event(name: 'changed' | 'renew' | 'full'): Uint8Array {
  return encoder.encode(`data: ${name}\n\n`)
}
