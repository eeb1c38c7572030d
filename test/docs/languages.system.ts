import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { openApi, openApiText } from '../../src/adapters/http/openapi.ts'
import { otherThan, temporaryFolder } from '../support/app.ts'
import { environmentFor, startSandbox } from '../support/sandbox.ts'
import { root } from './pages.ts'

// Each sample in docs/api sends and verifies a code against a sandbox.

const languages = [
  { program: 'curl', run: ['sh', 'send.sh'] },
  { program: 'node', run: ['node', 'send.mjs'] },
  { program: 'python3', run: ['python3', 'send.py'] },
  { program: 'php', run: ['php', 'send.php'] },
  { program: 'go', run: ['go', 'run', 'send.go'] },
  { program: 'java', run: ['java', 'SendAndVerify.java'] },
  { program: 'dotnet', run: ['dotnet', 'run', 'Send.cs'] },
] as const

const samplesFolder = join(root, 'docs/api')
const phone = '+1 202 555 0143'

/** Whether a program is there, with what the sample needs of it. */
function canRun(program: string): boolean {
  if (!Bun.which(program)) return false
  const printedBy = (argument: string) => Bun.spawnSync([program, argument]).stdout.toString()
  if (program === 'php') return printedBy('-m').includes('curl')
  return program !== 'dotnet' || Number.parseInt(printedBy('--version'), 10) >= 10
}

let otpost: Awaited<ReturnType<typeof startSandbox>>
const folder = temporaryFolder()
beforeAll(async () => {
  const settings = {
    SMS_COOLDOWN_SECONDS: 0,
    PHONE_LIMIT_PER_MINUTE: 100,
    PHONE_LIMIT_PER_HOUR: 100,
    GLOBAL_LIMIT_PER_MINUTE: 1000,
  }
  otpost = await startSandbox({ settings })
})
afterAll(async () => {
  await otpost.stop()
  folder.remove()
})

interface Attempt {
  readonly path: string | undefined
  readonly key: string | undefined
  /** Milliseconds, of a monotonic clock. */
  readonly at: number
}

/** What the proxy does with an attempt, by its number: pass it on, lose the answer, or answer with this error itself. */
type Fault =
  | 'none'
  | 'lost'
  | { readonly status: number; readonly error: string; readonly retryAfter: number }

async function startProxy(faultOf: (path: string | undefined, attempt: number) => Fault) {
  const attempts: Attempt[] = []
  const server = createServer(async (request, answer) => {
    const { url: path, headers } = request
    const key = headers['idempotency-key']?.toString()
    attempts.push({ path, key, at: performance.now() })
    const fault = faultOf(path, attempts.filter((each) => each.path === path).length)
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    // A lost connection that was used before would be opened again by some of the programs themselves.
    const fields = { connection: 'close', 'content-type': 'application/json' }
    if (typeof fault === 'object') {
      const { status, error, retryAfter } = fault
      answer.writeHead(status, { ...fields, 'retry-after': String(retryAfter) })
      answer.end(
        JSON.stringify({ success: false, error, reason: 'app_minute', message: 'Wait.', requestId: '' }),
      )
      return
    }
    const forwarded = await fetch(new URL(path ?? '', otpost.url), {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'idempotency-key': key ?? '',
        authorization: headers.authorization ?? '',
      },
      body: Buffer.concat(chunks),
    })
    const text = await forwarded.text()
    if (fault === 'lost') request.socket.destroy()
    else answer.writeHead(forwarded.status, fields).end(text)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, attempts, stop: () => server.close() }
}

test('every sample is run', () => {
  const files = [...new Bun.Glob('[Ss]end*').scanSync({ cwd: samplesFolder })]
  expect(files.sort()).toEqual(languages.map(({ run }) => run.at(-1) ?? '').sort())
})

describe.each(languages)('$program', ({ program, run }) => {
  const needs = `(needs ${program})`
  const hasProgram = canRun(program)

  test.skipIf(!hasProgram).each([
    ['the right code', (right: string) => right, 'verified'],
    ['a wrong code', otherThan, 'wrong code'],
    ['half a code', (right: string) => right.slice(3), /^not verified: .*invalid_otp_format\b.*[\w-]{36}/],
  ] as const)(`sends a code and verifies ${'%s'} ${needs}`, async (_which, typed, expected) => {
    const { lines, exitCode } = await runSample(otpost.url, typed)
    expect(lines).toEqual(['expires in 300', expect.stringMatching(expected)])
    expect(exitCode).toBe(0)
  })

  test.skipIf(!hasProgram)(`waits as Retry-After says, and repeats with the same key ${needs}`, async () => {
    const first: Record<string, Fault> = {
      '/otp/send': { status: 429, error: 'rate_limited', retryAfter: 2 },
      '/otp/verify': { status: 503, error: 'unavailable', retryAfter: 0 },
    }
    const proxy = await startProxy((path = '', attempt) =>
      attempt === 1 ? (first[path] ?? 'none') : attempt === 2 ? 'lost' : 'none',
    )
    const { length } = await otpost.messagesTo(phone)
    const { lines } = await runSample(proxy.url, otherThan)
    // A repeated answer has the seconds that are left.
    expect(lines).toEqual([expect.stringMatching(/^expires in (?:300|2\d\d)$/), 'wrong code'])
    expect(await otpost.messagesTo(phone)).toHaveLength(length + 1)
    const [send = [], verify = []] = ['/otp/send', '/otp/verify'].map((path) =>
      proxy.attempts.filter((each) => each.path === path),
    )
    expect([send.length, verify.length]).toEqual([3, 3])
    const [sendKey, verifyKey, ...others] = new Set(proxy.attempts.map(({ key }) => key))
    expect([sendKey, verifyKey]).toEqual([expect.stringMatching(/^\S+$/), expect.stringMatching(/^\S+$/)])
    expect(others).toEqual([])
    expect((send[1]?.at ?? 0) - (send[0]?.at ?? 0)).toBeGreaterThan(1900)
    proxy.stop()
  })

  test.skipIf(!hasProgram)(`does not wait for an hour ${needs}`, async () => {
    const proxy = await startProxy(() => ({ status: 429, error: 'rate_limited', retryAfter: 3600 }))
    const { lines, errors, exitCode } = await runSample(proxy.url, otherThan)
    expect(proxy.attempts).toHaveLength(1)
    for (const words of ['rate_limited', 'app_minute', 'Wait.'])
      expect(`${lines.join()}${errors}`).toContain(words)
    expect(lines.filter((line) => line.startsWith('expires'))).toEqual([])
    expect(exitCode).not.toBe(0)
    proxy.stop()
  })

  test.skipIf(!hasProgram)(`takes the phone number, and prints why a send failed ${needs}`, async () => {
    const other = '+1 202 555 0177'
    expect((await runSample(otpost.url, (right) => right, other)).lines.at(-1)).toBe('verified')
    const { lines, errors, exitCode } = await runSample(otpost.url, otherThan, '+1 202')
    const printed = `${lines.join()}${errors}`
    for (const words of ['not sent: ', 'validation_error', 'must have 7 to 15 digits.'])
      expect(printed).toContain(words)
    expect(exitCode).not.toBe(0)
  })

  /** Runs the sample, and types this in place of the code that was sent. */
  async function runSample(url: string, typed: (right: string) => string, to?: string) {
    const child = Bun.spawn(
      [...run.slice(0, -1), join(samplesFolder, run.at(-1) ?? ''), ...(to === undefined ? [] : [to])],
      {
        cwd: folder.path,
        env: {
          PATH: process.env.PATH ?? '',
          HOME: folder.path,
          DOTNET_NOLOGO: '1',
          ...environmentFor(otpost),
          OTPOST_URL: url,
        },
        stdin: 'pipe',
        stdout: 'pipe',
        stderr: 'pipe',
      },
    )
    const errors = new Response(child.stderr).text()
    let printed = ''
    const decoder = new TextDecoder()
    for await (const chunk of child.stdout) {
      const isFirst = printed === ''
      printed += decoder.decode(chunk, { stream: true })
      if (!isFirst || !printed.startsWith('expires')) continue
      child.stdin.write(`${typed(await otpost.codeFor(to ?? phone))}\n`)
      child.stdin.end()
    }
    return { lines: printed.trimEnd().split('\n'), errors: await errors, exitCode: await child.exited }
  }
})

test.skipIf(!Bun.which('jq'))(
  'docs/api/openapi-3.0.jq leaves nothing that OpenAPI 3.0 has not (needs jq)',
  () => {
    const { exitCode, stdout, stderr } = Bun.spawnSync(['jq', '-f', join(root, 'docs/api/openapi-3.0.jq')], {
      stdin: Buffer.from(openApiText(openApi('0.0.0', true))),
    })
    expect({ exitCode, said: stderr.toString() }).toEqual({ exitCode: 0, said: '' })
    const converted = JSON.parse(stdout.toString())
    expect(converted.openapi).toBe('3.0.3')
    expect(converted.paths['/notify'].post.requestBody.content['application/json'].schema).toEqual({
      $ref: '#/components/schemas/NotifyRequest',
    })
    expect(converted.components.schemas.NotifyRequest.required).toEqual(['channel', 'to'])
    expect(converted.components.schemas.NotifyRequest.properties).toHaveProperty('apiKey')

    const foreign = new Set([
      'const',
      'if',
      'then',
      'else',
      'patternProperties',
      'jsonSchemaDialect',
      'webhooks',
    ])
    const problems: string[] = []
    const missing = new Set<string>()
    const look = (value: unknown, at: string): void => {
      if (typeof value !== 'object' || value === null) return
      for (const [key, each] of Object.entries(value)) {
        if (foreign.has(key) && !at.endsWith('/properties')) problems.push(`${at}/${key}`)
        if (key === 'type' && Array.isArray(each)) problems.push(`${at}/type`)
        if (/\/properties$/.test(at) && typeof each === 'boolean') problems.push(`${at}/${key}`)
        const [, name] = key === '$ref' ? (/^#\/components\/schemas\/(\w+)$/.exec(String(each)) ?? []) : []
        if (name !== undefined && !Object.hasOwn(converted.components.schemas, name)) missing.add(name)
        look(each, `${at}/${key}`)
      }
    }
    look(converted, '')
    expect(problems).toEqual([])
    expect([...missing]).toEqual([])
  },
)
