import { AwsV4Signer } from 'aws4fetch'
import { declare } from '../../config/setting.ts'
import type { Settings } from '../../config/settings.ts'
import type { Outcome } from '../../domain/ground/providers.ts'
import type { EpochMs } from '../../domain/ground/time.ts'
import { call, type HttpCall } from './http.ts'

const oneWord = [/^\s*[!-~]+\s*$/, 'must be one word'] as const

export const awsSettings = declare('AWS', {
  AWS_REGION: {
    format: 'region, such as `eu-west-1`',
    valid: [/^\s*[a-z0-9-]+\s*$/, 'must be a region such as eu-west-1'],
    meaning: 'The AWS region.',
  },
  AWS_ACCESS_KEY_ID: {
    format: 'text without spaces',
    valid: oneWord,
    secret: true,
    meaning: 'The access key id.',
  },
  AWS_SECRET_ACCESS_KEY: { format: 'text', secret: true, meaning: 'The secret access key.' },
  AWS_SESSION_TOKEN: {
    unset: 'unset',
    format: 'text without spaces',
    valid: oneWord,
    secret: true,
    meaning: 'The session token of temporary credentials.',
  },
})

type AwsAccount = ReturnType<typeof readAccount>

/** @param provider the provider that needs the settings, for the problems */
export function readAccount(settings: Settings, provider: string) {
  const why = `the SMS provider ${provider} needs it`
  // Without a region, the usual URLs must still be URLs.
  const region = settings.required(awsSettings.AWS_REGION, why).trim() || 'us-east-1'
  const credentials = {
    accessKeyId: settings.required(awsSettings.AWS_ACCESS_KEY_ID, why).trim(),
    secretAccessKey: settings.required(awsSettings.AWS_SECRET_ACCESS_KEY, why).trim(),
  }
  const sessionToken = settings.optional(awsSettings.AWS_SESSION_TOKEN)?.trim()
  return {
    region,
    /** Of the region's endpoints. */
    domain: region.startsWith('cn-') ? 'amazonaws.com.cn' : 'amazonaws.com',
    credentials: sessionToken === undefined ? credentials : { ...credentials, sessionToken },
  }
}

/** A POST with signature version 4. */
export async function signedPost(
  { region, credentials }: AwsAccount,
  {
    service,
    url,
    ...request
  }: Pick<HttpCall, 'headers'> & { readonly body: string; readonly service: string; readonly url: string },
  now: EpochMs,
  timeoutMs: number,
  outcomeOf: (status: number, text: string) => Outcome,
): Promise<Outcome> {
  const datetime = new Date(now).toISOString().replace(/[:-]|\.\d{3}/g, '')
  const about = {
    ...credentials,
    ...request,
    method: 'POST',
    url,
    service,
    region,
    allHeaders: true,
    datetime,
  }
  const { headers } = await new AwsV4Signer(about).sign()
  return call(url, { headers: Object.fromEntries(headers), body: request.body }, timeoutMs, outcomeOf)
}
