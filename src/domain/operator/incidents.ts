import { actorWords } from '../ground/audit.ts'
import { InvalidInput, OperatorError } from '../ground/operator-error.ts'
import { dayMs } from '../ground/time.ts'
import { firstDayAbout } from '../health/first-day.ts'
import { defaultThresholds, type IncidentThresholds, type PolicyPorts } from '../policy/policy-store.ts'
import { action, type Group } from './action.ts'
import { field, wholeNumber } from './fields.ts'

const incidentGroup: Group = {
  name: 'incident',
  does: 'acknowledge incidents, and set from when on something is one',
  entries: 'incidents',
  target: 'incident',
}

export interface AcknowledgePorts extends PolicyPorts {
  /** The names of those that go on now. */
  readonly incidents: () => Promise<readonly string[]>
}

/** Longer than an incident lasts. */
const keptMs = 90 * dayMs

/** It has no effect on an incident that begins later. */
export const incidentAcknowledge = action(incidentGroup, 'acknowledge', {
  role: 'operator',
  isSensitive: false,
  does: 'note that you know of an incident',
  fields: {
    about: field(aboutIn, {
      label: 'Incident',
      help: 'the name of the incident, such as "provider twilio" or sms',
    }),
  },
  audit: { 'incident.acknowledged': 'Incident acknowledged' },
  form: { path: 'incidents/acknowledge', page: '' },
  run: async (ports: AcknowledgePorts, { about }) => {
    const { actor } = ports
    const at = ports.now()
    if (!(await ports.incidents()).includes(about))
      throw new OperatorError(`There is no incident ${about} now. It may have ended.`)
    await ports.policy.change({ actor, now: at }, ({ acknowledgements }) => ({
      saveAcknowledgements: [{ about, at, by: actorWords(actor) }],
      removeAcknowledgements: acknowledgements.filter((each) => each.at < at - keptMs),
      entry: { action: 'incident.acknowledged', target: about, details: {} },
    }))
    return about
  },
  said: (about) =>
    about === firstDayAbout
      ? 'The first day is dismissed.'
      : `Incident ${about} is acknowledged until it ends.`,
})

export const incidentSet = action(incidentGroup, 'set', {
  role: 'operator',
  isSensitive: false,
  does: 'set from when on something is an incident',
  fields: {
    failedPercent: field(wholeNumber('share of failed messages', 1, 100), {
      label: 'Failed messages (%)',
      as: '--failed <percent>',
      help: 'the share of messages that fail',
      hint: 'Of the messages of a few minutes.',
      byDefault: String(defaultThresholds.failedPercent),
    }),
    silentMinutes: field(wholeNumber('minutes of silence', 0, 60), {
      label: 'Silence (minutes)',
      as: '--silent <minutes>',
      help: 'the minutes without calls at a usual hour; 0: never',
      hint: 'Without calls, at an hour that usually has them. 0: never.',
      byDefault: String(defaultThresholds.silentMinutes),
    }),
  },
  audit: { 'incident.set': 'Thresholds of incidents set' },
  form: { path: 'incidents', page: '' },
  run: async (ports: PolicyPorts, saveThresholds: IncidentThresholds) => {
    const wordsOf = ({ failedPercent, silentMinutes }: IncidentThresholds) =>
      [`${failedPercent}%`, `${silentMinutes} min`] as const
    await ports.policy.change({ actor: ports.actor, now: ports.now() }, ({ thresholds }) => {
      const [before, after] = [wordsOf(thresholds), wordsOf(saveThresholds)]
      const [failed, silent] = [`${before[0]} → ${after[0]}`, `${before[1]} → ${after[1]}`]
      const entry = { action: 'incident.set', target: 'thresholds', details: { failed, silent } }
      return { saveThresholds, entry: before.join() === after.join() ? null : entry }
    })
    return saveThresholds
  },
  said: ({ failedPercent, silentMinutes }) => {
    const silence = silentMinutes === 0 ? 'never for silence' : `after ${silentMinutes} min of silence`
    return `An incident opens at ${failedPercent}% failed messages, and ${silence}.`
  },
})

function aboutIn(text: string): string {
  const about = text.trim()
  if (about !== '' && about.length <= 200) return about
  throw new InvalidInput('The incident must have 1 to 200 characters, such as provider twilio.')
}

export const incidentActions = [incidentAcknowledge, incidentSet]
