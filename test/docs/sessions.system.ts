import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { assemblePackage } from '../../release/package.ts'
import { temporaryFolder } from '../support/app.ts'
import { startDemoIn } from '../support/browser.ts'
import { freePorts } from '../support/ports.ts'
import { programEnv, programLine } from '../support/program.ts'
import { startSandbox } from '../support/sandbox.ts'
import { startServer } from '../support/server.ts'
import { pageAt, type Sample } from './pages.ts'

// Runs the curl sessions of pages, and compares the output with the page.

const ending = new AsyncDisposableStack()
afterAll(() => ending.disposeAsync())

/** A script, and the output that the page promises. */
interface Step {
  readonly script: string
  readonly printed: readonly string[]
}

/** The curl scripts of a page with promised output, which follows in comments. */
function curlSteps(path: string): readonly Step[] {
  return stepsOf(
    path,
    ({ language, code }) => language === 'sh' && /\bcurl /.test(code) && /^# [{\d]/m.test(code),
  )
}

function stepsOf(path: string, isRun: (sample: Sample) => boolean): readonly Step[] {
  return pageAt(path)
    .samples.filter(isRun)
    .flatMap(({ code }) => stepsIn(code))
}

function stepsIn(code: string): readonly Step[] {
  const steps: { script: string; printed: string[] }[] = []
  for (const line of code.split('\n')) {
    const last = steps.at(-1)
    if (line.startsWith('# ')) last?.printed.push(line.slice(2))
    else if (last && last.printed.length === 0) last.script += `${line}\n`
    else steps.push({ script: `${line}\n`, printed: [] })
  }
  return steps.filter(({ script }) => script.trim() !== '')
}

/** Runs the steps in one shell, so that variables persist. Resolves to the output of each. */
async function paste(steps: readonly Step[], cwd = process.cwd()): Promise<readonly string[]> {
  const mark = '\x1e'
  const shell = Bun.spawn(['sh'], {
    // An unset variable means that a step is missing.
    stdin: new Blob(['set -u\n', ...steps.map(({ script }) => `${script}printf '%s' '${mark}'\n`)]),
    env: programEnv(),
    cwd,
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [output, complaints] = await Promise.all([
    new Response(shell.stdout).text(),
    new Response(shell.stderr).text(),
  ])
  expect(complaints).toBe('')
  return output.split(mark).slice(0, -1)
}

/**
 * Returns how the output differs from the page. `…` matches any text. Outside of JSON, a number matches any number, and
 * the output may end at the first comma of the page.
 */
function difference(printed: string, said: readonly string[]): string | undefined {
  const lines = printed.trim().split('\n')
  if (lines.length !== said.length) return `${lines.length} lines, not ${said.length}: ${printed}`
  for (const [index, line] of lines.entries()) {
    const expected = said[index] ?? ''
    if (expected.startsWith('{"')) {
      if (!isLike(JSON.parse(line), JSON.parse(expected))) return `${line} is not like ${expected}`
    } else {
      const [first = ''] = expected.split(', ')
      const pattern = (words: string) => words.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replace(/\d+/g, '\\d+')
      if (!new RegExp(`^(?:${pattern(first)}|${pattern(expected)})$`).test(line.trimEnd())) {
        return `${line} is not like ${expected}`
      }
    }
  }
  return undefined
}

/** Whether a value has exactly these fields and values. `…` matches any non-empty text. */
function isLike(value: unknown, expected: unknown): boolean {
  if (expected === '…') return typeof value === 'string' && value !== ''
  if (typeof value === 'string' && typeof expected === 'string') {
    return withoutTimes(value) === withoutTimes(expected)
  }
  if (typeof expected !== 'object' || expected === null) return value === expected
  if (typeof value !== 'object' || value === null) return false
  const [given, wanted] = [new Map(Object.entries(value)), new Map(Object.entries(expected))]
  return (
    given.size === wanted.size &&
    [...wanted].every(([key, each]) => given.has(key) && isLike(given.get(key), each))
  )
}

/** Waiting times differ from run to run. */
function withoutTimes(message: string): string {
  return message.replace(/\b\d+ seconds?\b/g, 'N seconds')
}

/** Runs the samples of a page, which has this many answers, with URLs and keys replaced. Resolves to the differences. */
async function problemsOf(
  path: string,
  answers: number,
  standIns: Readonly<Record<string, string>>,
): Promise<readonly string[]> {
  const steps = replaced(curlSteps(path), standIns)
  expect(steps.filter(({ printed }) => printed.length > 0)).toHaveLength(answers)
  return differences(steps, await paste(steps))
}

function replaced(steps: readonly Step[], standIns: Readonly<Record<string, string>>): readonly Step[] {
  return steps.map(({ script, printed }) => {
    let given = script
    for (const [name, value] of Object.entries(standIns)) given = given.replaceAll(name, value)
    return { script: given, printed }
  })
}

function differences(steps: readonly Step[], outputs: readonly string[]): readonly string[] {
  expect(outputs).toHaveLength(steps.length)
  return outputs.flatMap((output, index) => {
    const { script = '', printed = [] } = steps[index] ?? {}
    const problem = printed.length === 0 ? undefined : difference(output, printed)
    return problem === undefined ? [] : [`${script.trim()}\n  ${problem}`]
  })
}

test('the comparison finds differences', () => {
  const said = ['{"success":true,"expiresIn":300,"requestId":"…"}']
  expect(difference('{"success":true,"expiresIn":300,"requestId":"a"}\n', said)).toBeUndefined()
  expect(difference('{"success":true,"expiresIn":301,"requestId":"a"}', said)).toContain('is not like')
  expect(difference('{"success":true,"expiresIn":300}', said)).toContain('is not like')
  expect(difference('{"success":true,"expiresIn":300,"requestId":"a","more":1}', said)).toContain(
    'is not like',
  )
  const wait = (message: string) => JSON.stringify({ success: false, message })
  expect(difference(wait('Wait. 29 seconds.'), [wait('Wait. 30 seconds.')])).toBeUndefined()
  expect(difference(wait('Wait. 29 minutes.'), [wait('Wait. 30 minutes.')])).toContain('is not like')
  expect(difference('123456', ['444768, or another code'])).toBeUndefined()
  expect(difference('', ['444768'])).toContain('is not like')
  expect(difference('Retry-After: 29', ['Retry-After: 30'])).toBeUndefined()
  expect(difference('a\nb', ['a'])).toContain('2 lines')
  expect(stepsIn('A=1\ncurl a \\\n  b\n# {"x":1}\n# more\n\ncurl c\n')).toEqual([
    { script: 'A=1\ncurl a \\\n  b\n', printed: ['{"x":1}', 'more'] },
    { script: '\ncurl c\n\n', printed: [] },
  ])
})

describe.skipIf(!Bun.which('curl'))('curl sessions (need curl)', () => {
  let demo: Awaited<ReturnType<typeof startDemo>>
  let sandbox: Awaited<ReturnType<typeof startSandbox>>
  beforeAll(async () => {
    ;[demo, sandbox] = await Promise.all([startDemo(), startSandbox()])
    ending.defer(() => sandbox.stop())
  })

  test.each([
    ['README.md', 3],
    ['docs/quick-start.md', 8],
    ['docs/integrators.md', 1],
  ] as const)('%s has the answers of the demo', async (path, answers) => {
    expect(
      await problemsOf(path, answers, {
        'http://127.0.0.1:3000': demo.origin,
        'https://otp.example.com': demo.origin,
        'data/demo.apikey': join(demo.folder, 'data', 'demo.apikey'),
      }),
    ).toEqual([])
  })

  test('docs/better-auth.md leads to a user with a code of the demo', async () => {
    expect(
      await problemsOf('docs/better-auth.md', 5, {
        'http://127.0.0.1:3000': demo.origin,
        'http://localhost:3001': await startBetterAuth(demo),
      }),
    ).toEqual([])
  })

  test.each([
    ['docs/integration.md', 3],
    ['docs/confirm-payment.md', 3],
  ] as const)('%s has the answers of a sandbox', async (path, answers) => {
    const { url, apiKey, appId } = sandbox
    expect(
      await problemsOf(path, answers, {
        'http://127.0.0.1:41234': url,
        otp_sandbox_key: apiKey,
        'sandbox:': `${appId}:`,
      }),
    ).toEqual([])
  })
})

test.skipIf(!Bun.which('curl')).each([
  ['docs/stop-sms-pumping.md', 'IN,GB'],
  ['docs/whatif.md', ''],
])('%s has the output of a new server', async (path, countries) => {
  const folder = temporaryFolder()
  ending.defer(() => folder.remove())
  const database = `file:${join(folder.path, 'try.db')}`
  const settings = { DATABASE_URL: database, SMS_COUNTRIES: countries, APP_CREDENTIALS: '{}' }
  const server = await startServer(settings)
  ending.defer(async () => {
    await server.stop()
  })
  const page = stepsOf(path, ({ code }) => /^# /m.test(code))
  const steps = replaced(page, {
    'npx -y bun@1.4.5 src/main.ts': programLine([]).join(' '),
    'file:data/try.db': database,
    'http://127.0.0.1:3000': server.url.origin,
    // The server writes its event log a moment later.
    'otpost whatif': 'sleep 0.3; otpost whatif',
  })
  expect(steps.length).toBeGreaterThan(6)
  expect(differences(steps, await paste(steps))).toEqual([])
})

test.skipIf(!Bun.which('curl'))('docs/dlt.md leads to a registered message', async () => {
  const folder = temporaryFolder()
  ending.defer(() => folder.remove())
  const database = `file:${join(folder.path, 'try.db')}`
  const settings = { DATABASE_URL: database, OTP_SMS_MODE: 'template' }
  const server = await startServer({ ...settings, APP_CREDENTIALS: '{}' })
  ending.defer(async () => {
    await server.stop()
  })
  const session = stepsOf(
    'docs/dlt.md',
    ({ language, code }) => language === 'sh' && /^(?:otpost |KEY=|curl )/m.test(code),
  )
  // As in a terminal, where both are seen.
  const steps = replaced([{ script: 'exec 2>&1\n', printed: [] }, ...session], {
    'npx -y bun@1.4.5 src/main.ts': programLine([]).join(' '),
    'file:data/try.db': database,
    'http://127.0.0.1:3000': server.url.origin,
    // The server writes its delivery log a moment later.
    'otpost deliveries': 'until otpost deliveries | grep -q LOGIN_OTP; do :; done; otpost deliveries',
  })
  expect(steps.filter(({ printed }) => printed.length > 0).length).toBeGreaterThan(10)
  expect(differences(steps, await paste(steps, folder.path))).toEqual([])

  // With the settings for Kannel on the page, the text and its IDs go to Kannel.
  const calls: { readonly headers: Headers; readonly text: string }[] = []
  const kannel = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      calls.push({ headers: request.headers, text: await request.text() })
      return new Response('0: Accepted for delivery', { status: 202 })
    },
  })
  ending.defer(() => kannel.stop(true))
  const [sample] = pageAt('docs/dlt.md').samples.filter(({ code }) => code.includes('KANNEL_URL='))
  const onPage = Object.fromEntries(
    (sample?.code ?? '')
      .trim()
      .split('\n')
      .map((line) => line.split('=')),
  )
  const url = `http://127.0.0.1:${kannel.port}`
  const sending = await startServer({ ...settings, ...onPage, KANNEL_URL: url })
  ending.defer(async () => {
    await sending.stop()
  })
  expect((await sending.post('/otp/send', { phone: '+91 98123 45670' })).status).toBe(200)
  const [{ headers, text } = { headers: new Headers(), text: '' }] = calls
  expect(text).toMatch(/^\d{6} is your login code for Acme\. It is valid for 5 minutes\. Do not share it\.$/)
  expect(Object.fromEntries(headers)).toMatchObject({
    'x-kannel-from': 'ACMEIN',
    'x-kannel-meta-data': '?smpp?PE_ID=1101456324675322134&TEMPLATE_ID=1107457532145798767',
  })
})

/** Starts the application of docs/better-auth.md on a free port, with the package as npm installs it. Resolves to its URL. */
async function startBetterAuth({ origin, folder }: Awaited<ReturnType<typeof startDemo>>): Promise<string> {
  const modules = join(folder, 'data/auth/node_modules')
  await assemblePackage(join(modules, 'otpost'))
  symlinkSync(join(import.meta.dir, '../../node_modules/better-auth'), join(modules, 'better-auth'))
  const port = String(freePorts(1)[0])
  const [sample] = pageAt('docs/better-auth.md').samples.filter(({ language }) => language === 'ts')
  const code = (sample?.code ?? '').replaceAll('3001', port).replace('http://127.0.0.1:3000', origin)
  const program = join(folder, 'data/auth/server.mjs')
  writeFileSync(program, code)
  const apiKey = readFileSync(join(folder, 'data/demo.apikey'), 'utf8').trim()
  const child = Bun.spawn([Bun.which('node') ?? process.execPath, program], {
    env: programEnv({ OTPOST_API_KEY: apiKey }),
    stdout: 'pipe',
    stderr: 'inherit',
  })
  ending.defer(async () => {
    child.kill()
    await child.exited
  })
  const { value = new Uint8Array() } = await child.stdout.getReader().read()
  expect(new TextDecoder().decode(value)).toContain(`http://localhost:${port}`)
  return `http://localhost:${port}`
}

/** Starts the demo in its own folder. Resolves to its URL. */
async function startDemo(): Promise<{ readonly origin: string; readonly folder: string }> {
  const folder = temporaryFolder()
  const { child, page } = await startDemoIn(folder.path, '0')
  ending.defer(async () => {
    child.kill()
    await child.exited
    folder.remove()
  })
  return { origin: page.origin, folder: folder.path }
}
