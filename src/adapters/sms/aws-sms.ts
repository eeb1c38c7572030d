import { declare } from '../../config/setting.ts'
import type { Meaning } from '../../domain/delivery/provider-codes.ts'
import type { DeliveryReport, Outcome, Sms } from '../../domain/ground/providers.ts'
import { readAccount, signedPost } from './aws.ts'
import { firehoseAccessKey, firehoseReader } from './firehose.ts'
import { meaningOfStatus } from './http.ts'
import { apiUrl, failure, type SmsProviderSpec, wordTable } from './provider.ts'
import { fieldsOf } from './reading.ts'

const asAwsShows = 'must be a name or ARN without spaces, as the AWS console shows it'

const awsSmsSettings = declare('AWS End User Messaging SMS', {
  AWS_SMS_SENDER: {
    unset: 'unset: AWS selects one of the account',
    format: 'phone number with `+`, sender id, pool id, or ARN',
    valid: [/^\s*[\w:/+-]{1,256}\s*$/, asAwsShows],
    meaning: 'The origination identity of the messages.',
  },
  AWS_SMS_CONFIGURATION_SET: {
    unset: 'unset: no delivery reports',
    format: 'name or ARN',
    valid: [/^\s*[\w:/-]{1,256}\s*$/, asAwsShows],
    meaning: 'The configuration set of the messages. Its event destination sends the delivery reports.',
  },
  AWS_SMS_FIREHOSE_ACCESS_KEY: firehoseAccessKey,
  AWS_SMS_BASE_URL: { ...apiUrl, unset: 'the URL of `AWS_REGION`' },
})

/** Exceptions and their reasons, and "Common Errors". Others have the meaning of their status, 400: `content`. */
const codes = wordTable<Meaning>({
  recipient: 'DESTINATION_PHONE_NUMBER_OPTED_OUT',
  account: `
    AccessDenied AccessDeniedException ExpiredToken ExpiredTokenException IncompleteSignature
    InvalidClientTokenId InvalidSignatureException MissingAuthenticationToken
    MissingAuthenticationTokenException NotAuthorized OptInRequired RequestExpired
    ServiceQuotaExceededException SignatureDoesNotMatch UnrecognizedClientException
  `,
  retryable: `
    RequestTimeoutException ServiceUnavailable ServiceUnavailableException Throttling ThrottlingException
  `,
  unknown: 'InternalFailure InternalServerException',
})

/** API "pinpoint-sms-voice-v2": actions SendTextMessage and PutMessageFeedback. */
export const awsSms: SmsProviderSpec = {
  name: 'aws-sms',
  routes: ['plain', 'template'],
  settings: awsSmsSettings,
  codes: {
    meanings: codes,
    page: () => 'https://docs.aws.amazon.com/pinpoint/latest/apireference_smsvoicev2/CommonErrors.html',
  },
  configure(settings) {
    const account = readAccount(settings, 'aws-sms')
    const sender = settings.optional(awsSmsSettings.AWS_SMS_SENDER)?.trim()
    const set = settings.optional(awsSmsSettings.AWS_SMS_CONFIGURATION_SET)?.trim()
    const usualUrl = `https://sms-voice.${account.region}.${account.domain}`
    const url = `${settings.baseUrl(awsSmsSettings.AWS_SMS_BASE_URL, usualUrl)}/`
    const accessKey = settings.optional(awsSmsSettings.AWS_SMS_FIREHOSE_ACCESS_KEY)
    return ({ now }) => {
      const call = (action: string, request: object, timeoutMs: number) => {
        const headers = {
          'content-type': 'application/x-amz-json-1.0',
          'x-amz-target': `PinpointSMSVoiceV2.${action}`,
        }
        const body = JSON.stringify(request)
        return signedPost(account, { service: 'sms-voice', url, headers, body }, now(), timeoutMs, outcomeOf)
      }
      return {
        name: 'aws-sms',
        endpoint: url,
        send: (sms, timeoutMs) => call('SendTextMessage', requestOf(sms, sender, set), timeoutMs),
        reportConversion: (MessageId, timeoutMs) =>
          call('PutMessageFeedback', { MessageId, MessageFeedbackStatus: 'RECEIVED' }, timeoutMs),
        deliveryReports: firehoseReader(accessKey, reportsOf),
      }
    }
  },
}

/** Amazon's limits of TimeToLive. */
const [minValiditySeconds, maxValiditySeconds] = [5, 259_200]

function requestOf(
  { to, text, template, senderId, validitySeconds, expectsFeedback }: Sms,
  sender: string | undefined,
  set: string | undefined,
): object {
  const india = {
    ...(template?.entityId ? { IN_ENTITY_ID: template.entityId } : {}),
    ...(template?.id ? { IN_TEMPLATE_ID: template.id } : {}),
  }
  // Properties that are undefined are not sent.
  return {
    DestinationPhoneNumber: `+${to}`,
    OriginationIdentity: senderId ?? sender,
    MessageBody: text,
    MessageType: 'TRANSACTIONAL',
    ConfigurationSetName: set,
    TimeToLive:
      validitySeconds === null
        ? undefined
        : Math.min(Math.max(Math.floor(validitySeconds), minValiditySeconds), maxValiditySeconds),
    DestinationCountryParameters: Object.keys(india).length > 0 ? india : undefined,
    MessageFeedbackEnabled: expectsFeedback || undefined,
  }
}

function outcomeOf(status: number, text: string): Outcome {
  const { MessageId: providerMessageId, __type: type, Reason: reason, Fields: fields } = fieldsOf(text)
  if (status >= 200 && status < 300) {
    return typeof providerMessageId === 'string' && /^[\w:/-]{1,64}$/.test(providerMessageId)
      ? { kind: 'accepted', providerMessageId }
      : failure('unknown', 'unreadable answer')
  }
  // The type may have a namespace and `#` before it.
  const exception = typeof type === 'string' ? /(?:^|#)([A-Za-z]{1,60})$/.exec(type)?.[1] : undefined
  const detail = typeof reason === 'string' && /^[A-Z_]{1,80}$/.test(reason) ? reason : undefined
  const isAboutNumber =
    Array.isArray(fields) && fields.some((field) => Object(field).Name === 'DestinationPhoneNumber')
  const meaning = isAboutNumber ? 'recipient' : (codes.get(detail ?? '') ?? codes.get(exception ?? ''))
  return failure(meaning ?? meaningOfStatus(status), detail ?? exception ?? `HTTP ${status}`)
}

/** "Event types for SMS". TEXT_UNKNOWN: no report of the carrier in 72 hours. */
const events = wordTable<DeliveryReport['status']>({
  pending: 'TEXT_PENDING TEXT_QUEUED TEXT_SENT TEXT_UNKNOWN',
  delivered: 'TEXT_DELIVERED TEXT_SUCCESSFUL',
  failed: `
    TEXT_BLOCKED TEXT_CARRIER_BLOCKED TEXT_CARRIER_UNREACHABLE TEXT_INVALID TEXT_INVALID_MESSAGE
    TEXT_PROTECT_BLOCKED TEXT_SPAM TEXT_TTL_EXPIRED TEXT_UNREACHABLE
  `,
})

function reportsOf(event: unknown): readonly DeliveryReport[] {
  const { eventType, messageId: providerMessageId, isFinal } = Object(event)
  const status = typeof eventType === 'string' ? events.get(eventType) : undefined
  // A configuration set may also report calls and pictures.
  if (status === undefined || typeof providerMessageId !== 'string') return []
  if (status !== 'failed') return [{ providerMessageId, status, reason: null }]
  return isFinal === false
    ? [{ providerMessageId, status: 'pending', reason: null }]
    : [{ providerMessageId, status, reason: eventType }]
}
