import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

/** A network between a client and a server on this machine, which can fail as networks do. */
export interface TcpProxy {
  readonly port: number
  /** The number of connections so far. */
  taken(): number
  /** From now on no data pass, either way and without an error; they are buffered. New connections too. */
  fallSilent(): void
  /** As above, for what goes on now alone: new connections pass. */
  silencePresent(): void
  /**
   * Passes the next bytes of a client that hold these words, but for so many at their end; then that connection falls silent.
   *
   * @returns resolves when it has
   */
  breakOff(words: readonly string[], bytes: number): Promise<void>
  /** From now on all data are delayed by this time, either way. */
  slowDown(delayMs: number): void
  /** New connections lead to this port; those that are there stay. */
  leadTo(port: number): void
  /** Passes on the buffered data, and ends the fault. */
  recover(): void
  /** From now on each new connection is cut at once. */
  refuse(): void
  /** Cuts all connections. */
  cut(): void
  [Symbol.asyncDispose](): Promise<void>
}

/** Starts one on 127.0.0.1, before a port of this host. */
export async function startTcpProxy(toPort: number, host = '127.0.0.1'): Promise<TcpProxy> {
  const pairs = new Set<Pair>()
  let taken = 0
  let isSilent = false
  let isRefusing = false
  let port = toPort
  const state: Passing = { delayMs: 0, breaking: undefined }
  const server = createServer((client) => {
    taken++
    if (isRefusing) {
      client.destroy()
      return
    }
    const pair = new Pair(client, connect(port, host), state, () => pairs.delete(pair))
    pairs.add(pair)
    if (isSilent) pair.fallSilent()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server has no port')
  const cut = () => {
    for (const pair of pairs) pair.cut()
  }
  const silencePresent = () => {
    for (const pair of pairs) pair.fallSilent()
  }
  return {
    port: address.port,
    taken: () => taken,
    silencePresent,
    fallSilent() {
      isSilent = true
      silencePresent()
    },
    breakOff(words, bytes) {
      return new Promise((done) => {
        state.breaking = { words, bytes, done }
      })
    },
    slowDown(delayMs) {
      state.delayMs = delayMs
    },
    leadTo(next) {
      port = next
    },
    recover() {
      state.delayMs = 0
      state.breaking = undefined
      isSilent = false
      isRefusing = false
      for (const pair of pairs) pair.recover()
    },
    refuse() {
      isRefusing = true
    },
    cut,
    async [Symbol.asyncDispose]() {
      cut()
      server.close()
    },
  }
}

/** The current fault of all connections. */
interface Passing {
  delayMs: number
  breaking:
    | { readonly words: readonly string[]; readonly bytes: number; readonly done: () => void }
    | undefined
}

/** Both halves of one connection. */
class Pair {
  private kept: (() => void)[] | undefined
  /** What is on its way, in its order, and when the last of it is there. */
  private readonly underWay: (() => void)[] = []
  private lastAt = 0
  /** How many of the words that break it off have been sent. */
  private found = 0

  constructor(
    private readonly client: Socket,
    private readonly server: Socket,
    private readonly passing: Passing,
    private readonly over: () => void,
  ) {
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      from.setNoDelay(true)
      from.on('data', (data: Buffer) => {
        const { breaking } = this.passing
        if (from === server || !breaking || !this.hasSent(breaking.words, data)) {
          this.pass(() => to.write(data))
          return
        }
        this.passing.breaking = undefined
        const end = data.length - breaking.bytes
        to.write(data.subarray(0, end))
        this.fallSilent()
        this.pass(() => to.write(data.subarray(end)))
        breaking.done()
      })
      from.on('close', () => this.pass(() => this.cut()))
      // 'close' comes after it.
      from.on('error', () => {})
    }
  }

  /** Whether the client has sent all of the words by now, in their order. */
  private hasSent(words: readonly string[], data: Buffer): boolean {
    for (let from = 0; this.found < words.length; this.found++) {
      const word = words[this.found] ?? ''
      const at = data.indexOf(word, from)
      if (at < 0) return false
      from = at + word.length
    }
    this.found = 0
    return true
  }

  fallSilent(): void {
    this.kept ??= []
  }

  recover(): void {
    const kept = this.kept ?? []
    this.kept = undefined
    for (const pass of kept) pass()
  }

  cut(): void {
    this.client.destroy()
    this.server.destroy()
    this.over()
  }

  private pass(what: () => void): void {
    const now = performance.now()
    // What came before is there before, also when the way has become a quick one since.
    this.lastAt = Math.max(this.lastAt, now + this.passing.delayMs)
    if (this.underWay.length === 0 && this.lastAt <= now) {
      this.arrive(what)
      return
    }
    this.underWay.push(what)
    setTimeout(() => {
      const first = this.underWay.shift()
      if (first) this.arrive(first)
    }, this.lastAt - now)
  }

  private arrive(what: () => void): void {
    if (this.kept) this.kept.push(what)
    else what()
  }
}
