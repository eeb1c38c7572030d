/** @jsxImportSource preact */

import { Fragment } from 'preact'
import { utc } from '../../../domain/ground/format.ts'
import type { HealthFacts } from '../../../domain/health/facts.ts'
import {
  type FirstDayStep,
  firstDayAbout,
  firstDaySteps,
  type StepState,
} from '../../../domain/health/first-day.ts'
import {
  calmVerdict,
  calmWords,
  type Impact,
  type Incident,
  incidentWords,
  peopleWords,
  rowsHit,
  type Words,
} from '../../../domain/health/incidents.ts'
import type { Problem, See } from '../../../domain/health/problem.ts'
import { sumWords } from '../../../domain/money/amounts.ts'
import { guardBlock } from '../../../domain/operator/guard.ts'
import { incidentAcknowledge, incidentSet } from '../../../domain/operator/incidents.ts'
import type { IncidentThresholds } from '../../../domain/policy/policy-store.ts'
import { Badge, Icon, Instant, LinkButton, rich, Time } from '../../pages/components.tsx'
import { ActionButton, ActionForm } from '../action-form.tsx'
import { Card } from '../components.tsx'
import { logUrl } from '../deliveries/query.ts'
import { Links, linksOf } from './links.tsx'

// What goes on now: one sentence, the incidents, and the notes that are none.

export interface FoundIncident {
  readonly incident: Incident
  readonly impact: Impact
}

const mostShown = 5

interface NowProps {
  readonly facts: HealthFacts
  /** The first ones first. */
  readonly found: readonly FoundIncident[]
  readonly now: number
}

export function WhatGoesOn({ facts, found, now }: NowProps) {
  const [first] = found
  const calm = calmVerdict(facts)
  const tone = first ? toneOf(first.incident) : calm.tone
  const rows = found.map((each) => <Row key={each.incident.about} {...each} now={now} />)
  return (
    <>
      <section class={`verdict ${tone}`} aria-labelledby="verdict">
        <Icon name={tone === 'good' ? 'check' : 'alert'} />
        <div>
          <h2 id="verdict">
            {first ? (
              <Sentence words={incidentWords(first.incident, first.impact)} now={now} />
            ) : (
              rich(calm.text)
            )}
          </h2>
          {tone !== 'good' && (
            <p class="hint">
              In the last five minutes: {calmWords(facts.lately)}.{' '}
              {!first && <a href="/admin/providers">Connect a provider</a>}
            </p>
          )}
        </div>
      </section>
      {found.length > 0 && (
        <section class="card incidents" aria-label="Incidents">
          <ol>{rows.slice(0, mostShown)}</ol>
          {found.length > mostShown && (
            <details>
              <summary>{found.length - mostShown} more</summary>
              <ol>{rows.slice(mostShown)}</ol>
            </details>
          )}
        </section>
      )}
    </>
  )
}

function toneOf({ level, acknowledged }: Pick<Incident, 'level' | 'acknowledged'>): 'bad' | 'warn' {
  return level === 'warn' || acknowledged ? 'warn' : 'bad'
}

function Sentence({ words, now }: { words: Words; now: number }) {
  return (
    <>
      {words.map((part, index) =>
        typeof part === 'string' ? (
          <Fragment key={index}>{rich(part)}</Fragment>
        ) : (
          <Began key={index} at={part.at} now={now} />
        ),
      )}
    </>
  )
}

/** Today the time alone. */
function Began({ at, now }: { at: number; now: number }) {
  const [day, time] = [utc(at).slice(0, 10), utc(at).slice(11, 16)]
  return (
    <Instant at={at} form="since">
      {day === utc(now).slice(0, 10) ? time : `${day} ${time}`}
    </Instant>
  )
}

function Row({ incident, impact, now }: FoundIncident & { now: number }) {
  const { about, title, since, text, remedy, acknowledged } = incident
  const { people, costs } = impact
  return (
    <li class={`incident ${toneOf(incident)}`} data-key={about}>
      <div>
        <p>
          <strong>{title}</strong>
          {since !== undefined && (
            <>
              {' '}
              since <Began at={since} now={now} />
            </>
          )}
          {acknowledged && (
            <>
              {' '}
              <Badge tone="quiet">acknowledged</Badge>{' '}
              <small>
                by {acknowledged.by}, <Time at={acknowledged.at} />
              </small>
            </>
          )}
          <small>
            <Links of={linksOf(incident.see).slice(1)} />
          </small>
        </p>
        <p class="hint">{rich(`${text} ${remedy}`.trim())}</p>
      </div>
      <p class="harm">
        {people && people.recipients === 0 && <span class="hint">no people</span>}
        {people && people.recipients > 0 && incident.outage && peopleWords(people)}
        {people && people.recipients > 0 && !incident.outage && (
          <a class="count" href={logUrl('calls', rowsHit(incident, now))}>
            {peopleWords(people)}
          </a>
        )}
        {costs.map(({ micros, currency }) => (
          <span key={currency}>{sumWords(micros, currency)}</span>
        ))}
      </p>
      <div class="actions">
        <Remedy see={incident.see} />
        {!acknowledged && (
          <ActionButton of={incidentAcknowledge} with={{ about }}>
            Acknowledge<span class="sr-only"> {title}</span>
          </ActionButton>
        )}
      </div>
    </li>
  )
}

/** One action: what stops it, or where to see more. */
function Remedy({ see }: { see: readonly See[] }) {
  const [prefix] = see.flatMap((each) =>
    'to' in each && each.to === 'guard block' ? (each.fields.prefix ?? []) : [],
  )
  if (prefix !== undefined)
    return (
      <ActionButton
        of={guardBlock}
        with={{ prefix, duration: '12h' }}
        confirm={`Block codes to ${prefix}… for 12 h?`}
        kind="danger"
      >
        Block {prefix}
      </ActionButton>
    )
  const [link] = linksOf(see)
  return link ? (
    <LinkButton href={link.href} small>
      {link.title}
    </LinkButton>
  ) : null
}

/** What is past, permanent or may be intended. */
export function Notes({ notes, thresholds }: { notes: readonly Problem[]; thresholds: IncidentThresholds }) {
  const start = {
    failedPercent: String(thresholds.failedPercent),
    unverifiedPercent: String(thresholds.unverifiedPercent),
    silentMinutes: String(thresholds.silentMinutes),
  }
  return (
    <Card class="notes">
      {notes.length > 0 && (
        <details id="notes">
          <summary>
            {notes.length === 1 ? '1 note' : `${notes.length} notes`}: what is past, permanent or intended
          </summary>
          <ul>
            {notes.map(({ text, remedy, see }) => (
              <li key={text}>
                {rich(`${text} ${remedy}`.trim())}
                <Links of={linksOf(see)} />
              </li>
            ))}
          </ul>
        </details>
      )}
      <details id="thresholds">
        <summary>When an incident opens</summary>
        <ActionForm
          of={incidentSet}
          start={start}
          id="thresholds"
          class="inline"
          kind="plain"
          submit="Save"
        />
      </details>
    </Card>
  )
}

const places: Readonly<Record<FirstDayStep, string | null>> = {
  brand: '/admin/brands',
  app: '/admin/apps',
  provider: '/admin/providers',
  test: '/admin/test',
  destinations: '/admin/destinations',
  prices: '/admin/money#prices',
  budget: '/admin/money',
  owner: '/admin/operators',
  backup: null,
}

export function FirstDay({ steps }: { steps: ReadonlyMap<FirstDayStep, StepState> }) {
  const done = [...steps.values()].filter(({ isDone }) => isDone).length
  return (
    <Card
      class="first-day"
      title="First day"
      hint={`${done} of ${steps.size} steps are done.`}
      actions={
        <ActionButton of={incidentAcknowledge} with={{ about: firstDayAbout }}>
          Dismiss<span class="sr-only"> the first day</span>
        </ActionButton>
      }
    >
      <ol>
        {[...steps].map(([step, { isDone, words }]) => {
          const [title, why] = firstDaySteps[step]
          const place = places[step]
          return (
            <li key={step} class="step">
              {isDone ? <Badge tone="good">done</Badge> : <Badge tone="quiet">to do</Badge>}{' '}
              <span>
                {place === null ? <strong>{title}</strong> : <a href={place}>{title}</a>}{' '}
                <span class="hint">
                  {rich(
                    words ?? (step === 'backup' ? `${why} Run \`otpost backup FILE\` on the server.` : why),
                  )}
                </span>
              </span>
            </li>
          )
        })}
      </ol>
    </Card>
  )
}
