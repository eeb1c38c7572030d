import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { codeIn, createTestApp, otherThan, type TestApp, temporaryFolder } from '../support/app.ts'
import { type Exposition, readExposition, type Sample } from '../support/exposition.ts'
import { tester } from '../support/operator.ts'
import { freshDatabase, withoutPostgres } from '../support/postgres.ts'
import { type Named, readPromql } from '../support/promql.ts'
import { startProviderDouble } from '../support/provider-server.ts'
import { startReceiver } from '../support/receiver.ts'
import { freshEmail, freshPhone, logged } from '../support/rows.ts'

// Checks that the dashboard and the alert rules name existing metrics: Prometheus does not report a wrong name, the alert
// just never fires.

const folder = join(import.meta.dir, '../../deploy')

interface Panel {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly description?: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[]
}
interface Dashboard {
  readonly uid: string
  readonly panels: readonly Panel[]
  readonly annotations: { readonly list: readonly { readonly expr: string; readonly textFormat: string }[] }
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly query: string | { readonly query: string } }[]
  }
}
interface Rule {
  readonly alert: string
  readonly expr: string
  readonly for?: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}

const dashboard: Dashboard = await Bun.file(join(folder, 'grafana/otpost.json')).json()
const { groups } = Bun.YAML.parse(await Bun.file(join(folder, 'prometheus/alerts.yml')).text()) as {
  groups: readonly { readonly name: string; readonly rules: readonly Rule[] }[]
}
const rules = groups.flatMap((group) => group.rules)
const panels = dashboard.panels.filter(({ type }) => type !== 'row')

/** The labels that Prometheus adds to each sample, and its metrics of each target. */
const ofTargets = { labels: ['job', 'instance'], metrics: ['up'] }

/** The metrics that exist only on PostgreSQL. */
const onPostgres = /otpost_database_(?:connections|statements_waiting)/

let told: Exposition
const receiver = startReceiver()
const data = temporaryFolder()
const token = 'token-of-the-scraper'

async function scraped(app: TestApp): Promise<Exposition> {
  const { body } = await app.request('GET', '/metrics', { headers: { authorization: `Bearer ${token}` } })
  return readExposition(body)
}

/** The metrics of a server after an event of each kind: on SQLite, and on PostgreSQL. */
beforeAll(async () => {
  const app = await createTestApp({
    ...receiver.env,
    DATABASE_URL: `file:${join(data.path, 'otpost.db')}`,
    SMS_PLAIN: 'webhook',
    SMS_TEMPLATE: 'webhook',
    OTP_SMS_MODE: 'template',
    PUBLIC_URL: 'https://otp.example',
    METRICS_TOKEN: token,
  })
  const [phone, email] = [freshPhone(), freshEmail()]
  const rule = {
    rule: '+1',
    brandSlug: null,
    action: 'monitor',
    providers: [],
    sender: null,
    route: null,
  } as const
  const { policy } = app.app.context
  const budget = {
    scope: 'server',
    of: 'all',
    period: 'day',
    amountMicros: 1_000_000,
    currency: 'units',
    alertAt: [100],
    stops: false,
    liftedUntil: null,
    countsFrom: 0,
  } as const
  await policy.change({ actor: tester, now: 0 }, () => ({
    saveRules: [rule],
    saveBudgets: [budget],
    entry: null,
  }))
  await app.post('/otp/send', { phone })
  await app.post('/otp/send', { phone })
  await app.post('/otp/resend', { channel: 'EMAIL', email })
  const otp = await app.lastCode(email)
  await app.post('/otp/verify', { email, otp: otherThan(otp) })
  await app.post('/otp/verify', { email, otp })
  receiver.answer(() => new Response(null, { status: 503 }))
  await app.post('/otp/send', { phone: freshPhone() })
  await logged()
  await app.app.alerts.idle()
  const onFile = await scraped(app)
  await app.close()
  const onServer = withoutPostgres ? undefined : await toldOnPostgres()
  const feedback = await toldOfFeedback()
  const samples = [onFile, feedback, ...(onServer ? [onServer] : [])].flatMap((each) => each.samples)
  told = { ...onFile, samples }
})
afterAll(async () => {
  data.remove()
  await receiver.stop()
})

/** The metrics of a server that has told a provider about a verified code. */
async function toldOfFeedback(): Promise<Exposition> {
  const twilio = startProviderDouble(() => Response.json({ sid: `SM${'0'.repeat(32)}` }, { status: 201 }))
  const app = await createTestApp({
    CONVERSION_FEEDBACK: '1',
    SMS_PLAIN: 'twilio',
    TWILIO_ACCOUNT_SID: `AC${'0'.repeat(32)}`,
    TWILIO_AUTH_TOKEN: '0'.repeat(32),
    TWILIO_FROM: '+15005550006',
    TWILIO_BASE_URL: twilio.url,
    METRICS_TOKEN: token,
  })
  try {
    const phone = freshPhone()
    await app.post('/otp/send', { phone })
    const otp = codeIn(new URLSearchParams(twilio.received.at(-1)?.body).get('Body'))
    await app.post('/otp/verify', { phone, otp })
    for (;;) {
      const told = await scraped(app)
      if (told.samples.some(({ name }) => name === 'otpost_conversion_feedback_total')) return told
    }
  } finally {
    await app.close()
    await twilio.stop()
  }
}

async function toldOnPostgres(): Promise<Exposition> {
  const database = await freshDatabase()
  const app = await createTestApp({
    DATABASE_URL: database.url,
    SECRET_KEY: 'of the test and 32 bytes long or more',
    METRICS_TOKEN: token,
  })
  try {
    return await scraped(app)
  } finally {
    await app.close()
    await database.remove()
  }
}

/** Whether an expression can not be checked here for lack of PostgreSQL. */
function isOutOfReach(expression: string): boolean {
  return withoutPostgres !== undefined && onPostgres.test(expression)
}

/** The problems of an expression: unknown metrics, unknown labels, and impossible values of labels. */
function problemsOf({ selectors, grouping }: Named): string[] {
  const samplesOf = (metric: string): readonly Sample[] => told.samples.filter(({ name }) => name === metric)
  const known = new Set(ofTargets.labels)
  const problems: string[] = []
  for (const { metric, matchers } of selectors) {
    const samples = samplesOf(metric)
    if (samples.length === 0 && !ofTargets.metrics.includes(metric)) problems.push(`no metric ${metric}`)
    for (const label of samples.flatMap(({ labels }) => Object.keys(labels))) known.add(label)
    for (const { label, operator, value } of matchers) {
      if (ofTargets.labels.includes(label)) continue
      const values = samples.map(({ labels }) => labels[label])
      const isMatch = matcherOf(operator, value)
      if (!values.some((each) => each !== undefined)) problems.push(`${metric} has no label ${label}`)
      else if (!values.some((each) => each !== undefined && isMatch(each))) {
        problems.push(`${metric} has no ${label}${operator}"${value}"`)
      }
    }
  }
  return [
    ...problems,
    ...grouping.filter((label) => !known.has(label)).map((label) => `no label ${label} to group by`),
  ]
}

function matcherOf(operator: string, value: string): (text: string) => boolean {
  switch (operator) {
    case '=':
      return (text) => text === value
    case '!=':
      return (text) => text !== value
    case '=~':
      return (text) => new RegExp(`^(?:${value})$`).test(text)
    case '!~':
      return (text) => !new RegExp(`^(?:${value})$`).test(text)
    default:
      throw new Error(`no operator of a matcher: ${operator}`)
  }
}

/** The labels that the result of an expression may have. */
function labelsOf({ selectors, grouping }: Named): readonly string[] {
  if (grouping.length > 0) return grouping
  const names = selectors.map(({ metric }) => metric)
  const own = told.samples
    .filter(({ name }) => names.includes(name))
    .flatMap(({ labels }) => Object.keys(labels))
  return [...ofTargets.labels, ...own]
}

describe('the reader of expressions', () => {
  test('finds metrics, matchers and groupings, and nothing else', () => {
    const named = readPromql(
      '60 * sum by (route, le) (rate(a_total{job=~"$job",status!~"5.."}[$__rate_interval])) / on (job) group_left sum(b offset 5m) > bool 0.5 and (c unless up == 1)',
    )
    expect(named).toEqual({
      selectors: [
        {
          metric: 'a_total',
          matchers: [
            { label: 'job', operator: '=~', value: '$job' },
            { label: 'status', operator: '!~', value: '5..' },
          ],
        },
        { metric: 'b', matchers: [] },
        { metric: 'c', matchers: [] },
        { metric: 'up', matchers: [] },
      ],
      grouping: ['route', 'le', 'job'],
    })
    expect(() => readPromql('sum(rate(a_total[5m])')).toThrow('unbalanced')
    expect(() => readPromql('sum(a_total; b)')).toThrow('not understood')
  })

  test.each([
    ['sum(rate(otpost_http_request_total[5m]))', 'no metric otpost_http_request_total'],
    ['otpost_http_requests_total{code="200"}', 'otpost_http_requests_total has no label code'],
    ['otpost_rate_limited_total{limit="phone"}', 'otpost_rate_limited_total has no limit="phone"'],
    ['sum by (sender) (otpost_delivery_reports_total)', 'no label sender to group by'],
  ])('finds the slip in %s', (expression, problem) => {
    expect(problemsOf(readPromql(expression))).toEqual([problem])
  })
})

describe('the alert rules', () => {
  test.each(rules.map((rule) => [rule.alert, rule] as const))(
    '%s names existing metrics and labels',
    (_, { expr, annotations }) => {
      if (isOutOfReach(expr)) return
      const named = readPromql(expr)
      expect(named.selectors.length).toBeGreaterThan(0)
      expect(problemsOf(named)).toEqual([])
      // Without the job, a rule would also match metrics of other programs.
      for (const { matchers } of named.selectors) {
        expect(matchers).toContainEqual({ label: 'job', operator: '=', value: 'otpost' })
      }
      const used = Object.values(annotations).flatMap((text) =>
        [...text.matchAll(/\$labels\.(\w+)/g)].map(([, label = '']) => label),
      )
      expect(used.filter((label) => !labelsOf(named).includes(label))).toEqual([])
    },
  )

  test.each(rules.map((rule) => [rule.alert, rule] as const))(
    '%s has a summary and a description of what to do',
    (alert, rule) => {
      expect(Object.keys(rule.annotations).sort()).toEqual(['description', 'summary'])
      expect(rule.annotations.description?.length).toBeGreaterThan(80)
      expect(['page', 'ticket']).toContain(rule.labels.severity ?? '')
      expect(alert).toMatch(/^Otpost[A-Z][A-Za-z]+$/)
    },
  )

  test('have unique names', () => {
    expect(rules.length).toBeGreaterThan(20)
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length)
  })

  test('are in the example configuration of Prometheus, for its job', async () => {
    const example = Bun.YAML.parse(await Bun.file(join(folder, 'prometheus/scrape.yml')).text())
    expect(example).toMatchObject({ rule_files: ['alerts.yml'], scrape_configs: [{ job_name: 'otpost' }] })
  })
})

describe('the dashboard', () => {
  test.each(panels.map((panel) => [panel.title, panel] as const))(
    '%s queries existing metrics and labels',
    (_, { targets = [] }) => {
      expect(targets.length).toBeGreaterThan(0)
      for (const { expr, legendFormat } of targets) {
        if (isOutOfReach(expr)) continue
        const named = readPromql(expr)
        expect(named.selectors.length).toBeGreaterThan(0)
        expect(problemsOf(named)).toEqual([])
        // An operator who selects a server must not see another server's figures.
        for (const { matchers } of named.selectors) {
          expect(matchers).toContainEqual({ label: 'instance', operator: '=~', value: '$instance' })
        }
        const inLegend = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = '']) => label)
        expect(inLegend.filter((label) => !labelsOf(named).includes(label))).toEqual([])
      }
    },
  )

  test('marks starts, and its variables have existing values', () => {
    for (const { expr } of dashboard.annotations.list) expect(problemsOf(readPromql(expr))).toEqual([])
    const queries = dashboard.templating.list.flatMap(({ query }) =>
      typeof query === 'string' ? [] : [query.query],
    )
    expect(queries).toHaveLength(2)
    for (const query of queries) {
      const [, expression = '', label = ''] = /^label_values\((.+), (\w+)\)$/.exec(query) ?? []
      expect(problemsOf(readPromql(expression))).toEqual([])
      expect(ofTargets.labels).toContain(label)
    }
  })

  test('has no overlapping panels', () => {
    expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length)
    const taken = new Map<string, string>()
    for (const { title, gridPos } of dashboard.panels) {
      expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24)
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          expect(`${taken.get(`${x} ${y}`)} and ${title} at ${x} ${y}`).toStartWith('undefined')
          taken.set(`${x} ${y}`, title)
        }
      }
    }
  })

  test('shows every metric of otpost', () => {
    const shown = new Set(
      panels.flatMap(({ targets = [] }) =>
        targets.flatMap(({ expr }) => readPromql(expr).selectors.map(({ metric }) => metric)),
      ),
    )
    const own = [...told.families.keys()].filter((name) => name.startsWith('otpost_'))
    expect(
      own.filter((name) => !['', '_bucket', '_sum', '_count'].some((suffix) => shown.has(name + suffix))),
    ).toEqual([])
  })
})
