import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { openApi, openApiText } from '../../src/adapters/http/openapi.ts'
import { otherThan, temporaryFolder } from '../support/app.ts'
import { environmentFor, startSandbox } from '../support/sandbox.ts'
import { pageAt, root } from './pages.ts'

// The first sample of each page in docs/api sends and verifies a code against a sandbox.

const languages = [
  { language: 'sh', page: 'curl', file: 'send.sh', run: ['sh', 'send.sh'], repeats: false },
  { language: 'js', page: 'node', file: 'send.mjs', run: ['node', 'send.mjs'], repeats: false },
  { language: 'python', page: 'python', file: 'send.py', run: ['python3', 'send.py'], repeats: true },
  { language: 'php', page: 'php', file: 'send.php', run: ['php', 'send.php'], repeats: true },
  { language: 'go', page: 'go', file: 'send.go', run: ['go', 'run', 'send.go'], repeats: false },
  {
    language: 'java',
    page: 'java',
    file: 'SendAndVerify.java',
    run: ['java', 'SendAndVerify.java'],
    repeats: false,
  },
] as const

/** Whether a program is there, with what the sample needs of it. */
function canRun([program]: readonly string[]): boolean {
  if (!program || !Bun.which(program)) return false
  return program !== 'php' || Bun.spawnSync(['php', '-m']).stdout.toString().includes('curl')
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

/**
 * A proxy that loses the answer to the first attempt of each request, and answers the second with unavailable. `keys` has the
 * path and the idempotency key of each attempt.
 */
async function startForgetfulProxy() {
  const keys: string[] = []
  const server = createServer(async (request, answer) => {
    const key = `${request.url} ${request.headers['idempotency-key']}`
    keys.push(key)
    const attempt = keys.filter((each) => each === key).length
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    if (attempt === 2) {
      answer.writeHead(503, { 'retry-after': '0' })
      answer.end(JSON.stringify({ success: false, error: 'unavailable', message: '', requestId: '' }))
      return
    }
    const forwarded = await fetch(new URL(request.url ?? '', otpost.url), {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'idempotency-key': key.split(' ')[1] ?? '',
        authorization: request.headers.authorization ?? '',
      },
      body: Buffer.concat(chunks),
    })
    const text = await forwarded.text()
    if (attempt === 1) request.socket.destroy()
    else answer.writeHead(forwarded.status).end(text)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, keys, stop: () => server.close() }
}

describe.each(languages)('docs/api/$page.md', ({ language, page, file, run, repeats }) => {
  const [program] = run

  test.skipIf(!canRun(run)).each([
    ['the right code', 'verified'],
    ['a wrong code', 'mismatch'],
  ])(`sends a code and verifies ${'%s'} (needs ${program})`, async (which, expected) => {
    await runSample(which === 'the right code', expected)
  })

  const repeating = `repeats a request without an answer, with the same key (needs ${program})`
  const repeatingTest = async () => {
    const proxy = await startForgetfulProxy()
    const { length } = await otpost.messagesTo('+1 202 555 0143')
    await runSample(true, 'verified', proxy.url)
    await runSample(false, 'mismatch', proxy.url)
    expect(await otpost.messagesTo('+1 202 555 0143')).toHaveLength(length + 2)
    const attempts = Object.entries(Object.groupBy(proxy.keys, (key) => key))
    expect(attempts.map(([key, all]) => [key.split(' ')[0], all?.length])).toEqual([
      ['/otp/send', 3],
      ['/otp/verify', 3],
      ['/otp/send', 3],
      ['/otp/verify', 3],
    ])
    proxy.stop()
  }
  if (repeats) test.skipIf(!canRun(run))(repeating, repeatingTest)

  async function runSample(isRight: boolean, expected: string, url = otpost.url): Promise<void> {
    const sample = pageAt(`docs/api/${page}.md`).samples.find((each) => each.language === language)
    writeFileSync(join(folder.path, file), sample?.code ?? expect.unreachable())
    const child = Bun.spawn([...run], {
      cwd: folder.path,
      env: { PATH: process.env.PATH ?? '', HOME: folder.path, ...environmentFor(otpost), OTPOST_URL: url },
      stdin: 'pipe',
      stdout: 'pipe',
      stderr: 'inherit',
    })
    let printed = ''
    const decoder = new TextDecoder()
    for await (const chunk of child.stdout) {
      const isFirst = printed === ''
      printed += decoder.decode(chunk, { stream: true })
      if (!isFirst) continue
      const right = await otpost.codeFor('+1 202 555 0143')
      child.stdin.write(`${isRight ? right : otherThan(right)}\n`)
      child.stdin.end()
    }
    // A repeated answer has the seconds that are left.
    expect(printed).toMatch(new RegExp(`^expires in (?:300|2\\d\\d)\\n${expected}\\n$`))
    await child.exited
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
