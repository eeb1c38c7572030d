/** @jsxImportSource preact */

import type { ComponentChildren } from 'preact'
import type { Delivery } from '../../../domain/delivery/delivery-reports.ts'
import { countryName, countryWords } from '../../../domain/delivery/destination.ts'
import type { ExplainedCode } from '../../../domain/delivery/provider-codes.ts'
import type { Advice } from '../../../domain/ground/advice.ts'
import { channelNames } from '../../../domain/ground/contact.ts'
import { statusOf } from '../../../domain/log/event-log.ts'
import { type Check, callPaths, type Explanation, explanationLines } from '../../../domain/log/explain.ts'
import { deliveryStatuses } from '../../../domain/log/log-search.ts'
import { attemptsPerJob } from '../../../domain/notify/queue.ts'
import { guardDecision, type LimitStatus } from '../../../domain/request/request-context.ts'
import type { RequestTrace } from '../../../domain/request/request-trace.ts'
import {
  Badge,
  CopyButton,
  Facts,
  Icon,
  type IconName,
  LinkButton,
  rich,
  Snippet,
  Time,
  type Tone,
} from '../../pages/components.tsx'
import { elapsed } from '../../pages/words.ts'
import { Card, consolePage, Drawing, withPlus } from '../components.tsx'
import type { PageContext } from '../page-context.ts'
import { pageOf, pageWords } from '../references.ts'
import { DeliveryBadge, requestsTo, shortId } from './log.tsx'

// The page of one request: its trace as a timeline, and what to do.

interface TraceModel {
  readonly trace: RequestTrace
  readonly deliveries: readonly Delivery[]
  readonly explanation: Explanation
  /** Blocked now in the country of the number, with `+`. Empty also if the guard did not object. */
  readonly blockedPrefixes: readonly string[]
  /** Of failed attempts. */
  readonly codes: readonly ExplainedCode[]
}

const mostPrefixes = 5

export function tracePage(
  pageContext: PageContext,
  { trace, deliveries, explanation, blockedPrefixes, codes }: TraceModel,
): string {
  const { opening, checks, queue, delivery, advice } = explanation
  const span = spanOf(trace, deliveries)
  // The title has the first line.
  const [, asked, ...answered] = opening
  return consolePage(
    pageContext,
    {
      title: `Request ${shortId(trace.requestId)}`,
      section: 'deliveries',
      parent: { title: 'Deliveries', href: '/admin/deliveries' },
      actions: <Verdict trace={trace} />,
    },
    <div class="columns wide-first loose">
      <Card title="Timeline">
        <ol class="timeline">
          <Event mark={asking} title="Request" lines={[asked ?? '']} />
          <Event mark={checks.some(({ result }) => result === 'REJECTED') ? failure : success} title="Checks">
            <Checks checks={checks} />
          </Event>
          {queue.length > 0 && <Event mark={nothing} title="Queue" lines={queue} />}
          {delivery && deliveries.length === 0 && (
            <Event mark={nothing} title="Delivery" lines={[delivery.nothing]} />
          )}
          {deliveries.map((row, index) => (
            <Event
              key={row.attempt}
              mark={markOf(row)}
              title={
                <>
                  Attempt {row.attempt % attemptsPerJob} <span class="hint">{row.provider}</span>{' '}
                  <DeliveryBadge row={row} />
                  {row.providerMessageId && (
                    <CopyButton text={row.providerMessageId} label="Copy message ID" />
                  )}
                </>
              }
              lines={[delivery?.attempts[index]?.text ?? '']}
            >
              <Waterfall row={row} span={span} />
            </Event>
          ))}
          <Event
            mark={trace.end === null ? nothing : trace.end.error === null ? success : failure}
            title={trace.end === null ? 'No response' : 'Response'}
            lines={answered}
          />
        </ol>
      </Card>
      <div class="stack">
        {advice.length > 0 && (
          <section class="advice" aria-labelledby="advice-title">
            <h2 id="advice-title">What to do</h2>
            {advice.map((each, index) => (
              <p key={index}>
                <AdviceText advice={each} />
              </p>
            ))}
            {codes.map(({ provider, code, page }) => (
              <p key={provider + code}>
                {page && <a href={page} rel="noreferrer">{`${code} in the documentation of ${provider}`}</a>}
              </p>
            ))}
            {guardDecision(trace, trace.end?.error) && (
              <>
                {trace.country !== null && blockedPrefixes.length > 0 && (
                  <p>
                    Blocked now in {countryName(trace.country)}:{' '}
                    {blockedPrefixes.slice(0, mostPrefixes).join(', ')}
                    {blockedPrefixes.length > mostPrefixes && ' and others'}.
                  </p>
                )}
                <p class="buttons">
                  <LinkButton href="/admin/guard#prefix" small>
                    Allow or block a prefix
                  </LinkButton>
                </p>
              </>
            )}
          </section>
        )}
        <Card title="Details">
          <Facts
            entries={{
              'Request ID': <code>{trace.requestId}</code>,
              Received: <Time at={trace.at} />,
              Call: <code>{callPaths[trace.operation]}</code>,
              App: <bdi>{trace.app}</bdi>,
              Brand: trace.brand && (
                <a href={`/admin/brands/${encodeURIComponent(trace.brand)}`}>{trace.brand}</a>
              ),
              Channel: trace.channel && channelNames[trace.channel],
              Recipient:
                trace.recipient && trace.recipientHash ? (
                  <a href={requestsTo({ recipientHash: trace.recipientHash })}>{withPlus(trace.recipient)}</a>
                ) : (
                  trace.recipient && withPlus(trace.recipient)
                ),
              Recipients: trace.recipients,
              Country: trace.country && countryWords(trace.country),
              Reference: trace.reference && <bdi class="breaks">{trace.reference}</bdi>,
              Duration: trace.end === null ? 'unknown' : elapsed(trace.end.durationMs),
            }}
          />
        </Card>
        <Card
          title="Request trace as text"
          hint="Without API key, code and full recipient. Times are in UTC."
        >
          <p class="buttons">
            <CopyButton text={explanationLines(explanation, pageWords).join('\n')} label="Copy trace" />
          </p>
          <p class="hint">The same text on the server:</p>
          <Snippet title="Command" text={`otpost explain ${trace.requestId}`} />
        </Card>
      </div>
    </div>,
  )
}

function Verdict({ trace: { end } }: { trace: RequestTrace }) {
  if (end === null) return <Badge tone="warn">no response</Badge>
  return end.error === null ? (
    <Badge tone="good">{end.status} success</Badge>
  ) : (
    <Badge tone="bad">
      {end.status} {end.error}
    </Badge>
  )
}

interface MarkProps {
  readonly tone: Tone
  readonly icon: IconName
}

const asking: MarkProps = { tone: 'quiet', icon: 'paper-plane' }
const success: MarkProps = { tone: 'good', icon: 'check' }
const failure: MarkProps = { tone: 'bad', icon: 'alert' }
const nothing: MarkProps = { tone: 'quiet', icon: 'next' }

interface EventProps {
  readonly mark: MarkProps
  readonly title: ComponentChildren
  readonly lines?: readonly string[]
  readonly children?: ComponentChildren
}

function Event({ mark: { tone, icon }, title, lines = [], children }: EventProps) {
  return (
    <li class="event">
      <span class={`mark ${tone}`} aria-hidden="true">
        <Icon name={icon} />
      </span>
      <div>
        <h3>{title}</h3>
        {lines.map((line) => (
          <p key={line}>
            <TraceText text={line} />
          </p>
        ))}
        {children}
      </div>
    </li>
  )
}

const deliveryIcons: Partial<Record<Tone, IconName>> = { good: 'check', sent: 'paper-plane', quiet: 'next' }

function markOf(row: Delivery): MarkProps {
  const { tone } = deliveryStatuses[statusOf(row)]
  return { tone, icon: deliveryIcons[tone] ?? 'alert' }
}

/** A line of `explain`, with a plus sign before phone numbers. */
function TraceText({ text }: { text: string }) {
  return <>{rich(text.replace(/(?<![+\w*])\d{2}\*+\d{2}(?![\w*])/g, withPlus))}</>
}

/** With a link for what it names. */
function AdviceText({ advice }: { advice: Advice }) {
  return (
    <>
      {advice.map((part) => {
        if (typeof part === 'string') return <TraceText key={part} text={part} />
        const page = pageOf(part)
        return page ? (
          <a key={part.to} href={page.href}>
            {page.title}
          </a>
        ) : (
          <code key={part.to}>otpost {part.to}</code>
        )
      })}
    </>
  )
}

const checkWords = {
  passed: ['passed', 'Passed'],
  recorded: ['recorded', 'Recorded'],
  replayed: ['passed', 'Replayed'],
  REJECTED: ['refused', 'Rejected'],
} as const satisfies Readonly<Record<Check['result'], readonly string[]>>

function Checks({ checks }: Pick<Explanation, 'checks'>) {
  return (
    <ul class="checks">
      {checks.map(({ result, text, limit }) => {
        const [name, word] = checkWords[result]
        return (
          <li key={text} class={name}>
            <Icon name={name === 'passed' ? 'check' : 'alert'} />
            <span>
              <span class={result === 'passed' ? 'sr-only' : undefined}>{word}: </span>
              <TraceText text={text} />
            </span>
            {limit && <Gauge limitStatus={limit} />}
          </li>
        )
      })}
    </ul>
  )
}

function Gauge({ limitStatus: { limit, max, used, refused, budget } }: { limitStatus: LimitStatus }) {
  const known = refused ? max : used
  if (limit === 'cooldown' || budget || known === null) return null
  return (
    <span class={refused ? 'gauge refused' : known >= max ? 'gauge full' : 'gauge'}>
      <Drawing viewBox="0 0 100 6">
        <rect class="gauge-room" width="100" height="6" />
        <rect class="gauge-used" width={Math.min(100, (known / Math.max(1, max)) * 100)} height="6" />
      </Drawing>
      <span>
        {known} of {max}
      </span>
    </span>
  )
}

interface Span {
  readonly from: number
  readonly ms: number
}

function spanOf({ at, end }: RequestTrace, deliveries: readonly Delivery[]): Span {
  const ends = deliveries.map((row) => row.at + row.durationMs)
  const until = Math.max(at + (end?.durationMs ?? 0), ...ends)
  return { from: at, ms: Math.max(1, until - at) }
}

function Waterfall({ row, span }: { row: Delivery; span: Span }) {
  if (row.outcome === 'skipped') return null
  const x = Math.max(0, Math.min(99, ((row.at - span.from) / span.ms) * 100))
  const width = Math.max(1, Math.min(100 - x, (row.durationMs / span.ms) * 100))
  return (
    <span class="waterfall">
      <Drawing viewBox="0 0 100 6">
        <rect class="gauge-room" width="100" height="6" />
        <rect class={`waterfall-bar ${markOf(row).tone}`} x={x} width={width} height="6" />
      </Drawing>
      <span>{elapsed(row.durationMs)}</span>
    </span>
  )
}
