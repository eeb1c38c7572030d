import { type RequestContext, testAppId } from '../request/request-context.ts'
import { type AppResult, type AppStatKind, appResults, type StatKey } from './stats.ts'

export const appStatKinds: readonly AppStatKind[] = appResults.map((result) => `app-${result}` as const)

const failures: readonly string[] = ['sms_failed', 'notification_failed', 'internal_error']

export function appStat(request: RequestContext, error: string | undefined): StatKey | undefined {
  const { app } = request
  if (app === undefined || app === testAppId) return undefined
  return { kind: `app-${resultOf(request, error)}`, channel: '', brand: '', provider: '', detail: app }
}

function resultOf({ operation, limits, replayOf }: RequestContext, error: string | undefined): AppResult {
  if (limits.some(({ limit, refused }) => refused && limit === 'app-minute')) return 'limited'
  if (replayOf !== undefined) return 'other'
  if (error === undefined) return operation === 'verify' ? 'verified' : 'sent'
  return failures.includes(error) ? 'failed' : 'other'
}

/** Of the last 24 hours. */
export interface AppTraffic extends Readonly<Record<AppResult, number>> {
  /** The most calls of a minute that its limit did not reject. */
  readonly peak: number
}

export const noTraffic: AppTraffic = { sent: 0, verified: 0, failed: 0, limited: 0, other: 0, peak: 0 }

/** By app. */
export function trafficOf(
  counts: readonly { readonly kind: string; readonly app: string; readonly count: number }[],
  peaks: readonly { readonly app: string; readonly peak: number }[],
): ReadonlyMap<string, AppTraffic> {
  const traffic = new Map<string, AppTraffic>()
  for (const { kind, app, count } of counts) {
    const result = appResults.find((each) => kind === `app-${each}`)
    const known = traffic.get(app) ?? noTraffic
    if (result) traffic.set(app, { ...known, [result]: known[result] + count })
  }
  for (const { app, peak } of peaks) traffic.set(app, { ...(traffic.get(app) ?? noTraffic), peak })
  return traffic
}

/** How near an app comes to its calls per minute. Minutes of the clock and of the limit differ, so a peak can exceed it. */
export function limitUse({ peak, limited }: AppTraffic, perMinute: number): number {
  return limited > 0 ? 1 : Math.min(1, peak / perMinute)
}
