import { minuteMs } from '../../domain/ground/time.ts'
import { isLate } from '../../domain/notify/queue.ts'
import { type Finding, warn } from './finding.ts'

/** Design D46. @param oldestJobAt of the queue; null: no job is waiting */
export function queueFindings(oldestJobAt: number | null, now: number): readonly Finding[] {
  if (!isLate(oldestJobAt, now)) return []
  const minutes = Math.floor((now - oldestJobAt) / minuteMs)
  return [
    warn(
      'queue',
      `An asynchronous notification has waited for ${minutes === 1 ? '1 minute' : `${minutes} minutes`}.`,
      'See the reason with `otpost queue list`. If no server runs, start one with `otpost serve`.',
    ),
  ]
}
