import { describe, expect, test } from 'bun:test'
import { readConfig } from '../../src/config/config.ts'
import { ConfigError } from '../../src/config/settings.ts'

const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://localhost:4318' } as const

/** The variables named in an environment's problems. */
function refused(env: Readonly<Record<string, string>>): string[] {
  try {
    readConfig(env)
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map((problem) => problem.split(' ', 1)[0] ?? '')
    throw error
  }
}

test('without an endpoint tracing is off, and the other variables are not checked', () => {
  const ofOthers = {
    OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
    OTEL_EXPORTER_OTLP_HEADERS: 'nonsense',
    OTEL_TRACES_SAMPLER: 'jaeger_remote',
    OTEL_TRACES_SAMPLER_ARG: 'ten',
  }
  expect(readConfig({ ...ofOthers, OTEL_EXPORTER_OTLP_ENDPOINT: ' ' }).tracing).toBeUndefined()
})

test.each([{ OTEL_SDK_DISABLED: 'True' }, { OTEL_TRACES_EXPORTER: 'none' }])(
  '%j turns tracing off',
  (env) => {
    expect(readConfig({ ...endpoint, ...env }).tracing).toBeUndefined()
    expect(
      readConfig({ ...endpoint, OTEL_SDK_DISABLED: 'false', OTEL_TRACES_EXPORTER: 'otlp' }).tracing,
    ).toBeDefined()
  },
)

test('with only an endpoint everything is traced, as service otpost', () => {
  expect(readConfig(endpoint).tracing).toEqual({
    url: 'http://localhost:4318/v1/traces',
    headers: {},
    serviceName: 'otpost',
    resourceAttributes: {},
    sampling: { sampler: 'parentbased_always_on', ratio: 1 },
  })
})

describe('the endpoint', () => {
  test.each([
    ['http://collector:4318', 'http://collector:4318/v1/traces'],
    ['http://collector:4318/', 'http://collector:4318/v1/traces'],
    [' https://traces.example.com/otlp/ ', 'https://traces.example.com/otlp/v1/traces'],
  ])('of all signals is a base URL: %s', (url, expected) => {
    expect(readConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: url }).tracing?.url).toBe(expected)
  })

  test('of traces is used unchanged, and takes precedence', () => {
    const OTEL_EXPORTER_OTLP_TRACES_ENDPOINT = 'http://collector/in?tenant=1'
    expect(readConfig({ ...endpoint, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT }).tracing?.url).toBe(
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT,
    )
    expect(readConfig({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT }).tracing?.url).toBe(
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT,
    )
  })

  test.each(['collector:4318', 'some-host', 'grpc://collector:4317', 'https://me:secret@collector'])(
    'is rejected as %s, and the message does not repeat it',
    (url) => {
      for (const name of ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT']) {
        expect(refused({ [name]: url })).toEqual([name])
        expect(() => readConfig({ [name]: url })).not.toThrow(url)
      }
    },
  )

  test('of all signals is rejected if no path can follow it', () => {
    expect(refused({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector/?tenant=1' })).toEqual([
      'OTEL_EXPORTER_OTLP_ENDPOINT',
    ])
  })

  test.each(['OTEL_EXPORTER_OTLP_PROTOCOL', 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL'])(
    'supports OTLP over HTTP with protobuf only: %s',
    (name) => {
      expect(refused({ ...endpoint, [name]: 'http/protobuf' })).toEqual([])
      expect(refused({ ...endpoint, [name]: 'grpc' })).toEqual([name])
      expect(refused({ ...endpoint, [name]: 'http/json' })).toEqual([name])
    },
  )
})

describe('headers', () => {
  test('are pairs, percent-decoded; those of traces come first', () => {
    const { tracing } = readConfig({
      ...endpoint,
      OTEL_EXPORTER_OTLP_HEADERS: 'Authorization=Bearer%20a%3Db, x-tenant = one ,',
      OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'x-tenant=two',
    })
    expect(tracing?.headers).toEqual({ Authorization: 'Bearer a=b', 'x-tenant': 'two' })
  })

  test.each(['nonsense', '=value', 'a=%zz', 'a b=c', 'a=b%0d%0ac: d'])('are rejected as %s', (text) => {
    expect(refused({ ...endpoint, OTEL_EXPORTER_OTLP_HEADERS: text })).toEqual(['OTEL_EXPORTER_OTLP_HEADERS'])
  })
})

test('the service name is OTEL_SERVICE_NAME, or else service.name', () => {
  const OTEL_RESOURCE_ATTRIBUTES = 'service.name=codes,deployment.environment.name=staging'
  const { tracing } = readConfig({ ...endpoint, OTEL_RESOURCE_ATTRIBUTES })
  expect(tracing).toMatchObject({
    serviceName: 'codes',
    resourceAttributes: { 'deployment.environment.name': 'staging' },
  })
  const named = readConfig({ ...endpoint, OTEL_RESOURCE_ATTRIBUTES, OTEL_SERVICE_NAME: 'shop-codes' })
  expect(named.tracing?.serviceName).toBe('shop-codes')
  expect(refused({ ...endpoint, OTEL_RESOURCE_ATTRIBUTES: 'staging' })).toEqual(['OTEL_RESOURCE_ATTRIBUTES'])
})

describe('the sampler', () => {
  test.each([
    [{}, 'parentbased_always_on', 1],
    [{ OTEL_TRACES_SAMPLER: 'always_off' }, 'always_off', 1],
    [{ OTEL_TRACES_SAMPLER: 'traceidratio' }, 'traceidratio', 1],
    [
      { OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '.25' },
      'parentbased_traceidratio',
      0.25,
    ],
    [{ OTEL_TRACES_SAMPLER: 'always_on', OTEL_TRACES_SAMPLER_ARG: 'of others' }, 'always_on', 1],
  ])('%j', (env, sampler, ratio) => {
    expect(readConfig({ ...endpoint, ...env }).tracing?.sampling).toEqual({ sampler, ratio } as never)
  })

  test('is rejected by name', () => {
    expect(refused({ ...endpoint, OTEL_TRACES_SAMPLER: 'jaeger_remote' })).toEqual(['OTEL_TRACES_SAMPLER'])
  })

  test.each(['-0.1', '1.1', 'ten', '1e-1', 'NaN', '.'])('is rejected with the ratio %s', (ratio) => {
    const env = { ...endpoint, OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: ratio }
    expect(refused(env)).toEqual(['OTEL_TRACES_SAMPLER_ARG'])
  })
})

test.each([
  ['', 0],
  ['0', 0],
  ['300', 300],
])('SHUTDOWN_DELAY_SECONDS may be "%s"', (text, seconds) => {
  expect(readConfig({ SHUTDOWN_DELAY_SECONDS: text }).shutdownDelaySeconds).toBe(seconds)
})

test.each(['301', '-1', '1.5', '10s'])('SHUTDOWN_DELAY_SECONDS is rejected as %s', (text) => {
  expect(refused({ SHUTDOWN_DELAY_SECONDS: text })).toEqual(['SHUTDOWN_DELAY_SECONDS'])
})
