import type { Outgoing } from '../delivery/delivery.ts'
import type { NotifyWatch } from '../guard/notify-watch.ts'
import { unknownCountry } from '../guard/thresholds.ts'
import { uncounted } from '../limits/gates.ts'
import { type Claim, type Gate, newCountrySms } from '../limits/limits.ts'
import type { AppScope } from '../limits/scope.ts'
import { mayBeSent, noteFlag, type RequestContext } from '../request/request-context.ts'

export interface WatchedPorts {
  readonly notifyWatch: NotifyWatch
}

interface Watched {
  readonly app: Pick<AppScope, 'appId' | 'newCountrySmsPerDay'>
  readonly messages: readonly Outgoing[]
}

/** Records SMS that are unlike the history of the app, and claims its limit for new countries. An e-mail has none. */
export async function watched(
  { notifyWatch }: WatchedPorts,
  context: RequestContext,
  { app, messages, isQueued }: Watched & { readonly isQueued: boolean },
): Promise<Gate | undefined> {
  if (messages.length === 0) return undefined
  await notifyWatch.ready()
  const limit = newCountries(notifyWatch, context, { app, messages })
  return {
    // Each job claims its own.
    ...(isQueued ? { claims: uncounted(limit.claims) } : limit),
    admitted: () => {
      for (const flag of notifyWatch.add(app.appId, smsIn(messages))) noteFlag(context, flag)
    },
  }
}

/** The same limit, for a job of an asynchronous notification. */
export async function watchedJob(
  { notifyWatch }: WatchedPorts,
  context: RequestContext,
  job: Watched,
): Promise<Gate> {
  await notifyWatch.ready()
  return newCountries(notifyWatch, context, job)
}

function newCountries(watch: NotifyWatch, context: RequestContext, { app, messages }: Watched) {
  const { appId, newCountrySmsPerDay: most } = app
  const claims: Claim[] = []
  const positions: (readonly (number | null)[])[] = []
  for (const [country, all] of Map.groupBy(smsIn(messages), ({ country }) => country)) {
    if (most === null) break
    const bestDay = watch.bestDay(appId, country)
    // Messages of two days may be sent in one, for example of a queue. They must not end the limit.
    if (bestDay === undefined || bestDay > 2 * most) continue
    claims.push(newCountrySms(appId, country, all.length, most))
    positions.push(all.map(({ position }) => position))
  }
  return {
    claims,
    settle: (_, grants) => {
      const sent = new Set(context.attempts.filter(mayBeSent).map(({ position }) => position))
      const back = grants.map((grant, index) => {
        const unsent = positions[index]?.filter((position) => !sent.has(position)) ?? []
        return { ...grant, units: unsent.length }
      })
      return { back: back.filter(({ units }) => units > 0) }
    },
  } satisfies Gate
}

function smsIn(messages: readonly Outgoing[]) {
  const sms = messages.filter((message) => 'steps' in message)
  return sms.map(({ to, position, country }) => ({ to, position, country: country ?? unknownCountry }))
}
