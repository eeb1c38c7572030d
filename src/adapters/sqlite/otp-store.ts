import { otpSteps, type Steps } from '../../domain/otp/state.ts'
import type { OtpStore } from '../../domain/otp/store.ts'
import type { Database } from './database.ts'

/**
 * Codes and limits in SQLite: each step of the port is one synchronous callback of the writer.
 *
 * @param isHashOf whether a stored hash is that of a keyed code under this record id; compares in constant time
 */
export function createOtpStore(
  { table, writer }: Pick<Database, 'table' | 'writer'>,
  isHashOf: Parameters<typeof otpSteps>[0],
): OtpStore {
  const steps: Steps = otpSteps(isHashOf)
  return {
    admit: (...input) => writer.write(() => steps.admit(table.records, ...input)),
    beginSend: (...input) => writer.write(() => steps.beginSend(table.records, ...input)),
    reschedule: (...input) => writer.write(() => steps.reschedule(table.records, ...input)),
    abandonSend: (...input) => writer.write(() => steps.abandonSend(table.records, ...input)),
    guess: (...input) => writer.write(() => steps.guess(table.records, ...input)),
  }
}
