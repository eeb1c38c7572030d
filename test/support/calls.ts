import { Breakers } from '../../src/domain/delivery/breaker.ts'
import type { DeliveryPorts } from '../../src/domain/delivery/delivery.ts'
import { Turns } from '../../src/domain/delivery/turns.ts'
import type { Segments } from '../../src/domain/ground/providers.ts'
import type { Clock } from '../../src/domain/ground/time.ts'
import { Guard } from '../../src/domain/guard/guard.ts'
import type { Claim } from '../../src/domain/limits/limits.ts'
import { newRequestContext, type RequestContext } from '../../src/domain/request/request-context.ts'
import type { EventLog } from '../../src/domain/request/request-trace.ts'

/** A request that has just come. */
export function newContext(properties: Partial<RequestContext> = {}): RequestContext {
  const request = { requestId: 'request 1', at: 0, clientIp: '192.0.2.1' }
  return { ...newRequestContext(request), ...properties }
}

/** A claim of a limit of three a minute. */
export function claimOf(properties: Partial<Claim> = {}): Claim {
  return {
    limit: 'app-minute',
    subject: ['someone'],
    name: 'minute',
    max: 3,
    windowMs: 60_000,
    counted: true,
    failure: 'rate_limited',
    scope: 'per minute',
    ...properties,
  }
}

/** What an integrator enters to request access. */
export const accessRequest = {
  companyName: 'Globex Ltd',
  contactName: 'Jo Doe',
  contactEmail: 'jo@globex.example',
  brandName: 'Globex',
} as const

/** An event log that stores nothing. */
export const noEventLog: EventLog = { note: () => {}, flush: async () => {} }

/** Every text is one segment. */
export const oneSegment = (): Segments => ({ count: 1, encoding: 'GSM-7' })

/** What a delivery needs besides its providers and clocks. */
export function deliveryBasics(
  stopwatch: Clock,
): Pick<DeliveryPorts, 'breakers' | 'turns' | 'eventLog' | 'callbackUrl'> {
  return {
    breakers: new Breakers(stopwatch),
    // No time passes while a call waits for its turn.
    turns: new Turns(() => () => {}),
    eventLog: noEventLog,
    callbackUrl: () => null,
  }
}

/** For requests without an Idempotency-Key. */
export const noIdempotency = {
  idempotencyKeys: { find: async () => undefined, release: async () => {} },
  owner: 'test',
  hasEnded: () => false,
} as const

/** Passes every code. */
export const noGuard = new Guard({
  store: {
    saveBuckets: async () => {},
    bucketsSince: async () => [],
    saveBlocks: async () => {},
    prefixes: async () => [],
    isVerified: async () => false,
    verifiedHistory: async () => [],
  },
  now: () => 0,
  log: { info() {}, warn() {}, error() {} },
  mode: () => 'off',
  node: 'test',
})
