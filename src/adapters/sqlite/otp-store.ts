import { timingSafeEqual } from 'node:crypto'
import { decide } from '../../domain/otp/limits.ts'
import { abandon, begin, judge, rekey, reschedule, take } from '../../domain/otp/state.ts'
import type { OtpStore } from '../../domain/otp/store.ts'
import type { Secrets } from '../../domain/ports.ts'
import type { Database } from './database.ts'

/**
 * Codes and limits in SQLite: each step of the port is one synchronous callback of the writer.
 *
 * @param saltedHash as `Secrets.saltedHash`
 */
export function createOtpStore({ ledgers, writer }: Database, saltedHash: Secrets['saltedHash']): OtpStore {
  const isHashOf = (hash: string, recordId: string, keyedCode: string) =>
    equal(hash, saltedHash(recordId, keyedCode))

  return {
    admit: (claims, now) => writer.write(() => take(ledgers, claims, now), now),
    check: async (claim, now) => {
      const uncounted = [{ ...claim, counted: false }]
      ledgers.refresh()
      const { decision, changes } = decide(
        uncounted,
        ({ subject, name }) => ledgers.read(subject).windows.get(name),
        now,
      )
      return changes.length === 0 ? decision : writer.write(() => take(ledgers, uncounted, now), now)
    },
    beginSend: (claims, record, now) => writer.write(() => begin(ledgers, claims, record, now), now),
    reschedule: (grant, endsAt, now) => writer.write(() => reschedule(ledgers, grant, endsAt, now), now),
    abandonSend: (record, grants, now) => writer.write(() => abandon(ledgers, record, grants), now),
    guess: (attempt, now) => writer.write(() => judge(ledgers, attempt, now, isHashOf), now),
    rekey: async (subject, former, now) => {
      ledgers.refresh()
      const isStored = former.some((name) => {
        const { windows, codes } = ledgers.read(name)
        return windows.size + codes.size > 0
      })
      if (isStored) await writer.write(() => rekey(ledgers, subject, former, now), now)
    },
  }
}

function equal(stored: string, computed: string): boolean {
  const [a, b] = [Buffer.from(stored), Buffer.from(computed)]
  return a.length === b.length && timingSafeEqual(a, b)
}
