import { describe, expect, test } from 'bun:test'
import type { Delivery, RequestTrace } from '../../src/domain/events/event-log.ts'
import { explain } from '../../src/domain/events/explain.ts'
import type { LimitStatus } from '../../src/domain/events/request-context.ts'
import { type FailureKind, failureMessages } from '../../src/domain/failures.ts'
import type { LimitName } from '../../src/domain/otp/limits.ts'

const at = Date.UTC(2026, 0, 31, 23, 59, 58, 700)
const requestId = '019b796d-d600-7256-a391-52604e6fc76b'

const trace: RequestTrace = {
  requestId,
  at,
  operation: 'send',
  app: 'shop',
  brand: 'acme',
  channel: 'SMS',
  recipient: '12*******43',
  recipients: null,
  recipientSubject: null,
  limits: [],
  end: { status: 200, error: null, message: null, durationMs: 123 },
}

const delivery: Delivery = {
  requestId,
  attempt: 1,
  at: at + 400,
  app: 'shop',
  brand: 'acme',
  channel: 'SMS',
  route: 'plain',
  provider: 'kannel',
  template: 'LOGIN_OTP',
  recipient: '12*******43',
  position: null,
  recipientSubject: 'hash',
  segments: { count: 1, encoding: 'GSM-7' },
  outcome: 'accepted',
  errorClass: null,
  reason: null,
  providerMessageId: null,
  reportKey: null,
  durationMs: 99,
  report: null,
}

function limitStatus(limit: LimitName, max: number, used: number | null, seconds?: number): LimitStatus {
  return { limit, max, used, endsAt: seconds === undefined ? null : at + seconds * 1000, refused: false }
}

const refused = (status: number, error: string, message: string | null = null) => ({
  ...trace,
  end: { status, error, message, durationMs: 5 },
})

describe('a complete request trace', () => {
  test('of a code that fell back from the template route and was delivered', () => {
    const limits = [
      limitStatus('cooldown', 1, 1, 30),
      limitStatus('phone-minute', 3, 1, 60),
      limitStatus('recipient-hour', 10, 4, 1800),
      limitStatus('app-minute', 10, 7, 12),
    ]
    expect(
      explain({ ...trace, limits }, [
        {
          ...delivery,
          route: 'template',
          provider: 'msg91',
          outcome: 'rejected',
          errorClass: 'content',
          reason: '211',
        },
        {
          ...delivery,
          attempt: 2,
          provider: 'twilio',
          outcome: 'skipped',
          reason: 'keeps failing',
          durationMs: 0,
        },
        {
          ...delivery,
          attempt: 3,
          providerMessageId: 'V-1',
          reportKey: 'key',
          segments: { count: 2, encoding: 'UCS-2' },
          durationMs: 1049,
          report: { status: 'delivered', reason: null, at: at + 5000 },
        },
      ]),
    ).toEqual([
      'Request 019b796d-d600-7256-a391-52604e6fc76b',
      'On 2026-01-31 23:59:58 UTC app shop asked for a code by SMS to 12*******43, for brand acme (POST /otp/send).',
      'It was answered after 123 ms: 200 success.',
      '',
      'Checks',
      '  passed   the credentials of app shop',
      '  passed   brand acme is approved',
      '  passed   the cooldown of this brand and phone was not running',
      '  passed   SMS codes to this phone in a minute: this was 1 of 3, until 2026-02-01 00:00:58 UTC',
      '  passed   codes to this recipient in an hour: this was 4 of 10, until 2026-02-01 00:29:58 UTC',
      '  passed   calls of this app in a minute: this was 7 of 10, until 2026-02-01 00:00:10 UTC',
      '  passed   the fields',
      '',
      'Delivery',
      '  1. 2026-01-31 23:59:59 UTC  msg91 on the template route (LOGIN_OTP, 1 segment of GSM-7): rejected after 99 ms because of what was to be sent, or where to (211)',
      '  2. 2026-01-31 23:59:59 UTC  twilio on the plain route (LOGIN_OTP, 1 segment of GSM-7): passed over, since it keeps failing and there was another',
      '  3. 2026-01-31 23:59:59 UTC  kannel on the plain route (LOGIN_OTP, 2 segments of UCS-2): accepted after 1.0 s as V-1; delivered, says its receipt of 2026-02-01 00:00:03 UTC',
      '',
      'What to do',
      '  msg91 does not accept the message (211): look at its sender, template id and text, and whether it may send there.',
    ])
  })

  test('of a code that no provider accepted', () => {
    const failed = refused(502, 'sms_failed')
    expect(
      explain({ ...failed, operation: 'resend', limits: [limitStatus('app-minute', 10, 1, 60)] }, [
        { ...delivery, outcome: 'retryable', errorClass: 'retryable', reason: 'HTTP 503' },
        {
          ...delivery,
          attempt: 2,
          provider: 'sns',
          outcome: 'rejected',
          errorClass: 'account',
          reason: 'no credit',
        },
        {
          ...delivery,
          attempt: 3,
          provider: 'webhook',
          outcome: 'unknown',
          errorClass: 'unknown',
          reason: 'time-out',
        },
      ]),
    ).toEqual([
      'Request 019b796d-d600-7256-a391-52604e6fc76b',
      'On 2026-01-31 23:59:58 UTC app shop asked for another code by SMS to 12*******43, for brand acme (POST /otp/resend).',
      'It was answered after 5 ms: 502 sms_failed.',
      '',
      'Checks',
      '  passed   the credentials of app shop',
      '  passed   brand acme is approved',
      '  passed   calls of this app in a minute: this was 1 of 10, until 2026-02-01 00:00:58 UTC',
      '  passed   the fields',
      '',
      'Delivery',
      '  1. 2026-01-31 23:59:59 UTC  kannel on the plain route (LOGIN_OTP, 1 segment of GSM-7): could not take it, after 99 ms (HTTP 503)',
      '  2. 2026-01-31 23:59:59 UTC  sns on the plain route (LOGIN_OTP, 1 segment of GSM-7): rejected after 99 ms because of our account there (no credit)',
      '  3. 2026-01-31 23:59:59 UTC  webhook on the plain route (LOGIN_OTP, 1 segment of GSM-7): left it open, after 99 ms (time-out): it may have been sent or not',
      '',
      'What to do',
      '  kannel could not take it (HTTP 503): look whether it has trouble.',
      '  sns does not accept us (no credit): look at its credentials, credit and permissions.',
      '  webhook did not answer in time: look whether it has trouble, or at PROVIDER_TIMEOUT_MS.',
      '  Its code is void: should a message arrive after all, it does not verify. The person has to ask anew. It stays counted in the minute and hour of the recipient.',
    ])
  })

  test('of a send rejected by the cooldown', () => {
    const limits = [{ ...limitStatus('cooldown', 1, 1, 21), refused: true }]
    expect(explain({ ...refused(429, 'cooldown_active'), limits }, [])).toEqual([
      'Request 019b796d-d600-7256-a391-52604e6fc76b',
      'On 2026-01-31 23:59:58 UTC app shop asked for a code by SMS to 12*******43, for brand acme (POST /otp/send).',
      'It was answered after 5 ms: 429 cooldown_active.',
      '',
      'Checks',
      '  passed   the credentials of app shop',
      '  passed   brand acme is approved',
      '  REFUSED  the cooldown of this brand and phone was running until 2026-02-01 00:00:19 UTC',
      '',
      'Delivery',
      '  nothing was handed to any provider',
      '',
      'What to do',
      '  The client may ask again when Retry-After is over.',
    ])
  })

  test('of a verify with a wrong code', () => {
    const limits = [limitStatus('app-minute', 10, null), limitStatus('failures', 100, null)]
    expect(explain({ ...refused(401, 'mismatch'), operation: 'verify', limits }, [])).toEqual([
      'Request 019b796d-d600-7256-a391-52604e6fc76b',
      'On 2026-01-31 23:59:58 UTC app shop asked for a code to be checked of 12*******43, for brand acme (POST /otp/verify).',
      'It was answered after 5 ms: 401 mismatch.',
      '',
      'Checks',
      '  passed   the credentials of app shop',
      '  passed   brand acme is approved',
      '  passed   calls of this app in a minute: of 10 there was room',
      '  passed   wrong codes for this recipient in a day: of 100 there was room',
      '  passed   the fields',
      '  REFUSED  the code was wrong',
    ])
  })

  test('of a mail to several recipients, one of whom it did not reach', () => {
    const mail: Delivery = {
      ...delivery,
      channel: 'EMAIL',
      route: null,
      provider: 'smtp',
      template: null,
      segments: null,
      recipient: 'a***@example.com',
      position: 1,
    }
    const failed = refused(500, 'notification_failed')
    const asked = {
      ...failed,
      operation: 'notify',
      channel: 'EMAIL',
      brand: null,
      recipient: null,
      recipients: 2,
      limits: [limitStatus('app-minute', 10, 2, 60)],
    } as const
    expect(
      explain(asked, [
        mail,
        {
          ...mail,
          attempt: 2,
          recipient: 'b***@example.com',
          position: 2,
          outcome: 'rejected',
          errorClass: 'recipient',
          reason: '550',
        },
      ]),
    ).toEqual([
      'Request 019b796d-d600-7256-a391-52604e6fc76b',
      'On 2026-01-31 23:59:58 UTC app shop asked for a notification by mail to 2 recipients (POST /notify).',
      'It was answered after 5 ms: 500 notification_failed.',
      '',
      'Checks',
      '  passed   the credentials of app shop',
      '  passed   a mail needs no brand',
      '  passed   calls of this app in a minute: this was 2 of 10, until 2026-02-01 00:00:58 UTC',
      '  passed   the fields',
      '',
      'Delivery',
      '  1. 2026-01-31 23:59:59 UTC  smtp to a***@example.com, number 1 in its list: accepted after 99 ms',
      '  2. 2026-01-31 23:59:59 UTC  smtp to b***@example.com, number 2 in its list: rejected after 99 ms because of the recipient (550)',
      '',
      'What to do',
      '  No mail reaches that address (550): ask the person for another.',
    ])
  })

  test('without an end', () => {
    const limits = [limitStatus('app-minute', 10, 1, 60)]
    expect(explain({ ...trace, limits, end: null }, [])).toEqual([
      'Request 019b796d-d600-7256-a391-52604e6fc76b',
      'On 2026-01-31 23:59:58 UTC app shop asked for a code by SMS to 12*******43, for brand acme (POST /otp/send).',
      'It was let through and then never answered: it is still under way, or the server ended meanwhile. What was handed over in its last moments may not be listed here.',
      '',
      'Checks',
      '  passed   the credentials of app shop',
      '  passed   brand acme is approved',
      '  passed   calls of this app in a minute: this was 1 of 10, until 2026-02-01 00:00:58 UTC',
      '  passed   the fields',
      '',
      'Delivery',
      '  nothing has been written of it',
    ])
  })
})

describe('the delivery reports of an attempt', () => {
  const rows: readonly (readonly [string, Partial<Delivery>, string])[] = [
    ['nothing, and none is expected', {}, 'accepted after 99 ms'],
    ['nothing yet', { reportKey: 'key' }, 'accepted after 99 ms; no receipt has come'],
    [
      'that it is on its way',
      { reportKey: 'key', report: { status: 'pending', reason: null, at } },
      'accepted after 99 ms; on its way, says its receipt of 2026-01-31 23:59:58 UTC',
    ],
    [
      'that it failed, and why',
      { reportKey: 'key', report: { status: 'failed', reason: 'absent', at } },
      'accepted after 99 ms; NOT delivered, says its receipt of 2026-01-31 23:59:58 UTC (absent)',
    ],
    [
      'that it failed',
      { reportKey: 'key', report: { status: 'failed', reason: null, at } },
      'accepted after 99 ms; NOT delivered, says its receipt of 2026-01-31 23:59:58 UTC',
    ],
    [
      'that it was delivered, although its answer was lost',
      {
        outcome: 'unknown',
        errorClass: 'unknown',
        reason: 'time-out',
        report: { status: 'delivered', reason: null, at },
      },
      'left it open, after 99 ms (time-out): it may have been sent or not; delivered, says its receipt of 2026-01-31 23:59:58 UTC',
    ],
    [
      'anything, of a message that it had refused',
      {
        outcome: 'rejected',
        errorClass: 'recipient',
        reason: 'no such number',
        report: { status: 'delivered', reason: null, at },
      },
      'rejected after 99 ms because of the recipient (no such number)',
    ],
  ]
  test.each([...rows])('%s', (_, properties, words) => {
    const lines = explain(trace, [{ ...delivery, ...properties }])
    expect(lines.find((line) => line.startsWith('  1. '))).toEndWith(`: ${words}`)
  })

  test('a message reported as delivered or failed is not described as a time-out', () => {
    const lost = { ...delivery, outcome: 'unknown', errorClass: 'unknown', reason: 'time-out' } as const
    const told = (status: 'delivered' | 'failed', providerMessageId: string | null = null) =>
      explain(trace, [{ ...lost, providerMessageId, report: { status, reason: null, at } }])
    expect(told('delivered')).not.toContain('What to do')
    expect(told('failed').slice(-2)).toEqual([
      'What to do',
      '  kannel took the message and its network did not deliver it: look into its own log for that time.',
    ])
    expect(told('failed', 'V-1').at(-1)).toBe(
      '  kannel took the message and its network did not deliver it: ask kannel with the id it gave.',
    )
  })
})

describe('an error is described in words, once', () => {
  /** These occur before a request trace starts: errors of credentials, route and body. */
  const without: readonly FailureKind[] = [
    'unauthorized',
    'forbidden',
    'route_not_found',
    'method_not_allowed',
    'body_too_large',
  ]
  const delivering: readonly FailureKind[] = ['sms_failed', 'notification_failed']
  const limiting: readonly FailureKind[] = ['rate_limited', 'cooldown_active']
  const kinds = (Object.keys(failureMessages) as FailureKind[]).filter((kind) => !without.includes(kind))

  test.each(kinds)('%s', (kind) => {
    const message = kind === 'validation_error' ? 'phone is not valid' : null
    const limits = [{ ...limitStatus('phone-minute', 3, 3, 60), refused: limiting.includes(kind) }]
    const lines = explain({ ...refused(400, kind, message), limits }, [])
    const told = lines.filter((line) => line.startsWith('  REFUSED  '))
    expect(told).toHaveLength(delivering.includes(kind) ? 0 : 1)
    // Words only; the error code is for programs.
    expect(told.join()).not.toContain(kind)
    if (message) expect(told.join()).toContain(message)
  })

  test('each limit has a description', () => {
    for (const limit of ['cooldown', 'phone-minute', 'recipient-hour', 'failures', 'app-minute'] as const) {
      const limits = [{ ...limitStatus(limit, 3, 3, 60), refused: true }]
      const told = explain({ ...refused(429, 'rate_limited'), limits }, []).filter((line) =>
        /REFUSED/.test(line),
      )
      expect(told).toEqual([expect.stringMatching(/until 2026-02-01 00:00:58 UTC$/)])
      expect(told.join()).not.toMatch(new RegExp(`REFUSED {2}${limit}\\b`))
    }
  })

  test('repeated advice is given once', () => {
    const failing = { ...delivery, outcome: 'rejected', errorClass: 'account', reason: 'no credit' } as const
    const lines = explain(trace, [failing, { ...failing, attempt: 2 }])
    expect(lines.slice(lines.indexOf('What to do'))).toHaveLength(2)
  })
})
