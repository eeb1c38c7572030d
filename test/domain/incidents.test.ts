import { describe, expect, test } from 'bun:test'
import { budgetTitle, type MinuteOfAttempts } from '../../src/domain/health/conditions.ts'
import { firstDay, isFirstDay } from '../../src/domain/health/first-day.ts'
import {
  adviceOf,
  type Cause,
  calmWords,
  headline,
  type Impact,
  incidentsOf,
  type Words,
} from '../../src/domain/health/incidents.ts'
import { problemsOf } from '../../src/domain/health/problems.ts'
import { silenceVerdicts, type TrafficCount } from '../../src/domain/health/silence.ts'
import { latelyOf } from '../../src/domain/log/statistics.ts'
import type { Counted } from '../../src/domain/log/stats.ts'
import { defaultThresholds } from '../../src/domain/policy/policy-store.ts'
import { healthFacts, noGuard, now, provider } from '../support/health.ts'

const [minuteMs, hourMs, dayMs] = [60_000, 3_600_000, 86_400_000]

const textOf = (words: Words) =>
  words
    .map((part) => (typeof part === 'string' ? part : new Date(part.at).toISOString().slice(11, 16)))
    .join('')

/** Counts of minutes before now. */
function counted(kind: Counted['kind'], detail: string, counts: Readonly<Record<number, number>>): Counted[] {
  return Object.entries(counts).map(([minutes, count]) => ({
    at: now - Number(minutes) * minuteMs,
    kind,
    channel: kind === 'verify' || kind === 'verify-time' ? 'SMS' : 'SMS',
    brand: 'acme',
    provider: 'kannel',
    detail,
    count,
  }))
}

describe('silence', () => {
  const thisHour = now - (now % hourMs)
  const traffic = (
    provider: string,
    lastMinutesAgo: number | null,
    ...days: readonly number[]
  ): TrafficCount[] => {
    const of = { kind: provider === '' ? 'send' : 'report', provider, detail: '' } as const
    return [
      ...(lastMinutesAgo === null
        ? []
        : [{ ...of, stepMs: minuteMs, at: now - lastMinutesAgo * minuteMs, count: 3 }]),
      ...days.flatMap((count, day) =>
        [0, 1].map((back) => {
          return { ...of, stepMs: hourMs, at: thisHour - back * hourMs - (day + 1) * dayMs, count }
        }),
      ),
    ]
  }
  const accepted: MinuteOfAttempts[] = [
    { at: now - 20 * minuteMs, provider: 'twilio', accepted: 40, failed: 0 },
  ]
  const week = [80, 80, 90, 80, 80, 80, 80]

  test.each<[string, TrafficCount[], string | null]>([
    ['with calls a moment ago', traffic('', 1, ...week), 'ended'],
    ['of 14 minutes', traffic('', 14, ...week), 'ended'],
    [
      'of 17 minutes',
      traffic('', 17, ...week),
      'No calls since 2026-03-01 12:14 UTC. At this time of the days before, 15 minutes had about 20.',
    ],
    [
      'without any call',
      traffic('', null, ...week),
      'No calls. At this time of the days before, 15 minutes had about 20.',
    ],
    ['after one bad day', traffic('', 17, 80, 0, 80, 80, 80, 80, 80), 'No calls since'],
    ['on the first day', traffic('', 17), null],
    ['on the second day', traffic('', 17, 80), null],
    ['on the third day', traffic('', 17, 80, 80), 'No calls since'],
    ['of tiny traffic', traffic('', 17, 30, 30, 30), null],
    ['as every week', traffic('', 17, 80, 80, 80, 80, 80, 80, 4), null],
    ['at night', traffic('', 17, 0, 0, 3, 0, 0, 0, 2), null],
    ['of reports, sooner than they usually take', traffic('twilio', 25, ...week), 'ended'],
    [
      'of reports',
      traffic('twilio', 40, ...week),
      'No delivery reports of twilio since 2026-03-01 11:51 UTC.',
    ],
    ['of reports of a provider that accepted nothing', traffic('vonage', 40, ...week), null],
  ])('%s', (_, counts, expected) => {
    const [verdict, ...others] = silenceVerdicts(counts, accepted, 15, now)
    expect(others).toEqual([])
    if (expected === null) expect(verdict).toBeUndefined()
    else if (expected === 'ended') expect(verdict?.lasts).toBe(false)
    else {
      expect(verdict?.lasts).toBe(true)
      expect(verdict?.condition.text).toStartWith(expected)
    }
  })

  test('is no incident if operators say so', () => {
    const facts = { traffic: traffic('', 17, ...week) }
    expect(incidentsOf(healthFacts({}, facts)).incidents.map(({ about }) => about)).toEqual(['calls'])
    const thresholds = { ...defaultThresholds, silentMinutes: 0 }
    expect(incidentsOf(healthFacts({}, { ...facts, thresholds })).incidents).toEqual([])
  })
})

describe('codes that few people verify', () => {
  const thisHour = now - (now % hourMs)
  /** Of a minute: codes sent and verified. */
  type Minute = readonly [minutesAgo: number, sent: number, verified: number]
  const codesOf = (minutes: readonly Minute[], country = 'US'): TrafficCount[] =>
    minutes.flatMap(([minutesAgo, sent, verified]) =>
      codesAt(minuteMs, now - minutesAgo * minuteMs, sent, verified, country),
    )
  const codesAt = (stepMs: number, at: number, sent: number, verified: number, detail = 'US') => {
    const of = { stepMs, at, provider: '', detail }
    return [
      { ...of, kind: 'sms', count: sent },
      { ...of, kind: 'sms-verified', count: verified },
    ] as const
  }
  const week = (sent: number, verified: number, country = 'US') =>
    [1, 2, 3, 4, 5, 6, 7].flatMap((day) => codesAt(hourMs, thisHour - day * dayMs, sent, verified, country))
  const span = (from: number, until: number, sent: number, verified: number): Minute[] =>
    Array.from({ length: from - until + 1 }, (_, index) => [from - index, sent, verified])
  const of = (traffic: readonly TrafficCount[], facts: Parameters<typeof healthFacts>[1] = {}) =>
    incidentsOf(healthFacts({}, { ...facts, traffic })).incidents
  const usual = week(200, 176)
  const good = span(100, 31, 5, 4)
  const bad: Minute[] = [...span(30, 7, 5, 0), [6, 5, 3], ...span(5, 0, 5, 0)]

  test.each<[string, readonly TrafficCount[], string | null]>([
    ['after a fall', [...usual, ...codesOf([...good, ...bad])], '12:00 3 of 125, usually 88%'],
    ['as usual', [...usual, ...codesOf([...good, ...span(30, 0, 5, 4)])], null],
    ['that are not due', [...usual, ...codesOf([...good, ...span(4, 0, 20, 0)])], null],
    ['none of 15', [...usual, ...codesOf([[9, 15, 0]])], '12:21 none of 15, usually 88%'],
    ['none of 10', [...usual, ...codesOf([[9, 10, 0]])], null],
    ['half of the usual share', [...usual, ...codesOf(span(60, 0, 100, 46))], null],
    [
      'at an hour that usually has few of them verified',
      [...week(200, 40), ...codesOf(span(60, 0, 5, 1))],
      null,
    ],
    ['with few codes before', [...week(2, 2), ...codesOf([[9, 15, 0]])], null],
    ['on a new server', codesOf([[9, 22, 0]]), '12:21 none of 22, usually 80%'],
    ['of few on a new server', codesOf([[9, 21, 0]]), null],
    ['until they are verified again', [...usual, ...codesOf([...bad, ...span(10, 0, 5, 4)])], null],
    ['for longer than is known', [...usual, ...codesOf(span(115, 0, 5, 0))], 'none of 550, usually 88%'],
  ])('%s', (_, traffic, expected) => {
    const [incident, ...others] = of(traffic)
    expect(others).toEqual([])
    const { about, since, harm } = incident ?? {}
    expect(about).toBe(expected === null ? undefined : 'unverified')
    const began = since === undefined ? '' : `${new Date(since).toISOString().slice(11, 16)} `
    expect(incident ? `${began}${harm}` : null).toBe(expected)
  })

  test('do not count if they are of an attack', () => {
    const pumping = [
      {
        ...{ country: 'UZ', prefixes: [], apps: [], sent: 120, verified: 0, hasBlock: false },
        ...{ denied: 0, recorded: 120, stopped: 0 },
        ...{ deniedLately: 0, recordedLately: 9, stoppedLately: 0 },
      },
    ]
    const traffic = [...usual, ...codesOf(span(60, 0, 5, 4)), ...codesOf(span(30, 0, 20, 0), 'UZ')]
    expect(of(traffic).map(({ about }) => about)).toEqual(['unverified'])
    const guard = { ...noGuard, mode: 'record' as const, pumping }
    expect(of(traffic, { guard }).map(({ about }) => about)).toEqual(['pumping UZ'])
  })
})

describe('an outage', () => {
  const failing = (name: string, from: number): MinuteOfAttempts[] => [
    { at: now - (from + 1) * minuteMs, provider: name, accepted: 3, failed: 0 },
    { at: now - from * minuteMs, provider: name, accepted: 0, failed: 4 },
    { at: now, provider: name, accepted: 0, failed: 4 },
  ]
  const providers = [provider, { ...provider, name: 'twilio' }]
  const hour = [
    ...counted('send', 'sms_failed', { 0: 41 }),
    ...counted('attempt', 'rejected account', { 0: 80 }),
  ]
  const lately = latelyOf(hour, now)
  const down = healthFacts(
    {},
    { providers, attempts: [...failing('kannel', 9), ...failing('twilio', 5)], lately },
  )

  const unverified = [
    { stepMs: minuteMs, at: now - 9 * minuteMs, kind: 'sms', provider: '', detail: 'US', count: 99 },
  ] as const

  test('is one incident, since the last provider failed', () => {
    const { incidents } = incidentsOf({ ...down, traffic: unverified })
    expect(incidents.map(({ about, since }) => [about, since])).toEqual([['sms', now - 5 * minuteMs]])
  })

  const cause = (
    provider: string,
    reason: string | null,
    errorClass: Cause['errorClass'] = 'account',
    meaning?: string,
  ): Cause => {
    return { provider, reason, errorClass, meaning }
  }
  test.each<[Partial<Impact>, string]>([
    [
      {
        people: { recipients: 41, isMore: false },
        causes: [cause('kannel', 'HTTP 401'), cause('twilio', 'HTTP 401')],
      },
      'No SMS since 12:25: 41 people got none. Both providers answer HTTP 401. Check the credentials of kannel and twilio.',
    ],
    [
      {
        people: { recipients: 10_000, isMore: true },
        causes: [cause('kannel', 'time-out', 'unknown'), cause('twilio', 'ECONNREFUSED', 'retryable')],
      },
      'No SMS since 12:25: more than 10,000 people got none. Provider kannel does not answer in time and twilio cannot be reached (ECONNREFUSED). Check the status page of kannel and twilio, and the network of this server.',
    ],
    [
      {
        people: { recipients: 1, isMore: false },
        causes: [cause('kannel', '20003', 'account', 'it is rejected')],
      },
      'No SMS since 12:25: 1 person got none. Provider kannel answers 20003: it is rejected. Check the credentials and the balance of kannel.',
    ],
  ])('says what goes on, how many people it hits, why, and what to do: %#', (impact, expected) => {
    const [incident] = incidentsOf(down).incidents
    if (!incident) throw new Error('no incident')
    const found = { incident, impact: { people: null, costs: [], causes: [], spender: undefined, ...impact } }
    expect(`${textOf(headline(found))} ${adviceOf(found)}`).toBe(expected)
  })

  test('of one of two providers is the incident of this provider', () => {
    const facts = healthFacts(
      {},
      { providers, attempts: [...failing('kannel', 9), ...failing('twilio', 5).slice(0, 1)], lately },
    )
    const [incident, ...others] = incidentsOf(facts).incidents
    expect(others).toEqual([])
    expect(incident).toMatchObject({
      about: 'provider kannel',
      title: 'Provider kannel fails',
      since: now - 9 * minuteMs,
    })
  })

  test('that alerts have reported began with the first alert', () => {
    const open = new Map([
      ['provider kannel', now - 3 * hourMs],
      ['provider twilio', now - 2 * hourMs],
    ])
    const attempts = down.attempts.filter(({ accepted }) => accepted === 0)
    expect(incidentsOf({ ...down, attempts, open }).incidents[0]?.since).toBe(now - 2 * hourMs)
    expect(incidentsOf({ ...down, open }).incidents[0]?.since).toBe(now - 5 * minuteMs)
  })

  test('that is acknowledged comes last, until another one begins', () => {
    const webhooks = [{ appId: 'till', disabledAt: now - hourMs, failing: undefined }]
    const at = (minutes: number) => [{ about: 'sms', at: now - minutes * minuteMs, by: 'ana' }]
    const order = (minutes: number) =>
      incidentsOf({ ...down, webhooks, acknowledgements: at(minutes) }).incidents.map(({ about }) => about)
    expect(order(1)).toEqual(['webhook till', 'sms'])
    expect(order(6)).toEqual(['sms', 'webhook till'])
  })
})

test.each([
  [2, []],
  [3, ['provider kannel']],
])('%d failures that neither the recipient nor the message caused', (failed, expected) => {
  const hour = [...counted('attempt', 'accepted', { 3: 5 }), ...counted('attempt', 'retryable', { 1: 4 })]
  const facts = healthFacts(
    {},
    {
      providers: [{ ...provider, lastHour: { accepted: 5, failed: 4, unknown: 0 } }],
      attempts: [{ at: now, provider: 'kannel', accepted: 5, failed }],
      lately: latelyOf(hour, now),
    },
  )
  expect(incidentsOf(facts).incidents.map(({ about }) => about)).toEqual(expected)
})

test('a threshold decides from when on failed messages are an incident', () => {
  const hour = [...counted('send', 'ok', { 1: 90 }), ...counted('send', 'sms_failed', { 1: 10 })]
  const facts = healthFacts(
    {},
    { lately: latelyOf(hour, now), lastFailures: new Map([['sendsFailed', now]]) },
  )
  const found = (thresholds: Partial<typeof defaultThresholds>) =>
    incidentsOf({ ...facts, thresholds: { ...defaultThresholds, ...thresholds } }).incidents.map(
      ({ about }) => about,
    )
  expect(found({})).toEqual(['codes'])
  expect(found({ failedPercent: 11 })).toEqual([])
})

test('messages that carriers do not deliver come before the templates that they reject', () => {
  const hour = [...counted('report', 'delivered', { 3: 41 }), ...counted('report', 'failed', { 3: 48 })]
  const rejection = {
    ...{ brand: 'acme', template: 'LOGIN_OTP', provider: 'kannel', reason: null },
    ...{ day: { sent: 100, rejected: 48 }, before: { sent: 900, rejected: 9 } },
  }
  const { incidents } = incidentsOf(healthFacts({}, { lately: latelyOf(hour, now), rejections: [rejection] }))
  expect(incidents.map(({ about }) => about)).toEqual(['undelivered', 'carriers acme LOGIN_OTP'])
  const [incident] = incidents
  if (!incident) throw new Error('there is no incident')
  const found = { incident, impact: { people: null, costs: [], causes: [], spender: undefined } }
  expect(`${textOf(headline(found))} ${adviceOf(found)}`).toBe(
    'Carriers do not deliver: 48 of 89 messages (53.9%) in the last hour. Delivery reports say so. Check the status pages of the providers.',
  )
})

test('what is past, permanent or intended is a note', () => {
  const facts = healthFacts({ sendsFailed: 2, sends: 98 }, {}, { forwardedIgnoredAt: now })
  const { incidents, notes } = incidentsOf(facts)
  expect(incidents).toEqual([])
  expect(notes).toEqual(problemsOf(facts))
  expect(notes.map(({ what }) => what)).toEqual(['messages', 'TRUSTED_PROXIES'])
})

test.each<[Counted[], string]>([
  [[], 'no codes and notifications'],
  [counted('send', 'ok', { 6: 12 }), 'no codes and notifications'],
  [
    [
      ...counted('send', 'ok', { 4: 200, 0: 12 }),
      ...counted('verify', 'ok', { 2: 187 }),
      ...counted('verify-time', '10', { 2: 177 }),
      ...counted('verify-time', '15', { 2: 10 }),
    ],
    '212 codes sent, 187 verified, p95 to verify at most 15 s',
  ],
  [
    [...counted('notify', 'ok', { 1: 1 }), ...counted('verify-time', 'more', { 2: 1 })],
    'p95 to verify more than 5 min, 1 notification sent',
  ],
])('the last five minutes in words: %#', (counts, words) => {
  expect(calmWords(latelyOf(counts, now))).toBe(words)
})

test('the steps of the first day follow from what is stored, and go away', () => {
  const empty = {
    activeBrands: 0,
    apps: 0,
    providers: [],
    rules: [],
    smsCountries: [],
    hasPrices: false,
    budgets: [],
    owners: 1,
    invitedOwners: 0,
    hasBackup: false,
  }
  const steps = firstDay(empty)
  expect([...steps].filter(([, [isDone]]) => isDone)).toEqual([])
  expect(steps.size).toBe(9)
  expect(firstDay({ ...empty, hasBackup: undefined }).size).toBe(8)
  const done = firstDay({ ...empty, activeBrands: 1, apps: 1, providers: [{ hasAccepted: true }], owners: 2 })
  expect([...done].filter(([, [isDone]]) => !isDone).map(([step]) => step)).toEqual([
    'destinations',
    'prices',
    'budget',
    'backup',
  ])
  expect(isFirstDay(false, [])).toBe(true)
  expect(isFirstDay(true, [])).toBe(false)
  expect(isFirstDay(false, [{ about: 'first day', at: now, by: 'ana' }])).toBe(false)
})

test.each([
  ['server', undefined, "The server's budget"],
  ['app:shop', undefined, 'The budget of app shop'],
  ['country:*', 'GB', 'The budget of United Kingdom'],
  ['country:*', 'ZZ', 'The budget of numbers of no country'],
])('the budget %s of %p in a sentence', (scope, country, words) => {
  expect(budgetTitle({ scope, of: 'all', country })).toBe(words)
})
