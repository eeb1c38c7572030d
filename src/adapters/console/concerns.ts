import type { Channel } from '../../domain/contact.ts'
import type { Period, ProviderHealth } from '../../domain/events/statistics.ts'
import type { LimitName } from '../../domain/otp/limits.ts'
import { count, counted, duration, percent } from '../pages/words.ts'
import type { OverviewModel } from './models.ts'

/** A problem that an operator should look at: `bad` now, `warn` soon. */
export interface Concern {
  readonly tone: 'bad' | 'warn'
  readonly text: string
}

/** Below this, failures are carriers' and wrong numbers' normal share. */
const failureShare = 0.1

/** A share of fewer events says nothing. */
const fewest = 10

export function isTrouble(failures: number, tries: number): boolean {
  return tries >= fewest && failures / tries >= failureShare
}

export const channelNames: Readonly<Record<Channel, string>> = { SMS: 'SMS', EMAIL: 'e-mail' }

/** The end of a sentence. */
export const periodWords: Readonly<Record<Period, string>> = {
  hour: 'in the last hour',
  day: 'in the last 24 hours',
  month: 'in the last 30 days',
}

export const limitNames: Readonly<Record<LimitName, string>> = {
  'app-minute': 'Calls of an app per minute',
  cooldown: 'Cooldown between codes',
  'phone-minute': 'Codes to a phone per minute',
  'recipient-hour': 'Codes to a recipient per hour',
  failures: 'Wrong codes in 24 hours',
  credentials: 'Failed credentials per minute',
  'integration-requests': 'Integration requests per hour',
  'console-logins': 'Tries to sign in to the console',
}

/** Current problems, the worst first. */
export function concernsOf({ store, statistics, limited, providers }: OverviewModel): Concern[] {
  const { totals, period } = statistics
  const concerns: Concern[] = []
  const add = (tone: Concern['tone'], text: string) => void concerns.push({ tone, text })
  if (!store.isUsable) {
    add(
      'bad',
      'The database can not be used: nothing is sent or verified. Run otpost doctor, and see the log of the server.',
    )
  }
  if (store.lostRequests > 0) {
    add(
      store.isUsable ? 'warn' : 'bad',
      `${counted(store.lostRequests, 'request')} since this server began could not be written to the journal: the figures lack them.`,
    )
  }
  for (const provider of providers) {
    const concern = concernOf(provider, providers)
    if (concern) concerns.push(concern)
  }
  const codes = totals.sends + totals.sendsFailed
  if (isTrouble(totals.sendsFailed, codes)) {
    const share = percent(totals.sendsFailed / codes)
    add(
      'bad',
      `${counted(totals.sendsFailed, 'code')} of ${count(codes)} (${share}) could not be sent ${periodWords[period]}.`,
    )
  }
  if (isTrouble(totals.refused, totals.refused + totals.sends + totals.notified)) {
    add(
      'warn',
      `${counted(totals.refused, 'request')} ${periodWords[period]} were refused for their brand: it is suspended, pending or unknown, or has not enabled the template.`,
    )
  }
  if (totals.sends >= fewest && totals.verified === 0) {
    add(
      'warn',
      `None of the ${count(totals.sends)} codes sent ${periodWords[period]} was verified: they may not arrive.`,
    )
  }
  const deliveryReports = totals.delivered + totals.undelivered
  if (isTrouble(totals.undelivered, deliveryReports)) {
    const share = percent(totals.undelivered / deliveryReports)
    add(
      'warn',
      `Receipts say that ${counted(totals.undelivered, 'message')} of ${count(deliveryReports)} (${share}) did not arrive.`,
    )
  }
  const limitedApps = limited.filter(({ limit }) => limit === 'app-minute').map(({ app }) => app)
  for (const app of new Set(limitedApps)) {
    if (app === null) continue
    add('warn', `App ${app} is at its limit of calls per minute: more are refused.`)
  }
  return concerns.sort((a, b) => Number(b.tone === 'bad') - Number(a.tone === 'bad'))
}

function concernOf(provider: ProviderHealth, all: readonly ProviderHealth[]): Concern | undefined {
  const { name, channel, state, failuresInARow, openMs, lastHour } = provider
  const inARow = `after ${counted(failuresInARow, 'failure')} in a row`
  if (state === 'open') {
    const others = all.some((other) => other !== provider && standsIn(other, provider))
    const meanwhile = others
      ? `other providers take its ${channelNames[channel]} meanwhile`
      : `there is no other for its ${channelNames[channel]}, so it is asked all the same`
    return { tone: 'bad', text: `Provider ${name} rests for ${duration(openMs)} ${inARow}; ${meanwhile}.` }
  }
  if (state === 'half-open') {
    return { tone: 'bad', text: `Provider ${name} rested ${inARow}; one message tries it now.` }
  }
  const failed = lastHour.failed + lastHour.unknown
  const attempts = lastHour.accepted + failed
  if (!isTrouble(failed, attempts)) return undefined
  const share = percent(failed / attempts)
  return {
    tone: 'warn',
    text: `Provider ${name} failed ${count(failed)} of ${counted(attempts, 'message')} (${share}) in the last hour.`,
  }
}

/** Whether a provider's circuit is closed and it serves the same channel and one of the same routes. */
function standsIn(other: ProviderHealth, { channel, routes }: ProviderHealth): boolean {
  if (other.state !== 'closed' || other.channel !== channel) return false
  return routes.length === 0 || routes.some((route) => other.routes.includes(route))
}
