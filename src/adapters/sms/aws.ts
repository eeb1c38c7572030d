import { AwsV4Signer } from 'aws4fetch'
import { declare } from '../../config/setting.ts'
import type { Settings } from '../../config/settings.ts'
import type { Clock } from '../../domain/ground/time.ts'
import { type HttpResult, post } from './http.ts'

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

export interface AwsAccount {
  readonly region: string
  /** Of the region's endpoints. */
  readonly domain: string
  readonly credentials: {
    readonly accessKeyId: string
    readonly secretAccessKey: string
    readonly sessionToken?: string
  }
}

/** @param provider the provider that needs the settings, for the problems */
export function readAccount(settings: Settings, provider: string): AwsAccount {
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
    domain: region.startsWith('cn-') ? 'amazonaws.com.cn' : 'amazonaws.com',
    credentials: sessionToken === undefined ? credentials : { ...credentials, sessionToken },
  }
}

interface AwsRequest {
  readonly service: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** A POST with signature version 4. */
export async function signedPost(
  { region, credentials }: AwsAccount,
  { service, url, headers: given, body }: AwsRequest,
  now: Clock,
  timeoutMs: number,
): Promise<HttpResult> {
  const { headers } = await new AwsV4Signer({
    ...credentials,
    method: 'POST',
    url,
    headers: given,
    body,
    service,
    region,
    allHeaders: true,
    datetime: new Date(now()).toISOString().replace(/[:-]|\.\d{3}/g, ''),
  }).sign()
  return post(url, { headers: Object.fromEntries(headers), body }, timeoutMs)
}
