import type { Delivery } from '../delivery/delivery-reports.ts'
import type { AuthoredRule } from '../delivery/destination.ts'
import { blockersOf, countryName } from '../delivery/destination.ts'
import { dltWords } from '../delivery/dlt-codes.ts'
import { wayOf } from '../delivery/way.ts'
import { type Advice, advice, type Reference, see } from '../ground/advice.ts'
import type { FailureKind } from '../ground/failures.ts'
import { counted, utc } from '../ground/format.ts'
import type { RejectionScope } from '../ground/providers.ts'
import type { GuardReason } from '../guard/guard.ts'
import type { SurgeFlag } from '../guard/notify-watch.ts'
import { unknownCountry } from '../guard/thresholds.ts'
import { formatMicros } from '../money/amounts.ts'
import { budgetName, callCap } from '../money/budgets.ts'
import { attemptsPerJob, type ListedJob } from '../notify/queue.ts'
import type { BudgetName, LimitName } from '../request/limit-names.ts'
import {
  type Flag,
  guardDecision,
  isBlocked,
  isPartFlag,
  isSurge,
  type LimitStatus,
  type Operation,
  type PartFlag,
  type RequestEnd,
  testAppId,
} from '../request/request-context.ts'
import type { RequestTrace } from '../request/request-trace.ts'
import { type LoggedRequest, statusOf, whyOf } from './event-log.ts'
import { deliveryStatuses } from './log-search.ts'

// The explanation of a request from its trace: checks, deliveries, and what to do.

/** What happened to a request, and what to do. */
export interface Explanation {
  /** What was requested, and the answer. */
  readonly opening: readonly string[]
  readonly checks: readonly Check[]
  /** Of each recipient of an asynchronous notification. */
  readonly queue: readonly string[]
  /** Undefined: the call sends nothing. */
  readonly delivery:
    | {
        readonly attempts: readonly { readonly number: number; readonly text: string }[]
        readonly nothing: string
      }
    | undefined
  readonly advice: readonly Advice[]
}

export interface Check {
  readonly result: 'passed' | 'recorded' | 'replayed' | 'REJECTED'
  readonly text: string
  readonly limit?: LimitStatus
}

/**
 * @param jobs of an asynchronous notification
 * @param rules the destination rules in force
 */
export function explain(
  trace: RequestTrace,
  deliveries: readonly Delivery[],
  jobs: readonly ListedJob[],
  rules: readonly AuthoredRule[],
): Explanation {
  return {
    opening: opening(trace),
    checks: checks(trace),
    queue: jobs.map((job) => `recipient ${job.position}: ${jobWords(job)}`),
    delivery:
      trace.operation === 'verify'
        ? undefined
        : {
            // That of a job is the number within its recipient.
            attempts: deliveries.map((row, index) => ({
              number: row.attempt % attemptsPerJob,
              text: attempt(row) + whySent(trace, row, deliveries[index - 1]),
            })),
            nothing: trace.end === null ? 'no attempt is recorded' : 'no provider was called',
          },
    advice: adviceOn(trace, deliveries, rules),
  }
}

/** As text. @param worded as the adapter names commands or pages */
export function explanationLines(
  { opening, checks, queue, delivery, advice }: Explanation,
  worded: (advice: Advice) => string,
): readonly string[] {
  const attempts = delivery?.attempts.map(({ number, text }) => `${number}. ${text}`) ?? []
  return [
    ...opening,
    ...section(
      'Checks',
      checks.map(({ result, text }) => `${result.padEnd(8)}  ${text}`),
    ),
    ...section('Queue', queue),
    ...section('Delivery', delivery && attempts.length === 0 ? [delivery.nothing] : attempts),
    ...section('What to do', advice.map(worded)),
  ]
}

function section(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : ['', title, ...lines.map((line) => `  ${line}`)]
}

function opening(trace: RequestTrace): string[] {
  const { requestId, at, operation, app, brand, channel, recipient, recipients, country, reference, end } =
    trace
  const by = channel === 'EMAIL' ? ' by e-mail' : channel === 'SMS' ? ' by SMS' : ''
  const what: Readonly<Record<Operation, string>> = {
    send: `a code${by}`,
    resend: `another code${by}`,
    verify: 'verification of a code',
    notify: `a notification${by}`,
    relay: `a message of an identity system${by}`,
  }
  const forRecipient =
    recipient !== null
      ? ` ${operation === 'verify' ? 'for' : 'to'} ${recipient}${inCountry(country)}`
      : recipients !== null
        ? ` to ${recipients} recipients`
        : ''
  const forBrand = brand === null ? '' : `, brand ${brand}`
  const named = reference === null ? '' : `, reference ${reference}`
  return [
    `Request ${requestId}`,
    app === testAppId
      ? `On ${utc(at)} an operator sent a test message${by}${forRecipient}${forBrand}.`
      : `On ${utc(at)} app ${app} requested ${what[operation]}${forRecipient}${forBrand}${named} (${callPaths[operation]}).`,
    ...(trace.unknownFields.length === 0
      ? []
      : [
          `otpost ignored fields of the body that ${callPaths[operation]} does not have: ${trace.unknownFields.join(', ')}.`,
        ]),
    end === null
      ? 'It passed the checks and has no answer. It is still in progress, or the server stopped meanwhile. Its last delivery attempts may be missing here.'
      : `Answered after ${seconds(end.durationMs)}: ${end.status} ${end.error ?? 'success'}.`,
    ...furtherWays(trace),
  ]
}

function furtherWays({ ladder }: RequestTrace): string[] {
  if (!ladder) return []
  const further = ladder.ways === '' ? 'none' : ladder.ways.replaceAll(',', ', then ')
  return ladder.ended === null
    ? [`Further ways, if the code does not arrive: ${further}.`]
    : [`Its ladder ended, since ${ladder.ended}. Ways not used: ${further}.`]
}

/** Why a message follows another one by the next way. Empty: it is of the same way. */
function whySent(
  { ladder }: RequestTrace,
  { attempt, ...sent }: Delivery,
  before: Delivery | undefined,
): string {
  if (!ladder || !before || wayIn(before) === wayIn(sent)) return ''
  const start = `${attempt} `
  const cause = ladder.causes.split('\n').findLast((line) => line.startsWith(start))
  const why = cause ? cause.slice(start.length) : outcomeWords[before.outcome]
  return why === undefined ? '' : `; next way, since ${why}`
}

/** Of the way before, within a step. */
const outcomeWords: Readonly<Partial<Record<Delivery['outcome'], string>>> = {
  rejected: 'the way before it failed',
  retryable: 'the way before it failed',
  skipped: 'the way before it was skipped',
  unknown: 'the result of the message before it is unknown',
}

function wayIn({ route, provider: name }: Pick<Delivery, 'route' | 'provider'>): string {
  return wayOf({ route: route ?? 'plain', provider: { name } })
}

function inCountry(country: string | null): string {
  return country === null ? '' : ` (${country})`
}

export const callPaths: Readonly<Record<Operation, string>> = {
  send: 'POST /otp/send',
  resend: 'POST /otp/resend',
  verify: 'POST /otp/verify',
  notify: 'POST /notify',
  relay: 'POST /relay',
}

type Stage = 'proof' | 'app' | 'brand' | 'key' | 'limits' | 'fields' | 'code' | 'delivery' | 'inside'

const refusals: Readonly<Record<FailureKind, readonly [stage: Stage, meaning?: string]>> = {
  brand_id_required: ['brand', 'the request has no brandId'],
  brand_not_approved: ['brand', 'the brand is unknown or pending, or the app may not use it'],
  brand_suspended: ['brand', 'the brand is suspended'],
  template_not_allowed: ['brand', 'the template is not enabled for the brand'],
  idempotency_in_progress: ['key', 'a request with the same Idempotency-Key was in progress'],
  idempotency_key_reused: ['key', 'the key was used with another request body'],
  cooldown_active: ['limits'],
  rate_limited: ['limits'],
  validation_error: ['fields'],
  invalid_channel: ['fields', 'the channel is neither SMS nor EMAIL'],
  unsupported_business: ['fields', 'businessName is not the brand of brandId'],
  invalid_template: ['fields', 'the template does not exist'],
  otp_template_not_supported: ['fields', 'an OTP template was used on /notify'],
  missing_variable: ['fields', 'a variable of the template is missing'],
  invalid_input: ['fields', 'the code is not a string'],
  invalid_contact: ['fields', 'the phone number or e-mail address is invalid'],
  invalid_app_id: ['fields', 'the appId is invalid'],
  invalid_otp_format: ['fields', 'the code does not have six digits'],
  mismatch: ['code', 'the code was wrong'],
  not_found: ['code', 'there was no active code: never sent, expired, used, or replaced'],
  message_not_found: ['inside'],
  max_attempts: ['code', 'the code is locked after three wrong attempts'],
  sms_failed: ['delivery'],
  notification_failed: ['delivery'],
  internal_error: ['inside'],
  unauthorized: ['proof', 'the secret or the signature is wrong'],
  forbidden: ['app', 'the app may not use this operation'],
  route_not_found: ['inside'],
  method_not_allowed: ['inside'],
  body_too_large: ['inside'],
  unavailable: ['inside'],
}

/** Undefined: none differs, so that a mismatch is one of the code itself. */
function otherPartsWords(flags: readonly Flag[]): string | undefined {
  const parts = flags.filter(isPartFlag).map((flag) => flag.replace('other-', ''))
  return parts.length === 0 ? undefined : `not as the code was sent: ${parts.join(', ')}`
}

function kindOf(error: string): FailureKind {
  return Object.hasOwn(refusals, error) ? (error as FailureKind) : 'internal_error'
}

function checks(trace: RequestTrace): Check[] {
  const { operation, app, brand, channel, limits, flags, end } = trace
  const isDenied = guardDecision(trace, end?.error)?.verdict === 'denied'
  const kind = end?.error ? kindOf(end.error) : undefined
  const [failed, meaning] = kind ? refusals[kind] : []
  const isTest = app === testAppId
  const lines = isTest ? [] : [passed(`credentials of app ${app}`)]
  const refused = (text: string): Check[] => [...lines, { result: 'REJECTED', text }]
  const why = otherPartsWords(flags) ?? end?.message ?? meaning ?? end?.error ?? ''

  if (failed === 'proof') return [...limits.map(limitCheck), { result: 'REJECTED', text: `proof: ${why}` }]
  if (failed === 'app' || (failed === 'brand' && kind !== 'template_not_allowed')) return refused(why)
  if (brand !== null && !isTest) lines.push(passed(`brand ${brand} is active`))
  else if (channel === 'EMAIL' && !isTest) lines.push(passed('e-mail needs no brand'))
  if (failed === 'brand') return refused(why)
  if (failed === 'key') return refused(`Idempotency-Key: ${why}`)
  if (flags.includes('replayed')) return [...lines, replayed(end)]
  lines.push(...limits.map(limitCheck))
  if (failed === 'limits' && !isDenied) return lines
  if (failed === 'fields')
    return refused(`${isBlocked(trace, trace.end?.error) ? 'destination' : 'fields'}: ${why}`)
  if (failed === 'inside') return refused('unexpected error; the server log has the cause')
  lines.push(
    passed('fields'),
    ...flags.flatMap((flag) => (flag === 'replayed' || isPartFlag(flag) ? [] : flagLine(flag, isDenied))),
  )
  if (isDenied) return lines
  if (failed === 'code') return refused(why)
  if (operation === 'verify' && end !== null) lines.push(passed('the code was correct and is consumed'))
  return lines
}

function passed(text: string): Check {
  return { result: 'passed', text }
}

/** The message of a replay is the ID of the first request. */
function replayed(end: RequestEnd | null): Check {
  const text = `the Idempotency-Key is that of request ${end?.message}, whose answer was sent again; no limit counted it`
  return { result: 'replayed', text }
}

const allowPrefix = advice`${see('guard status')} shows the number range. If its numbers are genuine, use ${see('guard allow')}.`
const allowCountry = advice`If codes to the country are genuine, allow it with SMS_COUNTRIES or ${allow('COUNTRY')}.`
const checkDeviceId = [
  "If the codes are genuine, check that `deviceId` is the ID of the end user's device, and not one that many share.",
]
const checkClientIp = [
  'If the codes are genuine, check that `clientIp` is the IP address of the end user, and not one of a proxy or server.',
]

function flagLine(flag: Exclude<Flag, 'replayed' | PartFlag>, isDenied: boolean): Check {
  if (flag === 'review') {
    const text = 'review number: the code is the fixed code of the number, which no provider sends'
    return { result: 'recorded', text }
  }
  if (flag === 'destination') {
    const text = 'destination: with block instead of monitor, its rule would reject the request'
    return { result: 'recorded', text }
  }
  if (isSurge(flag)) return { result: 'recorded', text: surgeWords[flag] }
  const [why] = guardReasons[flag]
  if (isDenied) return { result: 'REJECTED', text: `SMS pumping guard: ${why}` }
  const text = `SMS pumping guard: in mode deny the request would be rejected: ${why}`
  return { result: 'recorded', text }
}

/** What the guard found, and what to do if the code was genuine. */
const guardReasons: Readonly<Record<GuardReason, readonly [words: string, advice: Advice]>> = {
  prefix: ['too many unverified codes to the number range', allowPrefix],
  'blocked-prefix': ['the number range is blocked', allowPrefix],
  'ip-hour': ['too many unverified codes in an hour for the IP address of the end user', checkClientIp],
  'ip-day': ['too many unverified codes in a day for the IP address of the end user', checkClientIp],
  'ip-countries': ['codes to too many countries for the IP address of the end user', checkClientIp],
  'country-hour': ['too many unverified codes to the country in an hour', allowCountry],
  'country-day': ['too many unverified codes to the country in a day', allowCountry],
  number: ['too many unverified codes to the number in a day', allowPrefix],
  'device-hour': ['too many unverified codes in an hour for the device of the end user', checkDeviceId],
  'device-day': ['too many unverified codes in a day for the device of the end user', checkDeviceId],
  'device-countries': ['codes to too many countries for the device of the end user', checkDeviceId],
  'quiet-hour': ['too many unverified codes in an hour to countries without a verified code', allowCountry],
  'quiet-day': ['too many unverified codes in a day to countries without a verified code', allowCountry],
  abroad: ['too many unverified codes in a day to countries that are not home', allowCountry],
}

const surgeWords: Readonly<Record<SurgeFlag, string>> = {
  'notify-country': 'the app sends many more SMS notifications to the country than before',
  'notify-range': 'the app sends many SMS notifications to the number range',
}

const limitWords: Readonly<Record<LimitName, string>> = {
  cooldown: 'SMS cooldown of this brand and phone',
  'phone-minute': 'SMS codes per minute for this phone',
  'recipient-hour': 'codes per hour for this recipient',
  failures: 'wrong codes per day for this recipient',
  'app-minute': 'requests per minute for this app',
  'status-minute': 'status requests per minute for this app',
  credentials: 'requests with wrong credentials per minute for this IP address',
  'integration-requests': 'integration requests per hour for this IP address',
  'console-logins': 'console sign-in attempts',
  budget: 'budget for SMS',
  queue: 'waiting asynchronous notifications of this app',
  'new-country': 'SMS notifications per day of this app to a country that is new to it',
}

function limitCheck(limit: LimitStatus): Check {
  return { result: limit.refused ? 'REJECTED' : 'passed', text: limitText(limit), limit }
}

function limitText({ limit, max, used, endsAt, refused, budget }: LimitStatus): string {
  const words = limitWords[limit]
  if (limit === 'cooldown') {
    const until = endsAt === null ? '' : ` until ${utc(endsAt)}`
    return refused ? `${words}: active${until}` : `${words}: not active`
  }
  const reset = endsAt === null ? '' : `, resets at ${utc(endsAt)}`
  if (budget) {
    const amount = formatMicros(max, budget.currency)
    if (refused) return `budget ${budgetName(budget)}: too little is left of ${amount}${reset}`
    const spent = used === null ? 'not counted' : `${formatMicros(used, budget.currency)} spent`
    const most = max === Number.MAX_SAFE_INTEGER ? ' (it rejects no messages)' : ` of ${amount}`
    return `budget ${budgetName(budget)}: ${spent}${most}${reset}`
  }
  if (refused) return `${words}: ${max} of ${max} used${reset}`
  return used === null ? `${words}: below ${max}` : `${words}: ${used} of ${max}${reset}`
}

interface CallResult {
  /** In a few words. */
  readonly result: string
  /** The limit, the guard's reason, the provider's or the message of the error. Empty: the result says it. */
  readonly why: string
}

/** How a call ended, for lists of calls: the command's and the console's. */
export function resultOf(call: LoggedRequest): CallResult {
  const { operation, flags, limits, end, deliveries } = call
  if (end === null) return { result: 'no response', why: '' }
  const { status, error, message } = end
  if (flags.includes('replayed'))
    return { result: 'replayed', why: `the answer of request ${message} was sent again` }
  const decision = guardDecision(call, error)
  const [guarded] = decision ? guardReasons[decision.bucket] : []
  if (error === null) {
    const result = operation === 'verify' ? 'verified' : status === 202 ? 'queued' : 'sent'
    const notes = [
      guarded && `recorded by the SMS pumping guard: ${guarded}`,
      flags.includes('destination') && 'recorded by a destination rule with `monitor`',
      flags.includes('review') && 'review number',
      ...flags.filter(isSurge).map((flag) => surgeWords[flag]),
    ]
    return { result, why: notes.filter(Boolean).join('; ') }
  }
  if (guarded && decision?.verdict === 'denied') return { result: 'guard denied', why: guarded }
  if (isBlocked(call, error)) return { result: 'blocked destination', why: message ?? '' }
  if (error === 'rate_limited' || error === 'cooldown_active') {
    const limit = limits.find(({ refused }) => refused)
    if (limit?.budget) {
      const found = guarded ? `; the SMS pumping guard found it too: ${guarded}` : ''
      return { result: 'budget exhausted', why: `budget ${budgetName(limit.budget)}${found}` }
    }
    return { result: 'rate-limited', why: limit ? limitWords[limit.limit] : (message ?? '') }
  }
  const last = deliveries.findLast(({ outcome }) => outcome !== 'accepted')
  const [, meaning = ''] = refusals[kindOf(error)]
  const why = last ? `${last.provider}: ${whyOf(last)}` : (otherPartsWords(flags) ?? message ?? meaning)
  return { result: error, why }
}

function jobWords({ state, masked, tries, dueAt, expiresAt, updatedAt, reason }: ListedJob): string {
  const why = reason === null ? '' : ` (${reason})`
  const tried = counted(tries, 'try', 'tries')
  switch (state) {
    case 'queued':
      return `${masked} queued after ${tried}${why}, next try at ${utc(dueAt)}, expires at ${utc(expiresAt)}`
    case 'sending':
      return `${masked} in flight since ${utc(updatedAt)}, ${tried}`
    case 'unknown':
      return `${masked} unknown since ${utc(updatedAt)}, ${tried}${why}; the message may or may not have been sent`
    default:
      return `${masked} ${state} at ${utc(updatedAt)}, ${tried}${why}`
  }
}

function attempt(row: Delivery): string {
  const to = row.position === null ? '' : ` to ${row.recipient}${inCountry(row.country)}`
  const way = row.route === null ? '' : ` on the ${row.route} route`
  const position = row.position === null ? '' : `recipient ${row.position}`
  const isSms = row.route === null || wayOf({ route: row.route, provider: { name: row.provider } }) === 'sms'
  const segments = row.segments && counted(row.segments.count, `${row.segments.encoding} segment`)
  const form = [row.template, isSms ? segments : row.lang, position].filter(Boolean).join(', ')
  return `${utc(row.at)}  ${row.provider}${way}${to}${form === '' ? '' : ` (${form})`}: ${result(row)}${reported(row)}`
}

function result(row: Delivery): string {
  const { outcome, errorClass, reason, providerMessageId, durationMs } = row
  const { name } = deliveryStatuses[outcome]
  const after = `after ${seconds(durationMs)}`
  switch (outcome) {
    case 'accepted':
      return `${name} ${after}${providerMessageId === null ? '' : `, id ${providerMessageId}`}`
    case 'rejected':
      return `${name} ${after} because of ${scopes[errorClass as RejectionScope]} (${reason})`
    case 'retryable':
      return `${name} ${after} (${reason})`
    case 'unknown':
      return `${reason === 'time-out' ? `timed out ${after}` : `unknown result ${after} (${reason})`}; the message may or may not have been sent`
    case 'skipped':
      return `${name}: ${whyOf(row)}`
  }
}

const scopes: Readonly<Record<RejectionScope, string>> = {
  recipient: 'the recipient',
  content: 'the message or its destination',
  account: 'the provider account',
}

function reported({ outcome, report, reportKey }: Delivery): string {
  if (outcome !== 'accepted' && outcome !== 'unknown') return ''
  if (report?.status === 'delivered')
    return `; ${deliveryStatuses.delivered.name} (delivery report of ${utc(report.at)})`
  if (report?.status === 'failed') {
    const words = report.reason === null ? undefined : dltWords(report.reason)
    const why = report.reason === null ? '' : `: ${report.reason}${words === undefined ? '' : `, ${words}`}`
    return `; NOT delivered (delivery report of ${utc(report.at)}${why})`
  }
  if (report) return `; pending (delivery report of ${utc(report.at)})`
  return reportKey === null ? '' : '; no delivery report yet'
}

function blockedAdvice(trace: RequestTrace, rules: readonly AuthoredRule[]): readonly Advice[] {
  if (!isBlocked(trace, trace.end?.error)) return []
  const message = trace.end?.message ?? ''
  if (message.endsWith('which this server does not call.'))
    return [['VOICE_COUNTRIES has the countries that otpost calls.']]
  const [first, ...others] = blockersOf({ ...trace, message }, rules)
  if (!first) {
    return [
      advice`No rule that matches the number is known. ${see('destination check')} shows what the rules decide now. To send to the number, use ${allow('PREFIX')}.`,
    ]
  }
  const named = [first, ...others].map(ruleInForce)
  return [
    [
      others.length === 0
        ? `The rule that applies now is ${named.join()}.`
        : `One of these rules applies now: ${named.join('; ')}.`,
    ],
    first.rule === '*' || first.source === 'SMS_COUNTRIES'
      ? advice`To send to the country, use ${allow(trace.country ?? 'COUNTRY')}.`
      : advice`To send to all its numbers, use ${remove(first)}. To send to some of them, allow a longer prefix with ${allow('PREFIX')}.`,
  ]
}

function allow(rule: string): Reference {
  return see('destination set', { rule, action: 'allow' })
}

function remove({ rule, brandSlug }: AuthoredRule): Reference {
  return see('destination remove', { rule, ...(brandSlug !== null && { brand: brandSlug }) })
}

function ruleInForce({ rule, action, brandSlug, source, set }: AuthoredRule): string {
  const brand = brandSlug === null ? 'all brands' : `brand ${brandSlug}`
  const origin =
    source === 'SMS_COUNTRIES'
      ? ', from SMS_COUNTRIES'
      : set
        ? `, set by ${set.actor.name} on ${utc(set.at)}`
        : ''
  return `\`${rule} ${action}\` of ${brand}${origin}`
}

function adviceOn(
  trace: RequestTrace,
  deliveries: readonly Delivery[],
  rules: readonly AuthoredRule[],
): readonly Advice[] {
  const { end, channel, limits, operation } = trace
  const decision = guardDecision(trace, end?.error)
  const lines: (Advice | undefined)[] = deliveries.map(adviceOnAttempt)
  if (end?.error === 'sms_failed' && deliveries.some(({ outcome }) => outcome === 'unknown')) {
    const fate =
      operation === 'relay'
        ? 'The caller got an error, so the code may not verify if a message arrives later.'
        : 'The code is revoked: if a message arrives later, its code does not verify.'
    lines.push([
      `${fate} The person must request a new code. The attempt counts against the minute and hour limits of the recipient.`,
    ])
  }
  const providers = new Set(deliveries.map(({ provider }) => provider))
  const isDown = deliveries.some(({ outcome }) => outcome === 'retryable' || outcome === 'unknown')
  if (end?.error && channel === 'SMS' && providers.size === 1 && isDown) {
    lines.push(['With a second provider in SMS_PLAIN or SMS_TEMPLATE, otpost would have tried it next.'])
  }
  if (decision?.verdict === 'recorded') {
    lines.push(
      advice`The guard recorded the request because its mode is record. To deny such codes, use ${see('guard mode', { mode: 'deny' })}.`,
    )
  }
  const budgetAdvice = adviceOnBudget(limits.find(({ refused }) => refused)?.budget)
  const ofError =
    end?.error && decision?.verdict !== 'denied' ? errorAdvice(trace)[kindOf(end.error)] : undefined
  const [, ofGuard] = decision ? guardReasons[decision.bucket] : []
  const all = [...blockedAdvice(trace, rules), budgetAdvice ?? ofError, ofGuard, ...lines]
  const known = all.filter((each) => each !== undefined)
  return [...new Map(known.map((each) => [JSON.stringify(each), each])).values()]
}

function adviceOnBudget(budget: BudgetName | undefined): Advice | undefined {
  if (!budget) return undefined
  const { scope, of, country, currency } = budget
  const messages = of === 'all' ? {} : { of }
  const lift = see('budget lift', { scope, duration: '12h', ...messages })
  const set = (ofScope: string) =>
    see('budget set', { scope: ofScope, period: 'PERIOD', amount: 'AMOUNT', ...messages })
  if (currency === callCap.currency)
    return advice`To make more calls in a day, set a budget with ${set(scope)}.`
  return country === undefined || country === unknownCountry
    ? advice`To send more before the budget resets, lift it with ${lift}, or set a larger amount with ${set(scope)}.`
    : advice`To send more to ${countryName(country)} before the budget resets, set a budget for the country with ${set(`country:${country}`)}. To lift the budget for all countries, use ${lift}.`
}

function errorAdvice({ app: appId, brand }: RequestTrace): Readonly<Partial<Record<FailureKind, Advice>>> {
  const ofBrand = brand === null ? {} : { slug: brand }
  const activate = see('brand status', { ...ofBrand, status: 'active' })
  return {
    forbidden: advice`To allow both operations, use ${see('app set', { appId, operations: 'otp,notify' })}.`,
    brand_not_approved: advice`Create the brand with ${see('brand put', { ...ofBrand, displayName: 'NAME' })}, or activate it with ${activate}. To let the app use it, use ${see('app set', { appId, brands: 'SLUG' })} with every brand of the app.`,
    brand_suspended: advice`To activate the brand, use ${activate}.`,
    template_not_allowed: advice`To enable the template, use ${see('brand put', { ...ofBrand, notifyTemplates: 'KEY,KEY' })} with every template of the brand.`,
    ...clientAdvice,
  }
}

const clientAdvice: Readonly<Partial<Record<FailureKind, Advice>>> = {
  idempotency_in_progress: [
    'The client must repeat the request with the same key after the seconds in Retry-After.',
  ],
  idempotency_key_reused: ['The client must create a new key for each new request.'],
  max_attempts: ['The client must request a new code with POST /otp/resend.'],
  cooldown_active: ['The client can try again after the seconds in Retry-After.'],
  rate_limited: [
    'The client must wait for the seconds in Retry-After and send fewer requests. The limits are settings.',
  ],
}

function adviceOnAttempt(row: Delivery): Advice | undefined {
  const { provider, reason, errorClass } = row
  if (reason === 'paused') {
    return advice`${provider} is paused. To use it again, use ${see('provider resume', { name: provider })}.`
  }
  if (errorClass === 'account') {
    return [`${provider} rejects the account (${reason}). Check its credentials, credit and permissions.`]
  }
  if (errorClass === 'content') {
    return reason === 'no template id'
      ? advice`${provider} requires the id of the registered template. Use ${see('brand template', { slug: row.brand ?? 'BRAND', key: row.template ?? 'KEY', ids: `${provider}=ID` })}.`
      : [
          `${provider} rejected the message (${reason}). Check the sender id, the template id, the text, and whether the destination is allowed.`,
        ]
  }
  if (errorClass === 'recipient') {
    const [what, kind] = row.channel === 'SMS' ? ['phone number', 'SMS'] : ['e-mail address', 'e-mail']
    return [`The ${what} cannot receive ${kind} (${reason}). Ask the person for another.`]
  }
  switch (statusOf(row)) {
    case 'unknown':
      return reason === 'time-out'
        ? [`${provider} did not answer in time. Check the status of the provider, and PROVIDER_TIMEOUT_MS.`]
        : [`The result at ${provider} is unknown (${reason}). Check the log of the provider for that time.`]
    case 'retryable':
      return reason === 'too many calls under way'
        ? [`Too many requests to ${provider} were in progress. Check whether the provider is slow.`]
        : [
            `${provider} had a ${deliveryStatuses.retryable.name} (${reason}). Check the status of the provider.`,
          ]
    case 'failed':
      return [
        `${provider} accepted the message, but it was not delivered. ${
          row.providerMessageId === null
            ? 'Check the log of the provider for that time'
            : 'Ask the provider, with the id above'
        }.`,
      ]
  }
}

function seconds(ms: number): string {
  return ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`
}
