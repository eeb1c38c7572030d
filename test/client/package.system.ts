import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import packageJson from '../../package.json'
import { contract, currentDescription, type Description, manageContract } from '../../release/contract.ts'
import { assemblePackage } from '../../release/package.ts'
import { signedHeaders, webhookKey } from '../../src/adapters/crypto/standard-webhooks.ts'
import { clientSnippet } from '../../src/adapters/pages/client-snippet.ts'
import { readConfig } from '../../src/config/config.ts'
import { openContext } from '../../src/context.ts'
import { putBrand } from '../../src/domain/operator/brands.ts'
import { credentials, temporaryFolder } from '../support/app.ts'
import { tester } from '../support/operator.ts'
import { ended, outputOf } from '../support/run.ts'
import { startServer, type TestServer } from '../support/server.ts'

// The package as users get it: packed, installed, compiled against, and run on each runtime against a real server.

setDefaultTimeout(180_000)

const root = join(import.meta.dir, '../..')
const folder = temporaryFolder()
const here = (...path: string[]) => join(folder.path, ...path)
const ending = new AsyncDisposableStack()
let server: TestServer
let others: Readonly<Record<string, string>>
let packed: string
let complaints: string

beforeAll(async () => {
  ending.defer(() => folder.remove())
  await assemblePackage(here('npm'))
  packed = await run([process.execPath, 'pm', 'pack', '--destination', folder.path], {}, here('npm'))
  write('package.json', { type: 'module', dependencies: { otpost: `file:./${tarball}` } })
  await run([process.execPath, 'install'])

  for (const [index, example] of examples().entries()) writeFileSync(here(`example-${index}.ts`), example)
  copyFileSync(join(import.meta.dir, 'tour.ts'), here('tour.ts'))
  writeFileSync(here('snippet.ts'), snippet('https://otp.example.com'))
  write('tsconfig.json', {
    compilerOptions: {
      ...{
        target: 'es2022',
        lib: ['es2022'],
        module: 'nodenext',
        strict: true,
        exactOptionalPropertyTypes: true,
      },
      ...{ noUncheckedIndexedAccess: true, skipLibCheck: false },
      ...{ typeRoots: [join(root, 'node_modules/@types')], types: ['node'] },
    },
    include: ['*.ts'],
  })
  const compiler = [process.execPath, join(root, 'node_modules/typescript/bin/tsc')]
  const { stdout } = await ended(compiler, { cwd: folder.path })
  complaints = stdout

  const database = { DATABASE_URL: `file:${here('data/otpost.db')}` }
  const context = await openContext(readConfig(database))
  await putBrand(context.acting(tester), 'acme', { displayName: 'Acme' })
  await context.close()
  server = await startServer(database)
  ending.defer(async () => void (await server.stop()))
  others = startOthers()
})
afterAll(() => ending.disposeAsync())

const tarball = `otpost-${packageJson.version}.tgz`

function write(name: string, value: object): void {
  writeFileSync(here(name), JSON.stringify(value))
}

/** The program that operators get with a key. */
const snippet = (url: string) => clientSnippet({ url, appId: credentials.appId, brandId: 'acme' })

/** The programs in the package's README. */
function examples(): string[] {
  const text = readFileSync(join(root, 'client/README.md'), 'utf8')
  return [...text.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code = '']) => code)
}

/** An event as the server sends it now. */
function signedEvent() {
  const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
  const body = JSON.stringify({ type: 'otp.locked', timestamp: '2026-03-14T15:09:26.000Z', data: {} })
  const headers = signedHeaders(webhookKey(secret) ?? Buffer.alloc(0), 'evt_1', body, Date.now())
  return { secret, body, headers }
}

/** The output of a program in the folder of this file that must end well. */
function run(command: readonly string[], env: Record<string, string> = {}, cwd = folder.path) {
  const { PATH, HOME, TMPDIR = '/tmp' } = process.env
  return outputOf(command, { cwd, env: { PATH, HOME, TMPDIR, ...env } })
}

/** Servers other than otpost, by their behaviour. */
function startOthers(): Readonly<Record<string, string>> {
  let busy = 0
  const encoder = new TextEncoder()
  const sent = {
    success: true,
    message: 'words',
    expiresIn: 300,
    requestId: '3f2b8f0e-6c1d-4a53-9f57-0d6a2c9e41b7',
  }
  const limited = { success: false, error: 'rate_limited', message: 'words', requestId: sent.requestId }
  const web = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    routes: {
      '/silent/*': () => new Promise<Response>(() => {}),
      '/half/*': () =>
        new Response(
          new ReadableStream({ start: (body) => body.enqueue(encoder.encode('{"success":true,')) }),
        ),
      '/long/*': () => new Response(' '.repeat(1_000_000)),
      '/page/*': () => new Response('<h1>Bad Gateway</h1>', { status: 502 }),
      '/elsewhere/*': () => new Response(null, { status: 307, headers: { location: '/found' } }),
      '/found': () => Response.json(sent),
      '/busy/*': () => Response.json(limited, { status: 429, headers: { 'retry-after': '20' } }),
      '/busy-once/*': () =>
        busy++ % 2 === 1 ? Response.json(sent) : Response.json(limited, { status: 429 }),
    },
  })
  ending.defer(() => web.stop(true))
  const cut = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      data: (socket) => {
        socket.end(
          'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"success":',
        )
      },
    },
  })
  ending.defer(() => cut.stop(true))
  const paths = ['silent', 'half', 'long', 'page', 'elsewhere', 'busy', 'busy-once']
  const urls = paths.map((path) => [path, new URL(path, web.url).href])
  return { ...Object.fromEntries(urls), cut: `http://127.0.0.1:${cut.port}` }
}

test('the contract of the client is up to date with the OpenAPI description', async () => {
  expect(await manageContract(), 'run `bun run contract`').toBe(
    readFileSync(join(root, 'client/manage-contract.ts'), 'utf8'),
  )
  expect(await contract(), 'run `bun run contract`').toBe(
    readFileSync(join(root, 'client/contract.ts'), 'utf8'),
  )
})

test.each<[string, (text: string) => string]>([
  ['a keyword', (text) => text.replace('"maxLength":64', '"dependentRequired":{}')],
  ['a code without a word on when it comes', (text) => text.replace('`sms_failed`: ', '')],
  ['a choice of the caller', (text) => text.replace('"required":["brandId"]', '"required":["sender"]')],
  ['a type', (text) => text.replaceAll('"type":"array"', '"type":"tuple"')],
])('the contract leaves nothing out in silence that is new in the description: %s', async (_, change) => {
  const { paths, components } = currentDescription()
  const text = JSON.stringify({ paths, components })
  const changed: Description = JSON.parse(change(text))
  expect(JSON.stringify(changed)).not.toBe(text)
  await expect(contract(changed)).rejects.toThrow()
})

test('the package has all entries with their types, and is installed without another package', () => {
  const names = [...packed.matchAll(/^packed \S+ (\S+)$/gm)].map(([, name]) => name)
  const modules = [
    'better-auth',
    'client',
    'contract',
    'events',
    'manage',
    'manage-contract',
    'testing',
  ].flatMap((name) => [`${name}.js`, `${name}.d.ts`])
  // The command runs the server, whose files the bundler names.
  const [ofServer, others] = [true, false].map((isOf) =>
    names.filter((name) => name?.startsWith('server/') === isOf),
  )
  expect(ofServer?.length).toBeGreaterThan(0)
  const files = ['LICENSE', 'README.md', 'bin/otpost.js', 'package.json']
  expect(others?.sort()).toEqual([...files, ...modules].sort())
  const { version, dependencies, peerDependencies, peerDependenciesMeta } = JSON.parse(
    readFileSync(here('npm/package.json'), 'utf8'),
  )
  expect({ version, dependencies, peerDependencies, peerDependenciesMeta }).toEqual({
    version: packageJson.version,
    dependencies: undefined,
    peerDependencies: { 'better-auth': expect.any(String), 'better-sqlite3': expect.any(String) },
    peerDependenciesMeta: { 'better-auth': { optional: true }, 'better-sqlite3': { optional: true } },
  })
  expect(readdirSync(here('node_modules')).filter((name) => !name.startsWith('.'))).toEqual(['otpost'])
})

test('the client imports no package, and uses nothing that only one runtime has', () => {
  for (const file of ['client', 'contract', 'events'].flatMap((name) => [`${name}.js`, `${name}.d.ts`])) {
    const text = readFileSync(here('npm', file), 'utf8')
    const imports = [...text.matchAll(/\bfrom\s*['"]([^'"]*)['"]|\bimport\(/g)].map(
      ([, name = 'import()']) => name,
    )
    expect(imports.filter((name) => name !== './contract.js' && name !== './events.js')).toEqual([])
    expect(text.replace(/\/\*\*.*?\*\/|\/\/.*$/gms, '')).not.toMatch(
      /\b(?:(?:Bun|Deno|process|Buffer|require)\b|node:)/,
    )
  }
})

test("the examples of its README compile against the package's types, in the strictest mode", () => {
  expect(examples()).toHaveLength(4)
  expect(complaints).toBe('')
})

test('the program that operators get with a key compiles, and sends a code', async () => {
  expect(complaints).toBe('')
  writeFileSync(here('snippet.ts'), snippet(server.url.origin))
  const env = { OTPOST_API_KEY: credentials.apiKey }
  expect(await run([process.execPath, 'snippet.ts'], env)).toContain('success: true')
})

const requestId = expect.stringMatching(/^[0-9a-f-]{36}$/)
const message = expect.any(String)
const retryAfterSeconds = expect.any(Number)
const failed = (error: string, status: number) => ({ success: false, error, message, requestId, status })
const noAnswer = (error: string) => ({ success: false, error, message })
const unexpected = (status: number) => ({ ...noAnswer('unexpected_answer'), status })

/** The answers of the tour on every runtime. */
const expected = {
  sent: { success: true, message, requestId, expiresIn: 300 },
  wrong: failed('mismatch', 401),
  verified: { success: true, message, requestId },
  used: failed('not_found', 404),
  soon: { ...failed('cooldown_active', 429), retryAfterSeconds },
  notified: { success: true, message, requestId, channel: 'EMAIL' },
  stranger: failed('forbidden', 403),

  asked: 'If this number can receive codes, a code is on its way. Or sign in by e-mail.',
  checked: true,
  askedForNobody: 'This is not a phone number.',

  silent: noAnswer('timeout'),
  half: noAnswer('timeout'),
  long: unexpected(200),
  page: unexpected(502),
  elsewhere: unexpected(307),
  cut: noAnswer('unreachable'),
  nobody: noAnswer('unreachable'),
  busy: { ...failed('rate_limited', 429), retryAfterSeconds: 20 },
  'busy-once': { success: true, message, requestId, expiresIn: 300 },

  event: { id: 'evt_1', type: 'otp.locked', timestamp: '2026-03-14T15:09:26.000Z', data: {} },
  forgedEvent: 'invalid_signature',

  abortedRequest: 'its reason',
  abortedPause: 'its reason',
}

const runtimes = [
  ['Bun', process.execPath, [], ['+1 202 555 0110', '+1 202 555 0111']],
  ['Node', Bun.which('node'), [], ['+1 202 555 0120', '+1 202 555 0121']],
  ['Deno', Bun.which('deno'), ['run', '--allow-all'], ['+1 202 555 0130', '+1 202 555 0131']],
] as const

for (const [name, runtime, args, phones] of runtimes) {
  const isThere = runtime !== null
  test.skipIf(!isThere)(
    `the client works on ${name}, and the process ends${isThere ? '' : `: not tried, there is no ${name}`}`,
    async () => {
      const scene = {
        ...credentials,
        service: server.url.origin,
        others,
        phones,
        example: here('example-0.js'),
        event: signedEvent(),
      }
      const env = { OTPOST_URL: server.url.origin, OTPOST_API_KEY: credentials.apiKey }
      // A leftover timer or connection would keep the process running.
      const told = await run([runtime ?? '', ...args, 'tour.js', JSON.stringify(scene)], env)
      expect(JSON.parse(told)).toEqual(expected)
    },
  )
}
