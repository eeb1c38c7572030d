/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact'
import type { Channel } from '../../../domain/contact.ts'
import {
  conversion,
  type FailureCount,
  type Figures,
  type Limited,
  type Period,
  type Point,
  type ProviderHealth,
  type Share,
  type Statistics,
  type VerifyTimes,
} from '../../../domain/events/statistics.ts'
import { Badge, Icon, Time, type Tone } from '../../pages/components.tsx'
import { count, counted, duration, percent, utc } from '../../pages/words.ts'
import { Card, consolePage, Drawing, Table } from '../components.tsx'
import { channelNames, concernsOf, isTrouble, limitNames, periodWords } from '../concerns.ts'
import type { OverviewModel, PageContext } from '../models.ts'

const periodNames: Readonly<Record<Period, string>> = { hour: 'Hour', day: 'Day', month: '30 days' }

const stepWords: Readonly<Record<Period, string>> = {
  hour: 'By the minute',
  day: 'By the hour',
  month: 'By the day',
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
            ['Not sent', 'bad', ({ sendsFailed }) => sendsFailed],
          ]}
        />
        <Chart
          id="messages"
          title="Messages"
          statistics={statistics}
          lines={[
            ['Handed over', 'area', ({ accepted }) => accepted],
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
        hint="Codes count for the provider that took them; what was delivered, receipts say."
        first="Provider"
        shares={statistics.byProvider}
        columns={ofProviders}
      />
    </div>
  )
}

/** The state in one sentence. */
function Verdict({ model }: { model: OverviewModel }) {
  const concerns = concernsOf(model)
  const { totals, period } = model.statistics
  if (concerns.length > 0) {
    const isBad = concerns.some(({ tone }) => tone === 'bad')
    return (
      <section class={`verdict ${isBad ? 'bad' : 'warn'}`} aria-labelledby="verdict">
        <Icon name="alert" />
        <div>
          <h2 id="verdict">{isBad ? 'Something is wrong' : 'Worth a look'}</h2>
          <ul>
            {concerns.map(({ tone, text }) => (
              <li key={text} class={tone}>
                {text}
              </li>
            ))}
          </ul>
        </div>
      </section>
    )
  }
  const happened =
    totals.sends === 0
      ? `No code was sent ${periodWords[period]}.`
      : `${counted(totals.sends, 'code')} sent ${periodWords[period]}, ${percent(conversion(totals))} of them verified.`
  return (
    <section class="verdict good" aria-labelledby="verdict">
      <Icon name="check" />
      <div>
        <h2 id="verdict">All is well</h2>
        <p>
          {happened} {model.providers.length === 0 ? null : 'Every provider works.'}
        </p>
      </div>
    </section>
  )
}

function Headlines({ statistics: { totals, points } }: { statistics: Statistics }) {
  const { sends, sendsFailed, notified, notifyFailed, delivered, undelivered } = totals
  const notSent = sendsFailed + notifyFailed
  const lost = totals.failed + totals.unknown
  const reports =
    delivered + undelivered === 0 ? 'no receipts came' : `${count(undelivered)} undelivered, by receipts`
  const stats: readonly (readonly [string, string, string, (point: Point) => number])[] = [
    ['Codes sent', count(sends), `and ${counted(notified, 'notification')}`, (point) => point.sends],
    ['Verified', count(totals.verified), counted(totals.wrongCodes, 'wrong code'), (point) => point.verified],
    ['Conversion', percent(conversion(totals)), 'codes verified of sent', (point) => conversion(point) ?? 0],
    [
      'Not sent',
      count(notSent),
      `${counted(sendsFailed, 'code')}, ${counted(notifyFailed, 'notification')}`,
      (point) => point.sendsFailed + point.notifyFailed,
    ],
    ['Limited', count(totals.limited), 'requests a limit refused', (point) => point.limited],
    [
      'Handed over',
      count(totals.accepted),
      lost === 0 ? 'no attempt failed' : `${counted(lost, 'attempt')} failed or unclear`,
      (point) => point.accepted,
    ],
    ['Delivered', count(delivered), reports, (point) => point.delivered],
  ]
  const isBad = isTrouble(notSent, notSent + sends + notified)
  return (
    <dl class="stats">
      {stats.map(([label, value, hint, of]) => (
        <div key={label} class={label === 'Not sent' && isBad ? 'stat bad' : 'stat'}>
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

/** A trend without a scale. */
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

/** Label, style (charts.js has the colours) and values. */
type Line = readonly [label: string, kind: 'area' | 'gold' | 'bad', of: (point: Point) => number]

interface ChartProps {
  readonly id: string
  readonly title: string
  readonly statistics: Statistics
  readonly lines: readonly Line[]
}

/** A chart by charts.js, and a table for readers without it. */
function Chart({ id, title, statistics, lines }: ChartProps) {
  const { period, points, stepMs } = statistics
  const data = {
    period,
    stepSeconds: stepMs / 1000,
    at: points.map(({ at }) => at / 1000),
    lines: lines.map(([label, kind, of]) => ({ label, kind, values: points.map(of) })),
  }
  return (
    <Card title={title} hint={`${stepWords[period]}, in UTC`}>
      <figure id={`chart-${id}`} data-chart={JSON.stringify(data)}>
        <figcaption class="sr-only">
          {title} {periodWords[period]}. The same figures are in the table below.
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
        <summary>As a table</summary>
        <div class="scroll">
          <table>
            <caption class="sr-only">
              {title} {periodWords[period]}
            </caption>
            <thead>
              <tr>
                <th scope="col">From (UTC)</th>
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
                    {utc(point.at).slice(0, 16)}
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
    <Card title="Providers" hint="How each is doing now, and what it took in the last hour.">
      <Table
        caption="Providers now"
        columns={[
          'Provider',
          'Takes',
          'State',
          { title: 'Handed over', align: 'end' },
          { title: 'Failed', align: 'end' },
          { title: 'Unclear', align: 'end' },
        ]}
        rows={providers.map((provider) => [
          provider.name,
          takes(provider),
          <ProviderState {...provider} />,
          count(provider.lastHour.accepted),
          <Failing value={provider.lastHour.failed} of={provider.lastHour} />,
          <Failing value={provider.lastHour.unknown} of={provider.lastHour} />,
        ])}
        figures
        empty="No provider is set up."
      />
    </Card>
  )
}

function takes({ channel, routes }: ProviderHealth): string {
  if (channel === 'EMAIL') return 'e-mail'
  return `SMS, ${routes.join(' and ')}`
}

function ProviderState({ state, failuresInARow, openMs }: ProviderHealth) {
  const inARow = failuresInARow === 0 ? null : `${counted(failuresInARow, 'failure')} in a row`
  const words = {
    closed: ['good', 'works', inARow],
    open: ['bad', `rests for ${duration(openMs)}`, inARow],
    'half-open': ['warn', 'being probed', 'one message tries it now'],
  } as const satisfies Record<ProviderHealth['state'], readonly [Tone, string, string | null]>
  const [tone, word, detail] = words[state]
  return (
    <span class="with-badge">
      <Badge tone={tone}>{word}</Badge> {detail === null ? null : <span class="hint">{detail}</span>}
    </span>
  )
}

function ActiveLimits({ limited }: { limited: readonly Limited[] }) {
  return (
    <Card title="Limited now" hint="Whom a limit refuses at this moment.">
      {limited.length === 0 ? (
        <p class="none">Nobody is limited.</p>
      ) : (
        <ul class="limited">
          {limited.map(({ limit, app, brand, recipient, refusals, endsAt }) => (
            <li key={JSON.stringify([limit, app, brand, recipient, endsAt])}>
              <p class="what">{limitNames[limit]}</p>
              <p class="hint">
                {[recipient, app === null ? null : `app ${app}`, brand === null ? null : `brand ${brand}`]
                  .filter((part) => part !== null)
                  .join(' · ') || 'an address of the network'}
              </p>
              <p class="hint">
                {counted(refusals, 'request')} refused · free <Time at={endsAt} />
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
  const most = Math.max(0, ...bins.map((bin) => bin.count))
  return (
    <Card title="Time to verify" hint="From the code's sending to the right code coming back.">
      {times.count === 0 ? (
        <p class="none">No code was verified.</p>
      ) : (
        <>
          <dl class="quantiles">
            {Object.entries({
              Median: upTo(medianSeconds),
              '9 of 10': upTo(p90Seconds),
              Codes: count(times.count),
            }).map(([name, value]) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{value}</dd>
              </div>
            ))}
          </dl>
          <table class="bins">
            <caption class="sr-only">How many codes were verified within which time</caption>
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
                  <th scope="row">{bin.upToSeconds === null ? 'longer' : `≤ ${seconds(bin.upToSeconds)}`}</th>
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

/** The upper bound of a quantile's bin; null: above all bins. */
function upTo(bound: number | null): string {
  return bound === null ? 'beyond all' : `≤ ${seconds(bound)}`
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
  recipient: 'the number or address was refused',
  content: 'the message was refused',
  account: 'the account was refused: look at its key, balance, sender',
  retryable: 'failed for the moment',
  unknown: 'no clear answer',
}

function Failures({ failures, period }: { failures: readonly FailureCount[]; period: Period }) {
  const most = Math.max(0, ...failures.map((failure) => failure.count))
  return (
    <Card title="Failed attempts" hint="By provider, and by what it said.">
      <Table
        caption={`Failed attempts ${periodWords[period]}`}
        columns={[
          'Provider',
          'What it said',
          { title: 'Share', isQuiet: true },
          { title: 'Attempts', align: 'end' },
        ]}
        rows={failures.map(({ provider, errorClass, count: attempts }) => [
          provider,
          <>
            {errorClass === null ? failureWords.unknown : failureWords[errorClass]}{' '}
            {errorClass === null ? null : <code>{errorClass}</code>}
          </>,
          <Bar share={attempts / most} tone="bad" />,
          count(attempts),
        ])}
        empty="No attempt failed."
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
  ['Handed over', ({ accepted }) => count(accepted)],
  ['Failed', (share) => <Failing value={share.failed} of={share} />],
  ['Unclear', (share) => <Failing value={share.unknown} of={share} />],
]
const ofRequests: readonly Column[] = [
  ...codeColumns,
  ['Not sent', ({ sendsFailed, notifyFailed }) => count(sendsFailed + notifyFailed)],
  ['Notified', ({ notified }) => count(notified)],
  ['Limited', ({ limited }) => count(limited)],
  ['Refused', ({ refused }) => count(refused)],
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
  /** The title of the first column. */
  readonly first: string
  readonly shares: readonly Share[]
  readonly columns: readonly Column[]
}

/** Rows of a breakdown. */
const mostShares = 30

function Breakdown({ title, hint, first, shares, columns }: BreakdownProps) {
  const said = shares.length > mostShares ? `The ${mostShares} busiest of ${count(shares.length)}.` : hint
  return (
    <Card title={title} hint={said}>
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

/** Failed attempts among all. */
function Failing({ value, of }: { value: number; of: Pick<Figures, 'accepted' | 'failed' | 'unknown'> }) {
  if (value === 0) return <span class="hint">0</span>
  const all = of.accepted + of.failed + of.unknown
  return <span class={isTrouble(of.failed + of.unknown, all) ? 'trouble' : undefined}>{count(value)}</span>
}

function channelTitle(name: string): string {
  const known: Readonly<Record<Channel, string>> = { ...channelNames, EMAIL: 'E-mail' }
  return name === 'SMS' || name === 'EMAIL' ? known[name] : name
}
