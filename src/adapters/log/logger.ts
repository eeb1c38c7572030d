import pino, { type Logger } from 'pino'

export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const
export type LogLevel = (typeof logLevels)[number]

/** How long the way out waits for a log reader that is slow, stalled or gone. */
const farewellMs = 500

/**
 * JSON lines on standard output. They are written without blocking: a reader that stalls or goes away must not stop the
 * service, nor keep it from ending; what it costs is lines. `close` writes what is left, for a moment, and is the end.
 */
export function createLogger(level: LogLevel): { logger: Logger; close: () => Promise<void> } {
  const destination = pino.destination({ dest: 1, sync: false })
  const logger = pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, destination)
  destination.on('error', () => {})
  const close = async () => {
    // Whoever still has something to say, such as a request that was hung up on, must not find a closed file.
    logger.level = 'silent'
    // Not flushSync: it tries forever where the reader has gone, as would the hook that an open destination has.
    const { promise: written, resolve } = Promise.withResolvers<void>()
    destination.once('close', resolve)
    destination.once('error', () => resolve())
    destination.end()
    const late = setTimeout(resolve, farewellMs)
    await written
    clearTimeout(late)
    destination.destroy()
  }
  return { logger, close }
}
