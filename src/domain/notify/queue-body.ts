import { type Body, isGiven } from '../ground/body.ts'
import { invalidField } from '../ground/failures.ts'
import { dayMs, type EpochMs, hourMs } from '../ground/time.ts'

/** Design D46. */
export const defaultLifetimeMs = hourMs
export const longestLifetimeMs = dayMs

/** `async` and `expiresAt` of /notify: when an asynchronous notification expires. Undefined: synchronous. */
export function readExpiry({ async, expiresAt }: Body, now: number): EpochMs | undefined {
  if (isGiven(async) && typeof async !== 'boolean') throw invalidField('async', 'must be true or false.')
  if (async !== true) {
    if (isGiven(expiresAt)) throw invalidField('expiresAt', 'requires `async: true`.')
    return undefined
  }
  if (!isGiven(expiresAt)) return now + defaultLifetimeMs
  const at = instantOf(expiresAt)
  if (at === undefined) {
    throw invalidField(
      'expiresAt',
      'must be an ISO 8601 time with a time zone, such as 2026-11-21T14:30:00Z.',
    )
  }
  if (at <= now) throw invalidField('expiresAt', 'must be in the future.')
  if (at > now + longestLifetimeMs) throw invalidField('expiresAt', 'must be at most 24 hours in the future.')
  return at
}

const instantPattern =
  /^(\d{4}-\d{2}-\d{2})T(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:[.,]\d{1,9})?)?(?:Z|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)$/i

function instantOf(value: unknown): EpochMs | undefined {
  if (typeof value !== 'string') return undefined
  const text = value.trim().toUpperCase()
  const [, day] = instantPattern.exec(text) ?? []
  if (day === undefined || !isDate(day)) return undefined
  // Date.parse requires a point, milliseconds, and minutes of the offset with a colon.
  const at = Date.parse(
    text
      .replace(',', '.')
      .replace(/(\.\d{3})\d+/, '$1')
      .replace(/([+-]\d{2}):?(\d{2})?$/, (_, hours, minutes = '00') => `${hours}:${minutes}`),
  )
  return Number.isNaN(at) ? undefined : at
}

/** Whether the date exists. */
function isDate(day: string): boolean {
  const at = Date.parse(`${day}T00:00Z`)
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(day)
}
