import { declare, type TextSetting } from '../../config/setting.ts'
import type { Settings } from '../../config/settings.ts'

export type TracingSettings = NonNullable<ReturnType<typeof tracingSettings>>

const samplers = [
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
  'always_on',
  'always_off',
  'traceidratio',
] as const

const protocols = ['http/protobuf'] as const
const pairs = '`key=value,…`, values percent-encoded'

export const openTelemetrySettings = declare('Tracing', {
  OTEL_EXPORTER_OTLP_ENDPOINT: {
    unset: 'unset: no tracing',
    format: 'http or https URL',
    secret: true,
    meaning:
      'The OpenTelemetry collector, such as `http://localhost:4318`. otpost appends `/v1/traces` and sends protobuf over HTTP.',
  },
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: {
    unset: 'unset',
    format: 'http or https URL',
    secret: true,
    meaning:
      'The complete URL for traces. It takes precedence over `OTEL_EXPORTER_OTLP_ENDPOINT`; otpost appends nothing.',
  },
  OTEL_EXPORTER_OTLP_HEADERS: {
    unset: 'unset',
    format: pairs,
    secret: true,
    meaning: 'HTTP headers for the collector.',
  },
  OTEL_EXPORTER_OTLP_TRACES_HEADERS: {
    unset: 'unset',
    format: pairs,
    secret: true,
    meaning: 'More HTTP headers for the collector. They take precedence over `OTEL_EXPORTER_OTLP_HEADERS`.',
  },
  OTEL_EXPORTER_OTLP_PROTOCOL: {
    default: 'http/protobuf',
    choices: protocols,
    meaning: 'The protocol of the collector.',
  },
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: {
    default: 'http/protobuf',
    choices: protocols,
    meaning: 'The protocol for traces.',
  },
  OTEL_SERVICE_NAME: {
    unset: '`service.name` of `OTEL_RESOURCE_ATTRIBUTES`, otherwise `otpost`',
    format: 'text',
    meaning: 'The service name in spans.',
  },
  OTEL_RESOURCE_ATTRIBUTES: {
    unset: 'unset',
    format: pairs,
    secret: true,
    meaning: 'More resource attributes in spans.',
  },
  OTEL_TRACES_SAMPLER: {
    default: 'parentbased_always_on',
    choices: samplers,
    meaning: 'Which requests otpost traces.',
  },
  OTEL_TRACES_SAMPLER_ARG: {
    unset: '`1`',
    format: '`0` to `1`',
    meaning: 'The share of requests that `parentbased_traceidratio` and `traceidratio` trace.',
  },
  OTEL_TRACES_EXPORTER: {
    unset: 'unset',
    format: 'text',
    meaning: '`none` turns tracing off.',
  },
  OTEL_SDK_DISABLED: {
    unset: 'unset',
    format: 'text',
    meaning: '`true` turns tracing off.',
  },
})

const {
  OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: tracesEndpoint,
  ...otel
} = openTelemetrySettings

/** Undefined: no endpoint is set, or tracing is off. */
export function tracingSettings(settings: Settings) {
  if (settings.optional(otel.OTEL_SDK_DISABLED)?.trim().toLowerCase() === 'true') return undefined
  if (settings.optional(otel.OTEL_TRACES_EXPORTER)?.trim() === 'none') return undefined
  const url = readUrl(settings)
  if (url === undefined) return undefined
  settings.oneOf(otel.OTEL_EXPORTER_OTLP_PROTOCOL)
  settings.oneOf(otel.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL)
  const resourceAttributes = readPairs(settings, otel.OTEL_RESOURCE_ATTRIBUTES)
  return {
    /** OTLP over HTTP, protobuf. */
    url,
    headers: {
      ...readHeaders(settings, otel.OTEL_EXPORTER_OTLP_HEADERS),
      ...readHeaders(settings, otel.OTEL_EXPORTER_OTLP_TRACES_HEADERS),
    },
    serviceName: settings.text(otel.OTEL_SERVICE_NAME, resourceAttributes['service.name'] ?? 'otpost').trim(),
    resourceAttributes,
    sampling: readSampling(settings),
  }
}

/** The endpoint of traces is complete; the endpoint of all signals is a base. */
function readUrl(settings: Settings): string | undefined {
  const base = readEndpoint(settings, endpoint)
  if (base !== undefined && /[?#]/.test(base)) {
    settings.refuse(
      endpoint.name,
      `must be a URL that /v1/traces can follow, without ? and #; ${tracesEndpoint.name} accepts any`,
    )
  }
  return (
    readEndpoint(settings, tracesEndpoint) ??
    (base === undefined ? undefined : `${base.replace(/\/+$/, '')}/v1/traces`)
  )
}

/** Plain http is allowed: collectors are often in the same network, and spans have no secrets. */
function readEndpoint(settings: Settings, setting: TextSetting): string | undefined {
  const { name } = setting
  const text = settings.optional(setting)?.trim()
  if (text === undefined) return undefined
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
    settings.refuse(name, 'must be an http or https URL, such as http://localhost:4318')
  } else if (url.username + url.password !== '') {
    settings.refuse(
      name,
      'must not contain a user or password: put credentials in OTEL_EXPORTER_OTLP_HEADERS',
    )
  }
  return text
}

function readHeaders(settings: Settings, setting: TextSetting): Record<string, string> {
  const headers = readPairs(settings, setting)
  const areHeaders = Object.entries(headers).every(
    ([header, value]) => /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(header) && /^[ -~]*$/.test(value),
  )
  if (!areHeaders) settings.refuse(setting.name, 'must contain names and values that HTTP headers allow')
  return headers
}

/** `a=b,c=d`, with percent-encoded values. */
function readPairs(settings: Settings, setting: TextSetting): Record<string, string> {
  const text = settings.optional(setting)
  if (text === undefined) return {}
  const pairs: [string, string][] = []
  for (const part of text.split(',').filter((part) => part.trim() !== '')) {
    const end = part.indexOf('=')
    const key = part.slice(0, Math.max(0, end)).trim()
    const value = decoded(part.slice(end + 1).trim())
    if (key === '' || value === undefined) {
      settings.refuse(setting.name, 'must be pairs such as key=value,key=value, with values percent-encoded')
      return {}
    }
    pairs.push([key, value])
  }
  return Object.fromEntries(pairs)
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

function readSampling(settings: Settings) {
  const sampler = settings.oneOf(otel.OTEL_TRACES_SAMPLER)
  const text = sampler.endsWith('traceidratio')
    ? settings.optional(otel.OTEL_TRACES_SAMPLER_ARG)?.trim()
    : '1'
  const ratio = text === undefined ? 1 : /^(?:\d+(?:\.\d*)?|\.\d+)$/.test(text) ? Number(text) : Number.NaN
  if (ratio >= 0 && ratio <= 1) return { sampler, ratio }
  settings.refuse('OTEL_TRACES_SAMPLER_ARG', 'must be a number from 0 to 1, such as 0.1')
  return { sampler, ratio: 1 }
}
