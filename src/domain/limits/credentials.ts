import { type Body, isGiven } from '../ground/body.ts'
import { Failure } from '../ground/failures.ts'
import type { Apps, Secrets } from '../ground/ports.ts'
import type { Clock, EpochMs } from '../ground/time.ts'
import type { Authorization, RequestContext } from '../request/request-context.ts'
import type { ClaimStore } from './claim-store.ts'
import { granted } from './gates.ts'
import { type Claim, credentialFailures, wideNetworkOf, widened } from './limits.ts'
import { type AppOperation, type AppScope, allows } from './scope.ts'

export interface CredentialPorts {
  readonly apps: Apps
  readonly store: Pick<ClaimStore, 'admit'>
  readonly secrets: Pick<Secrets, 'subjects'>
  readonly now: Clock
  readonly rejections: CredentialRejections
}

/** Spec 5, design D22. Valid credentials are never rate-limited. Returns the appId. */
export async function authenticate(
  ports: CredentialPorts,
  context: RequestContext,
  body: Body,
): Promise<string> {
  const { appId, apiKey } = body
  const { authorization } = context
  if (authorization !== undefined) return authenticateByHeader(ports, context, body, authorization)
  if (isText(appId) && isText(apiKey) && (await ports.apps.accepts(appId, apiKey, context.clientIp))) {
    context.app = appId
    return appId
  }
  await ports.rejections.count(ports, context)
  if (!isText(appId))
    throw new Failure('unauthorized', 'appId is required. Send `appId` and `apiKey` in the JSON body.')
  if (!isText(apiKey))
    throw new Failure('unauthorized', 'API key is required. Send it as `apiKey` in the JSON body.')
  throw new Failure('forbidden')
}

/** Design D49. */
async function authenticateByHeader(
  ports: CredentialPorts,
  context: RequestContext,
  body: Body,
  header: Authorization | 'malformed',
): Promise<string> {
  context.authorization = undefined
  const app = header === 'malformed' ? undefined : await appOf(ports.apps, context, body, header)
  if (app !== undefined) {
    context.app = app
    return app
  }
  await ports.rejections.count(ports, context)
  if (header !== 'malformed') throw new Failure('forbidden')
  const forms = '`Bearer` with an API key, or `Basic` with the base64 of appId, colon and API key'
  throw new Failure('unauthorized', `The Authorization header must be ${forms}.`)
}

/** Undefined: the header is wrong, or the body has another appId or apiKey. */
async function appOf(
  apps: Apps,
  { clientIp }: RequestContext,
  { appId, apiKey }: Body,
  header: Authorization,
): Promise<string | undefined> {
  const isSame = (app: string, key: string) =>
    (!isGiven(appId) || appId === app) && (!isGiven(apiKey) || apiKey === key)
  if (header.scheme === 'bearer') {
    const app = await apps.appOf(header.token, clientIp)
    return app !== undefined && isSame(app, header.token) ? app : undefined
  }
  const { user, password } = header
  return isSame(user, password) && (await apps.accepts(user, password, clientIp)) ? user : undefined
}

/** The rejections that one claim in the store counts. */
const groupSize = 10

/** Bounds memory, since clients choose their IP addresses. */
const mostIps = 10_000

interface Window {
  readonly claim: Claim
  readonly learnedAt: EpochMs
  readonly expiresAt: EpochMs
  readonly isExhausted: boolean
  /** Rejections including all of the last group. */
  readonly count: number
  /** Rejections that the last group still covers. */
  left: number
}

/**
 * Counts rejected credentials in groups of ten: the store counts a group as one, and is not asked again until the group is
 * used up, or until the end of an exhausted window. All servers of a database together never exceed the limit; each may
 * leave nine rejections unused.
 */
export class CredentialRejections {
  private readonly windows = new Map<string, Window | Promise<Window>>()

  /** Throws or rejects if the limit is exhausted. */
  count(ports: CountingPorts, context: RequestContext): Promise<void> | undefined {
    const wide = wideNetworkOf(context.clientIp)
    const counted = this.countOf(context.clientIp, ports, context)
    if (wide === undefined) return counted
    return counted
      ? counted.then(() => this.countOf(wide, ports, context))
      : this.countOf(wide, ports, context)
  }

  /** @param network an IP address as limits count it, or the /48 of an IPv6 client */
  private countOf(network: string, ports: CountingPorts, context: RequestContext): Promise<void> | undefined {
    const known = this.windows.get(network)
    // All requests at once for a network wait for one group.
    if (known instanceof Promise) return known.then(() => this.countOf(network, ports, context))
    const now = ports.now()
    // An instant before `learnedAt`: the clock was set back.
    const isOpen = known && known.learnedAt <= now && now < known.expiresAt
    if (!isOpen || (known.left === 0 && !known.isExhausted))
      return this.claimGroup(network, ports, context, now)
    countIn(known, context, now)
    return undefined
  }

  private async claimGroup(
    network: string,
    ports: CountingPorts,
    context: RequestContext,
    now: EpochMs,
  ): Promise<void> {
    if (this.windows.size >= mostIps) this.windows.clear()
    const claiming = claimWindow(ports, network, now)
    this.windows.set(network, claiming)
    try {
      const window = await claiming
      this.windows.set(network, window)
      countIn(window, context, now)
    } catch (error) {
      if (this.windows.get(network) === claiming) this.windows.delete(network)
      throw error
    }
  }
}

type CountingPorts = Pick<CredentialPorts, 'store' | 'secrets' | 'now'>

async function claimWindow(
  { store, secrets }: CountingPorts,
  network: string,
  now: EpochMs,
): Promise<Window> {
  const ofNetwork = credentialFailures(secrets.subjects('ip', network))
  const claim = network.endsWith('/48') ? widened(ofNetwork) : ofNetwork
  const decision = await store.admit([{ ...claim, max: claim.max / groupSize }], now)
  const about = { claim, learnedAt: now }
  if (!decision.allowed) {
    return { ...about, expiresAt: decision.expiresAt, isExhausted: true, count: claim.max, left: 0 }
  }
  const [{ count, expiresAt } = { count: 0, expiresAt: now }] = decision.counts
  return { ...about, expiresAt, isExhausted: false, count: count * groupSize, left: groupSize }
}

function countIn(window: Window, context: RequestContext, now: EpochMs): void {
  const { claim, expiresAt, isExhausted } = window
  if (isExhausted) {
    granted(context, [claim], { allowed: false, refusedBy: 0, expiresAt, resetsInMs: expiresAt - now })
    return
  }
  window.left--
  const counts = [{ count: window.count - window.left, expiresAt }]
  granted(context, [claim], { allowed: true, counts })
}

/**
 * What the app may do (design D38).
 * @throws Failure `forbidden` if the operation is not one of the app's
 */
export function permitted(
  policy: { scopeOf(appId: string): AppScope },
  appId: string,
  operation: AppOperation,
): AppScope {
  const app = policy.scopeOf(appId)
  if (allows(app, operation)) return app
  const what = operation === 'otp' ? 'send and verify codes' : 'send notifications'
  throw new Failure(
    'forbidden',
    `This app may not ${what}. The operator of this server can allow it for the app.`,
  )
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

/** 1 to 64 visible ASCII characters without a colon (design D28, spec 4.3). */
export function isAppId(appId: string): boolean {
  return /^[!-9;-~]{1,64}$/.test(appId)
}

export const maxApiKeyLength = 512
