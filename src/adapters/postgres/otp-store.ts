import { otpSteps, stepSubjects } from '../../domain/otp/state.ts'
import type { OtpStore } from '../../domain/otp/store.ts'
import type { Database } from './database.ts'

/** @param isHashOf compares in constant time */
export function createOtpStore(
  { take, given }: Pick<Database, 'take' | 'given'>,
  isHashOf: Parameters<typeof otpSteps>[0],
): OtpStore {
  const steps = otpSteps(isHashOf)
  return {
    admit: (claims, now, effects) =>
      take({
        subjects: stepSubjects.admit(claims, now),
        run: (state, serverNow) => steps.admit(state, claims, given(now) ?? serverNow, effects),
      }),
    beginSend: (claims, code, now, effects) =>
      take({
        subjects: stepSubjects.beginSend(claims, code, now),
        run: (state, serverNow) => steps.beginSend(state, claims, code, given(now) ?? serverNow, effects),
      }),
    setProvider: (code, provider, messageId, now) =>
      take({
        subjects: stepSubjects.setProvider(code, provider, messageId, now),
        run: (state, serverNow) =>
          steps.setProvider(state, code, provider, messageId, given(now) ?? serverNow),
      }),
    reschedule: (grant, durationMs, now) =>
      take({
        subjects: stepSubjects.reschedule(grant, durationMs, now),
        run: (state, serverNow) => steps.reschedule(state, grant, durationMs, given(now) ?? serverNow),
      }),
    giveBack: (grants, now, effects) =>
      take({
        subjects: stepSubjects.giveBack(grants, now),
        run: (state, serverNow) => steps.giveBack(state, grants, given(now) ?? serverNow, effects),
      }),
    abandonSend: (code, grants, lastProvider, now, effects) =>
      take({
        subjects: stepSubjects.abandonSend(code, grants, lastProvider, now),
        run: (state, serverNow) =>
          steps.abandonSend(state, code, grants, lastProvider, given(now) ?? serverNow, effects),
      }),
    guess: (attempt, now) =>
      take({
        subjects: stepSubjects.guess(attempt, now),
        run: (state, serverNow) => steps.guess(state, attempt, given(now) ?? serverNow),
      }),
  }
}
