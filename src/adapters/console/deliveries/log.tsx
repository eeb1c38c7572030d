/** @jsxImportSource preact */

import type { ComponentChildren } from 'preact'
import { useContext } from 'preact/hooks'
import type { Delivery } from '../../../domain/delivery/delivery-reports.ts'
import { countryWords } from '../../../domain/delivery/destination.ts'
import { channelNames } from '../../../domain/ground/contact.ts'
import { count, counted, utc } from '../../../domain/ground/format.ts'
import { dayMs, hourMs, minuteMs } from '../../../domain/ground/time.ts'
import { type LoggedRequest, statusOf, whyOf } from '../../../domain/log/event-log.ts'
import { callPaths, resultOf } from '../../../domain/log/explain.ts'
import {
  type DeliveryStatus,
  deliveryStatuses,
  errorClasses,
  type Found,
  type LogCount,
  type LogFilters,
  type LogList,
  mostCounted,
  statusKeys,
  wordOf,
} from '../../../domain/log/log-search.ts'
import {
  Badge,
  Button,
  Empty,
  ExactTime,
  Field,
  LinkButton,
  Now,
  rich,
  Select,
  Snippet,
  UtcNote,
  withTimes,
} from '../../pages/components.tsx'
import { elapsed } from '../../pages/words.ts'
import { Card, consolePage, end, LiveBar, Notice, Pager, Table, withPlus } from '../components.tsx'
import type { PageContext } from '../page-context.ts'
import { callNames, filtersInForce, logUrl, mostExported, resultNames, timeText } from './query.ts'

// The two lists of the event log: attempts at providers, and API calls, with their filters.

export interface LogModel<Row> {
  readonly filters: LogFilters
  /** Parts of the URL that are no filters, such as `result=lost`. */
  readonly unknown: readonly string[]
  /** Of all pages. Null: there is no filter, or this is not the first page. */
  readonly total: LogCount | null
  /** The recipient that was searched for. */
  readonly masked: string | null
  readonly isLater: boolean
  readonly found: Found<Row>
  /** A search that ended before the page was full: the time that it reached. */
  readonly searchedTo: number | null
  /** The values that the filters offer. */
  readonly known: Readonly<
    Record<'provider' | 'app' | 'brand' | 'template' | 'lang' | 'country', readonly string[]>
  >
}

export function deliveriesPage(pageContext: PageContext, model: LogModel<Delivery>): string {
  const { rows } = model.found
  const keys = rows.map(({ requestId, attempt }) => `${requestId}.${attempt}`)
  const own = ['Provider', 'Template', 'Status']
  return logPage(pageContext, 'deliveries', model, own, rows.map(deliveryCells), keys)
}

export function callsPage(pageContext: PageContext, model: LogModel<LoggedRequest>): string {
  const { rows } = model.found
  const keys = rows.map(({ requestId }) => requestId)
  const own = ['Call', 'Attempts', 'Result']
  return logPage(pageContext, 'calls', model, own, rows.map(callCells), keys)
}

const lists: Readonly<Record<LogList, string>> = { deliveries: 'Messages', calls: 'API calls' }

function logPage(
  pageContext: PageContext,
  list: LogList,
  model: LogModel<unknown>,
  columns: readonly string[],
  cells: readonly (readonly ComponentChildren[])[],
  keys: readonly string[],
): string {
  const { filters, unknown, total, isLater, found, searchedTo } = model
  const { rows, next } = found
  const inForce = filtersInForce(list, filters, model.masked)
  return consolePage(
    pageContext,
    {
      title: 'Deliveries',
      section: 'deliveries',
      actions: (
        <>
          <LiveBar />
          <nav class="switch" aria-label="Rows">
            {(['deliveries', 'calls'] as const).map((each) => (
              <a key={each} href={logUrl(each, filters)} aria-current={each === list ? 'true' : undefined}>
                {lists[each]}
              </a>
            ))}
          </nav>
        </>
      ),
    },
    <Card class="log">
      <h2 class="sr-only">{lists[list]}</h2>
      {unknown.length > 0 && (
        <Notice tone="warn">
          {unknown.length === 1 ? 'This filter is unknown' : 'These filters are unknown'}, so the list does
          not use {unknown.length === 1 ? 'it' : 'them'}: <bdi>{unknown.join(', ')}</bdi>
        </Notice>
      )}
      <Filters list={list} model={model} now={pageContext.now} />
      {inForce.length > 0 && (
        <p class="found">
          {inForce.map(({ name, value, without }) => (
            <a key={name} class="in-force" href={logUrl(list, without)}>
              {name} <strong>{withTimes(withPlus(value))}</strong>
              <span class="sr-only">(remove filter)</span>
              <span aria-hidden="true">×</span>
            </a>
          ))}
          <LinkButton href={`/admin/${list}`} small>
            Show all
          </LinkButton>
        </p>
      )}
      <div class="stack" data-live="log" data-now={pageContext.now}>
        {total && <Total list={list} filters={filters} total={total} />}
        <Table
          caption={`${list === 'calls' ? 'API calls' : 'Deliveries'}, latest first`}
          columns={[
            'Time (UTC)',
            { title: 'Request', isHeader: true },
            'App',
            'Brand',
            'To',
            ...columns,
            end('Duration'),
          ]}
          rows={cells}
          keys={keys}
          empty={<NoRows list={list} model={model} />}
        />
        {searchedTo !== null && (
          <p class="hint">
            {rows.length === 0 ? 'Nothing found' : 'Searched'} back to <ExactTime at={searchedTo} />. Older
            rows may match.
            {list === 'calls' && filters.recipientHashes && (
              <>
                {' '}
                <a href={logUrl('deliveries', filters)}>Messages to the recipient</a> are found at any age.
              </>
            )}
          </p>
        )}
        <Pager
          first={isLater ? logUrl(list, filters) : null}
          next={next === null ? null : logUrl(list, filters, next)}
          nextTitle={searchedTo === null ? 'Older' : 'Search further back'}
        />
        {rows.length > 0 && (
          <p class="hint">
            <a href={logUrl(list, filters, null, '.csv')}>Download as CSV</a>: all rows of these filters, the
            latest {count(mostExported)} at most. Recipients are masked.
          </p>
        )}
      </div>
    </Card>,
  )
}

interface TotalProps {
  readonly list: LogList
  readonly filters: LogFilters
  readonly total: LogCount
}

/** How much the filters find, and which requests failed for that. */
function Total({ list, filters, total: { rows, requests, recipients, isMore } }: TotalProps) {
  if (rows === 0) return null
  const several = rows < mostCounted ? 'At least ' : 'More than '
  const what = list === 'calls' ? '' : `${counted(rows, 'attempt')} of `
  const { provider, statuses, recipientHashes } = filters
  return (
    <p class="total">
      <strong>
        {isMore && several}
        {what}
        {counted(requests, 'request')}
        {recipientHashes ? '' : ` to ${counted(recipients, 'recipient')}`}
      </strong>
      {list === 'deliveries' && recipientHashes && (
        <span class="hint">
          Without requests that were rejected. <a href={logUrl('calls', filters)}>All requests</a>
        </span>
      )}
      {list === 'deliveries' && !recipientHashes && (provider ?? statuses) && (
        <span class="hint">
          Requests{provider && ` with ${provider}`} that all providers failed:{' '}
          <a href={logUrl('calls', { ...filters, call: 'code', result: 'failed' })}>codes</a>,{' '}
          <a href={logUrl('calls', { ...filters, call: 'notify', result: 'failed' })}>notifications</a>
        </span>
      )}
    </p>
  )
}

const times = { 'Last hour': hourMs, 'Last 24 hours': dayMs, 'Last 7 days': 7 * dayMs }

interface FiltersProps {
  readonly list: LogList
  readonly model: LogModel<unknown>
  readonly now: number
}

function Filters({ list, model: { filters, known }, now }: FiltersProps) {
  const { recipientHashes, requestId, statuses = [], since, until } = filters
  const dayAgo = Math.floor((now - dayMs) / minuteMs) * minuteMs
  const named = (values: readonly (string | undefined)[]) =>
    Object.fromEntries(values.flatMap((value) => (value === undefined ? [] : [[value, value]])))
  const select = (
    label: string,
    name: string,
    value: string | undefined,
    options: Readonly<Record<string, string>>,
  ) => <Select label={label} name={name} value={value ?? ''} options={{ '': 'any', ...options }} />
  const time = (label: string, name: string, at: number | undefined) => (
    <Field
      label={
        <>
          {label}
          <UtcNote> (UTC)</UtcNote>
        </>
      }
      name={name}
      isTime
      value={at === undefined ? '' : timeText(at)}
    />
  )
  const countries = known.country
    .map((code): [string, string] => [code, countryWords(code)])
    .sort(([, one], [, other]) => one.localeCompare(other))
  return (
    <form method="get" action={`/admin/${list}`} class="form filters" autocomplete="off">
      {recipientHashes && <input type="hidden" name="recipient" value={recipientHashes.join('.')} />}
      {list === 'deliveries' && requestId && <input type="hidden" name="request" value={requestId} />}
      <details class="fold">
        <summary>Filter</summary>
        <div class="folded">
          {list === 'deliveries' && (
            <fieldset class="statuses">
              <legend>Status</legend>
              {statusKeys.map((status) => (
                <label key={status}>
                  <input
                    type="checkbox"
                    name="status"
                    value={wordOf(status)}
                    checked={statuses.includes(status)}
                  />
                  <span>
                    <StatusBadge status={status} /> <small>{deliveryStatuses[status].meaning}</small>
                  </span>
                </label>
              ))}
            </fieldset>
          )}
          <div class="fields">
            {select('Provider', 'provider', filters.provider, named(known.provider))}
            {list === 'deliveries' ? (
              <>
                {select('Cause of a failure', 'error', filters.errorClass, errorClasses)}
                <Field
                  label="Template"
                  name="template"
                  value={filters.template ?? ''}
                  known={known.template}
                />
                <Field
                  label="Language of the text"
                  name="lang"
                  value={filters.lang ?? ''}
                  known={known.lang}
                />
              </>
            ) : (
              <>
                {select('Call', 'call', filters.call, callNames)}
                {select('Result', 'result', filters.result, resultNames)}
              </>
            )}
            {select('App', 'app', filters.app, named([...known.app, filters.app]))}
            {select('Brand', 'brand', filters.brand, named([...known.brand, filters.brand]))}
            {select('Channel', 'channel', filters.channel, channelNames)}
            {select('Country', 'country', filters.country, Object.fromEntries(countries))}
          </div>
          <div class="times">
            {time('From', 'from', since)}
            {time('Until', 'until', until)}
          </div>
          <p class="buttons">
            <Button kind="primary">Apply</Button>
          </p>
        </div>
      </details>
      <p class="buttons">
        {Object.entries(times).map(([title, ms]) => (
          <LinkButton key={title} href={logUrl(list, lastOf(filters, now, ms))} small>
            {title}
          </LinkButton>
        ))}
        <LinkButton href={logUrl(list, { ...filters, since: dayAgo - dayMs, until: dayAgo })} small>
          48 to 24 hours ago
        </LinkButton>
      </p>
    </form>
  )
}

function lastOf(filters: LogFilters, now: number, ms: number): LogFilters {
  return { ...filters, since: Math.floor((now - ms) / minuteMs) * minuteMs, until: undefined }
}

function deliveryCells(row: Delivery) {
  const why = whyOf(row)
  return [
    <Instant at={row.at} />,
    <RequestLink requestId={row.requestId}>
      {row.attempt > 1 && <span class="hint">{` #${row.attempt}`}</span>}
    </RequestLink>,
    <bdi class="breaks">{row.app}</bdi>,
    <BrandName brand={row.brand} />,
    <span class="two-lines">
      <a class="masked" href={requestsTo(row)}>
        {withPlus(row.recipient)}
      </a>
      {row.country !== null && <small>{countryWords(row.country)}</small>}
    </span>,
    <span class="two-lines">
      <span>{row.provider}</span>
      <small>{row.route === null ? channelNames[row.channel] : `${row.route} route`}</small>
    </span>,
    <span class="two-lines">
      <span>{row.template === null ? withoutTemplate[row.channel] : <code>{row.template}</code>}</span>
      {(row.lang ?? row.segments) && (
        <small>{[row.lang, row.segments && segmentsInWords(row.segments)].filter(Boolean).join(' · ')}</small>
      )}
    </span>,
    <span class="two-lines">
      <DeliveryBadge row={row} />
      {why !== '' && (
        <small class="why">
          <bdi>{why}</bdi>
        </small>
      )}
    </span>,
    <span class="nowrap">{elapsed(row.durationMs)}</span>,
  ]
}

function callCells(row: LoggedRequest) {
  const { requestId, at, app, brand, operation, recipient, recipientHash, recipients, country, end } = row
  const { result, why } = resultOf(row)
  return [
    <Instant at={at} />,
    <RequestLink requestId={requestId} />,
    <bdi class="breaks">{app}</bdi>,
    <BrandName brand={brand} />,
    recipient === null || recipientHash === null ? (
      <span class="hint">{recipients === null ? '–' : `${recipients} recipients`}</span>
    ) : (
      <span class="two-lines">
        <a class="masked" href={requestsTo({ recipientHash })}>
          {withPlus(recipient)}
        </a>
        {country !== null && <small>{countryWords(country)}</small>}
      </span>
    ),
    <code>{callPaths[operation].replace('POST ', '')}</code>,
    <Attempts row={row} />,
    <span class="two-lines">
      <Badge tone={end === null ? 'warn' : end.error === null ? 'good' : 'bad'}>
        {end === null ? result : `${end.status} ${result}`}
      </Badge>
      {why !== '' && (end?.error == null || row.deliveries.length === 0) && (
        <small class="why">{rich(why)}</small>
      )}
    </span>,
    <span class="nowrap">{end === null ? '–' : elapsed(end.durationMs)}</span>,
  ]
}

/** What the providers did. */
function Attempts({ row: { deliveries } }: { row: LoggedRequest }) {
  if (deliveries.length === 0) return <span class="hint">–</span>
  return (
    <span class="attempts">
      {deliveries.slice(0, mostAttempts).map((delivery) => {
        const { name, tone, meaning } = deliveryStatuses[statusOf(delivery)]
        const why = whyOf(delivery)
        return (
          <span key={delivery.attempt} class="two-lines" title={meaning}>
            <Badge tone={tone}>{delivery.provider}</Badge>
            <small class="why">
              <bdi>{why === '' ? name : `${name} (${why})`}</bdi>
            </small>
          </span>
        )
      })}
      {deliveries.length > mostAttempts && <small>{`and ${deliveries.length - mostAttempts} more`}</small>}
    </span>
  )
}

const mostAttempts = 4

function RequestLink({ requestId, children }: { requestId: string; children?: ComponentChildren }) {
  return (
    <a class="trace-link" href={`/admin/deliveries/${encodeURIComponent(requestId)}`} title={requestId}>
      <code>{shortId(requestId)}</code>
      {children}
    </a>
  )
}

function BrandName({ brand }: { brand: string | null }) {
  return brand === null ? <span class="hint">–</span> : <bdi class="breaks">{brand}</bdi>
}

function NoRows({
  list,
  model: { filters, isLater, found },
}: Omit<FiltersProps, 'model' | 'now'> & { model: LogModel<unknown> }) {
  if (found.next !== null) return null
  if (isLater) return <Empty title="Nothing older" />
  const { requestId } = filters
  if (filtersInForce(list, filters, null).length > 0) {
    return (
      <Empty title="Nothing found">
        <p>
          otpost deletes rows after <code>DELIVERY_LOG_DAYS</code> days.
        </p>
        {list === 'calls' ? null : requestId === undefined ? (
          <p>
            A rejected request has no deliveries. <a href={logUrl('calls', filters)}>Search the API calls</a>
          </p>
        ) : (
          <p>
            <LinkButton href={`/admin/deliveries/${encodeURIComponent(requestId)}`}>Open trace</LinkButton>
          </p>
        )}
      </Empty>
    )
  }
  return (
    <Empty title={list === 'calls' ? 'No API calls yet' : 'No deliveries yet'}>
      <p>
        {list === 'calls'
          ? 'This page lists every call of an app with valid credentials.'
          : 'This page lists every attempt to send a message.'}{' '}
        <a href="/docs">The API documentation</a> describes the calls that send. This command prints the
        attempts on the server:
      </p>
      <Snippet title="Deliveries of the last day" text="otpost deliveries --since 1d" />
    </Empty>
  )
}

const withoutTemplate = { SMS: 'free text', EMAIL: '–' } as const

export function DeliveryBadge({ row }: { row: Pick<Delivery, 'outcome' | 'report'> }) {
  const status = statusOf(row)
  return (
    <span title={deliveryStatuses[status].meaning}>
      <StatusBadge status={status} />
    </span>
  )
}

function StatusBadge({ status }: { status: DeliveryStatus }) {
  const { tone, name } = deliveryStatuses[status]
  return <Badge tone={tone}>{name}</Badge>
}

/** Its end: request IDs start with their time. */
export function shortId(requestId: string): string {
  return `…${requestId.slice(-8)}`
}

/** All requests to the recipient. */
export function requestsTo({ recipientHash }: { readonly recipientHash: string }): string {
  return logUrl('calls', { recipientHashes: [recipientHash] })
}

function segmentsInWords({ count, encoding }: NonNullable<Delivery['segments']>): string {
  return `${counted(count, 'segment')} · ${encoding}`
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** The time to the second, with the date unless it is today. page.js shows it in the time zone of the page. */
function Instant({ at }: { at: number }) {
  const now = useContext(Now)
  const date = new Date(at)
  const iso = date.toISOString()
  const isToday = iso.slice(0, 10) === new Date(now).toISOString().slice(0, 10)
  return (
    <time class="instant" dateTime={iso} title={utc(at)} data-local="clock">
      {isToday ? '' : <span class="hint">{`${date.getUTCDate()} ${months[date.getUTCMonth()]} `}</span>}
      {iso.slice(11, 19)}
    </time>
  )
}
