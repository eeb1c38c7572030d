import { Failure } from '../ground/failures.ts'
import type { Guard, GuardedSend, GuardReason, GuardVerdict } from '../guard/guard.ts'
import type { GuardPrefix } from '../guard/store.ts'
import { durationInWords, retryAfterSeconds } from '../limits/gates.ts'
import { type Gate, type Subject, unchanged } from '../limits/limits.ts'
import { noteFlag, type RequestContext } from '../request/request-context.ts'

export interface GuardedPorts {
  readonly guard: Guard
  /** Whether it verified a code within 180 days (design D41). */
  readonly isVerifiedNumber: (subject: Subject) => Promise<boolean>
}

export interface GuardedCode extends GuardedSend {
  readonly subject: Subject
}

/** Design D41. A number that verified a code lately passes a few times in a day, and its codes count like others. */
export async function guarded(
  { guard, isVerifiedNumber }: GuardedPorts,
  context: RequestContext,
  code: GuardedCode,
  prefixes: readonly GuardPrefix[],
): Promise<Gate> {
  guard.applyOperatorPrefixes(prefixes)
  const pass = guard.enter(code)
  if (pass.isOpenToKnown && (await isVerifiedNumber(code.subject))) pass.admitKnown()
  const { verdict } = pass
  return {
    refusal: verdict?.isDenied ? refusalOf(verdict) : undefined,
    admitted: () => {
      if (verdict === null) return
      pass.confirm()
      noteFlag(context, verdict.bucket)
    },
    limited: ({ limit }) => {
      if (limit !== 'budget') return
      pass.stopped()
      if (verdict) noteFlag(context, verdict.bucket)
    },
    settle: ({ sent }) => {
      if (sent === 0) pass.undo()
      return unchanged
    },
  }
}

function refusalOf({ bucket, resetsInMs, byOperator }: GuardVerdict): Failure {
  const seconds = retryAfterSeconds(resetsInMs)
  const cause = byOperator
    ? 'The operator of this server has blocked numbers of this range.'
    : `Too many codes ${codesOf[bucket]} were not verified.`
  const message = `Too many OTP requests. Try later. ${cause} Try again in ${durationInWords(seconds)}.`
  return new Failure('rate_limited', message, { retryAfterSeconds: seconds, reason: 'guard' })
}

const codesOf: Readonly<Record<GuardReason, string>> = {
  prefix: 'to numbers of this range',
  'blocked-prefix': 'to numbers of this range',
  'country-hour': 'to numbers of this country',
  'country-day': 'to numbers of this country',
  'ip-hour': 'requested from this IP address',
  'ip-day': 'requested from this IP address',
  'ip-countries': 'requested from this IP address for several countries',
  number: 'to this number',
  'device-hour': 'requested from this device',
  'device-day': 'requested from this device',
  'device-countries': 'requested from this device for several countries',
  'quiet-hour': 'to numbers of several countries',
  'quiet-day': 'to numbers of several countries',
  abroad: 'to numbers of several countries',
}
