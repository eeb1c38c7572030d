import type { ReportRejection } from '../delivery/delivery-reports.ts'
import type { LateCodes } from './statistics.ts'
import { type ProviderCount, providerCounts } from './stats.ts'

// What delivery reports say about the settings, for operators.

/** @param period such as `in the last 24 hours` */
export function lateWords(
  { provider, count, hasTimedOut }: LateCodes,
  period: string,
  providerTimeoutMs: number,
): { readonly problem: string; readonly remedy: string } {
  const codes = count === 1 ? '1 code' : `${count} codes`
  const after = hasTimedOut ? `after PROVIDER_TIMEOUT_MS (${providerTimeoutMs} ms)` : 'after an error'
  return {
    problem: `${provider} delivered ${codes} ${after} ${period}, according to delivery reports. Their sends were answered 502 sms_failed, so the codes do not verify.`,
    remedy: hasTimedOut
      ? `Set PROVIDER_TIMEOUT_MS to more than the response time of ${provider}, or name a faster provider before it in SMS_PLAIN or SMS_TEMPLATE.`
      : `Ask the provider why ${provider} answers an error for messages that it delivers.`,
  }
}

/** Delivery reports that this server rejected. */
export interface RejectedReports {
  /** Empty: the URL names no provider of this server. */
  readonly provider: string
  readonly why: ReportRejection
  readonly count: number
}

export function rejectedReportsIn(counts: readonly ProviderCount[]): readonly RejectedReports[] {
  return providerCounts(counts, 'report-rejected').map(({ provider, detail, count }) => ({
    provider,
    why: detail === 'signature' || detail === 'form' ? detail : 'url',
    count,
  }))
}

const remedies: Readonly<Record<ReportRejection, string>> = {
  url: 'Enter the URL that `otpost callbacks` prints at the provider. It changes with the secret key.',
  signature:
    'Compare the secret at the provider with the settings, and PUBLIC_URL with the URL that the provider calls. A third party may have sent them.',
  form: 'Compare the version and the format of the reports at the provider with docs/providers.',
}

const causes: Readonly<Record<ReportRejection, string>> = {
  url: 'their URL is not one of this server',
  signature: 'their signature, key or time is wrong',
  form: 'they are not of the documented form',
}

/** @param period such as `in the last 24 hours` */
export function rejectedReportWords(
  { provider, why, count }: RejectedReports,
  period: string,
): { readonly problem: string; readonly remedy: string } {
  const reports = count === 1 ? '1 delivery report' : `${count} delivery reports`
  const of = provider === '' ? 'no provider of this server' : provider
  return {
    problem: `otpost rejected ${reports} of ${of} ${period}: ${causes[why]}.`,
    remedy: remedies[why],
  }
}
