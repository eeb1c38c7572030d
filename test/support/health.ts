import type { HealthFacts } from '../../src/domain/health/facts.ts'
import {
  type Figures,
  type Lately,
  latelyOf,
  type ProviderHealth,
  type Statistics,
} from '../../src/domain/log/statistics.ts'
import { defaultThresholds } from '../../src/domain/policy/policy-store.ts'
import type { ReviewNumber } from '../../src/domain/policy/review-number.ts'

export const now = Date.UTC(2026, 2, 1, 12, 30)

export const none: Figures = {
  sends: 0,
  sendsFailed: 0,
  notified: 0,
  notifyFailed: 0,
  verified: 0,
  wrongCodes: 0,
  limited: 0,
  refused: 0,
  blocked: 0,
  accepted: 0,
  failed: 0,
  unknown: 0,
  delivered: 0,
  undelivered: 0,
}

export const provider: ProviderHealth = {
  name: 'kannel',
  channel: 'SMS',
  routes: ['plain'],
  state: 'closed',
  failuresInARow: 0,
  openMs: 0,
  lastHour: { accepted: 0, failed: 0, unknown: 0 },
  hasAccepted: true,
  pausedUntil: null,
}

export const noGuard: HealthFacts['guard'] = {
  mode: 'deny',
  blocked: new Map(),
  blocks: [],
  pumping: [],
}

/** Without figures. */
const quietly: Lately = latelyOf([], now)

/** Of a day with the given figures in its last hour and no others. */
export function healthFacts(
  figures: Partial<Figures> = {},
  {
    lastFailures = new Map(['sendsFailed', 'notifyFailed', 'kannel', 'old'].map((name) => [name, now])),
    attempts = [],
    budgets = [],
    providers = [],
    guard = noGuard,
    rejections = [],
    queue = { waiting: 0, oldestAt: null, failed: 0 },
    lately = quietly,
    traffic = [],
    thresholds = defaultThresholds,
    acknowledgements = [],
    open = new Map(),
    surges = [],
    webhooks = [],
    failingAlerts = [],
    reviewNumbers = [],
    server = { databaseError: null, freeBytes: 2 ** 40, lostRequests: 0, limited: [] },
  }: Partial<Omit<HealthFacts, 'statistics' | 'providerTimeoutMs'>> = {},
  about: Partial<Statistics> = {},
): HealthFacts {
  const hourMs = 3_600_000
  const totals = { ...none, ...figures }
  const from = Math.floor(now / hourMs) * hourMs - 23 * hourMs
  return {
    statistics: {
      period: 'day',
      from,
      until: now,
      stepMs: hourMs,
      count: 24,
      totals,
      points: Array.from({ length: 24 }, (_, step) => ({
        at: from + step * hourMs,
        ...(step === 23 ? totals : none),
      })),
      byBrand: [],
      byProvider: [],
      tries: new Map(
        about.byProvider?.map(({ name, accepted, failed, unknown }) => [
          name,
          [{ at: from + 23 * hourMs, failed: failed + unknown, all: accepted + failed + unknown }],
        ]),
      ),
      failures: [],
      verifyTimes: { count: 0, medianSeconds: null, p90Seconds: null, p95Seconds: null },
      late: [],
      rejectedReports: [],
      clockSteps: [],
      forwardedIgnoredAt: null,
      unnamedProofAt: null,
      ...about,
    },
    lately,
    traffic,
    thresholds,
    acknowledgements,
    open,
    lastFailures,
    attempts,
    budgets,
    providers,
    guard,
    surges,
    rejections,
    providerTimeoutMs: 4000,
    queue,
    webhooks,
    failingAlerts,
    reviewNumbers,
    server,
  }
}

export const reviewNumber: ReviewNumber = {
  subject: 'subject',
  brandSlug: 'acme',
  masked: '1202****143',
  keyedCode: 'keyed',
  createdAt: now,
  expiresAt: Date.UTC(2026, 2, 8),
}
