import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../support/folder.ts'
import { startPrism } from '../support/prism.ts'
import { ended } from '../support/run.ts'
import { otpost, startServer, type TestServer } from '../support/server.ts'
import { rightBodies, wrongBodies } from './bodies.ts'
import { type ApiRequest, requests } from './requests.ts'

// Tries the served API description with linters, generators and a validating proxy. They are too large to be
// dependencies of the service.
const packages = import.meta.dir
const compiler = join(packages, '../../node_modules/.bin/tsc')
const isInstalled = existsSync(join(packages, 'node_modules'))
if (!isInstalled) {
  console.warn(
    'API description: skipped, since it needs its packages (bun install --frozen-lockfile --cwd test/generators)',
  )
}

interface Description {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: { readonly OtpSent: { properties: Record<string, object> } } }
}

interface Operation {
  readonly operationId: string
  readonly requestBody?: {
    readonly content: {
      readonly 'application/json': {
        readonly examples: Readonly<Record<string, { readonly value: Readonly<Record<string, unknown>> }>>
      }
    }
  }
}

const tokens = { METRICS_TOKEN: 'token-of-the-scraper', OUTBOX_TOKEN: 'token-of-the-outbox' }

const folder = temporaryFolder()
const file = join(folder.path, 'openapi.json')
let server: TestServer
let description: Description

beforeAll(async () => {
  if (!isInstalled) return
  const env = { ...tokens, DATABASE_URL: `file:${join(folder.path, 'otpost.db')}` }
  const notify = 'ORDER_PLACED,OUT_FOR_DELIVERY'
  const text = join(folder.path, 'parcel.txt')
  await Bun.write(text, 'Your parcel is at {{shop}}. It is worth {{points}} points. {{businessName}}')
  const variables = ['--var', 'shop:text:20', '--var', 'points:number:1000']
  for (const args of [
    ['migrate'],
    ['brand', 'put', 'acme', '--name', 'Acme', '--status', 'active', '--login-id', '--notify', notify],
    ['text', 'set', 'acme', 'PARCEL_READY', ...variables, '--file', text],
    ['brand', 'put', 'acme', '--notify', `${notify},PARCEL_READY`],
    ['brand', 'put', 'closed', '--name', 'Closed', '--status', 'suspended'],
  ]) {
    expect(await otpost(args, env)).toMatchObject({ code: 0 })
  }
  // What a generator writes imports these packages.
  symlinkSync(join(packages, 'node_modules'), join(folder.path, 'node_modules'))
  server = await startServer(env)
  description = (await server.get('/openapi.json')).body
  await Bun.write(file, JSON.stringify(description))
})
afterAll(async () => {
  await server?.stop('SIGKILL')
  folder.remove()
})

/** Runs a program of the packages, on Bun. */
function run(program: string, ...args: readonly string[]) {
  return runLine([process.execPath, '--bun', join(packages, 'node_modules/.bin', program), ...args])
}

async function runLine(line: readonly string[]) {
  const env = { PATH: process.env.PATH, HOME: folder.path, REDOCLY_TELEMETRY: 'off', NO_COLOR: '1' }
  const { code, stdout, stderr } = await ended(line, { cwd: folder.path, env })
  return { code, stdout, said: `${stdout}\n${stderr}` }
}

const operations = () => Object.values(description.paths).flatMap((methods) => Object.values(methods))

describe.skipIf(!isInstalled)('linters find nothing in the API description', () => {
  test('Redocly, ruleset recommended', async () => {
    const { stdout } = await run('redocly', 'lint', '--extends', 'recommended', '--format', 'json', file)
    const { problems, totals } = JSON.parse(stdout)
    expect(problems).toEqual([])
    expect(totals).toMatchObject({ errors: 0, warnings: 0, ignored: 0 })
  })

  test('Spectral, ruleset spectral:oas', async () => {
    const ruleset = join(folder.path, 'spectral.json')
    await Bun.write(ruleset, JSON.stringify({ extends: ['spectral:oas'] }))
    const { stdout } = await run(
      'spectral',
      'lint',
      file,
      '--ruleset',
      ruleset,
      '--format',
      'json',
      '--quiet',
    )
    expect(JSON.parse(stdout)).toEqual([])
  })
})

/** Each generator: its command line, and the type of a request body in what it writes. */
const generators = [
  {
    program: 'openapi-typescript',
    args: (out: string) => [file, '--output', `${out}.ts`],
    header: (from: string) => `import type { operations } from '${from}'`,
    bodyOf: (id: string) => `operations['${id}']['requestBody']['content']['application/json']`,
  },
  {
    program: 'openapi-ts',
    args: (out: string) => ['--input', file, '--output', out],
    header: (from: string) => `import type * as types from '${from}'`,
    bodyOf: (id: string) => `types.${id[0]?.toUpperCase()}${id.slice(1)}Data['body']`,
  },
  {
    program: 'orval',
    args: (out: string) => ['--input', file, '--output', `${out}.ts`, '--client', 'fetch'],
    header: (from: string) => `import type * as calls from '${from}'`,
    bodyOf: (id: string) => `Parameters<typeof calls.${id}>[0]`,
  },
  {
    program: 'openapi-zod-client',
    args: (out: string) => [file, '--output', `${out}.ts`],
    header: (from: string) =>
      `import type { api } from '${from}'\nimport type { ZodiosBodyByAlias } from '@zodios/core'`,
    bodyOf: (id: string) => `ZodiosBodyByAlias<typeof api.api, '${id}'>`,
  },
]

describe.skipIf(!isInstalled).each(generators)('$program', ({ program, args, header, bodyOf }) => {
  test('generates code that compiles, accepts every right body and rejects every wrong body', async () => {
    const made = await run(program, ...args(join(folder.path, program)))
    expect(made).toMatchObject({ code: 0 })
    const lines: string[] = []
    for (const { operationId, requestBody } of operations()) {
      if (!requestBody) continue
      const wrong = wrongBodies[operationId] ?? {}
      expect({ operationId, wrong: Object.keys(wrong).length }).not.toEqual({ operationId, wrong: 0 })
      const right = Object.values(requestBody.content['application/json'].examples).map(({ value }) => value)
      for (const body of [...right, ...(rightBodies[operationId] ?? [])])
        lines.push(constant(operationId, body))
      for (const [why, body] of Object.entries(wrong)) {
        lines.push(`// @ts-expect-error ${why}`, constant(operationId, body))
      }
    }
    function constant(id: string, body: object): string {
      return `export const _${lines.length}: ${bodyOf(id)} = ${JSON.stringify(body)}`
    }
    const consumer = join(folder.path, `${program}.consumer.ts`)
    await Bun.write(consumer, `${header(`./${program}`)}\n${lines.join('\n')}\n`)
    // The service's own compiler, which is faster than the one that the generators load.
    const flags = ['--noEmit', '--strict', '--target', 'esnext', '--module', 'preserve']
    const compiled = await runLine([compiler, ...flags, '--lib', 'esnext,dom,dom.iterable', consumer])
    expect(compiled.said.trim()).toBe('')
  })
})

/** What Prism says of a request or a response that does not match; else undefined. */
async function send(url: string, { method, path, body, key, token }: ApiRequest) {
  const response = await fetch(url + path, {
    method,
    headers: {
      ...(body ? { 'content-type': 'application/json' } : {}),
      ...(key ? { 'idempotency-key': key } : {}),
      ...(token ? { authorization: `Bearer ${tokens[token]}` } : {}),
    },
    body: body ? JSON.stringify(body) : null,
  })
  const text = await response.text()
  const isViolation = response.headers.get('content-type')?.includes('problem+json') ?? false
  return { status: response.status, text, violation: isViolation ? JSON.parse(text).type : undefined }
}

/** The code in the latest message to a recipient; a wrong one if there is none. */
async function codeFor({ phone, email }: Readonly<Record<string, unknown>>): Promise<string> {
  const to = encodeURIComponent(String(phone ?? email))
  const { body } = await server.request('GET', `/outbox/messages?to=${to}`, {
    headers: { authorization: `Bearer ${tokens.OUTBOX_TOKEN}` },
  })
  return /\b\d{6}\b/.exec(body.messages.at(-1)?.text ?? '')?.[0] ?? '000000'
}

describe.skipIf(!isInstalled)("Prism's validating proxy", () => {
  test('finds no violation in 200 requests and their responses', async () => {
    const prism = await startPrism(packages, 'proxy', [file, server.url.origin])
    const violations: object[] = []
    const seen = new Set<string>()
    let latestId = crypto.randomUUID()
    for (const request of requests) {
      const { body = {} } = request
      const actual = { ...request }
      if (body.otp === 'latest') actual.body = { ...body, otp: await codeFor(body) }
      if (body.messageRequestId === 'latest') actual.body = { ...body, messageRequestId: latestId }
      const { status, text, violation } = await send(prism.url, actual)
      if (/^.(otp.(send|resend)|notify)$/.test(request.path)) latestId = JSON.parse(text).requestId
      seen.add(`${request.method} ${request.path.replace(/\?.*/, '')} ${status}`)
      if (violation !== undefined) violations.push({ ...actual, text })
    }
    await prism.stop()
    expect(violations).toEqual([])
    expect(requests.length).toBe(200)
    const accepted = Object.entries(description.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => {
        return `${method.toUpperCase()} ${path} ${path === '/integrations/requests' ? 201 : 200}`
      }),
    )
    expect([...seen]).toEqual(
      expect.arrayContaining([
        ...accepted,
        'POST /otp/send 403',
        'POST /otp/send 422',
        'POST /otp/send 429',
        'POST /otp/verify 401',
        'POST /otp/verify 404',
        'POST /messages/status 404',
        'POST /notify 202',
        'POST /notify 400',
        'POST /notify 403',
        'POST /notify 422',
        'POST /integrations/requests 429',
      ]),
    )
  })

  test('would find a violation in a request and in a response', async () => {
    const changed = structuredClone(description)
    changed.components.schemas.OtpSent.properties.expiresIn = { type: 'string' }
    const wrong = join(folder.path, 'wrong.json')
    await Bun.write(wrong, JSON.stringify(changed))
    const prism = await startPrism(packages, 'proxy', [wrong, server.url.origin])
    const body = { appId: 'shop', apiKey: 'key-of-the-shop', brandId: 'acme', phone: '+1 202 555 0199' }
    const response = await send(prism.url, { method: 'POST', path: '/otp/send', body })
    const request = await send(prism.url, { method: 'POST', path: '/otp/send', body: { ...body, phone: 1 } })
    await prism.stop()
    expect(response.violation).toEndWith('#VIOLATIONS')
    expect(request.violation).toEndWith('#UNPROCESSABLE_ENTITY')
  })
})
