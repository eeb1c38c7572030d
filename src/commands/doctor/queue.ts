import { minuteMs } from '../../domain/time.ts'
import { type Finding, warn } from './finding.ts'

const longestWaitMs = 10 * minuteMs

/** Design D46. @param oldestJobAt of the queue; null: no job is waiting */
export function queueFindings(oldestJobAt: number | null, now: number): readonly Finding[] {
  if (oldestJobAt === null || now - oldestJobAt < longestWaitMs) return []
  const minutes = Math.floor((now - oldestJobAt) / minuteMs)
  return [
    warn(
      'queue',
      `An asynchronous notification has waited for ${minutes} minutes.`,
      'See the reason with `otpost queue list`. If no server runs, start one with `otpost serve`.',
    ),
  ]
}
