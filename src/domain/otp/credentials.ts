import type { Body } from '../body.ts'
import type { RequestContext } from '../events/request-context.ts'
import { Failure } from '../failures.ts'
import type { Apps, Clock, Secrets } from '../ports.ts'
import { claim } from './claims.ts'
import { credentialFailures } from './limits.ts'
import type { OtpStore } from './store.ts'

export interface CredentialPorts {
  readonly apps: Apps
  readonly store: Pick<OtpStore, 'admit'>
  readonly secrets: Pick<Secrets, 'subjects'>
  readonly now: Clock
}

/**
 * The credential check of every protected call (spec 5): 401 without credentials, 403 with wrong ones, and 429 from the 300th
 * failure of an IP address within a minute (design D22). Right credentials always pass. Resolves to the appId.
 */
export async function authenticate(
  ports: CredentialPorts,
  context: RequestContext,
  { appId, apiKey }: Body,
): Promise<string> {
  const failed = async (failure: Failure): Promise<never> => {
    await claim(ports, context, [credentialFailures(ports.secrets.subjects('ip', context.clientIp))])
    throw failure
  }
  if (!isText(appId)) return failed(new Failure('unauthorized', 'appId is required'))
  if (!isText(apiKey)) return failed(new Failure('unauthorized', 'API key is required'))
  if (!(await ports.apps.accepts(appId, apiKey))) return failed(new Failure('forbidden'))
  context.app = appId
  return appId
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

/** 1 to 64 visible ASCII characters without a colon (design D28; spec 4.3, invalid_app_id). */
export function isAppId(appId: string): boolean {
  return /^[!-9;-~]{1,64}$/.test(appId)
}

/** In characters. */
export const maxApiKeyLength = 512
