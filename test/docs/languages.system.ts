import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openApi } from '../../src/adapters/http/openapi.ts'
import { temporaryFolder } from '../support/app.ts'
import { environmentFor, startSandbox } from '../support/sandbox.ts'
import { pageAt, root } from './pages.ts'

// The first sample of each page in docs/api sends and verifies a code against a sandbox.

// Compilers share two cores with the tests beside these.
setDefaultTimeout(120_000)

const languages = [
  { language: 'python', file: 'send.py', run: ['python3', 'send.py'] },
  { language: 'php', file: 'send.php', run: ['php', 'send.php'] },
  { language: 'go', file: 'send.go', run: ['go', 'run', 'send.go'] },
  { language: 'java', file: 'SendAndVerify.java', run: ['java', 'SendAndVerify.java'] },
] as const

/** Whether a program is there, with what the sample needs of it. */
function canRun([program]: readonly string[]): boolean {
  if (!program || !Bun.which(program)) return false
  return program !== 'php' || Bun.spawnSync(['php', '-m']).stdout.toString().includes('curl')
}

let otpost: Awaited<ReturnType<typeof startSandbox>>
const folder = temporaryFolder()
beforeAll(async () => {
  otpost = await startSandbox({ settings: { SMS_COOLDOWN_SECONDS: 0, PHONE_LIMIT_PER_MINUTE: 100 } })
})
afterAll(async () => {
  await otpost.stop()
  folder.remove()
})

describe.each(languages)('docs/api/$language.md', ({ language, file, run }) => {
  const [program] = run

  test.skipIf(!canRun(run)).each([
    ['the right code', 'verified'],
    ['a wrong code', 'mismatch'],
  ])(`sends a code and verifies ${'%s'} (needs ${program})`, async (which, expected) => {
    const sample = pageAt(`docs/api/${language}.md`).samples.find((each) => each.language === language)
    writeFileSync(join(folder.path, file), sample?.code ?? expect.unreachable())
    const child = Bun.spawn([...run], {
      cwd: folder.path,
      env: { PATH: process.env.PATH ?? '', HOME: folder.path, ...environmentFor(otpost) },
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
      child.stdin.write(`${which === 'a wrong code' ? (right === '111111' ? '222222' : '111111') : right}\n`)
      child.stdin.end()
    }
    expect(printed).toBe(`expires in 300\n${expected}\n`)
    await child.exited
  })
})

test.skipIf(!Bun.which('jq'))(
  'docs/api/openapi-3.0.jq leaves nothing that OpenAPI 3.0 has not (needs jq)',
  () => {
    const { exitCode, stdout, stderr } = Bun.spawnSync(['jq', '-f', join(root, 'docs/api/openapi-3.0.jq')], {
      stdin: Buffer.from(JSON.stringify(openApi('0.0.0', true))),
    })
    expect({ exitCode, said: stderr.toString() }).toEqual({ exitCode: 0, said: '' })
    const converted = JSON.parse(stdout.toString())
    expect(converted.openapi).toBe('3.0.3')
    expect(converted.paths['/notify'].post.requestBody.content['application/json'].schema).toEqual({
      $ref: '#/components/schemas/NotifyRequest',
    })
    expect(converted.components.schemas.NotifyRequest.required).toEqual(['apiKey', 'appId', 'channel', 'to'])

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
