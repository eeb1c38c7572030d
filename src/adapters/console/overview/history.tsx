/** @jsxImportSource preact */

import { actorWords } from '../../../domain/ground/audit.ts'
import { count, counted, duration, percent, utc } from '../../../domain/ground/format.ts'
import type { History, PastIncident } from '../../../domain/health/history.ts'
import { type DeliveryFilter, figureRows } from '../../../domain/log/log-search.ts'
import { stepsOf } from '../../../domain/log/ranges.ts'
import { sumOfTries, type Tries } from '../../../domain/log/statistics.ts'
import { auditWords } from '../../../domain/operator/audit-words.ts'
import { Badge, ExactTime, Instant, rich } from '../../pages/components.tsx'
import { Card } from '../components.tsx'
import { logUrl } from '../deliveries/query.ts'
import { Count } from './counts.tsx'
import { Links, linksOf } from './links.tsx'
import { around, rangeUrl } from './range.tsx'

/** What the charts mark. */
export function Marks({ incidents, changes }: Pick<History, 'incidents' | 'changes'>) {
  if (incidents.length + changes.length === 0) return null
  return (
    <Card title="Incidents and changes" hint="Of this time, marked in the charts.">
      {incidents.length > 0 && (
        <ul class="marks">
          {incidents.toReversed().map((incident) => (
            <IncidentRow key={`${incident.from} ${incident.text}`} {...incident} />
          ))}
        </ul>
      )}
      {changes.length > 0 && (
        <details id="changes">
          <summary>{counted(changes.length, 'change')} by operators</summary>
          <ul class="marks">
            {changes.map(({ id, at, action, target, actor }) => (
              <li key={id}>
                <a href={`/admin/audit?before=${id + 1}`}>
                  <ExactTime at={at} toMinute />
                </a>{' '}
                {auditWords[action] ?? action}: <bdi>{target}</bdi>{' '}
                <span class="hint">by {actorWords(actor)}</span>
              </li>
            ))}
          </ul>
        </details>
      )}
    </Card>
  )
}

function IncidentRow(incident: PastIncident) {
  const { from, until, isOpen, text, see } = incident
  return (
    <li>
      <a href={rangeUrl(around(incident))}>
        <ExactTime at={from} toMinute /> to {isOpen ? 'now' : <ExactTime at={until} toMinute />}
      </a>{' '}
      <Badge tone="bad">{duration(until - from)}</Badge> {rich(text)}
      <Links of={linksOf([see])} />
    </li>
  )
}

/** Upper bounds of the share of failures, by colour. */
const heatLevels = [0, 0.02, 0.1, 0.3, 1]

/** charts.js opens the rows of a cell. */
export function HeatMap({ hours, tries }: Pick<History, 'hours' | 'tries'>) {
  const steps = stepsOf(hours)
  const where: DeliveryFilter = { since: hours.from }
  const rows = Array.from(tries, ([provider, all]) => ({ provider, all, sum: sumOfTries(all) }))
  if (rows.length === 0) return null
  return (
    <Card
      title="Failures by provider and hour"
      hint="Percent of the attempts in the last 48 hours that failed or have an unknown result."
    >
      <div class="heat scroll" data-heat={hours.from} data-step={hours.stepMs}>
        <table>
          <caption class="sr-only">Failed attempts by provider and hour, in percent</caption>
          <thead>
            <tr>
              <th scope="col">Provider</th>
              <th scope="col" class="end">
                All
              </th>
              {steps.map((at, index) => (
                <th key={at} scope="col">
                  <span class={index % 8 === 0 ? undefined : 'sr-only'}>
                    <Instant at={at} form="short">
                      {utc(at).slice(5, 16)}
                    </Instant>
                  </span>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows
              .sort((one, other) => other.sum.failed / other.sum.all - one.sum.failed / one.sum.all)
              .map(({ provider, all, sum }) => (
                <tr
                  key={provider}
                  data-rows={logUrl('deliveries', { provider, ...figureRows.failedOrUnknown })}
                >
                  <th scope="row">
                    <a href={logUrl('deliveries', { ...where, provider })}>{provider}</a>
                  </th>
                  <td class="end">
                    {percent(sum.failed / sum.all)}{' '}
                    <small>
                      <Count value={sum.failed} of="failedOrUnknown" where={{ ...where, provider }} />
                    </small>
                  </td>
                  {steps.map((at) => (
                    <HeatCell key={at} {...(all.find((each) => each.at === at) ?? { failed: 0, all: 0 })} />
                  ))}
                </tr>
              ))}
          </tbody>
        </table>
      </div>
    </Card>
  )
}

function HeatCell({ failed, all }: Omit<Tries, 'at'>) {
  if (all === 0)
    return (
      <td>
        <span class="sr-only">no attempts</span>
      </td>
    )
  const level = heatLevels.findIndex((bound) => failed / all <= bound)
  const words = `${percent(failed / all)} of ${count(all)}`
  return (
    <td class={`heat-${level}`} title={words}>
      {level < 2 ? <span class="sr-only">{words}</span> : Math.round((100 * failed) / all)}
    </td>
  )
}
