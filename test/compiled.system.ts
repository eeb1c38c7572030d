import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { commitOf } from '../src/version.ts'
import { optionsIn } from './support/accounts.ts'
import { codeIn, type TestApp, temporaryFolder } from './support/app.ts'
import { createAuthenticator } from './support/authenticator.ts'
import { accessRequest } from './support/calls.ts'
import { Visitor } from './support/console.ts'
import { binary, programEnv } from './support/program.ts'
import { ended, outputLog } from './support/run.ts'
import { demoIn } from './support/server.ts'

// Properties of the compiled program alone. `bun test/run.ts binary` builds it and runs this file.

const root = join(import.meta.dir, '..')

/** The copy of the program, with no other file in its folder. */
let folder: ReturnType<typeof temporaryFolder>
let program: string

beforeAll(() => {
  folder = temporaryFolder()
  program = join(folder.path, 'otpost')
  if (binary) cpSync(binary, program)
})
afterAll(() => folder.remove())

/** Runs it to its end in a folder, with this environment alone. */
function run(args: readonly string[], cwd: string, env: Readonly<Record<string, string>> = {}) {
  return ended([program, ...args], { cwd, env })
}

/** Starts it. Resolves to its URL. */
async function start(args: readonly string[], cwd: string, env: Readonly<Record<string, string>>) {
  const child = Bun.spawn([program, ...args], { cwd, env: { ...env }, stdout: 'pipe', stderr: 'pipe' })
  const stderr = new Response(child.stderr).text()
  const { said, ended: printed } = outputLog(child.stdout)
  const [url] = await said(/http:\/\/127\.0\.0\.1:\d+/)
  return {
    url: new URL(url),
    async stop() {
      child.kill('SIGTERM')
      return { code: await child.exited, said: await printed, stderr: await stderr }
    },
  }
}

function newFolder(name: string): string {
  const path = join(folder.path, name)
  mkdirSync(path)
  return path
}

describe.skipIf(binary === undefined)(
  binary ? 'the compiled program' : 'the compiled program, which bun test/run.ts binary tests',
  () => {
    test('alone in an empty folder and an empty environment, it sends a code and verifies it', async () => {
      const cwd = newFolder('alone')
      const server = await start(['demo'], cwd, { PORT: '0' })
      const post = async (path: string, fields: object) => {
        const credentials = demoIn(join(cwd, 'data'))
        const response = await fetch(new URL(path, server.url), {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ ...credentials, ...fields }),
        })
        return response.status
      }
      const phone = '+1 202 555 0143'
      expect(await post('/otp/send', { phone })).toBe(200)
      const kept = await fetch(new URL('/outbox/messages?to=12025550143&wait=10', server.url))
      const { messages } = (await kept.json()) as { messages: { text: string }[] }
      expect(await post('/otp/verify', { phone, otp: codeIn(messages[0]?.text) })).toBe(200)
      // The files for the browser and the library of proofs are inside.
      const jwks = '/.well-known/jwks.json'
      const pages = ['/outbox', '/docs', '/docs/docs.css', '/docs/page.js', '/openapi.json', jwks]
      const statuses = await Promise.all(
        pages.map(async (path) => [path, (await fetch(new URL(path, server.url))).status]),
      )
      expect(statuses.filter(([, status]) => status !== 200)).toEqual([])
      const { code, said, stderr } = await server.stop()
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      expect(said).not.toContain('"level"')
      expect(readdirSync(cwd)).toEqual(['data'])
    })

    test('it ignores settings in the working directory', async () => {
      const cwd = newFolder('littered')
      const seen = join(cwd, 'seen')
      writeFileSync(
        join(cwd, 'preload.ts'),
        `require('node:fs').writeFileSync(${JSON.stringify(seen)}, 'here')`,
      )
      writeFileSync(join(cwd, 'bunfig.toml'), 'preload = ["./preload.ts"]\n')
      writeFileSync(join(cwd, '.env'), 'PORT=nowhere\nAPP_CREDENTIALS=none\n')
      writeFileSync(join(cwd, '.env.production'), 'PORT=nowhere\nAPP_CREDENTIALS=none\n')
      writeFileSync(join(cwd, 'tsconfig.json'), '{ "compilerOptions": ')
      writeFileSync(join(cwd, 'package.json'), '{ "name": ')
      for (const args of [['migrate'], ['app', 'list']])
        expect(await run(args, cwd)).toMatchObject({ code: 0, stderr: '' })
      expect(readdirSync(cwd)).not.toContain('seen')
      // Unless an option names the file.
      expect(await run(['app', 'list', '--env-file', '.env'], cwd)).toMatchObject({
        code: 78,
        stderr: expect.stringContaining('APP_CREDENTIALS'),
      })
    })

    test('without an environment it runs in production mode', async () => {
      const cwd = newFolder('production')
      for (const env of [{}, { NODE_ENV: '' }]) {
        const refused = await run(['serve'], cwd, env)
        expect(refused.code).toBe(78)
        expect(refused.stderr).toContain('SMS_PLAIN is "outbox"')
        expect(refused.stderr).toContain('otpost demo')
      }
      writeFileSync(join(cwd, 'development.env'), 'NODE_ENV=development\n')
      const server = await start(['serve', '--env-file', 'development.env'], cwd, { PORT: '0' })
      expect((await fetch(new URL('/outbox', server.url))).status).toBe(200)
      expect((await server.stop()).code).toBe(0)
    })

    test('an invited owner adds a passkey and signs in with it', async () => {
      const cwd = newFolder('passkey')
      const server = await start(['serve'], cwd, { PORT: '0', NODE_ENV: 'development' })
      const request: TestApp['request'] = async (method, path, init) => {
        const answer = await fetch(new URL(path, server.url), { ...init, method, redirect: 'manual' })
        return { status: answer.status, headers: answer.headers, body: (await answer.text()) as never }
      }
      const origin = `http://localhost:${server.url.port}`
      const invited = await run(['admin', 'operator', 'invite', 'ana@example.com', '--role', 'owner'], cwd)
      const [first, second] = [new Visitor({ request }), new Visitor({ request })]
      await first.post('/admin/link', { token: invited.stdout.trimEnd().split('#')[1] ?? '' })
      const authenticator = createAuthenticator()
      const made = authenticator.create(optionsIn(await first.get('/admin/account')), origin)
      expect((await first.post('/admin/account/passkey', { passkey: JSON.stringify(made) })).status).toBe(303)
      const used = authenticator.get(optionsIn(await second.get('/admin/login')), origin)
      expect((await second.post('/admin/login/passkey', { passkey: JSON.stringify(used) })).status).toBe(303)
      expect((await second.get('/admin')).html).toContain('ana@example.com')
      expect((await server.stop()).code).toBe(0)
    })

    test('an internal error is logged with lines of the source, and answered without details', async () => {
      const cwd = newFolder('trace')
      const server = await start(['serve'], cwd, { PORT: '0', NODE_ENV: 'development' })
      const database = new Database(join(cwd, 'data/otpost.db'))
      database.run('PRAGMA busy_timeout = 30000')
      expect((await fetch(new URL('/health', server.url))).status).toBe(200)
      database.run('DROP TABLE codes_and_limits')
      database.close()
      const answer = await fetch(new URL('/integrations/requests', server.url), {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(accessRequest),
      })
      const body = (await answer.json()) as { requestId: string }
      expect([answer.status, Object.keys(body).sort()]).toEqual([
        500,
        ['error', 'message', 'requestId', 'success'],
      ])
      const lines = (await server.stop()).said.trimEnd().split('\n')
      const logged = lines.map((line) => JSON.parse(line)).find(({ err }) => err !== undefined)
      expect(logged).toMatchObject({
        requestId: body.requestId,
        err: { stack: expect.stringMatching(/at \w+ \(src\/adapters\/sqlite\/writer\.ts:\d+:\d+\)/) },
      })
    })

    test('it prints its version, its commit and its Bun version', async () => {
      const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
      const { code, stdout } = await run(['--version'], folder.path)
      expect(code).toBe(0)
      const [, told, commit, bun] = /^otpost (\S+) \(commit (\S+), Bun (\S+)\)\n$/.exec(stdout) ?? []
      expect([told, bun]).toEqual([version, Bun.version])
      // Files may have changed since the build, so the suffix for changed files is ignored.
      expect(commit?.replace('-dirty', '')).toBe(commitOf(root).replace('-dirty', ''))
    })

    test('an unusable temporary folder is reported, with what to do', async () => {
      const cwd = newFolder('tmp')
      expect((await run(['migrate'], cwd)).code).toBe(0)
      const { code, stderr } = await run(['app', 'list'], cwd, { TMPDIR: join(folder.path, 'none') })
      expect(code).toBe(1)
      expect(stderr).toContain('Set TMPDIR')
    })

    test('it contains no path of the build machine', async () => {
      const bytes = Buffer.from(await Bun.file(program).arrayBuffer())
      expect(bytes.includes(`${root}/`)).toBe(false)
      expect(bytes.includes('src/adapters/http/server.ts')).toBe(true)
    })
  },
)

test.skipIf(binary === undefined)('the tests that start the program start the binary', () => {
  expect(programEnv()).toMatchObject({ OUTBOX_IN_PRODUCTION: '1' })
})
