import { timingSafeEqual } from 'node:crypto'
import { abandon, adopt, begin, judge, moveEnd, take } from '../../domain/ledger.ts'
import { decide } from '../../domain/limits.ts'
import type { OtpStore } from '../../domain/otp.ts'
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
      const { admission, changes } = decide(
        uncounted,
        ({ subject, name }) => ledgers.read(subject).windows.get(name),
        now,
      )
      return changes.length === 0 ? admission : writer.write(() => take(ledgers, uncounted, now), now)
    },
    beginSend: (claims, record, now) => writer.write(() => begin(ledgers, claims, record, now), now),
    moveEnd: (taking, endsAt, now) => writer.write(() => moveEnd(ledgers, taking, endsAt, now), now),
    abandonSend: (record, takings, now) => writer.write(() => abandon(ledgers, record, takings), now),
    guess: (attempt, now) => writer.write(() => judge(ledgers, attempt, now, isHashOf), now),
    adopt: async (subject, former, now) => {
      ledgers.refresh()
      const isKept = former.some((name) => {
        const { windows, codes } = ledgers.read(name)
        return windows.size + codes.size > 0
      })
      if (isKept) await writer.write(() => adopt(ledgers, subject, former, now), now)
    },
  }
}

function equal(stored: string, computed: string): boolean {
  const [a, b] = [Buffer.from(stored), Buffer.from(computed)]
  return a.length === b.length && timingSafeEqual(a, b)
}
