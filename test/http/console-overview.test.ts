import { describe, expect, test } from 'bun:test'
import { type Concern, concernsOf, type OverviewModel } from '../../src/adapters/console/overview/concerns.ts'
import { overviewPage } from '../../src/adapters/console/overview/page.tsx'
import type { PageContext } from '../../src/adapters/console/page-context.ts'
import { elapsed } from '../../src/adapters/pages/words.ts'
import { ago, counted, duration, percent, utc } from '../../src/domain/ground/format.ts'
import type { Figures, ProviderHealth, Statistics } from '../../src/domain/log/statistics.ts'

// Checks the HTML source of the console pages, because browsers silently repair invalid HTML.

const now = Date.UTC(2026, 2, 1, 12, 30)

/** Text that breaks out of HTML if a page does not escape it. */
const hostile = `"'><img src=x onerror=alert(1)><script>alert(1)</script>&amp;`

const pageContext: PageContext = {
  version: '1.2.3',
  csrfToken: 'token-of-the-form',
  person: { email: 'ana@example.com', role: 'owner', isSetUp: true },
  pendingRequests: 2,
  hasOutbox: true,
  reviewNumbers: 0,
  now,
  flash: { tone: 'bad', text: hostile },
}

const none: Figures = {
  sends: 0,
  sendsFailed: 0,
  notified: 0,
  notifyFailed: 0,
  verified: 0,
  wrongCodes: 0,
  limited: 0,
  refused: 0,
  blocked: 0,
  accepted: 0,
  failed: 0,
  unknown: 0,
  delivered: 0,
  undelivered: 0,
}

const provider: ProviderHealth = {
  name: 'kannel',
  channel: 'SMS',
  routes: ['plain'],
  state: 'closed',
  failuresInARow: 0,
  openMs: 0,
  lastHour: { accepted: 0, failed: 0, unknown: 0 },
  hasAccepted: true,
}

const noGuard: OverviewModel['guard'] = {
  mode: 'deny',
  blocked: new Map(),
  blockedByOperators: 0,
  pumping: [],
}

/** Statistics of a day with the given figures in its last hour and no others. */
function overview(
  figures: Partial<Figures> = {},
  {
    lastFailures = new Map(['sendsFailed', 'notifyFailed', 'kannel', 'old'].map((name) => [name, now])),
    limited = [],
    budgets = [],
    providers = [],
    guard = noGuard,
    rejections = [],
    queue = { waiting: 0, oldestAt: null, failed: 0 },
    webhooks = [],
    failingAlerts = [],
    reviewNumbers = 0,
    clockStep,
  }: Partial<Omit<OverviewModel, 'statistics' | 'providerTimeoutMs'>> = {},
  about: Partial<Statistics> = {},
): OverviewModel {
  const hourMs = 3_600_000
  const totals = { ...none, ...figures }
  const from = Math.floor(now / hourMs) * hourMs - 23 * hourMs
  return {
    store: { isUsable: true, lostRequests: 0, freeBytes: 2 ** 40 },
    clockStep,
    statistics: {
      period: 'day',
      from,
      until: now,
      stepMs: hourMs,
      totals,
      points: Array.from({ length: 24 }, (_, step) => ({
        at: from + step * hourMs,
        ...(step === 23 ? totals : none),
      })),
      byChannel: [],
      byBrand: [],
      byProvider: [],
      tries: new Map(
        about.byProvider?.map(({ name, accepted, failed, unknown }) => [
          name,
          [{ at: from + 23 * hourMs, failed: failed + unknown, all: accepted + failed + unknown }],
        ]),
      ),
      failures: [],
      verifyTimes: { count: 0, bins: [], medianSeconds: null, p90Seconds: null },
      late: [],
      ...about,
    },
    lastFailures,
    limited,
    budgets,
    providers,
    guard,
    rejections,
    providerTimeoutMs: 4000,
    queue,
    webhooks,
    failingAlerts,
    reviewNumbers,
  }
}

interface PageElement {
  readonly tag: string
  readonly attributes: ReadonlyMap<string, string>
}

/** The HTML elements in order, with attribute values as written. */
function elementsOf(html: string): PageElement[] {
  const elements: PageElement[] = []
  new HTMLRewriter()
    .on('*', {
      element: ({ tagName, attributes }) => {
        elements.push({ tag: tagName, attributes: new Map(attributes as Iterable<[string, string]>) })
      },
    })
    .transform(html)
  return elements
}

/** The text of the main element, with each run of white space collapsed. */
function textOf(html: string): string {
  let text = ''
  const add = (chunk: { text: string }) => {
    text += ` ${chunk.text}`
  }
  new HTMLRewriter().on('main *', { text: add }).transform(html)
  return text.replaceAll(/\s+/g, ' ')
}

describe('the overview', () => {
  const figures = (model: OverviewModel) =>
    [
      ...overviewPage(pageContext, model).matchAll(
        /<dt>([^<]*)<\/dt><dd><span class="figure">(?:<(?:a|span)[^>]*>)?([^<]*)</g,
      ),
    ].map(([, name, value]) => `${name} ${value}`)

  test('shows no conversion rate when no code was sent', () => {
    expect(figures(overview())).toEqual([
      'Codes sent 0',
      'Verified 0',
      'Conversion –',
      'Failed 0',
      'Rate-limited 0',
      'Accepted 0',
      'Delivered 0',
    ])
  })

  test('shows the figures of the period', () => {
    const model = overview({
      sends: 1200,
      sendsFailed: 3,
      notifyFailed: 4,
      limited: 5,
      accepted: 1300,
      delivered: 1100,
    })
    expect(figures(model)).toEqual([
      'Codes sent 1,200',
      'Verified 0',
      'Conversion 0%',
      'Failed 7',
      'Rate-limited 5',
      'Accepted 1,300',
      'Delivered 1,100',
    ])
  })

  test('has the same figures in its table and in its chart', () => {
    const html = overviewPage(pageContext, overview({ sends: 31, verified: 17, sendsFailed: 5 }))
    const chart = elementsOf(html).find(({ attributes }) => attributes.get('id') === 'chart-codes')
    const written = (chart?.attributes.get('data-chart') ?? '').replaceAll('&quot;', '"')
    const data = JSON.parse(written) as { at: number[]; lines: { label: string; values: number[] }[] }
    expect(data.at).toHaveLength(24)
    expect(data.at.at(-1)).toBe(Date.UTC(2026, 2, 1, 12) / 1000)
    expect(data.lines.map(({ label, values }) => `${label} ${values.at(-2)} ${values.at(-1)}`)).toEqual([
      'Sent 0 31',
      'Verified 0 17',
      'Failed 0 5',
    ])
    expect(html).toContain(
      '<th scope="row" class="num"><time class="time" datetime="2026-03-01T12:00:00.000Z" title="2026-03-01 12:00:00 UTC" data-local="minute">2026-03-01 12:00</time></th><td class="end"><a class="count" href="/admin/calls?call=code&amp;result=success&amp;from=2026-03-01T12%3A00Z&amp;until=2026-03-01T13%3A00Z">31</a></td>',
    )
  })

  test.each([
    [120, null, 'Median ≤ 2 min p90 > 2 min Codes 4'],
    [15, 90, 'Median ≤ 15 s p90 ≤ 90 s Codes 4'],
  ])('shows the verification times: %p and %p', (medianSeconds, p90Seconds, words) => {
    const bins = [
      { upToSeconds: 15, count: 1 },
      { upToSeconds: 120, count: 2 },
      { upToSeconds: null, count: 1 },
    ]
    const model = overview({}, {}, { verifyTimes: { count: 4, bins, medianSeconds, p90Seconds } })
    expect(textOf(overviewPage(pageContext, model))).toContain(words)
  })

  test('marks the selected period', () => {
    const elements = elementsOf(overviewPage(pageContext, overview({}, {}, { period: 'month' })))
    const current = elements.filter(({ attributes }) => attributes.get('aria-current') === 'true')
    expect(current.map(({ attributes }) => attributes.get('href'))).toEqual(['/admin?period=month'])
  })

  test('reports that all is well', () => {
    const quiet = overviewPage(pageContext, overview({}, { providers: [provider] }))
    expect(textOf(quiet)).toContain(
      'No problems No codes were sent in the last 24 hours. Checked: codes, notifications, attempts at providers and delivery reports in the last 24 hours; now: 1 provider, 0 budgets, 0 webhooks, alerts, the SMS pumping guard, the queue, review numbers and the database.',
    )
    const good = overviewPage(pageContext, overview({ sends: 1, verified: 1 }))
    expect(textOf(good)).toContain('No problems 1 code sent in the last 24 hours, 100% verified.')
  })
})

describe('the list of problems', () => {
  const isOpen: ProviderHealth = { ...provider, state: 'open', failuresInARow: 5, openMs: 120_000 }
  const texts = (concerns: readonly Concern[]) => concerns.map(({ tone, text }) => `${tone}: ${text}`)

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
      overview({}, { providers: [provider] }),
      overview(good, { providers: [provider] }),
    ]) {
      expect(concernsOf(model)).toEqual([])
    }
  })

  test.each([
    [
      -8,
      2,
      ['The clock of this server was set back by 8 h, 2 h ago. Codes that were sent earlier do not verify.'],
    ],
    [
      8,
      2,
      ['The clock of this server was set forward by 8 h, 2 h ago. The machine may have been suspended.'],
    ],
    [8, 25, []],
  ])('says for a day that the clock was set by %d h', (byHours, hoursAgo, expected) => {
    const [at, byMs] = [now - hoursAgo * 3_600_000, byHours * 3_600_000]
    const concerns = concernsOf(overview({}, { clockStep: { at, byMs } }))
    expect(concerns.map(({ text }) => `${text.split('. ').slice(0, 2).join('. ')}.`)).toEqual(expected)
  })

  test('has every failure, however few, and links to a page for each problem', () => {
    const share = { ...none, name: 'kannel', failed: 4 }
    const model = overview(
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
          { appId: 'shop', disabledAt: null, failing: { events: 1, error: 'HTTP 500' } },
          { appId: 'till', disabledAt: now - 7_200_000, failing: undefined },
        ],
        failingAlerts: [
          { channel: 'email', alerts: 1 },
          { channel: 'webhook', alerts: 2 },
        ],
        guard: { ...noGuard, blockedByOperators: 1 },
        reviewNumbers: 1,
      },
      { byProvider: [share], failures: [{ provider: 'kannel', errorClass: 'retryable', count: 4 }] },
    )
    const concerns = concernsOf(model)
    expect(texts(concerns)).toEqual([
      'bad: Sending failed for 4 of 4 codes (100%) in the last 24 hours. It goes on: the latest failure was just now.',
      'bad: Provider kannel: 4 failures in a row. 4 of 4 attempts (100%) failed or have an unknown result in the last 24 hours, most often: temporary failure. It goes on: the latest failure was just now.',
      'bad: The webhook of app shop fails: 1 event will be tried again. Latest error: HTTP 500.',
      'bad: The webhook of app till was switched off 2 h ago, because an event failed at its last try or the receiver answered 410. Correct the receiver, then set the webhook again.',
      'bad: Alerts by e-mail fail: 1 alert will be tried again. The server log has the reason. Check `ALERT_EMAIL`.',
      'bad: Alerts by webhook fail: 2 alerts will be tried again. The server log has the reason. Check `ALERT_WEBHOOK_URL`.',
      'warn: Sending failed for 1 of 1,000 notifications (0.1%) in the last 24 hours. The latest failure was just now.',
      'warn: 2 asynchronous notifications wait, the oldest for 1 min.',
      'warn: 1 asynchronous notification failed or has an unknown result in the last 24 hours.',
      'warn: 1 of 1,000 messages (0.1%) was not delivered in the last 24 hours, according to delivery reports.',
      'warn: Operators block 1 prefix.',
      'warn: 1 request in the last 24 hours was rejected because of the brand: it is suspended, pending or unknown, or the template is not enabled for it.',
      'warn: 3 requests in the last 24 hours were rejected because of the destination: a rule or `SMS_COUNTRIES` blocks the number.',
      'warn: A fixed code verifies for 1 review number.',
    ])
    for (const { pages } of concerns) expect(pages.map(({ href }) => href)).not.toBeEmpty()
    const html = overviewPage({ ...pageContext, reviewNumbers: 1 }, model)
    for (const concern of concerns.filter(({ text }) => text.startsWith('Sending failed'))) {
      // The figure "Failed" links to the same rows.
      expect(html.split(concern.pages[0].href.replaceAll('&', '&amp;')).length).toBeGreaterThan(2)
    }
    expect(html.match(/A fixed code verifies/g)).toHaveLength(1)
    expect(html).not.toContain('No problems')
  })

  test('has a disk that is nearly full', () => {
    const model = overview()
    const full = { ...model, store: { ...model.store, freeBytes: 2 ** 20 } }
    expect(texts(concernsOf(full))).toEqual([
      expect.stringMatching(/^bad: The disk of the database is nearly full: 1\.0 MiB free\./),
    ])
    expect(concernsOf(model)).toEqual([])
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
    expect(texts(concernsOf(overview({}, { providers: [isOpen, ...others] })))[0]).toBe(
      `bad: Provider kannel: circuit open for 2 min after 5 failures in a row. ${meanwhile}`,
    )
  })

  test('has half-open providers, and says whether a message tests them', () => {
    const probed: ProviderHealth = { ...provider, state: 'half-open', failuresInARow: 6 }
    const busy = { ...probed, name: 'busy', lastHour: { accepted: 8, failed: 1, unknown: 1 } }
    const model = overview({}, { providers: [probed, busy] })
    expect(texts(concernsOf(model))).toEqual([
      'bad: Provider kannel: circuit half-open after 6 failures in a row. It had no attempts in the last hour, so nothing tests it.',
      'bad: Provider busy: circuit half-open after 6 failures in a row. The next message to it decides whether it closes. 2 of 10 attempts (20%) in the last hour.',
    ])
    const states = textOf(overviewPage(pageContext, model))
    expect(states).toContain('circuit half-open 6 failures in a row')
    expect(states).toContain('circuit half-open the next message tests it')
  })

  test('has a provider that failed in the period, also one that is no longer configured', () => {
    const [kannel, old] = [
      { ...none, name: 'kannel', accepted: 99, unknown: 1 },
      { ...none, name: 'old', failed: 1 },
    ]
    const model = overview({}, { providers: [provider] }, { byProvider: [kannel, old] })
    expect(texts(concernsOf(model))).toEqual([
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
    const outage = (lastFailures: OverviewModel['lastFailures'], steps = tries) =>
      concernsOf(overview(figures, { lastFailures }, { byProvider: shares, tries: steps, points }))

    test('that has ended says when it was, is no problem, and names the provider with the most failures first', () => {
      const concerns = outage(new Map())
      expect(texts(concerns)).toEqual([
        'warn: Sending failed for 19 of 4,019 codes (0.5%) in the last 24 hours. They failed from 2026-03-01 09:00 to 10:00 UTC.',
        'warn: Provider twilio: 51 of 3,000 attempts (1.7%) failed or have an unknown result in the last 24 hours. The worst time: 47 of 73 attempts (64.4%) from 2026-03-01 09:00 to 11:00 UTC. None failed since 2026-03-01 11:00 UTC.',
        'warn: Provider vonage: 21 of 101 attempts (20.8%) failed or have an unknown result in the last 24 hours. They failed from 2026-03-01 10:00 to 11:00 UTC.',
      ])
      expect(concerns[1]?.pages[0]?.href).toBe(
        '/admin/deliveries?status=rejected&status=temporary-failure&status=unknown&provider=twilio&from=2026-03-01T09%3A00Z&until=2026-03-01T11%3A00Z',
      )
    })

    test('that goes on is a problem', () => {
      const latest = new Map([['vonage', now - 180_000]])
      const inThisHour = (failed: number) =>
        outage(latest, new Map([['vonage', [{ at: noon, failed, all: 101 }]]]))
      expect(inThisHour(21)[0]?.text).toEndWith('It goes on: the latest failure was 3 min ago.')
      expect(inThisHour(21).map(({ tone }) => tone)).toEqual(['bad', 'warn', 'warn'])
      expect(inThisHour(1).at(-1)?.text).toEndWith(' hours. The latest failure was 3 min ago.')
      expect(inThisHour(1).map(({ tone }) => tone)).toEqual(['warn', 'warn', 'warn'])
    })
  })

  test('has codes that were not verified before they expired', () => {
    const sent = (minutesAgo: number, figures: Partial<Figures> = {}) =>
      concernsOf(
        overview(
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
      'warn: No code was verified in the last hour. 1 sent code can no longer be verified. The messages may not arrive.',
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
      expect(texts(concernsOf(overview({}, { guard })))).toEqual([
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
      hasBlock: false,
      prefixes: [{ prefix: '+9989371', share: 1, isBlocked: false }],
      apps: [{ app: 'globex-app', brand: 'globex', codes: 3509 }],
    }
    const attack =
      '3,512 codes to Uzbekistan (+9989371…) in the last hour, none verified: app globex-app of brand globex.'
    const advice =
      'This may be SMS pumping. Such codes are still sent until you block their prefix or country.'
    const onlyRecords =
      'warn: The SMS pumping guard only records. To deny codes that it finds too many, set `GUARD=deny`.'
    const concerns = (mode: 'record' | 'deny', changes: Partial<typeof status> = {}) =>
      concernsOf(
        overview({ sendsFailed: 4 }, { guard: { ...noGuard, mode, pumping: [{ ...status, ...changes }] } }),
      )

    test('comes first while such codes are sent, with a link to stop it and to the rows', () => {
      const [first, ...others] = concerns('record')
      expect(first).toEqual({
        tone: 'bad',
        text: `${attack} ${advice}`,
        pages: [
          { title: 'Stop it', href: '/admin/guard' },
          {
            title: 'Deliveries',
            href: `/admin/deliveries?channel=SMS&country=UZ&from=${encodeURIComponent(`${new Date(now - 3_600_000).toISOString().slice(0, 16)}Z`)}`,
          },
        ],
      })
      expect(texts(others).at(-1)).toBe(onlyRecords)
    })

    test('is a warning when it is stopped, or when it may be none', () => {
      const warned = (changes: Partial<typeof status>) => texts(concerns('record', changes))[1]
      const blocked = [{ prefix: '+9989371', share: 1, isBlocked: true }]
      expect(warned({ prefixes: blocked, denied: 20 })).toBe(
        `warn: ${attack} 20 further codes were denied. An operator blocked the prefix.`,
      )
      expect(warned({ recordedLately: 0 })).toBe(
        `warn: ${attack} In the last 2 minutes, the guard found none.`,
      )
      expect(texts(concerns('record', { recordedLately: 0, deniedLately: 9 }))[0]).toBe(
        `bad: ${attack} This may be SMS pumping. Such codes were denied until a moment ago, and nothing blocks them now.`,
      )
      expect(warned({ sent: 30, recorded: 25, verified: 11 })).toStartWith('warn: 30 codes to Uzbekistan')
      expect(warned({ sent: 19, recorded: 9 })).toStartWith('warn: 19 codes to Uzbekistan')
    })

    test('of which the guard denies the codes is a warning', () => {
      const denied = { denied: 21, recorded: 0, recordedLately: 0, prefixes: [], country: 'ZZ' }
      expect(concerns('deny', denied)[1]).toEqual({
        tone: 'warn',
        text: '21 codes to no country were denied in the last hour, because too many codes are not verified: app globex-app of brand globex.',
        pages: [
          { title: 'Guard', href: '/admin/guard' },
          { title: 'Calls', href: expect.stringMatching(/^\/admin\/calls\?result=limited&from=[^&]+$/) },
        ],
      })
    })
  })

  test('has an app at its rate limit, but not a rate-limited recipient', () => {
    const limited = { brand: null, recipient: null, refusals: 1, endsAt: now + 1000 }
    const model = overview(
      {},
      {
        limited: [
          { ...limited, limit: 'cooldown', app: null, recipient: '1202****143' },
          { ...limited, limit: 'app-minute', app: 'shop' },
          { ...limited, limit: 'app-minute', app: 'shop', endsAt: now + 2000 },
        ],
      },
    )
    expect(texts(concernsOf(model))).toEqual([
      'warn: App shop has reached its limit of calls per minute. Further calls are rejected.',
    ])
  })
})

interface BrowserTimes {
  readonly ago: typeof ago
  timesIn(zone: string): { full(at: number): string }
}

describe('formatting', () => {
  test.each([
    [null, '–'],
    [0, '0%'],
    [0.5, '50%'],
    [0.29, '29%'],
    [0.0001, '0.1%'],
    [0.0696, '7%'],
    [0.1234, '12.3%'],
    [1.39, '139%'],
    [0.9999, '99.9%'],
    [1, '100%'],
  ])('writes a share of %p as %p', (share, words) => {
    expect(percent(share)).toBe(words)
  })

  test.each([
    [0, '0 s'],
    [59_999, '59 s'],
    [60_000, '1 min'],
    [3_599_999, '59 min'],
    [3_600_000, '1 h'],
    [47 * 3_600_000, '47 h'],
    [48 * 3_600_000, '2 d'],
  ])('writes %p ms as %p', (ms, words) => {
    expect(duration(ms)).toBe(words)
  })

  test.each([
    [0, '0 ms'],
    [999, '999 ms'],
    [1000, '1.0 s'],
    [59_949, '59.9 s'],
    [59_950, '1 min 0 s'],
    [65_400, '1 min 5 s'],
  ])('%p ms took %p', (ms, words) => {
    expect(elapsed(ms)).toBe(words)
  })

  test('writes nouns in singular and plural', () => {
    expect([0, 1, 2, 1234].map((value) => counted(value, 'code'))).toEqual([
      '0 codes',
      '1 code',
      '2 codes',
      '1,234 codes',
    ])
  })

  test('of relative times is the same on the server and in the browser', async () => {
    const file = new URL('../../src/adapters/pages/times.js', import.meta.url)
    // As a module of its own, since the server imports this file as text.
    const script = URL.createObjectURL(new Blob([await Bun.file(file).text()], { type: 'text/javascript' }))
    const browser = (await import(script)) as BrowserTimes
    const distancesMs = [0, 9, 10, 59, 60, 61, 3599, 3600, 7200, 86_400, 172_799, 172_800, 9e6].flatMap(
      (seconds) => [seconds * 1000, seconds * -1000],
    )
    const said = distancesMs.map((distance) => ago(now + distance, now))
    expect(distancesMs.map((distance) => browser.ago(now + distance, now))).toEqual(said)
    expect(said.slice(2, 8)).toEqual(['just now', 'just now', 'in 10 s', '10 s ago', 'in 59 s', '59 s ago'])

    const inZone = (zone: string, at: number) => browser.timesIn(zone).full(at)
    expect(inZone('UTC', now)).toBe(utc(now))
    expect(inZone('Europe/Berlin', now)).toBe('2026-03-01 13:30:00 UTC+1')
    expect(inZone('Europe/Berlin', Date.UTC(2026, 6, 1, 22))).toBe('2026-07-02 00:00:00 UTC+2')
    expect(inZone('Asia/Kolkata', now)).toBe('2026-03-01 18:00:00 UTC+5:30')
    expect(inZone('America/New_York', Date.UTC(2026, 2, 1, 4))).toBe('2026-02-28 23:00:00 UTC-5')
  })
})
