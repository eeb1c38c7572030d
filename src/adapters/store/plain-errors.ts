import { DrizzleQueryError } from 'drizzle-orm/errors'

/** Unwraps Drizzle's errors: their messages contain values, which must not be logged. */
export function plainErrors<Ports extends object>(ports: Ports): Ports {
  const wrapped = Object.entries(ports).map(([name, port]) => {
    if (typeof port === 'object' && port !== null) return [name, plainErrors(port)] as const
    if (typeof port !== 'function') return [name, port] as const
    const call = (...given: readonly unknown[]): unknown => {
      const answer: unknown = port(...given)
      return answer instanceof Promise ? answer.catch(rejectPlainly) : answer
    }
    return [name, call] as const
  })
  return Object.fromEntries(wrapped) as Ports
}

function rejectPlainly(error: unknown): never {
  throw plainError(error)
}

export function plainError(error: unknown): unknown {
  return error instanceof DrizzleQueryError ? (error.cause ?? new Error('the database failed')) : error
}
