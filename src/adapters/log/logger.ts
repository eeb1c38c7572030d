import pino, { type Logger } from 'pino'

export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const
export type LogLevel = (typeof logLevels)[number]

/** The longest time that `close` waits for a reader of the log that is slow, stalled or gone. */
const closeMs = 500

/** The longest time that a line waits for others to be written with. */
const gatherMs = 3

/** How long after a write that failed it is tried again, as on a full disk. */
const retryMs = 1000

/** What one write takes, in characters, and how many bytes may wait for the reader. */
const batchLength = 64 * 1024
const maxLength = 16 * 1024 * 1024

/**
 * JSON lines on standard output or standard error, written asynchronously and many at a time. A reader that stalls or goes
 * away does not stop the service, keep it from ending or fill its memory: beyond a bound new lines are dropped, and a line
 * of its own says how many as soon as the reader has read the rest. `close` writes what is left; a crash may lose the last
 * lines.
 */
export function createLogger(level: LogLevel, fd: 1 | 2 = 1): { logger: Logger; close: () => Promise<void> } {
  const output = pino.destination({ dest: fd, sync: false, maxLength, maxWrite: batchLength })
  let [batch, lines, lost] = ['', 0, 0]
  let timer: ReturnType<typeof setTimeout> | undefined
  let isClosed = false
  output.on('error', () => setTimeout(() => isClosed || output.write(''), retryMs).unref())
  output.on('drop', () => {
    lost += lines
  })
  output.on('drain', () => {
    if (lost === 0) return
    const count = lost
    lost = 0
    notices.error({ lost: count }, 'lines of the log were lost here: they could not be written')
  })
  const send = () => {
    clearTimeout(timer)
    timer = undefined
    // The notice takes the place of every line from the first to the last that was dropped.
    if (lost > 0) lost += lines
    else if (lines > 0) output.write(batch)
    batch = ''
    lines = 0
  }
  const destination = {
    // In batches: the destination takes three times as long for as many single lines.
    write(line: string): void {
      if (isClosed) return
      batch += line
      lines++
      if (batch.length >= batchLength) send()
      else timer ??= setTimeout(send, gatherMs)
    },
  }
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
          else destination.write(line)
        },
      },
    },
    destination,
  )
  // For every reader, however high the level.
  const notices = logger.child({}, { level: 'error' })
  const close = async () => {
    send()
    isClosed = true
    const { promise: closed, resolve } = Promise.withResolvers<void>()
    const late = setTimeout(resolve, closeMs)
    output.once('close', resolve)
    output.end()
    await closed
    clearTimeout(late)
    output.destroy()
  }
  return { logger, close }
}

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
