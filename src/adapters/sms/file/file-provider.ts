import { declare, type TextSetting } from '../../../config/setting.ts'
import type { Settings } from '../../../config/settings.ts'
import { invalid } from '../../../domain/ground/failures.ts'
import type { CallbackRequest, DeliveryReport, Sms } from '../../../domain/ground/providers.ts'
import { call } from '../http.ts'
import type { SmsProviderSpec } from '../provider.ts'
import { reportJson } from '../reading.ts'
import { answerOf, textAt } from './answer.ts'
import { requestOf, urlOf, type Value, type Values } from './encode.ts'
import type { ProviderFile } from './format.ts'
import { hostSettings, placeholdersOf } from './placeholders.ts'

/** The SMS gateway that a checked file describes. */
export function fileProvider(file: ProviderFile): SmsProviderSpec {
  const { provider: name, reports } = file
  const settings = declaredSettings(file)
  return {
    name,
    routes: ['plain', 'template'],
    settings,
    configure(given, route) {
      const values = readSettings(file, given, settings)
      const ownUrls = placeholdersOf(file).has('reportUrl')
      const endpoint = urlOf(file.send.url, values)
      return () => ({
        name,
        // None while a setting is wrong, which stops the start.
        ...(URL.canParse(endpoint) && { endpoint }),
        send(sms, timeoutMs) {
          const request = requestOf(
            file,
            route === 'template',
            new Map([...values, ...messageValues(file, values, sms)]),
          )
          return call(request.url, request, timeoutMs, (status, text) => answerOf(file, status, text))
        },
        ...(reports && {
          deliveryReports: {
            namedBy: ownUrls ? 'attempt' : 'providerMessageId',
            read: (each) => [reportOf(reports, each)],
          },
        }),
      })
    },
  }
}

function declaredSettings({ name, provider, settings }: ProviderFile) {
  const described = Object.entries(settings).map(([variable, { secret, default: usual, meaning = '' }]) => {
    const about = { format: 'text', meaning, ...(secret && { secret: true as const }) }
    return [variable, usual === undefined ? about : { ...about, default: usual }] as const
  })
  return declare(name ?? provider, Object.fromEntries(described))
}

/** Also what a wrong value would do to the URL: it must not lead to another host. */
function readSettings(
  file: ProviderFile,
  given: Settings,
  declared: Readonly<Record<string, TextSetting>>,
): Values {
  const why = `the SMS provider ${file.provider} needs it`
  const hosts = hostSettings(file)
  const before = given.problems.length
  const values = new Map<string, Value>(
    Object.values(declared).map((setting) => {
      const { name, secret, default: usual } = setting
      const value = (
        usual === undefined
          ? given.required(setting, why)
          : secret
            ? (given.optional(setting) ?? usual)
            : given.text(setting)
      ).trim()
      const as = hosts.get(name)
      if (as === 'base' && value !== '') {
        given.requireSafe(name, value)
        if (/[^!-~]|[?#\\]/.test(value)) {
          given.refuse(name, 'must be a URL that a path can follow, of visible ASCII without ?, # and \\')
        }
      }
      if (as === 'part' && !/^[A-Za-z0-9.-]*$/.test(value))
        given.refuse(name, 'must be a part of a host name')
      return [name, value === '' ? undefined : value]
    }),
  )
  // Such as an empty base, or letters as a port.
  if (given.problems.length === before && !isUsable(urlOf(file.send.url, values))) {
    for (const name of hosts.keys()) given.refuse(name, `makes no URL of the SMS provider ${file.provider}`)
  }
  return values
}

function isUsable(url: string): boolean {
  return URL.canParse(url) && !/^\.|\.\./.test(new URL(url).hostname)
}

function messageValues(
  file: ProviderFile,
  settings: Values,
  { id, to, text, brandSlug, senderId, template, validitySeconds, callbackUrl, lang }: Sms,
): Map<string, Value> {
  const variables = Object.entries(template ? (template.values ?? template.variables) : {})
  return new Map<string, Value>([
    ['to', file.to === 'digits' ? to : `+${to}`],
    ['text', text],
    ['from', senderId ?? settings.get(file.from ?? '')],
    ['id', id],
    ['reportUrl', callbackUrl ?? undefined],
    ['validitySeconds', validitySeconds ?? undefined],
    ['brand', brandSlug],
    ['lang', lang],
    ['template.id', template?.id ?? undefined],
    ['template.entityId', template?.entityId ?? undefined],
    ['template.senderId', template ? (senderId ?? undefined) : undefined],
    ...variables.map(([name, value]): [string, Value] => [`var.${name}`, value]),
  ])
}

function reportOf(
  reports: NonNullable<ProviderFile['reports']>,
  { fields, body }: CallbackRequest,
): DeliveryReport {
  const json = reports.in === 'json' ? reportJson(body) : fields
  const valueAt = (at?: string) => at && textAt(json, at.startsWith('$') ? at : `['${at}']`)
  const status = valueAt(reports.status)
  const providerMessageId = valueAt(reports.id)
  if (status === undefined) throw invalid(`\`${reports.status}\` is required.`)
  const isOne = (values: readonly unknown[]) => values.some((each) => String(each) === status)
  const known = isOne(reports.delivered) ? 'delivered' : isOne(reports.failed) ? 'failed' : 'pending'
  const reason = known === 'failed' ? (valueAt(reports.reason) ?? status) : null
  return {
    ...(providerMessageId !== undefined && { providerMessageId }),
    status: known,
    // Eight digits may be the number of the recipient.
    reason: reason !== null && /^(?!(\D*\d){8})[\w .:/-]{1,40}$/.test(reason) ? reason : null,
  }
}
