import type { StatKind } from './stats.ts'

/** Of the last 24 hours. */
export interface AppTraffic {
  readonly sent: number
  readonly verified: number
  readonly failed: number
  /** By the calls per minute of the app. */
  readonly limited: number
  /** The most calls of a minute that its limit did not reject. */
  readonly peak: number
}

export const noTraffic: AppTraffic = { sent: 0, verified: 0, failed: 0, limited: 0, peak: 0 }

const failures: readonly string[] = ['sms_failed', 'notification_failed', 'internal_error']

/** What became of the calls of an app. Undefined: none of these. */
function resultOf(kind: StatKind, detail: string): Exclude<keyof AppTraffic, 'peak'> | undefined {
  if (kind === 'limited') return 'limited'
  if (failures.includes(detail)) return 'failed'
  if (detail !== 'ok' && detail !== 'review') return undefined
  return kind === 'verify' ? 'verified' : 'sent'
}

/** By app. */
export function trafficOf(
  counts: readonly {
    readonly kind: StatKind
    readonly detail: string
    readonly app: string
    readonly count: number
  }[],
  peaks: readonly { readonly app: string; readonly peak: number }[],
): ReadonlyMap<string, AppTraffic> {
  const traffic = new Map<string, AppTraffic>()
  for (const { kind, detail, app, count } of counts) {
    const result = resultOf(kind, detail)
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
