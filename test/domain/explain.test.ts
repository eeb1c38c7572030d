import { describe, expect, test } from 'bun:test'
import type { Delivery } from '../../src/domain/delivery/delivery-reports.ts'
import type { AuthoredRule } from '../../src/domain/delivery/destination.ts'
import { type FailureKind, failureMessages } from '../../src/domain/ground/failures.ts'
import type { ListedJob } from '../../src/domain/notify/queue.ts'
import type { LimitName } from '../../src/domain/request/limit-names.ts'
import type { LimitStatus } from '../../src/domain/request/request-context.ts'
import type { RequestTrace } from '../../src/domain/request/request-trace.ts'
import { explained } from '../support/explained.ts'

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
  recipientHash: null,
  country: 'US',
  reference: null,
  flags: [],
  unknownFields: [],
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
  lang: 'en',
  provider: 'kannel',
  template: 'LOGIN_OTP',
  recipient: '12*******43',
  position: null,
  recipientHash: 'hash',
  segments: { count: 1, encoding: 'GSM-7' },
  country: 'US',
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

const job: ListedJob = {
  requestId,
  position: 1,
  state: 'queued',
  masked: '12*******43',
  tries: 1,
  attempts: 1,
  dueAt: at + 5000,
  updatedAt: at,
  reason: 'HTTP 503',
  appId: 'shop',
  brandSlug: 'acme',
  channel: 'SMS',
  reference: null,
  createdAt: at,
  expiresAt: at + 3_600_000,
  hasContent: true,
}

describe('a request that a destination rule blocked names the rules that may have decided', () => {
  const rule = (name: string, action: 'allow' | 'block', brandSlug: string | null = null): AuthoredRule => ({
    ...{ rule: name, action, brandSlug, providers: [], sender: null, route: null },
    ...{ source: 'stored', set: { id: 7, at, actor: { by: 'command', name: 'ana' } } },
  })
  const range = '`phone` is in a number range that this server does not send SMS to.'
  const country = '`phone` is in a country that this server does not send SMS to: United States.'
  const setByAna = 'set by ana on 2026-01-31 23:59:58 UTC'
  for (const [name, message, rules, told] of [
    [
      'the prefix, not the country',
      range,
      [rule('+12', 'block'), rule('US', 'block'), rule('+13', 'block'), rule('+120255501439', 'block')],
      `The rule that applies now is \`+12 block\` of all brands, ${setByAna}.`,
    ],
    [
      'the rule of the brand',
      range,
      [rule('+12', 'block', 'acme'), rule('+12', 'block', 'other'), rule('+120', 'allow')],
      `The rule that applies now is \`+12 block\` of brand acme, ${setByAna}.`,
    ],
    [
      'several, since the mask hides the digits',
      range,
      [
        rule('+1202', 'block'),
        rule('+1205', 'block'),
        rule('+1206', 'block'),
        rule('+1206', 'allow', 'acme'),
      ],
      `One of these rules applies now: \`+1202 block\` of all brands, ${setByAna}; \`+1205 block\` of all brands, ${setByAna}.`,
    ],
    ['the country', country, [rule('+12', 'block'), rule('US', 'block')], 'now is `US block` of all brands'],
    ['all other countries', country, [rule('*', 'block')], '`otpost destination set US allow`'],
    ['none', range, [rule('US', 'block')], 'No rule that matches the number is known.'],
  ] as const) {
    test(name, () => {
      const blocked = { ...refused(400, 'validation_error', message), flags: ['destination'] as const }
      const lines = explained(blocked, [], [], rules)
      expect(lines).toContain(`  REJECTED  destination: ${message}`)
      expect(lines.slice(lines.indexOf('What to do')).join('\n')).toContain(told)
    })
  }
})

test('an asynchronous notification has its jobs, and the attempts of each recipient', () => {
  const accepted = {
    ...trace,
    operation: 'notify',
    end: { status: 202, error: null, message: null, durationMs: 5 },
  } as const
  const jobs = [
    job,
    { ...job, position: 2, state: 'sending', tries: 2, reason: null },
    { ...job, position: 3, state: 'unknown', reason: 'time-out' },
    { ...job, position: 4, state: 'failed', tries: 3, reason: 'expired: HTTP 503' },
    { ...job, position: 5, state: 'accepted', reason: null },
  ] as const
  const lines = explained(accepted, [{ ...delivery, attempt: 20_003, position: 2 }], jobs)
  const start = lines.indexOf('Queue')
  expect(lines.slice(start, start + 9)).toEqual([
    'Queue',
    '  recipient 1: 12*******43 queued after 1 try (HTTP 503), next try at 2026-02-01 00:00:03 UTC, expires at 2026-02-01 00:59:58 UTC',
    '  recipient 2: 12*******43 in flight since 2026-01-31 23:59:58 UTC, 2 tries',
    '  recipient 3: 12*******43 unknown since 2026-01-31 23:59:58 UTC, 1 try (time-out); the message may or may not have been sent',
    '  recipient 4: 12*******43 failed at 2026-01-31 23:59:58 UTC, 3 tries (expired: HTTP 503)',
    '  recipient 5: 12*******43 accepted at 2026-01-31 23:59:58 UTC, 1 try',
    '',
    'Delivery',
    '  3. 2026-01-31 23:59:59 UTC  kannel on the plain route to 12*******43 (US) (LOGIN_OTP, 1 GSM-7 segment, recipient 2): accepted after 99 ms',
  ])
})

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
      explained({ ...trace, limits }, [
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
      'On 2026-01-31 23:59:58 UTC app shop requested a code by SMS to 12*******43 (US), brand acme (POST /otp/send).',
      'Answered after 123 ms: 200 success.',
      '',
      'Checks',
      '  passed    credentials of app shop',
      '  passed    brand acme is active',
      '  passed    SMS cooldown of this brand and phone: not active',
      '  passed    SMS codes per minute for this phone: 1 of 3, resets at 2026-02-01 00:00:58 UTC',
      '  passed    codes per hour for this recipient: 4 of 10, resets at 2026-02-01 00:29:58 UTC',
      '  passed    requests per minute for this app: 7 of 10, resets at 2026-02-01 00:00:10 UTC',
      '  passed    fields',
      '',
      'Delivery',
      '  1. 2026-01-31 23:59:59 UTC  msg91 on the template route (LOGIN_OTP, 1 GSM-7 segment): rejected after 99 ms because of the message or its destination (211)',
      '  2. 2026-01-31 23:59:59 UTC  twilio on the plain route (LOGIN_OTP, 1 GSM-7 segment): skipped: circuit open',
      '  3. 2026-01-31 23:59:59 UTC  kannel on the plain route (LOGIN_OTP, 2 UCS-2 segments): accepted after 1.0 s, id V-1; delivered (delivery report of 2026-02-01 00:00:03 UTC)',
      '',
      'What to do',
      '  msg91 rejected the message (211). Check the sender id, the template id, the text, and whether the destination is allowed.',
    ])
  })

  test('of a code that no provider accepted', () => {
    const failed = refused(502, 'sms_failed')
    expect(
      explained({ ...failed, operation: 'resend', limits: [limitStatus('app-minute', 10, 1, 60)] }, [
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
      'On 2026-01-31 23:59:58 UTC app shop requested another code by SMS to 12*******43 (US), brand acme (POST /otp/resend).',
      'Answered after 5 ms: 502 sms_failed.',
      '',
      'Checks',
      '  passed    credentials of app shop',
      '  passed    brand acme is active',
      '  passed    requests per minute for this app: 1 of 10, resets at 2026-02-01 00:00:58 UTC',
      '  passed    fields',
      '',
      'Delivery',
      '  1. 2026-01-31 23:59:59 UTC  kannel on the plain route (LOGIN_OTP, 1 GSM-7 segment): temporary failure after 99 ms (HTTP 503)',
      '  2. 2026-01-31 23:59:59 UTC  sns on the plain route (LOGIN_OTP, 1 GSM-7 segment): rejected after 99 ms because of the provider account (no credit)',
      '  3. 2026-01-31 23:59:59 UTC  webhook on the plain route (LOGIN_OTP, 1 GSM-7 segment): timed out after 99 ms; the message may or may not have been sent',
      '',
      'What to do',
      '  kannel had a temporary failure (HTTP 503). Check the status of the provider.',
      '  sns rejects the account (no credit). Check its credentials, credit and permissions.',
      '  webhook did not answer in time. Check the status of the provider, and PROVIDER_TIMEOUT_MS.',
      '  The code is revoked: if a message arrives later, its code does not verify. The person must request a new code. The attempt counts against the minute and hour limits of the recipient.',
    ])
  })

  test('of a send rejected by the cooldown', () => {
    const limits = [{ ...limitStatus('cooldown', 1, 1, 21), refused: true }]
    expect(explained({ ...refused(429, 'cooldown_active'), limits }, [])).toEqual([
      'Request 019b796d-d600-7256-a391-52604e6fc76b',
      'On 2026-01-31 23:59:58 UTC app shop requested a code by SMS to 12*******43 (US), brand acme (POST /otp/send).',
      'Answered after 5 ms: 429 cooldown_active.',
      '',
      'Checks',
      '  passed    credentials of app shop',
      '  passed    brand acme is active',
      '  REJECTED  SMS cooldown of this brand and phone: active until 2026-02-01 00:00:19 UTC',
      '',
      'Delivery',
      '  no provider was called',
      '',
      'What to do',
      '  The client can try again after the seconds in Retry-After.',
    ])
  })

  test('of a verify with a wrong code', () => {
    const limits = [limitStatus('app-minute', 10, null), limitStatus('failures', 100, null)]
    expect(explained({ ...refused(401, 'mismatch'), operation: 'verify', limits }, [])).toEqual([
      'Request 019b796d-d600-7256-a391-52604e6fc76b',
      'On 2026-01-31 23:59:58 UTC app shop requested verification of a code for 12*******43 (US), brand acme (POST /otp/verify).',
      'Answered after 5 ms: 401 mismatch.',
      '',
      'Checks',
      '  passed    credentials of app shop',
      '  passed    brand acme is active',
      '  passed    requests per minute for this app: below 10',
      '  passed    wrong codes per day for this recipient: below 100',
      '  passed    fields',
      '  REJECTED  the code was wrong',
    ])
  })

  test('of a mail to several recipients, one of which failed', () => {
    const mail: Delivery = {
      ...delivery,
      channel: 'EMAIL',
      country: null,
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
      explained(asked, [
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
      'On 2026-01-31 23:59:58 UTC app shop requested a notification by e-mail to 2 recipients (POST /notify).',
      'Answered after 5 ms: 500 notification_failed.',
      '',
      'Checks',
      '  passed    credentials of app shop',
      '  passed    e-mail needs no brand',
      '  passed    requests per minute for this app: 2 of 10, resets at 2026-02-01 00:00:58 UTC',
      '  passed    fields',
      '',
      'Delivery',
      '  1. 2026-01-31 23:59:59 UTC  smtp to a***@example.com (recipient 1): accepted after 99 ms',
      '  2. 2026-01-31 23:59:59 UTC  smtp to b***@example.com (recipient 2): rejected after 99 ms because of the recipient (550)',
      '',
      'What to do',
      '  The e-mail address cannot receive e-mail (550). Ask the person for another.',
    ])
  })

  test('without an end', () => {
    const limits = [limitStatus('app-minute', 10, 1, 60)]
    expect(explained({ ...trace, limits, end: null }, [])).toEqual([
      'Request 019b796d-d600-7256-a391-52604e6fc76b',
      'On 2026-01-31 23:59:58 UTC app shop requested a code by SMS to 12*******43 (US), brand acme (POST /otp/send).',
      'It passed the checks and has no answer. It is still in progress, or the server stopped meanwhile. Its last delivery attempts may be missing here.',
      '',
      'Checks',
      '  passed    credentials of app shop',
      '  passed    brand acme is active',
      '  passed    requests per minute for this app: 1 of 10, resets at 2026-02-01 00:00:58 UTC',
      '  passed    fields',
      '',
      'Delivery',
      '  no attempt is recorded',
    ])
  })
})

describe('the delivery reports of an attempt', () => {
  const rows: readonly (readonly [string, Partial<Delivery>, string])[] = [
    ['nothing, and none is expected', {}, 'accepted after 99 ms'],
    ['nothing yet', { reportKey: 'key' }, 'accepted after 99 ms; no delivery report yet'],
    [
      'that it is on its way',
      { reportKey: 'key', report: { status: 'pending', reason: null, at } },
      'accepted after 99 ms; pending (delivery report of 2026-01-31 23:59:58 UTC)',
    ],
    [
      'that it failed, and why',
      { reportKey: 'key', report: { status: 'failed', reason: 'absent', at } },
      'accepted after 99 ms; NOT delivered (delivery report of 2026-01-31 23:59:58 UTC: absent)',
    ],
    [
      'that it failed',
      { reportKey: 'key', report: { status: 'failed', reason: null, at } },
      'accepted after 99 ms; NOT delivered (delivery report of 2026-01-31 23:59:58 UTC)',
    ],
    [
      'that it was delivered, although its answer was lost',
      {
        outcome: 'unknown',
        errorClass: 'unknown',
        reason: 'time-out',
        report: { status: 'delivered', reason: null, at },
      },
      'timed out after 99 ms; the message may or may not have been sent; delivered (delivery report of 2026-01-31 23:59:58 UTC)',
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
    const lines = explained(trace, [{ ...delivery, ...properties }])
    expect(lines.find((line) => line.startsWith('  1. '))).toEndWith(`: ${words}`)
  })

  test('a message reported as delivered or failed is not described as a time-out', () => {
    const lost = { ...delivery, outcome: 'unknown', errorClass: 'unknown', reason: 'time-out' } as const
    const told = (status: 'delivered' | 'failed', providerMessageId: string | null = null) =>
      explained(trace, [{ ...lost, providerMessageId, report: { status, reason: null, at } }])
    expect(told('delivered')).not.toContain('What to do')
    expect(told('failed').slice(-2)).toEqual([
      'What to do',
      '  kannel accepted the message, but it was not delivered. Check the log of the provider for that time.',
    ])
    expect(told('failed', 'V-1').at(-1)).toBe(
      '  kannel accepted the message, but it was not delivered. Ask the provider, with the id above.',
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
    const message = kind === 'validation_error' ? '`phone` must have 7 to 15 digits.' : null
    const limits = [{ ...limitStatus('phone-minute', 3, 3, 60), refused: limiting.includes(kind) }]
    const lines = explained({ ...refused(400, kind, message), limits }, [])
    const told = lines.filter((line) => line.startsWith('  REJECTED  '))
    expect(told).toHaveLength(delivering.includes(kind) ? 0 : 1)
    // Words only; the error code is for programs.
    expect(told.join()).not.toContain(kind)
    if (message) expect(told.join()).toContain(message)
  })

  test('each limit has a description', () => {
    for (const limit of ['cooldown', 'phone-minute', 'recipient-hour', 'failures', 'app-minute'] as const) {
      const limits = [{ ...limitStatus(limit, 3, 3, 60), refused: true }]
      const told = explained({ ...refused(429, 'rate_limited'), limits }, []).filter((line) =>
        /REJECTED/.test(line),
      )
      expect(told).toEqual([expect.stringMatching(/(until|resets at) 2026-02-01 00:00:58 UTC$/)])
      expect(told.join()).not.toMatch(new RegExp(`REJECTED {2}${limit}\\b`))
    }
  })

  test('a budget has its scope and its amounts', () => {
    const status: LimitStatus = {
      ...limitStatus('budget', 50_000_000, 75_000, 60),
      budget: { scope: 'app:shop', of: 'all', currency: 'EUR' },
    }
    const told = (limit: LimitStatus) =>
      explained({ ...trace, limits: [limit] }, []).filter((line) => /budget/.test(line))
    const resets = 'resets at 2026-02-01 00:00:58 UTC'
    expect(told(status)).toEqual([`  passed    budget app:shop: 0.075 EUR spent of 50 EUR, ${resets}`])
    expect(told({ ...status, max: Number.MAX_SAFE_INTEGER })).toEqual([
      `  passed    budget app:shop: 0.075 EUR spent (it rejects no messages), ${resets}`,
    ])
    const rejected = { ...refused(429, 'rate_limited'), limits: [{ ...status, refused: true }] }
    expect(explained(rejected, []).join('\n')).toContain(
      `  REJECTED  budget app:shop: too little is left of 50 EUR, ${resets}`,
    )
    expect(explained(rejected, []).at(-1)).toContain('`otpost budget lift app:shop --for 12h`')
    const ofLatvia = { scope: 'country:*', of: 'codes', country: 'LV', currency: 'EUR' } as const
    const ofCountry = { ...rejected, limits: [{ ...status, budget: ofLatvia, refused: true }] }
    expect(explained(ofCountry, []).join('\n')).toContain(
      'budget country:* (LV) of codes: too little is left',
    )
    expect(explained(ofCountry, []).at(-1)).toContain(
      "To send more to Latvia before the budget resets, set a budget for the country with `otpost budget set country:LV --of codes --per PERIOD --amount AMOUNT`. To lift the budget for all countries, use `otpost budget lift 'country:*' --of codes --for 12h`.",
    )
  })

  test('a request that is only recorded as pumping has the reasons', () => {
    const told = explained(
      { ...trace, country: 'LV', reference: 'login-7', flags: ['destination', 'prefix'] },
      [],
    )
    expect(told[1]).toContain(' to 12*******43 (LV), brand acme, reference login-7 (POST')
    expect(told.filter((line) => line.startsWith('  recorded  '))).toEqual([
      '  recorded  destination: with block instead of monitor, its rule would reject the request',
      expect.stringContaining('in mode deny the request would be rejected: too many unverified codes'),
    ])
  })

  test('a request that the guard denied has the bucket, and what to do if it was genuine', () => {
    const denied = { ...refused(429, 'rate_limited'), flags: ['country-hour'] as const }
    const told = explained(denied, [])
    expect(told).toContain(
      '  REJECTED  SMS pumping guard: too many unverified codes to the country in an hour',
    )
    expect(told.slice(told.indexOf('What to do') + 1)).toEqual([expect.stringContaining('SMS_COUNTRIES')])
  })

  test('a replay has the request whose answer it got, also a failure', () => {
    const first = '019b796d-d600-7256-a391-000000000000'
    for (const answered of [trace, refused(500, 'internal_error'), refused(500, 'notification_failed')]) {
      const end = { status: 200, error: null, durationMs: 5, ...answered.end, message: first }
      const told = explained({ ...answered, flags: ['replayed'], end }, [])
      const line = `  replayed  the Idempotency-Key is that of request ${first}, whose answer was sent again; no limit counted it`
      expect(told.slice(told.indexOf('Checks') + 3)).toEqual([
        line,
        '',
        'Delivery',
        '  no provider was called',
      ])
    }
  })

  test('repeated advice is given once', () => {
    const failing = { ...delivery, outcome: 'rejected', errorClass: 'account', reason: 'no credit' } as const
    const lines = explained(trace, [failing, { ...failing, attempt: 2 }])
    expect(lines.slice(lines.indexOf('What to do'))).toHaveLength(2)
  })
})
