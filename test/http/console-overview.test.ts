import { describe, expect, test } from 'bun:test'
import { overviewPage } from '../../src/adapters/console/overview/page.tsx'
import type { PageContext } from '../../src/adapters/console/page-context.ts'
import { elapsed } from '../../src/adapters/pages/words.ts'
import { ago, counted, duration, percent, upcoming, utc } from '../../src/domain/ground/format.ts'
import type { HealthFacts } from '../../src/domain/health/facts.ts'
import { incidentsOf } from '../../src/domain/health/incidents.ts'
import { rangeOf } from '../../src/domain/log/ranges.ts'
import { healthFacts, now, provider, reviewNumber } from '../support/health.ts'

// Checks the HTML source of the console pages, because browsers silently repair invalid HTML.

/** Text that breaks out of HTML if a page does not escape it. */
const hostile = `"'><img src=x onerror=alert(1)><script>alert(1)</script>&amp;`

const pageContext: PageContext = {
  version: '1.2.3',
  csrfToken: 'token-of-the-form',
  person: { email: 'ana@example.com', role: 'owner', isSetUp: true },
  pendingRequests: 2,
  fault: null,
  hasOutbox: true,
  reviewNumbers: 0,
  now,
  flash: { tone: 'bad', text: hostile },
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

/** With incidents that have done no harm. */
function overview(facts: HealthFacts): string {
  const hours = { ...rangeOf('day', now), count: 48, from: now - 47 * 3_600_000 }
  const history = { before: undefined, hours, tries: new Map(), incidents: [], changes: [] }
  const { incidents, notes } = incidentsOf(facts)
  const impact = { people: null, costs: [], causes: [], spender: undefined }
  const found = incidents.map((incident) => ({ incident, impact }))
  const { statistics } = facts
  return overviewPage(pageContext, {
    facts,
    found,
    notes,
    steps: null,
    statistics,
    history,
    isUnknown: false,
  })
}

describe('the overview', () => {
  const figures = (model: HealthFacts) =>
    [
      ...overview(model).matchAll(
        /<dt>([^<]*)<\/dt><dd><span class="figure">(?:<(?:a|span)[^>]*>)?([^<]*)</g,
      ),
    ].map(([, name, value]) => `${name} ${value}`)

  test('shows no conversion rate when no code was sent', () => {
    expect(figures(healthFacts())).toEqual([
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
    const model = healthFacts({
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
    const html = overview(healthFacts({ sends: 31, verified: 17, sendsFailed: 5 }))
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
    const rows = [...html.matchAll(/<tr data-key="\d+">.*?<\/tr>/gs)].map(([row]) =>
      row.replaceAll('&amp;', '&'),
    )
    expect(rows.find((row) => row.includes('2026-03-01 12:00<'))).toContain(
      '<a class="count" href="/admin/calls?call=code&result=success&from=2026-03-01T12%3A00Z&until=2026-03-01T13%3A00Z">31</a>',
    )
  })

  test.each([
    [120, null, 'median at most 120 s, p90 more than 5 min'],
    [15, 90, 'median at most 15 s, p90 at most 90 s'],
  ])('shows the verification times: %p and %p', (medianSeconds, p90Seconds, words) => {
    const model = healthFacts(
      {},
      {},
      { verifyTimes: { count: 4, medianSeconds, p90Seconds, p95Seconds: p90Seconds } },
    )
    expect(textOf(overview(model))).toContain(words)
  })

  test('marks the selected period', () => {
    const elements = elementsOf(overview(healthFacts({}, {}, { period: 'month' })))
    const current = elements.filter(({ attributes }) => attributes.get('aria-current') === 'true')
    expect(current.map(({ attributes }) => attributes.get('href'))).toEqual(['/admin?period=month'])
  })

  test('reports that all is well', () => {
    expect(textOf(overview(healthFacts({}, { providers: [provider] })))).toContain(
      'All well: no codes and notifications in the last five minutes.',
    )
  })
})

interface BrowserTimes {
  readonly ago: typeof ago
  readonly upcoming: typeof upcoming
  difference(ms: number): string
  timesIn(zone: string): { full(at: number): string; readonly name: string }
}

test('the overview has incidents with links to more, and notes', () => {
  const halfOpen = { ...provider, state: 'half-open', failuresInARow: 6 } as const
  const facts = healthFacts(
    {},
    {
      providers: [halfOpen, { ...halfOpen, name: 'busy', lastHour: { accepted: 8, failed: 1, unknown: 1 } }],
      webhooks: [{ appId: 'till', disabledAt: now - 7_200_000, failing: undefined }],
      reviewNumbers: [reviewNumber],
    },
    { clockSteps: [{ at: now, byMs: -1000 }] },
  )
  const html = overview(facts)
  const hrefs = (part: string) => [...part.matchAll(/href="([^"]*)"/g)].map(([, href]) => href)
  const incidents = [...html.matchAll(/<li class="incident (\w+)" data-key="([^"]*)">(.*?)<\/li>/g)].map(
    ([, tone, about, row = '']) => [tone, about, hrefs(row)[0]],
  )
  expect(incidents).toEqual([
    ['bad', 'provider kannel', expect.stringContaining('provider=kannel')],
    ['bad', 'provider busy', expect.stringContaining('provider=busy')],
    ['bad', 'webhook till', '/admin/apps/webhook?app=till'],
  ])
  expect(html).toContain('<form method="post" action="/admin/incidents/acknowledge"')
  const notes = html.slice(html.indexOf('<details id="notes">'))
  expect(notes).toContain('The clock of a server was set back by 1 s')
  expect(notes).toContain('A fixed code verifies for 1 review number')
  expect(hrefs(notes)).toContain('/admin/review-numbers')
  expect(html.match(/A fixed code verifies/g)).toHaveLength(1)
  const words = textOf(html)
  expect(words).toContain('circuit half-open 6 failures in a row')
  expect(words).toContain('circuit half-open the next message tests it')
})

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
    expect(said.slice(2, 8)).toEqual([
      'just now',
      'just now',
      '10 s in the future',
      '10 s ago',
      '59 s in the future',
      '59 s ago',
    ])

    expect([now + 7200_000, now - 7200_000].map((at) => upcoming(at, now))).toEqual(['in 2 h', '2 h ago'])
    expect([now + 7200_000, now - 7200_000].map((at) => browser.upcoming(at, now))).toEqual([
      'in 2 h',
      '2 h ago',
    ])

    const inZone = (zone: string, at: number) => browser.timesIn(zone).full(at)
    expect(inZone('UTC', now)).toBe(utc(now))
    expect(inZone('Europe/Berlin', now)).toBe('2026-03-01 13:30:00 UTC+1')
    expect(inZone('Europe/Berlin', Date.UTC(2026, 6, 1, 22))).toBe('2026-07-02 00:00:00 UTC+2')
    expect(inZone('Asia/Kolkata', now)).toBe('2026-03-01 18:00:00 UTC+5:30')
    expect(inZone('America/New_York', Date.UTC(2026, 2, 1, 4))).toBe('2026-02-28 23:00:00 UTC-5')
    expect(['Asia/Calcutta', 'Europe/Berlin', 'Etc/UTC'].map((zone) => browser.timesIn(zone).name)).toEqual([
      'Asia/Kolkata',
      'Europe/Berlin',
      'UTC',
    ])
    expect([45_000, 28_790_000, 28_799_000, 19_800_000].map((ms) => browser.difference(ms))).toEqual([
      '45 s',
      '8 h',
      '8 h',
      '5 h 30 min',
    ])
  })
})
