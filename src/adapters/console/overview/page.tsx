/** @jsxImportSource preact */

import type { ComponentChildren } from 'preact'
import { count, counted, duration, percent } from '../../../domain/ground/format.ts'
import { hourMs } from '../../../domain/ground/time.ts'
import type { HealthFacts } from '../../../domain/health/facts.ts'
import type { FirstDayStep, StepState } from '../../../domain/health/first-day.ts'
import type { History } from '../../../domain/health/history.ts'
import { boundWords, type FoundIncident } from '../../../domain/health/incidents.ts'
import { isIdle } from '../../../domain/health/outages.ts'
import type { Problem } from '../../../domain/health/problem.ts'
import { type DeliveryFilter, spanOf } from '../../../domain/log/log-search.ts'
import { rowsIn } from '../../../domain/log/ranges.ts'
import {
  type ActiveLimit,
  conversion,
  type Figures,
  isTrouble,
  noFigures,
  type ProviderHealth,
  type Statistics,
} from '../../../domain/log/statistics.ts'
import type { LimitName } from '../../../domain/request/limit-names.ts'
import { Badge, ExactTime, LinkButton, Time, type Tone } from '../../pages/components.tsx'
import { ActionsBeside } from '../action-form.tsx'
import {
  actions,
  Card,
  consolePage,
  end,
  FormLink,
  LiveBar,
  Notice,
  Table,
  withPlus,
} from '../components.tsx'
import type { PageContext } from '../page-context.ts'
import { testPath } from '../test-send/page.tsx'
import { Chart } from './chart.tsx'
import { Count } from './counts.tsx'
import { HeatMap, Marks } from './history.tsx'
import { FirstDay, Meanwhile, Notes, WhatGoesOn } from './incidents.tsx'
import { RangeNav } from './range.tsx'

// The overview: what goes on first, then the figures of a period, providers and limits.

interface OverviewModel {
  readonly facts: HealthFacts
  readonly found: readonly FoundIncident[]
  readonly notes: readonly Problem[]
  /** Of the first day. Null: it has passed. */
  readonly steps: ReadonlyMap<FirstDayStep, StepState> | null
  /** Of the time that an operator chose. */
  readonly statistics: Statistics
  readonly history: History
  /** There are no figures of the time that the URL has. */
  readonly isUnknown: boolean
}

export function overviewPage(pageContext: PageContext, model: OverviewModel): string {
  const { statistics, isUnknown } = model
  return consolePage(
    pageContext,
    {
      title: 'Overview',
      section: 'overview',
      actions: (
        <>
          {statistics.until >= pageContext.now && <LiveBar />}
          <RangeNav range={statistics} now={pageContext.now} />
        </>
      ),
      scripts: ['charts.js'],
      styles: ['uplot.css'],
    },
    <>
      {isUnknown && (
        <Notice tone="warn">
          There are no figures of the time in this URL, so these are of the last 24 hours. A time is in the
          past, starts before it ends, and is in UTC, such as{' '}
          <code>from=2026-11-26T08:00Z&until=2026-11-26T09:00Z</code>.
        </Notice>
      )}
      <OverviewLive now={pageContext.now} {...model} />
    </>,
  )
}

/** The part that console.js updates. */
function OverviewLive({ now, ...model }: OverviewModel & { now: number }) {
  const { facts, found, notes, steps, statistics, history } = model
  const { server, providers } = facts
  const isPast = statistics.until < now
  const lastHour = spanOf({ from: now - hourMs, until: now })
  return (
    <div class="stack" data-live="overview" data-now={now}>
      {isPast ? <Meanwhile found={found} /> : <WhatGoesOn facts={facts} found={found} now={now} />}
      {steps && <FirstDay steps={steps} />}
      <div class="columns">
        <Chart
          id="codes"
          title="Codes"
          statistics={statistics}
          history={history}
          lines={[
            ['Sent', 'area', 'sends', ({ sends }) => sends],
            ['Verified', 'gold', 'verified', ({ verified }) => verified],
            ['Failed', 'bad', 'sendsFailed', ({ sendsFailed }) => sendsFailed],
          ]}
        />
        <details class="folded-part wide" id="messages">
          <summary>Messages</summary>
          <Chart
            id="messages"
            title="Messages"
            statistics={statistics}
            history={history}
            lines={[
              ['Accepted', 'area', 'accepted', ({ accepted }) => accepted],
              ['Delivered', 'gold', 'delivered', ({ delivered }) => delivered],
              ['Failed', 'bad', 'failedOrUnknown', ({ failed, unknown }) => failed + unknown],
            ]}
          />
        </details>
      </div>
      {isPast && <Marks {...history} />}
      <Headlines statistics={statistics} />
      <details class="folded-part wide" id="history">
        <summary>Incidents and changes, and failures by provider and hour</summary>
        {!isPast && <Marks {...history} />}
        <HeatMap {...history} />
      </details>
      <details class="folded-part wide" id="providers">
        <summary>Providers, and active rate limits</summary>
        <Providers providers={providers} statistics={statistics} />
        <ActiveLimits limited={server?.limited ?? []} lastHour={lastHour} />
      </details>
      <Notes notes={notes} thresholds={facts.thresholds} />
      <details class="folded-part" id="more">
        <summary>Figures by brand</summary>
        <Brands statistics={statistics} />
      </details>
    </div>
  )
}

function Headlines({ statistics }: { statistics: Statistics }) {
  const { totals, verifyTimes } = statistics
  const { sends, sendsFailed, notified, notifyFailed, delivered, undelivered } = totals
  const failed = sendsFailed + notifyFailed
  const failedAttempts = totals.failed + totals.unknown
  const where = rowsIn(statistics)
  const stats: readonly (readonly [string, ComponentChildren, ComponentChildren])[] = [
    [
      'Codes sent',
      <Count value={sends} of="sends" where={where} />,
      <>
        and <Count value={notified} unit="notification" of="notified" where={where} />
      </>,
    ],
    [
      'Verified',
      <Count value={totals.verified} of="verified" where={where} />,
      <>
        <Count value={totals.wrongCodes} unit="wrong code" of="wrongCodes" where={where} />
        {verifyTimes.count > 0 && `; ${timesToVerify(verifyTimes)}`}
      </>,
    ],
    ['Conversion', percent(conversion(totals)), 'of the sent codes'],
    [
      'Failed',
      <Count value={failed} of="notSent" where={where} />,
      <>
        <Count value={sendsFailed} unit="code" of="sendsFailed" where={where} />,{' '}
        <Count value={notifyFailed} unit="notification" of="notifyFailed" where={where} />
      </>,
    ],
    ['Rate-limited', <Count value={totals.limited} of="limited" where={where} />, 'requests over a limit'],
    [
      'Accepted',
      <Count value={totals.accepted} of="accepted" where={where} />,
      failedAttempts === 0 ? (
        'by providers'
      ) : (
        <>
          by providers; <Count value={failedAttempts} of="failedOrUnknown" where={where} /> failed or unknown
        </>
      ),
    ],
    [
      'Delivered',
      <Count value={delivered} of="delivered" where={where} />,
      delivered + undelivered === 0 ? (
        'no delivery reports'
      ) : (
        <>
          <Count value={undelivered} of="undelivered" where={where} /> not delivered
        </>
      ),
    ],
  ]
  const isBad = isTrouble(failed, failed + sends + notified)
  return (
    <dl class="stats">
      {stats.map(([label, value, hint]) => (
        <div key={label} class={label === 'Failed' && isBad ? 'stat bad' : 'stat'}>
          <dt>{label}</dt>
          <dd>
            <span class="figure">{value}</span>
            <span class="hint">{hint}</span>
          </dd>
        </div>
      ))}
    </dl>
  )
}

interface ProvidersProps {
  readonly providers: readonly ProviderHealth[]
  readonly statistics: Statistics
}

function Providers({ providers, statistics }: ProvidersProps) {
  const { byProvider } = statistics
  const figuresOf = (provider: string) => {
    const where = { ...rowsIn(statistics), provider }
    const own = byProvider.find(({ name }) => name === provider) ?? noFigures
    return [
      // The event log has no provider of a whole request.
      count(own.sends),
      percent(conversion(own)),
      <Count value={own.accepted} of="accepted" where={where} />,
      <Failing figure="failed" of={own} where={where} />,
      <Failing figure="unknown" of={own} where={where} />,
      <Count value={own.delivered} of="delivered" where={where} />,
      <Count value={own.undelivered} of="undelivered" where={where} />,
    ]
  }
  const removed = byProvider.filter(({ name }) => providers.every((each) => each.name !== name))
  return (
    <Card
      title="Providers"
      hint="Circuits now, and figures of the shown time. A code counts for the provider that accepted it. Whether messages were delivered is from delivery reports."
      actions={<LinkButton href="/admin/providers">All providers</LinkButton>}
    >
      <Table
        caption="Providers now, with the figures of the shown time"
        columns={[
          'Provider',
          'Sends',
          'State',
          end('Codes sent'),
          end('Conversion'),
          end('Accepted'),
          end('Failed'),
          end('Unknown'),
          end('Delivered'),
          end('Not delivered'),
          actions,
        ]}
        rows={[
          ...providers.map((provider) => {
            const { name, channel } = provider
            return [
              name,
              sends(provider),
              <ProviderState {...provider} />,
              ...figuresOf(name),
              <div class="actions">
                <FormLink small href={testPath({ provider: name })}>
                  Send a test<span class="sr-only"> through {name}</span>
                </FormLink>
                {channel === 'SMS' && (
                  <ActionsBeside
                    thing="provider"
                    name={name}
                    states={provider.pausedUntil === null ? [] : ['paused']}
                  />
                )}
              </div>,
            ]
          }),
          ...removed.map(({ name }) => [name, 'nothing', 'not configured', ...figuresOf(name), '']),
        ]}
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

function ProviderState(provider: ProviderHealth) {
  const { state, failuresInARow, openMs, pausedUntil } = provider
  const inARow = failuresInARow === 0 ? null : `${counted(failuresInARow, 'failure')} in a row`
  const words = {
    closed: [failuresInARow === 0 ? 'good' : 'warn', 'circuit closed', inARow],
    open: ['bad', `circuit open for ${duration(openMs)}`, inARow],
    'half-open': ['warn', 'circuit half-open', isIdle(provider) ? inARow : 'the next message tests it'],
  } as const satisfies Record<ProviderHealth['state'], readonly [Tone, string, string | null]>
  const [tone, word, detail] = words[state]
  if (pausedUntil !== null) {
    return (
      <span class="with-badge">
        <Badge tone="bad">paused</Badge>{' '}
        <span class="hint">
          until <ExactTime at={pausedUntil} toMinute />
        </span>
      </span>
    )
  }
  return (
    <span class="with-badge">
      <Badge tone={tone}>{word}</Badge> {detail === null ? null : <span class="hint">{detail}</span>}
    </span>
  )
}

const limitNames: Readonly<Record<LimitName, string>> = {
  'app-minute': 'Calls per minute for an app',
  'status-minute': 'Status requests per minute for an app',
  cooldown: 'Cooldown between codes',
  'phone-minute': 'Codes per minute to a phone number',
  'recipient-hour': 'Codes per hour to a recipient',
  failures: 'Wrong codes in 24 hours for a recipient',
  credentials: 'Failed credentials per minute',
  'integration-requests': 'Integration requests per hour',
  'console-logins': 'Console sign-in attempts',
  budget: 'Budget',
  queue: 'Waiting asynchronous notifications of an app',
  'new-country': 'SMS notifications per day of an app to a new country',
}

interface ActiveLimitsProps {
  readonly limited: readonly ActiveLimit[]
  readonly lastHour: DeliveryFilter
}

function ActiveLimits({ limited, lastHour }: ActiveLimitsProps) {
  return (
    <Card title="Active rate limits" hint="Limits that reject requests now.">
      <Table
        caption="Active rate limits"
        columns={['Limit', 'Of', end('Rejected'), 'Resets']}
        rows={limited.map(({ limit, app, brand, recipient, refusals, endsAt }) => {
          const where = { ...lastHour, app: app ?? undefined, brand: brand ?? undefined }
          return [
            limitNames[limit],
            [recipient && withPlus(recipient), app && `app ${app}`, brand && `brand ${brand}`]
              .filter(Boolean)
              .join(' · ') || 'an IP address',
            app === null ? count(refusals) : <Count value={refusals} of="limited" where={where} />,
            <Time at={endsAt} isUpcoming />,
          ]
        })}
        empty="No active rate limits."
      />
    </Card>
  )
}

function timesToVerify({ medianSeconds, p90Seconds }: Statistics['verifyTimes']): string {
  return `median ${boundWords(medianSeconds)}, p90 ${boundWords(p90Seconds)}`
}

const mostBrands = 30

function Brands({ statistics }: { statistics: Statistics }) {
  const { byBrand } = statistics
  const hint = 'Rejected: because of the brand. Blocked: because of the destination.'
  const shown = byBrand.length > mostBrands ? `The ${mostBrands} busiest of ${count(byBrand.length)}.` : hint
  return (
    <Card title="By brand" hint={shown}>
      <Table
        caption="By brand"
        columns={[
          'Brand',
          end('Codes sent'),
          end('Verified'),
          end('Conversion'),
          end('Failed'),
          end('Notifications'),
          end('Rate-limited'),
          end('Rejected'),
          end('Blocked'),
        ]}
        rows={byBrand.slice(0, mostBrands).map(({ name: brand, ...own }) => {
          const where = { ...rowsIn(statistics), brand }
          return [
            brand,
            <Count value={own.sends} of="sends" where={where} />,
            <Count value={own.verified} of="verified" where={where} />,
            percent(conversion(own)),
            <Count value={own.sendsFailed + own.notifyFailed} of="notSent" where={where} />,
            <Count value={own.notified} of="notified" where={where} />,
            <Count value={own.limited} of="limited" where={where} />,
            <Count value={own.refused} of="refused" where={where} />,
            <Count value={own.blocked} of="blocked" where={where} />,
          ]
        })}
        keys={byBrand.map(({ name }) => name)}
        figures
        empty="Nothing was sent."
      />
    </Card>
  )
}

interface FailingProps {
  readonly figure: 'failed' | 'unknown'
  readonly of: Pick<Figures, 'accepted' | 'failed' | 'unknown'>
  readonly where: DeliveryFilter
}

function Failing({ figure, of, where }: FailingProps) {
  const all = of.accepted + of.failed + of.unknown
  const isBad = of[figure] > 0 && isTrouble(of.failed + of.unknown, all)
  const tone = of[figure] === 0 ? 'hint' : isBad ? 'trouble' : undefined
  return <Count value={of[figure]} of={figure} where={where} class={tone} />
}
