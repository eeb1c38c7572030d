import type { LimitDecision } from '../../domain/limits/limits.ts'
import { otpSteps, type State, stepSubjects } from '../../domain/otp/state.ts'
import type { OtpStore } from '../../domain/otp/store.ts'
import type { Database } from './database.ts'
import { type LeaseDatabase, LeasedClaims } from './leased-claims.ts'
import type { BatchedStep } from './steps.ts'

const nothingCounted: LimitDecision = { allowed: true, counts: [] }

/**
 * @param isHashOf compares in constant time
 * @param leased the one of this process
 */
export function createOtpStore(
  database: LeaseDatabase & Pick<Database, 'take'>,
  isHashOf: Parameters<typeof otpSteps>[0],
  leased = new LeasedClaims(database),
): OtpStore {
  const { given } = database
  const steps = otpSteps(isHashOf)
  const take = <Answer>(
    subjects: BatchedStep<Answer>['subjects'],
    now: number,
    run: (state: State, now: number) => Answer,
  ) => database.take({ subjects, run: (state, serverNow) => run(state, given(now) ?? serverNow) })

  return {
    admit: (claims, now, effects = []) =>
      leased.claim(claims, now, async (others, unused) => {
        if (others.length === 0 && effects.length === 0) return nothingCounted
        return take(stepSubjects.admit(others, now), now, (state, at) => {
          steps.giveBack(state, unused, at)
          return steps.admit(state, others, at, effects)
        })
      }),
    beginSend: (claims, code, now, effects) =>
      leased.claim(claims, now, (others, unused) =>
        take(stepSubjects.beginSend(others, code, now), now, (state, at) => {
          steps.giveBack(state, unused, at)
          return steps.beginSend(state, others, code, at, effects)
        }),
      ),
    sendAgain: (code, claims, now, effects) =>
      leased.claim(claims, now, (others, unused) =>
        take(stepSubjects.sendAgain(code, others, now, effects), now, (state, at) => {
          steps.giveBack(state, unused, at)
          return steps.sendAgain(state, code, others, at, effects)
        }),
      ),
    setProvider: (code, provider, messageId, now) =>
      take(stepSubjects.setProvider(code, provider, messageId, now), now, (state, at) =>
        steps.setProvider(state, code, provider, messageId, at),
      ),
    reschedule: (grant, durationMs, now) =>
      take(stepSubjects.reschedule(grant, durationMs, now), now, (state, at) =>
        steps.reschedule(state, grant, durationMs, at),
      ),
    giveBack: (grants, now, effects = []) =>
      leased.giveBack(grants, now, async (others) => {
        if (others.length === 0 && effects.length === 0) return
        await take(stepSubjects.giveBack(others, now), now, (state, at) =>
          steps.giveBack(state, others, at, effects),
        )
      }),
    abandonSend: (code, grants, lastProvider, now, effects) =>
      leased.giveBack(grants, now, (others) =>
        take(stepSubjects.abandonSend(code, others, lastProvider, now), now, (state, at) =>
          steps.abandonSend(state, code, others, lastProvider, at, effects),
        ),
      ),
    guess: (attempt, now) =>
      leased.claim(attempt.claims, now, (claims, unused) => {
        const rest = { ...attempt, claims }
        return take(stepSubjects.guess(rest, now), now, (state, at) => {
          steps.giveBack(state, unused, at)
          return steps.guess(state, rest, at)
        })
      }),
  }
}
