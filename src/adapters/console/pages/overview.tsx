/** @jsxImportSource preact */
import { type ComponentChildren, Fragment } from 'preact'
import type { Channel } from '../../../domain/contact.ts'
import {
  type ActiveLimit,
  conversion,
  type FailureCount,
  type Figures,
  type Period,
  type Point,
  type ProviderHealth,
  type Share,
  type Statistics,
  type VerifyTimes,
} from '../../../domain/events/statistics.ts'
import { Badge, ExactTime, Icon, rich, Time, type Tone, UtcNote } from '../../pages/components.tsx'
import { count, counted, duration, percent, utc } from '../../pages/words.ts'
import { Card, consolePage, Drawing, Table } from '../components.tsx'
import { channelNames, concernsOf, isTrouble, limitNames, periodWords } from '../concerns.ts'
import type { OverviewModel, PageContext } from '../models.ts'
import { withPlus } from './parts.tsx'

const periodNames: Readonly<Record<Period, string>> = { hour: 'Hour', day: 'Day', month: '30 days' }

/** The length of a chart's step. Days are UTC days in every time zone. */
const stepHints: Readonly<Record<Period, ComponentChildren>> = {
  hour: (
    <>
      Per minute<UtcNote>, in UTC</UtcNote>
    </>
  ),
  day: (
    <>
      Per hour<UtcNote>, in UTC</UtcNote>
    </>
  ),
  month: 'Per day, in UTC',
}

export function overviewPage(pageContext: PageContext, model: OverviewModel): string {
  const { period } = model.statistics
  return consolePage(
    pageContext,
    {
      title: 'Overview',
      section: 'overview',
      actions: (
        <>
          <p class="pulse hint" data-pulse hidden />
          <nav class="switch" aria-label="Period">
            {(['hour', 'day', 'month'] as const).map((each) => (
              <a
                key={each}
                href={`/admin?period=${each}`}
                aria-current={each === period ? 'true' : undefined}
              >
                <span class="sr-only">Last </span>
                {periodNames[each]}
              </a>
            ))}
          </nav>
        </>
      ),
      scripts: ['charts.js'],
      styles: ['uplot.css'],
    },
    <OverviewLive now={pageContext.now} model={model} />,
  )
}

/** The part that console.js refreshes. */
export function OverviewLive({ now, model }: { now: number; model: OverviewModel }) {
  const { statistics, limited, providers } = model
  return (
    <div class="live" data-live="overview" data-now={now}>
      <Verdict model={model} />
      <Headlines statistics={statistics} />
      <div class="columns wide-first">
        <Chart
          id="codes"
          title="Codes"
          statistics={statistics}
          lines={[
            ['Sent', 'area', ({ sends }) => sends],
            ['Verified', 'gold', ({ verified }) => verified],
            ['Failed', 'bad', ({ sendsFailed }) => sendsFailed],
          ]}
        />
        <Chart
          id="messages"
          title="Messages"
          statistics={statistics}
          lines={[
            ['Accepted', 'area', ({ accepted }) => accepted],
            ['Delivered', 'gold', ({ delivered }) => delivered],
            ['Failed', 'bad', ({ failed, unknown }) => failed + unknown],
          ]}
        />
      </div>
      <div class="columns wide-first">
        <Providers providers={providers} />
        <ActiveLimits limited={limited} />
      </div>
      <div class="columns">
        <VerifyTime times={statistics.verifyTimes} />
        <Failures failures={statistics.failures} period={statistics.period} />
      </div>
      <Breakdown title="By brand" first="Brand" shares={statistics.byBrand} columns={ofRequests} />
      <Breakdown
        title="By channel"
        first="Channel"
        shares={statistics.byChannel.map((share) => ({ ...share, name: channelTitle(share.name) }))}
        columns={ofRequests}
      />
      <Breakdown
        title="By provider"
        hint="A code counts for the provider that accepted it. Delivered and undelivered are from delivery reports."
        first="Provider"
        shares={statistics.byProvider}
        columns={ofProviders}
      />
    </div>
  )
}

function Verdict({ model }: { model: OverviewModel }) {
  const concerns = concernsOf(model)
  const { totals, period } = model.statistics
  if (concerns.length > 0) {
    const isBad = concerns.some(({ tone }) => tone === 'bad')
    return (
      <section class={`verdict ${isBad ? 'bad' : 'warn'}`} aria-labelledby="verdict">
        <Icon name="alert" />
        <div>
          <h2 id="verdict">{isBad ? 'Problems' : 'Warnings'}</h2>
          <ul>
            {concerns.map(({ tone, text, pages = [] }) => (
              <li key={text} class={tone}>
                {rich(text)}
                {pages.map(({ title, href }) => (
                  <Fragment key={href}>
                    {' '}
                    <a href={href}>{title}</a>
                  </Fragment>
                ))}
              </li>
            ))}
          </ul>
        </div>
      </section>
    )
  }
  const happened =
    totals.sends === 0
      ? `No codes were sent ${periodWords[period]}.`
      : `${counted(totals.sends, 'code')} sent ${periodWords[period]}, ${percent(conversion(totals))} verified.`
  return (
    <section class="verdict good" aria-labelledby="verdict">
      <Icon name="check" />
      <div>
        <h2 id="verdict">No problems</h2>
        <p>
          {happened} {model.providers.length === 0 ? null : 'All providers are available.'}
        </p>
      </div>
    </section>
  )
}

function Headlines({ statistics: { totals, points } }: { statistics: Statistics }) {
  const { sends, sendsFailed, notified, notifyFailed, delivered, undelivered } = totals
  const failed = sendsFailed + notifyFailed
  const failedAttempts = totals.failed + totals.unknown
  const reports = delivered + undelivered === 0 ? 'no delivery reports' : `${count(undelivered)} undelivered`
  const stats: readonly (readonly [string, string, string, (point: Point) => number])[] = [
    ['Codes sent', count(sends), `and ${counted(notified, 'notification')}`, (point) => point.sends],
    ['Verified', count(totals.verified), counted(totals.wrongCodes, 'wrong code'), (point) => point.verified],
    ['Conversion', percent(conversion(totals)), 'of the sent codes', (point) => conversion(point) ?? 0],
    [
      'Failed',
      count(failed),
      `${counted(sendsFailed, 'code')}, ${counted(notifyFailed, 'notification')}`,
      (point) => point.sendsFailed + point.notifyFailed,
    ],
    ['Rate-limited', count(totals.limited), 'requests over a limit', (point) => point.limited],
    [
      'Accepted',
      count(totals.accepted),
      failedAttempts === 0 ? 'by providers' : `by providers; ${count(failedAttempts)} failed or unknown`,
      (point) => point.accepted,
    ],
    ['Delivered', count(delivered), reports, (point) => point.delivered],
  ]
  const isBad = isTrouble(failed, failed + sends + notified)
  return (
    <dl class="stats">
      {stats.map(([label, value, hint, of]) => (
        <div key={label} class={label === 'Failed' && isBad ? 'stat bad' : 'stat'}>
          <dt>{label}</dt>
          <dd>
            <span class="figure">{value}</span>
            <span class="hint">{hint}</span>
            <Sparkline values={points.map(of)} />
          </dd>
        </div>
      ))}
    </dl>
  )
}

function Sparkline({ values }: { values: readonly number[] }) {
  const most = Math.max(0, ...values)
  const last = Math.max(1, values.length - 1)
  const line = values.map((value, step) => {
    const x = (100 * step) / last
    const y = most === 0 ? 20 : 20 - (18 * value) / most
    return `${x.toFixed(1)},${y.toFixed(1)}`
  })
  return (
    <Drawing class="sparkline" viewBox="0 0 100 21">
      {most === 0 ? null : <polygon points={`0,21 ${line.join(' ')} 100,21`} />}
      <polyline points={line.length < 2 ? '0,20 100,20' : line.join(' ')} />
    </Drawing>
  )
}

type Line = readonly [label: string, kind: 'area' | 'gold' | 'bad', of: (point: Point) => number]

interface ChartProps {
  readonly id: string
  readonly title: string
  readonly statistics: Statistics
  readonly lines: readonly Line[]
}

/** charts.js draws it. The table has the same figures. */
function Chart({ id, title, statistics, lines }: ChartProps) {
  const { period, points, stepMs } = statistics
  const data = {
    period,
    stepSeconds: stepMs / 1000,
    at: points.map(({ at }) => at / 1000),
    lines: lines.map(([label, kind, of]) => ({ label, kind, values: points.map(of) })),
  }
  return (
    <Card title={title} hint={stepHints[period]}>
      <figure id={`chart-${id}`} data-chart={JSON.stringify(data)}>
        <figcaption class="sr-only">
          {title} {periodWords[period]}. The table below has the same figures.
        </figcaption>
        <ul class="legend">
          {lines.map(([label, kind, of]) => (
            <li key={label} class={kind}>
              {label}{' '}
              <span class="num" data-legend>
                {count(points.reduce((sum, point) => sum + of(point), 0))}
              </span>
            </li>
          ))}
          <li class="at" data-legend-at aria-hidden="true" />
        </ul>
        <div class="plot" data-plot aria-hidden="true" />
      </figure>
      <details id={`table-${id}`}>
        <summary>Show as a table</summary>
        <div class="scroll">
          <table>
            <caption class="sr-only">
              {title} {periodWords[period]}
            </caption>
            <thead>
              <tr>
                <th scope="col">From{period === 'month' ? ' (UTC)' : <UtcNote> (UTC)</UtcNote>}</th>
                {lines.map(([label]) => (
                  <th key={label} scope="col" class="end">
                    {label}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {points.toReversed().map((point) => (
                <tr key={point.at}>
                  <th scope="row" class="num">
                    {period === 'month' ? utc(point.at).slice(0, 10) : <ExactTime at={point.at} toMinute />}
                  </th>
                  {lines.map(([label, , of]) => (
                    <td key={label} class="end">
                      {count(of(point))}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </Card>
  )
}

function Providers({ providers }: { providers: readonly ProviderHealth[] }) {
  return (
    <Card title="Providers" hint="Circuits now, and attempts in the last hour.">
      <Table
        caption="Providers now, with the attempts in the last hour"
        columns={[
          'Provider',
          'Sends',
          'State',
          { title: 'Accepted', align: 'end' },
          { title: 'Failed', align: 'end' },
          { title: 'Unknown', align: 'end' },
        ]}
        rows={providers.map((provider) => [
          provider.name,
          sends(provider),
          <ProviderState {...provider} />,
          count(provider.lastHour.accepted),
          <Failing value={provider.lastHour.failed} of={provider.lastHour} />,
          <Failing value={provider.lastHour.unknown} of={provider.lastHour} />,
        ])}
        figures
        empty="No provider is configured."
      />
    </Card>
  )
}

function sends({ channel, routes }: ProviderHealth): string {
  if (channel === 'EMAIL') return 'e-mail'
  return `SMS, ${routes.join(' and ')}`
}

function ProviderState({ state, failuresInARow, openMs }: ProviderHealth) {
  const inARow = failuresInARow === 0 ? null : `${counted(failuresInARow, 'failure')} in a row`
  const words = {
    closed: ['good', 'circuit closed', inARow],
    open: ['bad', `circuit open for ${duration(openMs)}`, inARow],
    'half-open': ['warn', 'circuit half-open', 'one message decides'],
  } as const satisfies Record<ProviderHealth['state'], readonly [Tone, string, string | null]>
  const [tone, word, detail] = words[state]
  return (
    <span class="with-badge">
      <Badge tone={tone}>{word}</Badge> {detail === null ? null : <span class="hint">{detail}</span>}
    </span>
  )
}

function ActiveLimits({ limited }: { limited: readonly ActiveLimit[] }) {
  return (
    <Card title="Active rate limits" hint="Limits that reject requests now.">
      {limited.length === 0 ? (
        <p class="none">No active rate limits.</p>
      ) : (
        <ul class="limited">
          {limited.map(({ limit, app, brand, recipient, budget, refusals, endsAt }) => (
            <li key={JSON.stringify([limit, app, brand, recipient, budget, endsAt])}>
              <p class="what">{limitNames[limit]}</p>
              <p class="hint">
                {[
                  budget ?? null,
                  recipient === null ? null : withPlus(recipient),
                  app === null ? null : `app ${app}`,
                  brand === null ? null : `brand ${brand}`,
                ]
                  .filter((part) => part !== null)
                  .join(' · ') || 'an IP address'}
              </p>
              <p class="hint">
                {counted(refusals, 'request')} rejected · resets <Time at={endsAt} />
              </p>
            </li>
          ))}
        </ul>
      )}
    </Card>
  )
}

function VerifyTime({ times }: { times: VerifyTimes }) {
  const { bins, medianSeconds, p90Seconds } = times
  const longest = Math.max(...bins.map(({ upToSeconds }) => upToSeconds ?? 0))
  // A quantile is known to its bin only. Null: beyond all bins.
  const within = (bound: number | null) => (bound === null ? `> ${seconds(longest)}` : `≤ ${seconds(bound)}`)
  const most = Math.max(0, ...bins.map((bin) => bin.count))
  return (
    <Card title="Time to verify" hint="From the send to the successful verification.">
      {times.count === 0 ? (
        <p class="none">No codes were verified.</p>
      ) : (
        <>
          <dl class="quantiles">
            {Object.entries({
              Median: within(medianSeconds),
              p90: within(p90Seconds),
              Codes: count(times.count),
            }).map(([name, value]) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{value}</dd>
              </div>
            ))}
          </dl>
          <table class="bins">
            <caption class="sr-only">Verified codes by time</caption>
            <thead class="sr-only">
              <tr>
                <th scope="col">Within</th>
                <th scope="col">Share</th>
                <th scope="col">Codes</th>
              </tr>
            </thead>
            <tbody>
              {bins.map((bin) => (
                <tr key={bin.upToSeconds}>
                  <th scope="row">{within(bin.upToSeconds)}</th>
                  <td class="share">
                    <Bar share={bin.count / most} />
                    <span class="sr-only">{percent(bin.count / times.count)}</span>
                  </td>
                  <td class="end">{count(bin.count)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </>
      )}
    </Card>
  )
}

function seconds(value: number): string {
  return value < 60 || value % 60 !== 0 ? `${value} s` : `${value / 60} min`
}

function Bar({ share, tone }: { share: number; tone?: 'bad' }) {
  return (
    <Drawing class={tone ? `bar ${tone}` : 'bar'} viewBox="0 0 100 1">
      <rect width={(100 * share).toFixed(2)} height="1" />
    </Drawing>
  )
}

const failureWords: Readonly<Record<NonNullable<FailureCount['errorClass']>, string>> = {
  recipient: 'recipient rejected',
  content: 'message rejected',
  account: 'account rejected: check the credentials, balance and sender',
  retryable: 'temporary failure',
  unknown: 'unknown, for example timed out',
}

function Failures({ failures, period }: { failures: readonly FailureCount[]; period: Period }) {
  const most = Math.max(0, ...failures.map((failure) => failure.count))
  return (
    <Card title="Failed attempts" hint="By provider and cause.">
      <Table
        caption={`Failed attempts ${periodWords[period]}`}
        columns={[
          'Provider',
          'Cause',
          { title: 'Share', isQuiet: true },
          { title: 'Attempts', align: 'end' },
        ]}
        rows={failures.map(({ provider, errorClass, count: attempts }) => [
          provider,
          failureWords[errorClass ?? 'unknown'],
          <Bar share={attempts / most} tone="bad" />,
          count(attempts),
        ])}
        empty="No failed attempts."
      />
    </Card>
  )
}

type Column = readonly [title: string, of: (share: Share) => ComponentChildren]

const codeColumns: readonly Column[] = [
  ['Codes sent', ({ sends }) => count(sends)],
  ['Verified', ({ verified }) => count(verified)],
  ['Conversion', (share) => percent(conversion(share))],
]
const attemptColumns: readonly Column[] = [
  ['Accepted', ({ accepted }) => count(accepted)],
  ['Failed attempts', (share) => <Failing value={share.failed} of={share} />],
  ['Unknown', (share) => <Failing value={share.unknown} of={share} />],
]
const ofRequests: readonly Column[] = [
  ...codeColumns,
  ['Failed', ({ sendsFailed, notifyFailed }) => count(sendsFailed + notifyFailed)],
  ['Notifications', ({ notified }) => count(notified)],
  ['Rate-limited', ({ limited }) => count(limited)],
  ['Rejected', ({ refused }) => count(refused)],
  ...attemptColumns,
]
const ofProviders: readonly Column[] = [
  ...codeColumns,
  ...attemptColumns,
  ['Delivered', ({ delivered }) => count(delivered)],
  ['Undelivered', ({ undelivered }) => count(undelivered)],
]

interface BreakdownProps {
  readonly title: string
  readonly hint?: string | undefined
  readonly first: string
  readonly shares: readonly Share[]
  readonly columns: readonly Column[]
}

const mostShares = 30

function Breakdown({ title, hint, first, shares, columns }: BreakdownProps) {
  const shown = shares.length > mostShares ? `The ${mostShares} busiest of ${count(shares.length)}.` : hint
  return (
    <Card title={title} hint={shown}>
      <Table
        caption={title}
        columns={[{ title: first }, ...columns.map(([title]) => ({ title, align: 'end' as const }))]}
        rows={shares.slice(0, mostShares).map((share) => [share.name, ...columns.map(([, of]) => of(share))])}
        figures
        empty="Nothing was sent."
      />
    </Card>
  )
}

function Failing({ value, of }: { value: number; of: Pick<Figures, 'accepted' | 'failed' | 'unknown'> }) {
  if (value === 0) return <span class="hint">0</span>
  const all = of.accepted + of.failed + of.unknown
  return <span class={isTrouble(of.failed + of.unknown, all) ? 'trouble' : undefined}>{count(value)}</span>
}

function channelTitle(name: string): string {
  const known: Readonly<Record<Channel, string>> = { ...channelNames, EMAIL: 'E-mail' }
  return name === 'SMS' || name === 'EMAIL' ? known[name] : name
}
