import type { Settings } from '../../config/settings.ts'

export interface TracingSettings {
  /** OTLP over HTTP, protobuf. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly serviceName: string
  readonly resourceAttributes: Readonly<Record<string, string>>
  readonly sampling: Sampling
}

export interface Sampling {
  readonly sampler: (typeof samplers)[number]
  /** Of the samplers by ratio, from 0 to 1. */
  readonly ratio: number
}

const samplers = [
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
  'always_on',
  'always_off',
  'traceidratio',
] as const

const endpointName = 'OTEL_EXPORTER_OTLP_ENDPOINT'
const tracesEndpointName = 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'

/** The variables of the OpenTelemetry specification. Undefined: not traced, because no endpoint is set or tracing is off. */
export function tracingSettings(settings: Settings): TracingSettings | undefined {
  if (settings.optional('OTEL_SDK_DISABLED')?.trim().toLowerCase() === 'true') return undefined
  if (settings.optional('OTEL_TRACES_EXPORTER')?.trim() === 'none') return undefined
  const url = readUrl(settings)
  if (url === undefined) return undefined
  for (const name of ['OTEL_EXPORTER_OTLP_PROTOCOL', 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL']) {
    settings.oneOf(name, ['http/protobuf'], 'http/protobuf')
  }
  const resourceAttributes = readPairs(settings, 'OTEL_RESOURCE_ATTRIBUTES')
  return {
    url,
    headers: {
      ...readHeaders(settings, 'OTEL_EXPORTER_OTLP_HEADERS'),
      ...readHeaders(settings, 'OTEL_EXPORTER_OTLP_TRACES_HEADERS'),
    },
    serviceName: settings.text('OTEL_SERVICE_NAME', resourceAttributes['service.name'] ?? 'otpost').trim(),
    resourceAttributes,
    sampling: readSampling(settings),
  }
}

/** The endpoint of traces is used as it is; that of all signals is a base. */
function readUrl(settings: Settings): string | undefined {
  const base = readEndpoint(settings, endpointName)
  if (base !== undefined && /[?#]/.test(base)) {
    settings.refuse(
      endpointName,
      `must be a URL that /v1/traces can follow, without ? and #; ${tracesEndpointName} takes any`,
    )
  }
  return (
    readEndpoint(settings, tracesEndpointName) ??
    (base === undefined ? undefined : `${base.replace(/\/+$/, '')}/v1/traces`)
  )
}

/** Plain http is allowed to any host: collectors are often in the same network, and spans have no code, key or recipient. */
function readEndpoint(settings: Settings, name: string): string | undefined {
  const text = settings.optional(name)?.trim()
  if (text === undefined) return undefined
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
    settings.refuse(name, 'must be an http or https URL, such as http://localhost:4318')
  } else if (url.username + url.password !== '') {
    settings.refuse(name, 'must not hold a user or password: put credentials in OTEL_EXPORTER_OTLP_HEADERS')
  }
  return text
}

function readHeaders(settings: Settings, name: string): Record<string, string> {
  const headers = readPairs(settings, name)
  const areHeaders = Object.entries(headers).every(
    ([header, value]) => /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(header) && /^[ -~]*$/.test(value),
  )
  if (!areHeaders) settings.refuse(name, 'must hold names and values that HTTP headers can have')
  return headers
}

/** `a=b,c=d`, with percent-encoded values. */
function readPairs(settings: Settings, name: string): Record<string, string> {
  const text = settings.optional(name)
  if (text === undefined) return {}
  const pairs: [string, string][] = []
  for (const part of text.split(',').filter((part) => part.trim() !== '')) {
    const end = part.indexOf('=')
    const key = part.slice(0, Math.max(0, end)).trim()
    const value = decoded(part.slice(end + 1).trim())
    if (key === '' || value === undefined) {
      settings.refuse(name, 'must be pairs such as key=value,key=value, with values percent-encoded')
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

function readSampling(settings: Settings): Sampling {
  const sampler = settings.oneOf('OTEL_TRACES_SAMPLER', samplers, 'parentbased_always_on')
  const text = sampler.endsWith('traceidratio') ? settings.optional('OTEL_TRACES_SAMPLER_ARG')?.trim() : '1'
  const ratio = text === undefined ? 1 : /^(?:\d+(?:\.\d*)?|\.\d+)$/.test(text) ? Number(text) : Number.NaN
  if (ratio >= 0 && ratio <= 1) return { sampler, ratio }
  settings.refuse('OTEL_TRACES_SAMPLER_ARG', 'must be a number from 0 to 1, such as 0.1')
  return { sampler, ratio: 1 }
}
