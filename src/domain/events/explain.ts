import type { FailureKind } from '../failures.ts'
import type { RejectionScope } from '../messages/providers.ts'
import type { LimitName } from '../otp/limits.ts'
import { type Delivery, type RequestTrace, statusOf } from './event-log.ts'
import type { LimitStatus, Operation } from './request-context.ts'

export function explain(trace: RequestTrace, deliveries: readonly Delivery[]): readonly string[] {
  return [
    ...opening(trace),
    '',
    'Checks',
    ...checks(trace).map((line) => `  ${line}`),
    ...deliverySection(trace, deliveries),
    ...adviceSection(trace, deliveries),
  ]
}

function opening(trace: RequestTrace): string[] {
  const { requestId, at, operation, app, brand, channel, recipient, recipients, end } = trace
  const by = channel === 'EMAIL' ? ' by mail' : channel === 'SMS' ? ' by SMS' : ''
  const what: Readonly<Record<Operation, string>> = {
    send: `a code${by}`,
    resend: `another code${by}`,
    verify: 'a code to be checked',
    notify: `a notification${by}`,
  }
  const whom =
    recipient !== null
      ? ` ${operation === 'verify' ? 'of' : 'to'} ${recipient}`
      : recipients !== null
        ? ` to ${recipients} recipients`
        : ''
  const forBrand = brand === null ? '' : `, for brand ${brand}`
  return [
    `Request ${requestId}`,
    `On ${time(at)} app ${app} asked for ${what[operation]}${whom}${forBrand} (${paths[operation]}).`,
    end === null
      ? 'It was let through and then never answered: it is still under way, or the server ended meanwhile. What was handed over in its last moments may not be listed here.'
      : `It was answered after ${seconds(end.durationMs)}: ${end.status} ${end.error ?? 'success'}.`,
  ]
}

const paths: Readonly<Record<Operation, string>> = {
  send: 'POST /otp/send',
  resend: 'POST /otp/resend',
  verify: 'POST /otp/verify',
  notify: 'POST /notify',
}

type Stage = 'brand' | 'limits' | 'fields' | 'code' | 'delivery' | 'inside'

const refusals: Readonly<Record<FailureKind, readonly [stage: Stage, meaning?: string]>> = {
  brand_id_required: ['brand', 'the request named no brand'],
  brand_not_approved: ['brand', 'the brand is unknown or still pending'],
  brand_suspended: ['brand', 'the brand is suspended'],
  template_not_allowed: ['brand', 'the brand has not enabled this template'],
  cooldown_active: ['limits'],
  rate_limited: ['limits'],
  validation_error: ['fields'],
  invalid_channel: ['fields', 'the channel is neither SMS nor EMAIL'],
  unsupported_business: ['fields', 'businessName names another brand than brandId'],
  invalid_template: ['fields', 'there is no such template'],
  otp_template_not_supported: ['fields', 'a template of codes was asked for on /notify'],
  missing_variable: ['fields', 'a variable of the template is missing'],
  invalid_input: ['fields', 'the code was not given as a string'],
  invalid_contact: ['fields', 'the phone number or mail address is not one'],
  invalid_app_id: ['fields', 'the appId is not in a usable form'],
  invalid_otp_format: ['fields', 'the code was not six digits'],
  mismatch: ['code', 'the code was wrong'],
  not_found: ['code', 'there was no live code: never sent, expired, used, or replaced by a newer one'],
  max_attempts: ['code', 'three wrong codes had been tried before, so the code is locked'],
  sms_failed: ['delivery'],
  notification_failed: ['delivery'],
  internal_error: ['inside'],
  unauthorized: ['inside'],
  forbidden: ['inside'],
  route_not_found: ['inside'],
  method_not_allowed: ['inside'],
  body_too_large: ['inside'],
}

function kindOf(error: string): FailureKind {
  return Object.hasOwn(refusals, error) ? (error as FailureKind) : 'internal_error'
}

function checks({ operation, app, brand, channel, limits, end }: RequestTrace): string[] {
  const kind = end?.error ? kindOf(end.error) : undefined
  const [failed, meaning] = kind ? refusals[kind] : []
  const lines = [`passed   the credentials of app ${app}`]
  const refused = (why: string) => [...lines, `REFUSED  ${why}`]
  const why = end?.message ?? meaning ?? end?.error ?? ''

  if (failed === 'brand' && kind !== 'template_not_allowed') return refused(why)
  if (brand !== null) lines.push(`passed   brand ${brand} is approved`)
  else if (channel === 'EMAIL') lines.push('passed   a mail needs no brand')
  if (failed === 'brand') return refused(why)
  lines.push(...limits.map(limitStatus))
  if (failed === 'limits') return lines
  if (failed === 'fields') return refused(`the fields: ${why}`)
  if (failed === 'inside') return refused('something unexpected; the log of the server has the cause')
  lines.push('passed   the fields')
  if (failed === 'code') return refused(why)
  if (operation === 'verify' && end !== null) lines.push('passed   the code was right, and is used up')
  return lines
}

const limitWords: Readonly<Record<LimitName, string>> = {
  cooldown: 'the cooldown of this brand and phone',
  'phone-minute': 'SMS codes to this phone in a minute',
  'recipient-hour': 'codes to this recipient in an hour',
  failures: 'wrong codes for this recipient in a day',
  'app-minute': 'calls of this app in a minute',
  credentials: 'failed credentials of this network address in a minute',
  'integration-requests': 'integration requests of this network address in an hour',
  'console-logins': 'tries at the password of the console',
}

function limitStatus({ limit, max, used, endsAt, refused }: LimitStatus): string {
  const words = limitWords[limit]
  if (limit === 'cooldown') {
    const until = endsAt === null ? '' : ` until ${time(endsAt)}`
    return refused ? `REFUSED  ${words} was running${until}` : `passed   ${words} was not running`
  }
  const until = endsAt === null ? '' : `, until ${time(endsAt)}`
  if (refused) return `REFUSED  ${words}: all ${max} were used${until}`
  return used === null
    ? `passed   ${words}: of ${max} there was room`
    : `passed   ${words}: this was ${used} of ${max}${until}`
}

function deliverySection({ operation, end }: RequestTrace, deliveries: readonly Delivery[]): string[] {
  if (operation === 'verify') return []
  if (deliveries.length > 0) return ['', 'Delivery', ...deliveries.map((row) => `  ${attempt(row)}`)]
  const nothing = end === null ? 'nothing has been written of it' : 'nothing was handed to any provider'
  return ['', 'Delivery', `  ${nothing}`]
}

function attempt(row: Delivery): string {
  const to = row.position === null ? '' : ` to ${row.recipient}, number ${row.position} in its list`
  const way = row.route === null ? '' : ` on the ${row.route} route`
  const form = [row.template, row.segments && segmentsInWords(row.segments)].filter(Boolean).join(', ')
  return `${row.attempt}. ${time(row.at)}  ${row.provider}${way}${to}${form === '' ? '' : ` (${form})`}: ${result(row)}${reported(row)}`
}

function segmentsInWords({ count, encoding }: NonNullable<Delivery['segments']>): string {
  return `${count} segment${count === 1 ? '' : 's'} of ${encoding}`
}

function result({ outcome, errorClass, reason, providerMessageId, durationMs }: Delivery): string {
  const after = `after ${seconds(durationMs)}`
  switch (outcome) {
    case 'accepted':
      return `accepted ${after}${providerMessageId === null ? '' : ` as ${providerMessageId}`}`
    case 'rejected':
      return `rejected ${after} because of ${scopes[errorClass as RejectionScope]} (${reason})`
    case 'retryable':
      return `could not take it, ${after} (${reason})`
    case 'unknown':
      return `left it open, ${after} (${reason}): it may have been sent or not`
    case 'skipped':
      return reason === 'no time left'
        ? 'not asked, since no time was left'
        : 'passed over, since it keeps failing and there was another'
  }
}

const scopes: Readonly<Record<RejectionScope, string>> = {
  recipient: 'the recipient',
  content: 'what was to be sent, or where to',
  account: 'our account there',
}

function reported({ outcome, report, reportKey }: Delivery): string {
  if (outcome !== 'accepted' && outcome !== 'unknown') return ''
  if (report?.status === 'delivered') return `; delivered, says its receipt of ${time(report.at)}`
  if (report?.status === 'failed') {
    const why = report.reason === null ? '' : ` (${report.reason})`
    return `; NOT delivered, says its receipt of ${time(report.at)}${why}`
  }
  if (report) return `; on its way, says its receipt of ${time(report.at)}`
  return reportKey === null ? '' : '; no receipt has come'
}

function adviceSection({ end, channel }: RequestTrace, deliveries: readonly Delivery[]): string[] {
  const lines = new Set<string | undefined>(deliveries.map(adviceOnAttempt))
  if (end?.error === 'sms_failed' && deliveries.some(({ outcome }) => outcome === 'unknown')) {
    lines.add(
      'Its code is void: should a message arrive after all, it does not verify. The person has to ask anew. It stays counted in the minute and hour of the recipient.',
    )
  }
  const providers = new Set(deliveries.map(({ provider }) => provider))
  const isDown = deliveries.some(({ outcome }) => outcome === 'retryable')
  if (end?.error && channel === 'SMS' && providers.size === 1 && isDown) {
    lines.add('With a second provider on the route (SMS_PLAIN, SMS_TEMPLATE) it would have been asked.')
  }
  const first = end?.error ? advice[kindOf(end.error)] : undefined
  const all = [first, ...lines].filter((line) => line !== undefined)
  return all.length === 0 ? [] : ['', 'What to do', ...all.map((line) => `  ${line}`)]
}

const advice: Readonly<Partial<Record<FailureKind, string>>> = {
  brand_not_approved: 'Make the brand, or activate it: otpost brand list, otpost brand status SLUG active.',
  brand_suspended: 'To let it send again: otpost brand status SLUG active.',
  template_not_allowed:
    'To enable it: otpost brand put SLUG --notify KEY,KEY (all its templates, this one among them).',
  max_attempts: 'The client has to ask for a new code: POST /otp/resend.',
  cooldown_active: 'The client may ask again when Retry-After is over.',
  rate_limited: 'The client should wait for Retry-After and slow down; the limits are settings.',
}

function adviceOnAttempt(row: Delivery): string | undefined {
  const { provider, reason, errorClass } = row
  if (errorClass === 'account') {
    return `${provider} does not accept us (${reason}): look at its credentials, credit and permissions.`
  }
  if (errorClass === 'content') {
    return reason === 'no template id'
      ? `${provider} renders from a template of its own: tell its id by otpost brand template ${row.brand ?? 'BRAND'} ${row.template ?? 'KEY'} --id ${provider}=ID.`
      : `${provider} does not accept the message (${reason}): look at its sender, template id and text, and whether it may send there.`
  }
  if (errorClass === 'recipient') {
    const nothing = row.channel === 'SMS' ? 'No SMS reaches that number' : 'No mail reaches that address'
    return `${nothing} (${reason}): ask the person for another.`
  }
  switch (statusOf(row)) {
    case 'unknown':
      return reason === 'time-out'
        ? `${provider} did not answer in time: look whether it has trouble, or at PROVIDER_TIMEOUT_MS.`
        : `${provider} left it open (${reason}): look into its own log for that time.`
    case 'retryable':
      return reason === 'too many calls under way'
        ? `There were more calls to ${provider} at once than it answers: look whether it is slow.`
        : `${provider} could not take it (${reason}): look whether it has trouble.`
    case 'failed':
      return `${provider} took the message and its network did not deliver it: ${
        row.providerMessageId === null
          ? 'look into its own log for that time'
          : `ask ${provider} with the id it gave`
      }.`
  }
}

function time(epochMs: number): string {
  return `${new Date(epochMs).toISOString().slice(0, 19).replace('T', ' ')} UTC`
}

function seconds(ms: number): string {
  return ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`
}
