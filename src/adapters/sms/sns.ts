import { declare } from '../../config/setting.ts'
import type { Meaning } from '../../domain/delivery/provider-codes.ts'
import type { DeliveryReport, Outcome, Sms } from '../../domain/ground/providers.ts'
import { awsSettings, readAccount, signedPost } from './aws.ts'
import { firehoseAccessKey, firehoseReader } from './firehose.ts'
import { meaningOfStatus } from './http.ts'
import { apiUrl, failure, type SmsProviderSpec, wordTable } from './provider.ts'

const snsSettings = declare('AWS SNS', {
  SNS_SENDER_ID: {
    unset: 'unset: the account’s default',
    format: '3 to 11 letters, digits and hyphens, at least one letter',
    valid: [
      /^\s*(?=.*[A-Za-z])[A-Za-z0-9][A-Za-z0-9-]{1,9}[A-Za-z0-9]\s*$/,
      'must be 3 to 11 letters and digits, at least one of them a letter',
    ],
    meaning: 'The sender id.',
  },
  SNS_FIREHOSE_ACCESS_KEY: firehoseAccessKey,
  SNS_BASE_URL: { ...apiUrl, unset: 'the URL of `AWS_REGION`' },
})

/** Errors of Publish, and "Common Error Types" in the old and new spelling. */
const codes = wordTable<Meaning>({
  recipient: 'OptedOut',
  content: `
    InvalidParameter InvalidParameterCombination InvalidParameterValue InvalidQueryParameter
    InvalidAction MalformedQueryString MissingAction MissingParameter ParameterValueInvalid
    UserError ValidationError ValidationException
  `,
  account: `
    AccessDenied AccessDeniedException AuthorizationError ExpiredToken ExpiredTokenException
    IncompleteSignature InvalidClientTokenId InvalidSecurity MissingAuthenticationToken
    NotAuthorized OptInRequired RequestExpired SignatureDoesNotMatch UnrecognizedClientException
  `,
  retryable: 'ServiceUnavailable Throttled Throttling ThrottlingException',
  unknown: 'InternalError InternalFailure',
})

/**
 * Action Publish to a phone number; the template route adds the IDs of India's DLT.
 * SNS writes delivery reports only to CloudWatch Logs; Amazon Data Firehose sends them here.
 */
export const sns: SmsProviderSpec = {
  name: 'sns',
  routes: ['plain', 'template'],
  settings: { ...awsSettings, ...snsSettings },
  codes: { meanings: codes, page: () => 'https://docs.aws.amazon.com/sns/latest/api/CommonErrors.html' },
  configure(settings) {
    const account = readAccount(settings, 'sns')
    const usualSender = settings.optional(snsSettings.SNS_SENDER_ID)?.trim()
    const usualUrl = `https://sns.${account.region}.${account.domain}`
    const url = `${settings.baseUrl(snsSettings.SNS_BASE_URL, usualUrl)}/`
    const accessKey = settings.optional(snsSettings.SNS_FIREHOSE_ACCESS_KEY)
    return ({ now }) => ({
      name: 'sns',
      endpoint: url,
      send(sms, timeoutMs) {
        const headers = { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' }
        const body = requestOf(sms, usualSender).toString()
        return signedPost(account, { service: 'sns', url, headers, body }, now(), timeoutMs, outcomeOf)
      },
      deliveryReports: firehoseReader(accessKey, (object) => statusLogsOf(object).flatMap(reportsOf)),
    })
  },
}

function requestOf({ to, text, template, senderId }: Sms, usualSender: string | undefined): URLSearchParams {
  const request = new URLSearchParams({
    Action: 'Publish',
    Version: '2010-03-31',
    PhoneNumber: `+${to}`,
    Message: text,
  })
  const attributes = {
    'AWS.SNS.SMS.SMSType': 'Transactional',
    'AWS.SNS.SMS.SenderID': senderId ?? usualSender,
    'AWS.MM.SMS.EntityId': template?.entityId,
    'AWS.MM.SMS.TemplateId': template?.id,
  }
  const given = Object.entries(attributes).filter((each): each is [string, string] => Boolean(each[1]))
  for (const [index, [name, value]] of given.entries()) {
    const entry = `MessageAttributes.entry.${index + 1}`
    request.set(`${entry}.Name`, name)
    request.set(`${entry}.Value.DataType`, 'String')
    request.set(`${entry}.Value.StringValue`, value)
  }
  return request
}

function outcomeOf(status: number, text: string): Outcome {
  if (status >= 200 && status < 300) {
    const providerMessageId = textOf(text, 'PublishResponse', 'MessageId')
    return providerMessageId
      ? { kind: 'accepted', providerMessageId }
      : failure('unknown', 'unreadable answer')
  }
  const code = textOf(text, 'ErrorResponse', 'Code')
  // Only the message says which parameter is invalid.
  const isAboutNumber =
    code === 'InvalidParameter' && text.includes('<Message>Invalid parameter: PhoneNumber')
  const meaning = isAboutNumber ? 'recipient' : codes.get(code ?? '')
  return failure(meaning ?? meaningOfStatus(status), code ?? `HTTP ${status}`)
}

/** Undefined in a truncated response. */
function textOf(text: string, kind: 'PublishResponse' | 'ErrorResponse', tag: string): string | undefined {
  const answer = text.replace(/^\s*<\?xml[^>]*>/, '').trim()
  if (!answer.startsWith(`<${kind} `) && !answer.startsWith(`<${kind}>`)) return undefined
  if (!answer.endsWith(`</${kind}>`)) return undefined
  return new RegExp(`<${tag}>([\\w.-]{1,100})</${tag}>`).exec(answer)?.[1]
}

/** A CloudWatch message (a CONTROL_MESSAGE has no logs), or a log that Firehose extracted. */
function statusLogsOf(message: unknown): readonly unknown[] {
  const { messageType, logEvents } = Object(message)
  if (messageType === undefined) return [message]
  if (messageType !== 'DATA_MESSAGE' || !Array.isArray(logEvents)) return []
  return logEvents.map((event) => {
    try {
      return JSON.parse(Object(event).message)
    } catch {
      return undefined
    }
  })
}

/** "SMS delivery failure reasons"; they have no codes. */
const failureReasons: ReadonlySet<unknown> = new Set([
  'Blocked as spam by phone carrier',
  'Destination is on a blocked list',
  'Invalid phone number',
  'Message body is invalid',
  'Phone carrier has blocked this message',
  'Phone carrier is currently unreachable/unavailable',
  'Phone has blocked SMS',
  'Phone is on a blocked list',
  'Phone is currently unreachable/unavailable',
  'Phone number is opted out',
  'This delivery would exceed max price',
  'Unknown error attempting to reach phone',
])

function reportsOf(log: unknown): readonly DeliveryReport[] {
  const { notification, delivery, status } = Object(log)
  const { messageId: providerMessageId } = Object(notification)
  // Other logs may be in the same group.
  if (typeof providerMessageId !== 'string' || typeof status !== 'string') return []
  if (status === 'SUCCESS') return [{ providerMessageId, status: 'delivered', reason: null }]
  if (status !== 'FAILURE') return [{ providerMessageId, status: 'pending', reason: null }]
  const { providerResponse } = Object(delivery)
  const reason = failureReasons.has(providerResponse) ? providerResponse : status
  return [{ providerMessageId, status: 'failed', reason }]
}
