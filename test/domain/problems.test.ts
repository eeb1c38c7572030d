import { describe, expect, test } from 'bun:test'
import { budgetCondition, refusedByAlerts } from '../../src/domain/health/conditions.ts'
import type { HealthFacts } from '../../src/domain/health/facts.ts'
import type { Problem } from '../../src/domain/health/problem.ts'
import { problemsOf } from '../../src/domain/health/problems.ts'
import { liftWarning } from '../../src/domain/health/pumping-problems.ts'
import type { Figures, ProviderHealth } from '../../src/domain/log/statistics.ts'
import { type Budget, type BudgetStatus, counterStatus, inCountry } from '../../src/domain/money/budgets.ts'
import { healthFacts, noGuard, none, now, provider, reviewNumber } from '../support/health.ts'

const isOpen: ProviderHealth = { ...provider, state: 'open', failuresInARow: 5, openMs: 120_000 }
const texts = (problems: readonly Problem[]) => problems.map(({ level, text }) => `${level}: ${text}`)

test('is empty without traffic, and when everything succeeds', () => {
  const good = {
    sends: 100,
    verified: 1,
    accepted: 100,
    delivered: 90,
    notified: 3,
    limited: 5,
    wrongCodes: 9,
  }
  for (const model of [
    healthFacts({}, { providers: [provider] }),
    healthFacts(good, { providers: [provider] }),
  ]) {
    expect(problemsOf(model)).toEqual([])
  }
})

test('says that the clock of a server was set, as exactly as the steps of the period', () => {
  const at = Date.UTC(2026, 2, 1, 4)
  const words = (byMs: number, stepMs: number) =>
    texts(problemsOf(healthFacts({}, {}, { stepMs, clockSteps: [{ at, byMs }] })))[0]
  expect(words(-28_800_000, 3_600_000)).toBe(
    'warn: The clock of a server was set back by 8 h in the hour from 2026-03-01 04:00 UTC. Codes that were sent earlier do not verify. Stored times may be in the future.',
  )
  expect(words(28_800_000, 60_000)).toStartWith(
    'warn: The clock of a server was set forward by 8 h at 2026-03-01 04:00 UTC. The machine may have been suspended.',
  )
  expect(words(28_800_000, 86_400_000)).toStartWith(
    'warn: The clock of a server was set forward by 8 h in the day from 2026-03-01 04:00 UTC.',
  )
})

test('has what carriers and delivery reports reveal, with the remedy', () => {
  const problems = problemsOf(
    healthFacts(
      {},
      {
        rejections: [
          {
            brand: 'acme',
            template: 'LOGIN_OTP',
            day: { sent: 20, rejected: 15 },
            before: { sent: 100, rejected: 0 },
            provider: 'kannel',
            reason: 'err 633',
          },
        ],
      },
      {
        late: [{ provider: 'twilio', count: 4, hasTimedOut: true }],
        rejectedReports: [
          { provider: 'webhook', why: 'signature', count: 2 },
          { provider: '', why: 'url', count: 1 },
        ],
        forwardedIgnoredAt: Date.UTC(2026, 2, 1, 4),
        unnamedProofAt: Date.UTC(2026, 2, 1, 5),
      },
    ),
  )
  expect(problems.map(({ what, level, text, remedy }) => `${what} ${level}: ${text} ${remedy}`)).toEqual([
    'carriers bad: Carriers did not deliver 15 of 20 SMS (75%) of template LOGIN_OTP of brand acme in the last 24 hours; 0% in the 7 days before. Most frequent reason: err 633, the text differs from the registered template (kannel). Compare the text with the registered one.',
    'late codes bad: twilio delivered 4 codes after PROVIDER_TIMEOUT_MS (4000 ms) in the last 24 hours, according to delivery reports. Their sends were answered 502 sms_failed, so the codes do not verify. Set PROVIDER_TIMEOUT_MS to more than the response time of twilio, or name a faster provider before it in SMS_PLAIN or SMS_TEMPLATE.',
    'reports warn: otpost rejected 2 delivery reports of webhook in the last 24 hours: their signature, key or time is wrong. Compare the secret at the provider with the settings, and PUBLIC_URL with the URL that the provider calls. A third party may have sent them.',
    'reports warn: otpost rejected 1 delivery report of no provider of this server in the last 24 hours: their URL is not one of this server. Enter the status callback URL of this server at the provider. It changes with the secret key.',
    'TRUSTED_PROXIES warn: X-Forwarded-For from an IP address outside TRUSTED_PROXIES was ignored, last in the hour from 2026-03-01 04:00 UTC. The sender counts as the client of these requests. The log line "X-Forwarded-For was ignored" has the network of the sender. If your proxy is in that network, add its IP address to TRUSTED_PROXIES. If not, allow only your proxy to connect to otpost.',
    'PUBLIC_URL warn: Proofs of verifications have the issuer otpost, since PUBLIC_URL is not set, last in the hour from 2026-03-01 05:00 UTC. Services cannot distinguish them from those of another server by issuer. Set PUBLIC_URL, and let the services that check proofs expect it as the issuer.',
  ])
})

test('has a budget that rejects, by its alert or a rejected message, and one that is nearly spent', () => {
  const budget: Budget = {
    scope: 'server',
    of: 'all',
    period: 'day',
    amountMicros: 100_000_000,
    currency: 'EUR',
    alertAt: [50, 100],
    stops: true,
    liftedUntil: null,
    countsFrom: 0,
  }
  const near = { ...healthFacts(), budgets: [statusOf(budget, 95)] }
  expect(texts(problemsOf(near))).toEqual([
    'warn: Budget server: 95% of 100 EUR per day spent. If spending goes on as so far, it is used up at 2026-03-01 13:09 UTC.',
  ])
  const exhausted =
    'fail: Budget server is exhausted: 95 EUR of 100 EUR per day spent. SMS that cost more than what is left are rejected with 429 rate_limited until 2026-03-02 00:00:00 UTC. To send more before, lift the budget or set a larger amount.'
  const until = Date.parse('2026-03-02T00:00Z')
  const { data } = budgetCondition(statusOf(budget, 95), [])
  for (const refused of [
    new Map([['server', { micros: 6_000_000, until }]]),
    refusedByAlerts([{ text: JSON.stringify(data) }]),
  ]) {
    const counter = counterStatus(budget, 95_000_000, now, refused.get('server'))
    const [problem] = problemsOf({ ...near, budgets: [{ ...counter, counters: [counter] }] })
    expect(`${problem?.level}: ${problem?.text} ${problem?.remedy}`).toBe(exhausted)
  }
})

/** @param spent of its counters, the greatest first */
function statusOf(budget: Budget, ...spent: readonly number[]): BudgetStatus {
  const counters = spent.map((amount, index) =>
    counterStatus(
      budget.scope === 'country:*' ? inCountry(budget, `A${'ABCDEFGHIJKL'[index]}`) : budget,
      amount * 1_000_000,
      now,
    ),
  )
  return { ...(counters[0] ?? counterStatus(budget, 0, now)), budget, counters }
}

test('has a budget of each country that rejects or is nearly spent, with the countries', () => {
  const budget: Budget = {
    scope: 'country:*',
    of: 'codes',
    period: 'day',
    amountMicros: 100_000_000,
    currency: 'EUR',
    alertAt: [80],
    stops: true,
    liftedUntil: null,
    countsFrom: 0,
  }
  const told = (...spent: readonly number[]) =>
    texts(problemsOf({ ...healthFacts(), budgets: [statusOf(budget, ...spent)] }))
  expect(told()).toEqual([])
  expect(told(100, 90, 85, 10)).toEqual([
    expect.stringMatching(
      /^fail: Budget country:\* \(AA\) of codes is exhausted: 100 EUR of 100 EUR per day spent\./,
    ),
    'warn: Budget country:* (AB) of codes: 90% of 100 EUR per day spent. If spending goes on as so far, it is used up at 2026-03-01 13:53 UTC. 1 more country has spent at least 80%.',
  ])
  expect(told(...Array<number>(12).fill(100))).toEqual([
    expect.stringMatching(
      /^fail: Budget country:\* of codes is exhausted for 12 countries: AA, AB, AC, AD, AE, AF, AG, AH, AI, AJ, and 2 more\. Each has 100 EUR per day\./,
    ),
  ])
})

test('has a provider whose latest attempts all failed, as the alert about it says', () => {
  const attempts = [{ at: now, provider: 'kannel', accepted: 0, failed: 6 }]
  const [problem] = problemsOf(
    healthFacts(
      {},
      { attempts, providers: [provider] },
      { byProvider: [{ ...none, name: 'kannel', failed: 6 }] },
    ),
  )
  expect(problem).toMatchObject({
    what: 'providers',
    level: 'fail',
    text: expect.stringMatching(
      /^Provider kannel fails: the latest 6 attempts failed or have an unknown result\. 6 of 6 attempts \(100%\) failed/,
    ),
    remedy: 'Check the credentials, the balance and the status page of the provider.',
  })
})

test('has every failure, however few, and names a place to see more for most', () => {
  const share = { ...none, name: 'kannel', failed: 4 }
  const model = healthFacts(
    {
      sendsFailed: 4,
      notified: 999,
      notifyFailed: 1,
      delivered: 999,
      undelivered: 1,
      refused: 1,
      blocked: 3,
    },
    {
      providers: [{ ...provider, failuresInARow: 4 }],
      queue: { waiting: 2, oldestAt: now - 61_000, failed: 1 },
      webhooks: [
        { appId: 'fine', disabledAt: null, failing: undefined },
        {
          appId: 'shop',
          disabledAt: null,
          failing: { events: 1, since: now, triedAt: now, error: 'HTTP 500', answer: null },
        },
        { appId: 'till', disabledAt: now - 7_200_000, failing: undefined },
      ],
      failingAlerts: [
        { channel: 'email', alerts: 1 },
        { channel: 'webhook', alerts: 2 },
      ],
      guard: {
        ...noGuard,
        blocks: [{ prefix: '37120', country: 'LV', createdAt: now, expiresAt: now, denied: 0 }],
      },
      reviewNumbers: [reviewNumber],
    },
    { byProvider: [share], failures: [{ provider: 'kannel', errorClass: 'retryable', count: 4 }] },
  )
  const problems = problemsOf(model)
  expect(texts(problems)).toEqual([
    'bad: Sending failed for 4 of 4 codes (100%) in the last 24 hours. It goes on: the latest failure was just now.',
    'bad: Provider kannel: 4 failures in a row. 4 of 4 attempts (100%) failed or have an unknown result in the last 24 hours, most often: temporary failure. It goes on: the latest failure was just now.',
    'bad: The webhook of app shop fails: 1 event will be tried again. Latest error: HTTP 500.',
    'bad: The webhook of app till was switched off 2 h ago.',
    'bad: Alerts by e-mail fail: 1 alert will be tried again. The server log has the reason.',
    'bad: Alerts by webhook fail: 2 alerts will be tried again. The server log has the reason.',
    'warn: Sending failed for 1 of 1,000 notifications (0.1%) in the last 24 hours. The latest failure was just now.',
    'warn: 2 asynchronous notifications wait, the oldest for 1 min.',
    'warn: 1 asynchronous notification failed or has an unknown result in the last 24 hours.',
    'warn: 1 of 1,000 messages (0.1%) was not delivered in the last 24 hours, according to delivery reports.',
    'warn: Operators block 1 prefix.',
    'warn: 1 request in the last 24 hours was rejected because of the brand: it is suspended, pending or unknown, or the template is not enabled for it.',
    'warn: 3 requests in the last 24 hours were rejected because of the destination: a rule or `SMS_COUNTRIES` blocks the number.',
    'warn: A fixed code verifies for 1 review number: 1202****143 (acme, until 2026-03-07).',
  ])
  for (const { see } of problems) expect(see).not.toBeEmpty()
})

test('has a disk that is nearly full, and a database that cannot be written', () => {
  const server = { databaseError: null, freeBytes: 2 ** 20, lostRequests: 0, limited: [] }
  const [full] = problemsOf(healthFacts({}, { server }))
  expect(full).toMatchObject({
    what: 'disk',
    level: 'fail',
    text: 'The disk of the database is nearly full: 1.0 MiB free.',
    remedy: expect.stringContaining('Free disk space'),
  })
  const away = { ...server, freeBytes: 2 ** 40, databaseError: new Error('locked'), lostRequests: 3 }
  expect(texts(problemsOf(healthFacts({}, { server: away })))).toEqual([
    'fail: The database is unavailable.',
    'bad: 3 requests could not be written to the event log since this server started. The figures do not include them.',
  ])
})

const alone = 'No other provider sends its SMS, so otpost still uses it.'
test.each<[string, ProviderHealth[], string]>([
  ['without another provider', [], alone],
  [
    'with another provider for its route',
    [{ ...provider, name: 'twilio', routes: ['template', 'plain'] }],
    'Other providers send its SMS.',
  ],
  ['with a provider for another route', [{ ...provider, name: 'twilio', routes: ['template'] }], alone],
  [
    'with a provider for another channel',
    [{ ...provider, name: 'smtp', channel: 'EMAIL', routes: [] }],
    alone,
  ],
  ['with another open circuit', [{ ...isOpen, name: 'twilio' }], alone],
])('has a provider with an open circuit, %s', (_case, others, meanwhile) => {
  expect(texts(problemsOf(healthFacts({}, { providers: [isOpen, ...others] })))[0]).toBe(
    `bad: Provider kannel: circuit open for 2 min after 5 failures in a row. ${meanwhile}`,
  )
})

test('has half-open providers, and says whether a message tests them', () => {
  const probed: ProviderHealth = { ...provider, state: 'half-open', failuresInARow: 6 }
  const busy = { ...probed, name: 'busy', lastHour: { accepted: 8, failed: 1, unknown: 1 } }
  const model = healthFacts({}, { providers: [probed, busy] })
  expect(texts(problemsOf(model))).toEqual([
    'bad: Provider kannel: circuit half-open after 6 failures in a row. It had no attempts in the last hour, so nothing tests it.',
    'bad: Provider busy: circuit half-open after 6 failures in a row. The next message to it decides whether it closes. 2 of 10 attempts (20%) in the last hour.',
  ])
})

test('has a provider that failed in the period, also one that is no longer configured', () => {
  const [kannel, old] = [
    { ...none, name: 'kannel', accepted: 99, unknown: 1 },
    { ...none, name: 'old', failed: 1 },
  ]
  const model = healthFacts({}, { providers: [provider] }, { byProvider: [kannel, old] })
  expect(texts(problemsOf(model))).toEqual([
    'bad: Provider old: 1 of 1 attempt (100%) failed or has an unknown result in the last 24 hours. It goes on: the latest failure was just now.',
    'warn: Provider kannel: 1 of 100 attempts (1%) failed or has an unknown result in the last 24 hours. The latest failure was just now.',
  ])
})

describe('of an outage', () => {
  const hour = 3_600_000
  const noon = Date.UTC(2026, 2, 1, 12)
  const figures = { sends: 4000, sendsFailed: 19, verified: 3000 }
  const shares = [
    { ...none, name: 'vonage', accepted: 80, failed: 21 },
    { ...none, name: 'twilio', accepted: 2949, failed: 51 },
  ]
  const tries = new Map([
    ['vonage', [{ at: noon - 2 * hour, failed: 21, all: 101 }]],
    [
      'twilio',
      [
        { at: noon - 5 * hour, failed: 4, all: 2000 },
        { at: noon - 3 * hour, failed: 20, all: 40 },
        { at: noon - 2 * hour, failed: 27, all: 33 },
      ],
    ],
  ])
  const points = [{ ...none, at: noon - 3 * hour, ...figures }]
  const outage = (lastFailures: HealthFacts['lastFailures'], steps = tries) =>
    problemsOf(healthFacts(figures, { lastFailures }, { byProvider: shares, tries: steps, points }))

  test('that has ended says when it was, is no problem, and names the provider with the most failures first', () => {
    const problems = outage(new Map())
    expect(texts(problems)).toEqual([
      'warn: Sending failed for 19 of 4,019 codes (0.5%) in the last 24 hours. They failed from 2026-03-01 09:00 to 10:00 UTC.',
      'warn: Provider twilio: 51 of 3,000 attempts (1.7%) failed or have an unknown result in the last 24 hours. They failed from 2026-03-01 07:00 to 11:00 UTC.',
      'warn: Provider vonage: 21 of 101 attempts (20.8%) failed or have an unknown result in the last 24 hours. They failed from 2026-03-01 10:00 to 11:00 UTC.',
    ])
    expect(problems[1]?.see[0]).toEqual({
      list: 'deliveries',
      filters: {
        provider: 'twilio',
        statuses: ['rejected', 'retryable', 'unknown'],
        since: noon - 23 * hour,
      },
    })
  })

  test('that goes on is a problem', () => {
    const latest = new Map([['vonage', now - 180_000]])
    const inThisHour = (failed: number) =>
      outage(latest, new Map([['vonage', [{ at: noon, failed, all: 101 }]]]))
    expect(inThisHour(21)[0]?.text).toEndWith('It goes on: the latest failure was 2 min ago.')
    expect(inThisHour(21).map(({ level }) => level)).toEqual(['bad', 'warn', 'warn'])
    expect(inThisHour(1).at(-1)?.text).toEndWith(' hours. The latest failure was 2 min ago.')
    expect(inThisHour(1).map(({ level }) => level)).toEqual(['warn', 'warn', 'warn'])
  })
})

test('has codes that were not verified before they expired', () => {
  const sent = (minutesAgo: number, figures: Partial<Figures> = {}) =>
    problemsOf(
      healthFacts(
        { sends: 1, ...figures },
        {},
        {
          stepMs: 60_000,
          period: 'hour',
          points: [{ ...none, at: now - minutesAgo * 60_000, sends: 1 }],
        },
      ),
    )
  expect(sent(10)).toEqual([])
  expect(sent(11, { verified: 1 })).toEqual([])
  expect(texts(sent(11))).toEqual([
    'warn: No code was verified in the last hour. The messages may not arrive.',
  ])
})

test('has blocked prefixes, those of the most first', () => {
  const blocked = new Map([
    ['KZ', 1],
    ['LV', 3],
    [null, 2],
    ['UZ', 1],
  ])
  const prefixes =
    '3 prefixes of Latvia, 2 prefixes of no country, 1 prefix of Kazakhstan, 1 of other countries.'
  for (const [mode, verb] of [
    ['deny', 'blocks'],
    ['record', 'would block'],
  ] as const) {
    const guard = { ...noGuard, mode, blocked }
    expect(texts(problemsOf(healthFacts({}, { guard })))).toEqual([
      `warn: The SMS pumping guard ${verb} ${prefixes}`,
    ])
  }
})

describe('SMS pumping', () => {
  const status = {
    country: 'UZ',
    sent: 3512,
    verified: 0,
    denied: 0,
    recorded: 3509,
    recordedLately: 120,
    deniedLately: 0,
    stopped: 0,
    stoppedLately: 0,
    hasBlock: false,
    prefixes: [{ prefix: '+9989371', share: 1, isBlocked: false }],
    apps: [{ app: 'globex-app', brand: 'globex', codes: 3509 }],
  }
  const requested = 'requested by app globex-app of brand globex.'
  const pumped = 'Possible SMS pumping to Uzbekistan (+9989371…): in the last hour'
  const attack = `${pumped} 3,512 codes sent, none verified; ${requested}`
  const advice = 'Such codes are still sent until you block their prefix or country.'
  const onlyRecords =
    'warn: The mode of the SMS pumping guard is record. It sends the codes that it finds too many: 3,509 codes in the last hour.'
  const worded = (all: readonly Problem[]) =>
    all.map(({ level, text, remedy }) => `${level}: ${text} ${remedy}`.trim())
  const problems = (mode: 'record' | 'deny', changes: Partial<typeof status> = {}) =>
    problemsOf(
      healthFacts({ sendsFailed: 4 }, { guard: { ...noGuard, mode, pumping: [{ ...status, ...changes }] } }),
    )

  test('comes first while such codes are sent, with a link to stop it and to the rows', () => {
    const [first, ...others] = problems('record')
    expect(first).toMatchObject({
      what: 'guard',
      level: 'bad',
      text: attack,
      remedy: advice,
      see: [
        { to: 'guard block', fields: { prefix: '+9989371' } },
        { list: 'deliveries', filters: { channel: 'SMS', country: 'UZ', since: now - 3_600_000 } },
      ],
    })
    expect(texts(others).at(-1)).toBe(onlyRecords)
  })

  test('is not said to be sent still, once the mode is deny', () => {
    expect(worded(problems('deny', { denied: 60, deniedLately: 60 }))[0]).toBe(
      `bad: ${pumped} 3,512 codes sent, none verified, 60 codes denied; ${requested} Some were sent in the last 2 minutes. The mode is deny now: the guard denies codes above its thresholds, and a block denies all.`,
    )
  })

  test('is a warning when it is stopped, or when it may be none', () => {
    const warned = (changes: Partial<typeof status>) => worded(problems('record', changes))[1]
    const blocked = [{ prefix: '+9989371', share: 1, isBlocked: true }]
    expect(warned({ prefixes: blocked, denied: 20 })).toBe(
      `warn: ${pumped} 3,512 codes sent, none verified, 20 codes denied; ${requested} An operator blocked the prefix.`,
    )
    expect(warned({ recordedLately: 0 })).toBe(`warn: ${attack} In the last 2 minutes, the guard found none.`)
    expect(worded(problems('record', { recordedLately: 0, deniedLately: 9 }))[0]).toBe(
      `bad: ${attack} Such codes were denied until a moment ago, and nothing blocks them now.`,
    )
    expect(warned({ sent: 30, recorded: 25, verified: 11 })).toStartWith(`warn: ${pumped} 30 codes sent`)
    expect(warned({ sent: 19, recorded: 9 })).toStartWith(`warn: ${pumped} 19 codes sent`)
  })

  test('that only a budget stops is a problem, also once no code was sent for an hour', () => {
    const stopped = { sent: 0, recorded: 0, recordedLately: 0, stopped: 80, stoppedLately: 9 }
    expect(worded(problems('record', stopped))[0]).toBe(
      `bad: ${pumped} 80 codes rejected by a budget; ${requested} Only a budget stops such codes. Block their prefix or country before you lift the budget.`,
    )
    expect(liftWarning({ mode: 'record', pumping: [{ ...status, ...stopped }] })).toBe(
      `${pumped} 80 codes rejected by a budget; ${requested} A lift sends such codes. Block their prefix or country first.`,
    )
    expect(liftWarning({ mode: 'record', pumping: [{ ...status, verified: 3000 }] })).toBeUndefined()
  })

  test('of which the guard denies the codes is a warning', () => {
    const denied = { sent: 0, denied: 21, recorded: 0, recordedLately: 0, prefixes: [], country: 'ZZ' }
    expect(problems('deny', denied)[1]).toMatchObject({
      what: 'guard',
      level: 'warn',
      text: `Possible SMS pumping to no country: in the last hour 21 codes denied; ${requested}`,
      remedy: 'Such codes are denied now.',
      see: [
        { to: 'guard status', fields: {} },
        { list: 'calls', filters: { country: undefined, result: 'limited', since: now - 3_600_000 } },
      ],
    })
  })
})

test('has an app at its rate limit, but not a rate-limited recipient', () => {
  const limited = { brand: null, recipient: null, refusals: 1, endsAt: now + 1000 }
  const model = healthFacts(
    {},
    {
      server: {
        databaseError: null,
        freeBytes: undefined,
        lostRequests: 0,
        limited: [
          { ...limited, limit: 'cooldown', app: null, recipient: '1202****143' },
          { ...limited, limit: 'app-minute', app: 'shop' },
          { ...limited, limit: 'app-minute', app: 'shop', endsAt: now + 2000 },
        ],
      },
    },
  )
  expect(texts(problemsOf(model))).toEqual([
    'warn: App shop has reached its limit of calls per minute. Further calls are rejected.',
  ])
})
