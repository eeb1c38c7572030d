import type { Body } from '../body.ts'
import type { RequestContext } from '../events/request-context.ts'
import { Failure } from '../failures.ts'
import type { Apps, Secrets } from '../ports.ts'
import type { Clock } from '../time.ts'
import { claim } from './claims.ts'
import { credentialFailures } from './limits.ts'
import type { OtpStore } from './store.ts'

export interface CredentialPorts {
  readonly apps: Apps
  readonly store: Pick<OtpStore, 'admit'>
  readonly secrets: Pick<Secrets, 'subjects'>
  readonly now: Clock
}

/** Spec 5, design D22. Valid credentials are never rate-limited. Returns the appId. */
export async function authenticate(
  ports: CredentialPorts,
  context: RequestContext,
  { appId, apiKey }: Body,
): Promise<string> {
  const failed = async (failure: Failure): Promise<never> => {
    await claim(ports, context, [credentialFailures(ports.secrets.subjects('ip', context.clientIp))])
    throw failure
  }
  if (!isText(appId))
    return failed(
      new Failure('unauthorized', 'appId is required. Send `appId` and `apiKey` in the JSON body.'),
    )
  if (!isText(apiKey))
    return failed(new Failure('unauthorized', 'API key is required. Send it as `apiKey` in the JSON body.'))
  if (!(await ports.apps.accepts(appId, apiKey))) return failed(new Failure('forbidden'))
  context.app = appId
  return appId
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

/** 1 to 64 visible ASCII characters without a colon (design D28, spec 4.3). */
export function isAppId(appId: string): boolean {
  return /^[!-9;-~]{1,64}$/.test(appId)
}

export const maxApiKeyLength = 512
