import { longestDeliveryMs } from '../delivery/delivery.ts'
import { advice, see } from '../ground/advice.ts'
import { type AuditReader, type AuditRecord, requestMailActions } from '../ground/audit.ts'
import { textProblem } from '../ground/body.ts'
import { OperatorError } from '../ground/operator-error.ts'
import type { Secrets } from '../ground/ports.ts'
import type { Mailer } from '../ground/providers.ts'
import { minuteMs } from '../ground/time.ts'
import type { IntegrationRequestRecord } from '../integration/integration.ts'
import { renderMail } from '../texts/emails.ts'
import type { ChangePorts } from './changes.ts'

/** To the contact of an integration request. Plain text with placeholders. */
export interface RequestMail {
  readonly subject: string
  readonly text: string
}

/** What an operator sends unless they change it. */
export const defaultMails: Readonly<Record<'approved' | 'rejected', RequestMail>> = {
  approved: {
    subject: 'Your integration request for {{brandName}} is approved',
    text: `Hello {{contactName}},

your integration request for {{brandName}} is approved.

Server: {{url}}
App ID: {{appId}}
Brand ID: {{brandId}}

You will receive the API key separately.

{{url}}/docs describes every call.`,
  },
  rejected: {
    subject: 'Your integration request for {{brandName}}',
    text: `Hello {{contactName}},

we cannot approve your integration request for {{brandName}}.`,
  },
}

const placeholderNames = ['contactName', 'companyName', 'brandName', 'url', 'appId', 'brandId'] as const
type Values = Readonly<Partial<Record<(typeof placeholderNames)[number], string>>>

function valuesOf(request: IntegrationRequestRecord, url: string): Values {
  const { contactName, companyName, brandName, appId, brandSlug } = request
  return {
    contactName,
    companyName,
    brandName,
    url,
    ...(appId !== null && { appId }),
    ...(brandSlug !== null && { brandId: brandSlug }),
  }
}

const placeholder = /\{\{\s*(\w+)\s*\}\}/g

/** Placeholders without a value stay. */
function filled(text: string, values: Values): string {
  const known: ReadonlyMap<string, string> = new Map(Object.entries(values))
  return text.replace(placeholder, (all, name: string) => known.get(name) ?? all)
}

/** The default, filled in as far as the request is decided. */
export function defaultRequestMail(
  status: 'approved' | 'rejected',
  request: IntegrationRequestRecord,
  url: string,
): RequestMail {
  const { subject, text } = defaultMails[status]
  const values = valuesOf(request, url)
  return { subject: filled(subject, values), text: filled(text, values) }
}

/** @throws OperatorError */
export function checkRequestMail({ subject, text }: RequestMail): void {
  const problem =
    textProblem('The subject of the e-mail', subject, { max: 255 }) ??
    textProblem('The text of the e-mail', text, { max: 10_000, lines: 'many' })
  if (problem) throw new OperatorError(problem)
  for (const [all, name] of `${subject}\n${text}`.matchAll(placeholder))
    if (!placeholderNames.some((known) => known === name))
      throw new OperatorError(
        `The e-mail has the unknown placeholder ${all}. The placeholders are ${placeholderNames.map((known) => `{{${known}}}`).join(', ')}.`,
      )
  if (/otp_live_\w{20}/.test(`${subject}\n${text}`))
    throw new OperatorError('The e-mail must not contain an API key. Send the key over a secure channel.')
}

export function requestIdOf(text: string): string {
  return text.trim().toLowerCase()
}

export function noRequest(requestId: string): OperatorError {
  return new OperatorError(
    `Request ${requestId} does not exist.`,
    advice`${see('request list')} lists the requests.`,
  )
}

/** The latest audit entry about an e-mail to the requester. */
export async function lastRequestMail(
  audit: AuditReader,
  requestId: string,
): Promise<AuditRecord | undefined> {
  const [last] = await audit.list({ target: requestId, actions: requestMailActions, limit: 1 })
  return last
}

interface RequestMailPorts extends ChangePorts {
  readonly secrets: Pick<Secrets, 'newId'>
  readonly mailer: Mailer
  readonly providerTimeoutMs: number
  readonly ownUrl: () => string
}

/**
 * After the decision. The audit log has an entry before the e-mail is sent and one after it. Of concurrent calls with the
 * same `after`, one sends.
 * @param after the id of the latest audit entry that the operator saw, null: none
 * @returns a sentence for the operator
 * @throws OperatorError also if the mail server does not accept the e-mail
 */
export async function mailRequester(
  { operator, actor, now, secrets, mailer, providerTimeoutMs, ownUrl }: RequestMailPorts,
  idAsGiven: string,
  mail: RequestMail,
  after: number | null,
): Promise<string> {
  checkRequestMail(mail)
  const target = requestIdOf(idAsGiven)
  const by = { actor, now: now() }
  const { request } = await operator.change({ requestId: target }, by, ({ request, lastMail }) => {
    if (!request) throw noRequest(target)
    if (request.status === 'pending')
      throw new OperatorError(`Request ${target} is pending. Approve or reject it first.`)
    const isSending = lastMail?.action === 'request.mail' && by.now - lastMail.at < minuteMs
    if (isSending || (lastMail?.id ?? null) !== after)
      throw new OperatorError(
        'An e-mail to the requester was sent or is being sent since you opened the form. Check its result, then send another if it is necessary.',
      )
    return { request, entry: { action: 'request.mail', target, details: {} } }
  })
  const values = valuesOf(request, ownUrl())
  const subject = filled(mail.subject, values)
  // As a value, so that braces in it are not read as placeholders.
  const content = renderMail(subject, '{{text}}', { text: filled(mail.text, values) })
  const about = { brandSlug: null, brandName: null, recipientHash: '', template: null, position: null }
  const addressed = { ...about, ...content, subject, to: request.contactEmail, requestId: secrets.newId() }
  const outcome = await mailer.send(addressed, 1, longestDeliveryMs(providerTimeoutMs))
  const isSent = outcome.kind === 'accepted'
  await operator.note({
    at: now(),
    actor,
    action: isSent ? 'request.mailed' : 'request.mail-failed',
    target,
    details: isSent ? { provider: mailer.name } : { reason: outcome.reason },
  })
  if (outcome.kind === 'unknown')
    throw new OperatorError(
      `The mail server did not confirm the e-mail: ${outcome.reason}. It may have been sent.`,
    )
  if (outcome.kind !== 'accepted')
    throw new OperatorError(`The e-mail was not sent: ${outcome.reason}. You can send it again.`)
  return mailer.name === 'outbox'
    ? 'The e-mail is in the outbox and does not reach the requester, because no mail server is configured (SMTP_URL).'
    : 'Sent the e-mail to the requester.'
}
