/** @jsxImportSource preact */

import { countryName } from '../../../domain/delivery/destination.ts'
import type { AuditRecord } from '../../../domain/ground/audit.ts'
import { capitalized, count, counted, percent } from '../../../domain/ground/format.ts'
import { hourMs } from '../../../domain/ground/time.ts'
import type { GuardTotals } from '../../../domain/guard/counts.ts'
import type { GuardMode, GuardReason } from '../../../domain/guard/guard.ts'
import { modeWords } from '../../../domain/guard/mode.ts'
import {
  type PumpingState,
  type PumpingStatus,
  pumpingRate,
  pumpingState,
} from '../../../domain/guard/pumping.ts'
import type { GuardStatus, PrefixStatus } from '../../../domain/guard/status.ts'
import { unknownCountry } from '../../../domain/guard/thresholds.ts'
import { destinationSet } from '../../../domain/operator/destinations.ts'
import { guardAllow, guardBlock, guardModeSet, guardRemove } from '../../../domain/operator/guard.ts'
import { guardDecision, isSurge } from '../../../domain/request/request-context.ts'
import type { RequestTrace } from '../../../domain/request/request-trace.ts'
import { Badge, ExactTime, Facts, LinkButton, Time, type Tone } from '../../pages/components.tsx'
import { ActionButton, ActionForm } from '../action-form.tsx'
import { appHref } from '../apps/paths.ts'
import { actions, Card, consolePage, end, LiveBar, SetBy, Table, withPlus } from '../components.tsx'
import { logUrl } from '../deliveries/query.ts'
import type { PageContext } from '../page-context.ts'

interface GuardModel {
  readonly status: GuardStatus
  /** Requests that were denied or recorded, newest first. */
  readonly requests: readonly RequestTrace[]
  /** Who allowed and blocked prefixes, newest first. */
  readonly changes: readonly AuditRecord[]
  readonly formatPrefix: (digits: string) => string
}

const mostPrefixes = 200
const mostCountries = 30
const mostPumped = 5

const pumpingHints: Readonly<Record<GuardMode, string>> = {
  off: capitalized(modeWords.off),
  record:
    'This may be SMS pumping, and these codes are sent. The mode deny, or a block of their prefix or country, stops them immediately.',
  deny: 'This may be SMS pumping. The guard denies codes above its thresholds. A block denies also those below.',
}

const reasons: Readonly<Record<GuardReason, string>> = {
  prefix: 'Prefix: unverified codes in an hour',
  'blocked-prefix': 'Blocked prefix',
  'ip-hour': 'IP address: unverified codes in an hour',
  'ip-day': 'IP address: unverified codes in a day',
  'ip-countries': 'IP address: countries',
  'country-hour': 'Country: unverified codes in an hour',
  'country-day': 'Country: unverified codes in a day',
  number: 'Number: unverified codes in a day',
  'device-hour': 'Device: unverified codes in an hour',
  'device-day': 'Device: unverified codes in a day',
  'device-countries': 'Device: countries',
  'quiet-hour': 'Countries without a verified code: unverified codes in an hour',
  'quiet-day': 'Countries without a verified code: unverified codes in a day',
  abroad: 'Countries that are not home: unverified codes in a day',
}

export function guardPage(pageContext: PageContext, model: GuardModel): string {
  const { mode, modeUntil, nextMode, blocked, countries, lastHour, last24Hours } = model.status
  return consolePage(
    pageContext,
    {
      title: 'Guard',
      section: 'guard',
      actions: (
        <>
          <LiveBar />
          <LinkButton href="/admin/what-if">What if</LinkButton>
        </>
      ),
    },
    <>
      <div class="columns wide-first loose">
        <div class="stack" data-live="guard-prefixes" data-now={pageContext.now}>
          {model.status.pumping.length > 0 && (
            <Card
              title="Too many unverified codes in the last hour"
              hint={pumpingHints[mode]}
              actions={
                mode !== 'deny' && (
                  <ActionButton
                    of={guardModeSet}
                    with={{ mode: 'deny', duration: '24h' }}
                    confirm={`Do not send the codes that the guard finds too many, for 24 h? Then the mode is ${nextMode ?? mode} again.`}
                    kind="danger"
                  >
                    Deny such codes for 24 h
                  </ActionButton>
                )
              }
            >
              {model.status.pumping.slice(0, mostPumped).map((status) => (
                <Pumping key={status.country} status={status} model={model} now={pageContext.now} />
              ))}
            </Card>
          )}
          <Card title="Prefixes" hint={blockedHint(mode, blocked)}>
            <Prefixes model={model} />
          </Card>
        </div>
        <div class="stack">
          <div data-live="guard-mode">
            <Card
              title="Mode"
              hint={capitalized(modeWords[mode])}
              actions={
                nextMode !== null && (
                  <ActionButton
                    of={guardModeSet}
                    with={{ mode: nextMode }}
                    confirm={`End the mode ${mode} now? The mode is then ${nextMode}.`}
                  >
                    Back to {nextMode} now
                  </ActionButton>
                )
              }
            >
              <Facts
                entries={{
                  Mode: <Badge tone={mode === 'deny' ? 'good' : 'warn'}>{mode}</Badge>,
                  ...(modeUntil !== null && {
                    Until: (
                      <>
                        <ExactTime at={Date.parse(modeUntil)} toMinute /> (
                        <Time at={Date.parse(modeUntil)} isUpcoming />)
                      </>
                    ),
                    Then: nextMode,
                  }),
                  'Last hour': totalsWords(lastHour),
                  'Last 24 hours': totalsWords(last24Hours),
                }}
              />
            </Card>
          </div>
          <Card id="mode" title="Change the mode" hint="It takes effect immediately.">
            <ActionForm of={guardModeSet} start={{ mode }} id="mode" submit="Set the mode" />
          </Card>
          <Card
            id="prefix"
            title="Allow or block a prefix"
            hint="Replaces the entry of an operator for the same prefix. A block denies codes also in mode record."
          >
            <ActionForm of={[guardBlock, guardAllow]} start={{ duration: '' }} submit="Save" />
          </Card>
        </div>
      </div>
      <div class="stack" data-live="guard-codes">
        <Card title="Codes by SMS in the last 24 hours" hint="Most unverified codes first.">
          <Table
            caption="Codes by country"
            figures
            columns={['Country', ...['Sent', 'Verified', 'Conversion', 'Denied', 'Recorded'].map(end)]}
            rows={countries
              .slice(0, mostCountries)
              .map(({ country, sent, verified, conversion, denied, recorded }) => [
                placeOf(country),
                count(sent),
                count(verified),
                percent(conversion && Math.min(1, conversion)),
                count(denied),
                count(recorded),
              ])}
            empty="No codes were sent by SMS."
          />
        </Card>
        <Card title="Latest requests" hint="Those that the guard denied or recorded.">
          <Table
            caption="Latest denied and recorded requests"
            columns={['Request', 'Recipient', 'Reason', 'Result']}
            rows={model.requests.map(requestCells)}
            keys={model.requests.map(({ requestId }) => requestId)}
            empty="None."
          />
        </Card>
      </div>
    </>,
  )
}

function blockedHint(mode: GuardMode, blocked: readonly PrefixStatus[]): string {
  if (mode === 'off') return 'They have no effect, because the guard is off.'
  const denied =
    'Numbers with a blocked prefix get no codes. In prefixes blocked by the guard, numbers that verified one get a few. The guard does not check and count codes to allowed prefixes.'
  if (mode === 'deny' || blocked.every(({ by }) => by === 'operator')) return denied
  return 'Only prefixes blocked by an operator get no codes. Codes to those of the guard are sent and recorded, codes to allowed ones are not checked.'
}

interface PumpingProps {
  readonly status: PumpingStatus
  readonly model: GuardModel
  readonly now: number
}

/** A country, and what an operator can do about it. */
function Pumping({ status, model, now }: PumpingProps) {
  const { country, sent, verified, denied, recorded, stopped, prefixes, apps } = status
  const place = placeOf(country)
  const found = pumpingState(status, model.status.mode)
  const [tone, state] = found === 'sent' && model.status.mode === 'deny' ? sentBefore : states[found]
  const rate = pumpingRate(status, now)
  const isKnown = country !== unknownCountry
  const rows = { country: isKnown ? country : undefined, since: now - hourMs }
  return (
    <section aria-label={place} class="stack" data-key={country}>
      <header class="title">
        <div>
          <h3>
            {place} <Badge tone={tone}>{state}</Badge>
          </h3>
          <p>
            {counted(sent, 'code')} sent, {verified === 0 ? 'none' : count(verified)} verified. The guard
            recorded {count(recorded)} and denied {count(denied)}
            {stopped > 0 && `; a budget rejected ${count(stopped)}`}
            {rate > 0 && `, now about ${count(rate)} a minute`}.
          </p>
        </div>
        <div class="actions">
          <LinkButton href={logUrl('deliveries', { ...rows, channel: 'SMS' })} small>
            Deliveries<span class="sr-only"> to {place}</span>
          </LinkButton>
          {denied > 0 && (
            <LinkButton href={logUrl('calls', { ...rows, result: 'limited' })} small>
              Denied calls<span class="sr-only"> to {place}</span>
            </LinkButton>
          )}
          {isKnown && (
            <ActionButton
              of={destinationSet}
              with={{ rule: country, action: 'block' }}
              foretellsAt="field-rule"
            >
              Block the country…<span class="sr-only"> {place}</span>
            </ActionButton>
          )}
        </div>
      </header>
      <Table
        caption={`Prefixes of ${place}`}
        columns={['Prefix', end('Share'), actions]}
        rows={prefixes.map(({ prefix, share, isBlocked }) => {
          const shown = `${model.formatPrefix(prefix.slice(1))}…`
          return [
            <bdi class="masked">{shown}</bdi>,
            percent(share),
            <div class="actions">
              {isBlocked ? (
                <Badge tone="good">blocked</Badge>
              ) : (
                <ActionButton
                  of={guardBlock}
                  with={{ prefix, duration: '12h' }}
                  confirm={`Block codes to ${shown} for 12 h?`}
                  kind="danger"
                >
                  Block for 12 h<span class="sr-only"> {prefix}</span>
                </ActionButton>
              )}
            </div>,
          ]
        })}
        keys={prefixes.map(({ prefix }) => prefix)}
        empty="The numbers have no common prefix."
      />
      <Table
        caption={`Apps that request codes to ${place}`}
        columns={['App', 'Brand', end('Codes'), actions]}
        rows={apps.slice(0, mostPumped).map(({ app, brand, codes }) => [
          <bdi class="breaks">{app}</bdi>,
          <bdi class="breaks">{brand}</bdi>,
          count(codes),
          <div class="actions">
            <LinkButton href={appHref(app)} small>
              Limit the app<span class="sr-only"> {app}</span>
            </LinkButton>
          </div>,
        ])}
        keys={apps.slice(0, mostPumped).map(({ app, brand }) => `${app} ${brand}`)}
        empty=""
      />
    </section>
  )
}

const states: Readonly<Record<PumpingState, readonly [Tone, string]>> = {
  sent: ['bad', 'still sent'],
  blocked: ['good', 'blocked'],
  denied: ['good', 'denied'],
  stopped: ['bad', 'rejected by a budget only'],
  unblocked: ['bad', 'denied until a moment ago, not blocked now'],
  none: ['good', 'none in the last 2 minutes'],
}

/** In mode deny. */
const sentBefore: readonly [Tone, string] = ['warn', 'sent in the last 2 minutes']

/** Blocked and allowed, the latest first. */
function Prefixes({ model }: { model: GuardModel }) {
  const { blocked, allowed } = model.status
  const latest = [...blocked, ...allowed].sort((one, other) => other.since.localeCompare(one.since))
  return (
    <>
      <Table
        caption="Blocked and allowed prefixes"
        columns={['Prefix', 'Action', 'Since', 'Until', actions]}
        rows={latest.slice(0, mostPrefixes).map((entry) => prefixCells(entry, model))}
        keys={latest.slice(0, mostPrefixes).map(({ prefix, by }) => `${prefix} ${by}`)}
        empty="None."
      />
      {latest.length > mostPrefixes && (
        <p class="hint">
          The latest {mostPrefixes} of {count(latest.length)}.
        </p>
      )}
    </>
  )
}

function prefixCells(entry: PrefixStatus, model: GuardModel) {
  const { prefix, country, by, unverified, since, until } = entry
  const shown = model.formatPrefix(prefix.slice(1))
  const set = by === 'operator' && model.changes.find(({ target }) => target === prefix)
  const numbers = `${shown}…`
  const isBlocked = model.status.blocked.includes(entry)
  return [
    <span class="two-lines">
      <bdi class="masked">{by === 'guard' ? `${shown} ····` : shown}</bdi>
      <small>
        {country === null ? '' : `${countryName(country)}, `}
        {by === 'guard' ? 'by the guard' : 'by an operator'}
        {unverified === null ? '' : `, ${counted(unverified, 'unverified code')}`}
      </small>
    </span>,
    <Badge tone={isBlocked ? 'good' : 'warn'}>{isBlocked ? 'blocked' : 'allowed'}</Badge>,
    set ? <SetBy {...set} /> : <ExactTime at={Date.parse(since)} toMinute />,
    <ExactTime at={Date.parse(until)} toMinute />,
    <div class="actions">
      {isBlocked && (
        <ActionButton
          of={guardAllow}
          with={{ prefix, duration: '24h' }}
          confirm={`Allow codes to ${numbers} for 24 h? The guard does not check them.`}
        >
          Allow for 24 h<span class="sr-only"> {prefix}</span>
        </ActionButton>
      )}
      {by === 'operator' && (
        <ActionButton
          of={guardRemove}
          with={{ prefix }}
          confirm={
            isBlocked
              ? `Remove the block? Codes to ${numbers} are sent again${model.status.mode === 'deny' ? ', unless the guard denies them' : ''}.`
              : `Remove the entry? The guard checks codes to ${numbers} again.`
          }
          kind={isBlocked ? 'danger' : 'plain'}
        >
          Remove<span class="sr-only"> {prefix}</span>
        </ActionButton>
      )}
    </div>,
  ]
}

function requestCells(trace: RequestTrace) {
  const { requestId, at, recipient, country, end } = trace
  const decision = guardDecision(trace, end?.error)
  const isNotification = trace.flags.some(isSurge)
  return [
    <a href={`/admin/deliveries/${requestId}`}>
      <Time at={at} />
    </a>,
    <span class="two-lines">
      <bdi class="masked">{recipient === null ? '–' : withPlus(recipient)}</bdi>
      {country !== null && <small>{countryName(country)}</small>}
    </span>,
    decision ? reasons[decision.bucket] : isNotification ? 'Notifications of an app' : 'A limit',
    isNotification || decision?.verdict === 'recorded' ? (
      <Badge tone="warn">recorded</Badge>
    ) : (
      <Badge tone="bad">{decision?.verdict === 'budget' ? 'rejected by a budget' : 'denied'}</Badge>
    ),
  ]
}

function placeOf(country: string): string {
  return country === unknownCountry ? 'No country' : countryName(country)
}

function totalsWords({ denied, recorded }: GuardTotals): string {
  return `${count(denied)} denied, ${count(recorded)} recorded`
}
