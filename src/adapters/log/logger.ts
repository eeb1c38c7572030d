import { write } from 'node:fs'
import pino, { type Logger } from 'pino'

export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const
export type LogLevel = (typeof logLevels)[number]

/** How long the way out waits for a log reader that is slow, stalled or gone. */
const farewellMs = 500

/**
 * JSON lines on standard output, or standard error. They are written without blocking and many at a time: a reader that
 * stalls or goes away must not stop the service, nor keep it from ending, nor fill its memory. What that costs is lines,
 * and a line of its own tells how many as soon as there is a reader again. `close` writes what is left, for a moment, and
 * is the end; a process that ends without it, as in a crash, may lose its last lines.
 */
export function createLogger(level: LogLevel, fd: 1 | 2 = 1): { logger: Logger; close: () => Promise<void> } {
  const output = new Output(fd, (lost) => {
    notices.error({ lost }, 'lines of the log were lost here: they could not be written')
  })
  const logger: Logger = pino(
    {
      level,
      base: null,
      timestamp,
      hooks: {
        logMethod(args: unknown[], byPino, levelNumber) {
          // A child has fields of its own, which pino adds.
          const line = this === logger ? quickLine(args, levelNumber) : undefined
          if (line === undefined) byPino.apply(this, args as Parameters<typeof byPino>)
          else output.write(line)
        },
      },
    },
    output,
  )
  // The notice is for whoever reads the log, however little of it they asked for.
  const notices = logger.child({}, { level: 'error' })
  const close = async () => {
    // Whoever still has something to say, such as a request that was hung up on, must not find a closed file.
    logger.level = 'silent'
    await output.end(farewellMs)
  }
  return { logger, close }
}

/** What may wait for the reader, in characters: a second or two of lines under full load. */
const mostWaiting = 16 * 1024 * 1024

/** About what one write takes, in characters. A pipe holds as much. */
const writeLength = 64 * 1024

/** How long a first line waits for others to be written with. */
const gatherMs = 3

/** How long a pipe that takes no more is left alone, where it says so instead of letting the write wait. */
const fullPipeMs = 20

/**
 * A file descriptor for lines. One write is under way at a time, and lines gather for the next one: as many as come within
 * a few milliseconds or, when the reader is slower, until it has taken the last. Beyond a bound new lines are dropped.
 */
class Output {
  private waiting: string[] = []
  private waitingLength = 0
  private busy = false
  private timer: ReturnType<typeof setTimeout> | undefined
  /** Lines dropped, or in a write that failed, since the last notice. */
  private lost = 0
  private noticing = false
  /** Whether a write failed in the middle of a line. */
  private halfLine = false
  private onEmpty: (() => void) | undefined
  private ended = false

  /** @param notice writes a line that says how many were lost */
  constructor(
    private readonly fd: number,
    private readonly notice: (lost: number) => void,
  ) {}

  write(line: string): void {
    if (this.ended) return
    if (this.waitingLength + line.length > mostWaiting && !this.noticing) {
      this.lost++
      return
    }
    this.waitingLength += line.length
    const last = this.waiting.length - 1
    const batch = this.waiting[last]
    if (batch !== undefined && batch.length < writeLength) this.waiting[last] = batch + line
    else this.waiting.push(line)
    if (!this.busy) this.timer ??= setTimeout(() => this.next(), gatherMs)
  }

  /** Resolves when all is written, or after so long; what comes later is left out. */
  async end(patienceMs: number): Promise<void> {
    const { promise: empty, resolve } = Promise.withResolvers<void>()
    this.onEmpty = resolve
    if (!this.busy) this.next()
    const late = setTimeout(resolve, patienceMs)
    await empty
    clearTimeout(late)
    clearTimeout(this.timer)
    this.ended = true
  }

  private next(): void {
    clearTimeout(this.timer)
    this.timer = undefined
    const batch = this.waiting.shift()
    this.busy = batch !== undefined
    if (batch === undefined) {
      this.onEmpty?.()
      return
    }
    this.waitingLength -= batch.length
    // After half a line a new one begins, lest it be read as the rest.
    this.put(Buffer.from(this.halfLine ? `\n${batch}` : batch), 0)
  }

  /** Writes the bytes from this offset on, then goes on with what has gathered. */
  private put(bytes: Buffer, offset: number): void {
    write(this.fd, bytes, offset, bytes.length - offset, null, (error, written) => {
      if (this.ended) return
      if (error?.code === 'EAGAIN') {
        this.timer = setTimeout(() => this.put(bytes, offset), fullPipeMs)
      } else if (error) {
        this.lose(bytes, offset)
        this.gather()
      } else if (offset + written < bytes.length) {
        this.put(bytes, offset + written)
      } else {
        this.written()
        this.gather()
      }
    })
  }

  /** Goes on at once while the reader is behind or all must out, else gives further lines their time to gather. */
  private gather(): void {
    if (this.waitingLength >= writeLength || this.waiting.length === 0 || this.onEmpty) this.next()
    else this.timer = setTimeout(() => this.next(), gatherMs)
  }

  private lose(bytes: Buffer, offset: number): void {
    // From the second byte on: the first may be the end of an earlier half of a line.
    const from = Math.max(offset, 1)
    for (let at = bytes.indexOf('\n', from); at >= 0; at = bytes.indexOf('\n', at + 1)) this.lost++
    if (offset > 0) this.halfLine = bytes[offset - 1] !== newline
  }

  /** Something was written: there is a reader, and it hears what it missed. */
  private written(): void {
    this.halfLine = false
    if (this.lost === 0) return
    const { lost } = this
    this.lost = 0
    this.noticing = true
    this.notice(lost)
    this.noticing = false
  }
}

const newline = 0x0a

/**
 * The line of plain fields and a message, as all but a few are, by JSON.stringify: it takes a third of the time that pino
 * takes for the same bytes. Undefined for any other, which is left to pino.
 */
function quickLine(args: readonly unknown[], levelNumber: number): string | undefined {
  const [fields, message] = args
  if (args.length !== 2 || typeof message !== 'string' || !isPlain(fields)) return undefined
  try {
    const members = JSON.stringify(fields).slice(1, -1)
    return `{"level":${levelNumber}${timestamp()}${members && ','}${members},"msg":${JSON.stringify(message)}}\n`
  } catch {
    return undefined
  }
}

function isPlain(fields: unknown): fields is object {
  if (typeof fields !== 'object' || fields === null || 'err' in fields) return false
  return !(fields instanceof Error || Array.isArray(fields))
}

let stampedAt = 0
let stamp = ''

/** The field of the time, ISO 8601; made anew once a millisecond. */
function timestamp(): string {
  const now = Date.now()
  if (now !== stampedAt) {
    stampedAt = now
    stamp = `,"time":"${new Date(now).toISOString()}"`
  }
  return stamp
}
