import type { Body } from '../body.ts'
import type { RequestContext } from '../events/request-context.ts'
import { Failure } from '../failures.ts'
import type { Apps } from '../ports.ts'
import { claim, credentialFailures, granted, noteLimitStatuses } from './limits.ts'
import type { OtpStore } from './store.ts'
import { type SubjectPorts, subjectOf } from './subject.ts'

export interface CredentialPorts extends SubjectPorts {
  readonly apps: Apps
  readonly store: Pick<OtpStore, 'admit' | 'check' | 'rekey'>
}

/**
 * The credential check of every protected call (spec 5): 401 where one is missing, 403 where the pair is not valid; and
 * 429 for a network address that failed too often within a minute (design D22), whatever it sends until that is over.
 * Resolves to the appId.
 */
export async function authenticate(
  ports: CredentialPorts,
  context: RequestContext,
  body: Body,
): Promise<string> {
  const { appId, apiKey } = body
  const failures = credentialFailures(await subjectOf(ports, 'ip', context.clientIp))
  const now = ports.now()
  const checked = await ports.store.check(failures, now)
  // Where there is room it stood in nobody's way, and is not told of.
  if (!checked.admitted) noteLimitStatuses(context, [failures], checked)
  granted(checked, now)
  const failed = async (failure: Failure) => {
    await claim(ports, context, [failures])
    return failure
  }
  if (!isText(appId)) throw await failed(new Failure('unauthorized', 'appId is required'))
  if (!isText(apiKey)) throw await failed(new Failure('unauthorized', 'API key is required'))
  if (!(await ports.apps.accepts(appId, apiKey))) throw await failed(new Failure('forbidden'))
  context.app = appId
  return appId
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

/** An appId in normal form: 1 to 64 visible characters without a colon (spec 4.3, invalid_app_id). */
export function isAppId(appId: string): boolean {
  return /^[^\s\p{C}:]{1,64}$/u.test(appId)
}
