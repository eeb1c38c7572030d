import { see } from '../ground/advice.ts'
import type { Alert } from '../ground/alert.ts'
import { ago, count, counted, utc } from '../ground/format.ts'
import { type EpochMs, hourMs } from '../ground/time.ts'
import type { Surge } from '../guard/notify-watch.ts'
import { type Problem, warn } from './problem.ts'
import { placeOf } from './pumping-problems.ts'

export const surgeKind = 'notify.surge'

/** An app sends SMS notifications to countries or number ranges to which it did not send as many before. */
export interface SurgeAlert {
  readonly appId: string
  /** ISO 3166-1 */
  readonly countries: readonly string[]
  readonly message: string
  readonly remedy: string
}

const mostSurges = 5

/** Servers that find the same at once have the same key. */
export function surgeAlert(appId: string, surges: readonly Surge[], at: EpochMs) {
  const countries = surges.map(({ country }) => country).sort()
  const others = surges.length - mostSurges
  const words = surges.slice(0, mostSurges).map(surgeWords)
  if (others > 0) words.push(counted(others, 'other country', 'other countries'))
  const data: SurgeAlert = {
    appId,
    countries,
    message: `App ${appId} sends more SMS notifications than before: ${words.join('; ')}.`,
    remedy:
      'They are still sent. If they are not genuine, the API key may have leaked: rotate it, and limit the SMS to new countries in the scope of the app.',
  }
  const key = `notify ${appId} ${countries.join()} ${utc(at).slice(0, 10)}`
  return { key, title: `App ${appId} sends more SMS notifications than before`, data }
}

export function isAlertOf({ text }: Alert, appId: string, country: string): boolean {
  const data: SurgeAlert = JSON.parse(text)
  return data.appId === appId && data.countries.includes(country)
}

function surgeWords({ country, range, inDay, inHour, bestDay }: Surge): string {
  const place = placeOf(country)
  if (range !== null) return `many to the number range +${range}… (${place})`
  return `${count(inDay)} to ${place} in 24 hours, ${count(inHour)} of them in one hour, before at most ${count(bestDay)} a day`
}

/** @param alerts oldest first */
export function surgeProblems(alerts: readonly Alert[], now: EpochMs): Problem[] {
  return alerts.slice(-3).map(({ at, text }) => {
    const { appId, message, remedy }: SurgeAlert = JSON.parse(text)
    const rows = { app: appId, channel: 'SMS', since: at - hourMs } as const
    const sees = [see('app rotate', { appId }), see('app set', { appId })]
    return warn('guard', `${message.replace(/\.$/, '')} (${ago(at, now)}).`, remedy, ...sees, {
      list: 'deliveries',
      filters: rows,
    })
  })
}
