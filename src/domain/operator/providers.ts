import { utc } from '../ground/format.ts'
import { OperatorError } from '../ground/operator-error.ts'
import type { PolicyPorts } from '../policy/policy-store.ts'
import { action, type Group } from './action.ts'
import type { DestinationPorts } from './destinations.ts'
import { durationIn, field, text } from './fields.ts'

interface ProviderPorts extends PolicyPorts, Pick<DestinationPorts, 'routing'> {}

export const providerGroup: Group = {
  name: 'provider',
  does: 'list the providers of SMS, check provider files, and pause a provider',
  entries: 'providers',
  target: 'provider',
}

const nameField = field(text, {
  label: 'Provider',
  help: 'the name of the provider in SMS_PLAIN or SMS_TEMPLATE',
})

/** Until then, no message is sent by this provider, also if it is the only one. */
const providerPause = action(providerGroup, 'pause', {
  role: 'operator',
  isSensitive: false,
  does: 'send no SMS by a provider for a time',
  fields: {
    name: nameField,
    duration: field((text) => durationIn(text, 1), {
      label: 'Pause for',
      hint: '',
      as: '--for <duration>',
      help: 'how long, such as 30m, 1h or 7d; at most 366d',
      placeholder: '1h',
    }),
  },
  audit: { 'provider.paused': 'Provider paused' },
  form: { path: 'providers/pause', page: '', beside: { thing: 'provider' } },
  run: async (ports: ProviderPorts, { name: provider, duration }) => {
    const { plain, template } = (await ports.routing()).routes
    const names = [...new Set([...plain, ...template])]
    if (!names.includes(provider)) {
      throw new OperatorError(
        `${provider} is not a provider of SMS on this server. It has ${names.join(', ')}.`,
      )
    }
    const now = ports.now()
    const pause = { provider, until: now + duration }
    await ports.policy.change({ actor: ports.actor, now }, () => ({
      savePauses: [pause],
      entry: { action: 'provider.paused', target: provider, details: { until: utc(pause.until) } },
    }))
    return pause
  },
  said: ({ provider, until }) => `${provider} is paused until ${utc(until)}.`,
})

const providerResume = action(providerGroup, 'resume', {
  role: 'operator',
  isSensitive: false,
  does: 'use a paused provider again',
  fields: { name: nameField },
  audit: { 'provider.resumed': 'Provider resumed' },
  form: { path: 'providers/resume', page: '', beside: { thing: 'provider', while: 'paused' } },
  run: async (ports: PolicyPorts, { name: provider }) => {
    const now = ports.now()
    await ports.policy.change({ actor: ports.actor, now }, ({ pauses }) => {
      const pause = pauses.find((each) => each.provider === provider && each.until > now)
      if (!pause) throw new OperatorError(`${provider} is not paused.`)
      const details = { until: `${utc(pause.until)} → -` }
      return { removePauses: [pause], entry: { action: 'provider.resumed', target: provider, details } }
    })
    return provider
  },
  said: (provider) => `${provider} is in use again.`,
})

export const providerActions = [providerPause, providerResume]
