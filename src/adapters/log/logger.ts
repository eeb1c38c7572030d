import pino, { type Logger } from 'pino'

export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const
export type LogLevel = (typeof logLevels)[number]

/**
 * JSON lines on standard output. They are written without blocking: a reader that stalls must not stop the service; what
 * it costs is the last lines when the process is killed.
 */
export function createLogger(level: LogLevel): { logger: Logger; flush: () => void } {
  const destination = pino.destination({ dest: 1, sync: false })
  const logger = pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, destination)
  return { logger, flush: () => destination.flushSync() }
}
