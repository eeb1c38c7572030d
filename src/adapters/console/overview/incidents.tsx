/** @jsxImportSource preact */

import { Fragment } from 'preact'
import { counted, utc } from '../../../domain/ground/format.ts'
import type { HealthFacts } from '../../../domain/health/facts.ts'
import {
  type FirstDayStep,
  firstDayAbout,
  firstDaySteps,
  type StepState,
} from '../../../domain/health/first-day.ts'
import {
  adviceOf,
  calmVerdict,
  calmWords,
  type FoundIncident,
  headline,
  hitsPeople,
  type Incident,
  leading,
  peopleWords,
  rowsHit,
  standingLines,
  startWords,
  type Words,
} from '../../../domain/health/incidents.ts'
import type { Problem } from '../../../domain/health/problem.ts'
import { sumWords } from '../../../domain/money/amounts.ts'
import { actionOf } from '../../../domain/operator/actions.ts'
import { incidentAcknowledge, incidentSet } from '../../../domain/operator/incidents.ts'
import type { IncidentThresholds } from '../../../domain/policy/policy-store.ts'
import { Badge, Icon, Instant, LinkButton, rich, Time } from '../../pages/components.tsx'
import { ActionButton, type ActionButtonProps, ActionForm } from '../action-form.tsx'
import { appHref } from '../apps/paths.ts'
import { Card } from '../components.tsx'
import { logUrl } from '../deliveries/query.ts'
import { Links, linksOf } from './links.tsx'

// What goes on now: one sentence, the incidents, and the notes that are none.

const mostShown = 5

interface NowProps {
  readonly facts: HealthFacts
  /** The first ones first. */
  readonly found: readonly FoundIncident[]
  readonly now: number
}

/** Above a time that is past. */
export function Meanwhile({ found }: Pick<NowProps, 'found'>) {
  if (found.length === 0) return null
  const goOn = found.length === 1 ? 'goes on now' : 'go on now'
  return (
    <p class="standing">
      <a href="/admin">{`${counted(found.length, 'incident')} ${goOn}`}</a>
    </p>
  )
}

export function WhatGoesOn({ facts, found, now }: NowProps) {
  const first = leading(found)
  const others = found.filter((each) => each !== first && !each.incident.acknowledged && hitsPeople(each))
  const calm = calmVerdict(facts)
  const tone = first ? toneOf(first.incident) : found.length > 0 ? 'warn' : calm.tone
  const rows = found.map((each) => (
    <Row key={each.incident.about} {...each} now={now} isFirst={each === first} />
  ))
  return (
    <>
      <section class={`verdict ${tone}`} aria-labelledby="verdict">
        <Icon name={tone === 'good' ? 'check' : 'alert'} />
        <div>
          <h2 id="verdict">
            {first ? (
              <Sentence words={headline(first)} now={now} />
            ) : found.length > 0 ? (
              `Acknowledged: ${found.map(({ incident }) => incident.title).join(', ')}.`
            ) : (
              rich(calm.text)
            )}
          </h2>
          {first && <p>{rich(adviceOf(first))}</p>}
          {others.length > 0 && <p>Also: {others.map(({ incident }) => incident.title).join(', ')}.</p>}
          {tone !== 'good' && (
            <p class="hint">
              In the last five minutes: {calmWords(facts.lately)}.{' '}
              {found.length === 0 && <a href="/admin/providers">Connect a provider</a>}
            </p>
          )}
        </div>
        {first && <Remedy incident={first.incident} />}
      </section>
      {standingLines(facts).map((words, index) => (
        <p key={index} class="standing">
          <Sentence words={words} now={now} />
        </p>
      ))}
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

interface RowProps extends FoundIncident {
  readonly now: number
  /** The first line says what to do. */
  readonly isFirst: boolean
}

function Row({ incident, impact, now, isFirst }: RowProps) {
  const { about, title, text, remedy, acknowledged } = incident
  const { people, costs, spender } = impact
  const isShort = isFirst || acknowledged !== null
  return (
    <li class={`incident ${toneOf(incident)}`} data-key={about}>
      <div>
        <p>
          <strong>
            <Sentence words={startWords(incident)} now={now} />
          </strong>
          {acknowledged && (
            <small>
              {' '}
              acknowledged by {acknowledged.by}, <Time at={acknowledged.at} />
            </small>
          )}
        </p>
        {!isShort && <p class="hint">{rich(adviceOf({ incident, impact }))}</p>}
        <details id={`about-${about.replaceAll(' ', '-')}`}>
          <summary>Details</summary>
          <p>
            {rich(`${text} ${remedy}`.trim())}
            <Links of={linksOf(incident.see)} />
            {spender && <Links of={[{ title: `App ${spender.app}`, href: appHref(spender.app) }]} />}
          </p>
        </details>
      </div>
      <p class="harm">
        {people?.recipients === 0 && !incident.outage && <span class="hint">no people</span>}
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
        {!isShort && <Remedy incident={incident} />}
        {!acknowledged && (
          <ActionButton of={incidentAcknowledge} with={{ about }}>
            Acknowledge<span class="sr-only"> {title}</span>
          </ActionButton>
        )}
      </div>
    </li>
  )
}

type Fields = Readonly<Record<string, string>>

/** Changes that the page makes at once. */
const atOnce: Readonly<
  Record<string, (fields: Fields) => Pick<ActionButtonProps, 'confirm' | 'kind' | 'children'>>
> = {
  'guard block': ({ prefix }) => ({
    confirm: `Block codes to ${prefix}… for 12 h?`,
    kind: 'danger',
    children: `Block ${prefix}`,
  }),
  'provider pause': ({ name, duration }) => ({
    confirm: `Send no SMS by ${name} for ${duration}? Other providers send them.`,
    children: `Pause ${name}`,
  }),
  'provider resume': ({ name }) => ({ children: `Use ${name} again` }),
}

/** One action: what stops it, or where to see more. */
function Remedy({ incident: { act, see } }: Pick<FoundIncident, 'incident'>) {
  const action = act && Object.keys(act.fields).length > 0 ? actionOf(act.to) : undefined
  const button = act && atOnce[act.to]?.(act.fields)
  if (action && button) return <ActionButton of={action} with={act.fields} {...button} />
  const [link] = linksOf(act ? [act, ...see] : see)
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
  const done = [...steps.values()].filter(([isDone]) => isDone).length
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
        {[...steps].map(([step, [isDone, words]]) => {
          const [title, why] = firstDaySteps[step]
          const place = places[step]
          return (
            <li key={step} class="step">
              {isDone ? <Badge tone="good">done</Badge> : <Badge tone="quiet">to do</Badge>}{' '}
              <span>
                {place === null ? <strong>{title}</strong> : <a href={place}>{title}</a>}{' '}
                <span class="hint">
                  {rich(
                    words || (step === 'backup' ? `${why} Run \`otpost backup FILE\` on the server.` : why),
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
