import { expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import { environmentFor, startSandbox } from '../support/sandbox.ts'

// Processes share two cores with the tests beside these.
setDefaultTimeout(120_000)

const script = join(import.meta.dir, '../../examples/curl/session.sh')
const phone = '+1 202 555 0143'

/** Runs the script; `typed` is given to it when it asks for the code. */
async function session(env: Record<string, string>, phone: string, typed?: () => Promise<string>) {
  const { PATH = '' } = process.env
  const shell = Bun.spawn(['sh', script, phone], {
    env: { PATH, ...env },
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  let stdout = ''
  const decoder = new TextDecoder()
  let asked = false
  for await (const chunk of shell.stdout) {
    stdout += decoder.decode(chunk, { stream: true })
    if (asked || !stdout.endsWith('The code: ')) continue
    asked = true
    shell.stdin.write(`${await typed?.()}\n`)
    shell.stdin.end()
  }
  return { code: await shell.exited, stdout, stderr: await new Response(shell.stderr).text(), asked }
}

/** What it was answered, a word each. */
const verdicts = (stdout: string) =>
  [...stdout.matchAll(/^ {2}(\d{3}) (\{.*\})$/gm)].map(([, status, body = '']) => {
    const { error } = JSON.parse(body)
    return error ? `${status} ${error}` : status
  })
const expected = ['200', '429 cooldown_active', '401 mismatch', '200', '404 not_found', '200']

test.skipIf(!Bun.which('curl'))(
  Bun.which('curl')
    ? 'the curl example sends a code, is refused what it should be, and verifies'
    : 'The curl example is not tested: there is no curl. Install it (apt-get install curl).',
  async () => {
    await using otpost = await startSandbox()
    const env = environmentFor(otpost)
    const first = await session(env, phone)
    expect(first.stderr).toBe('')
    expect(verdicts(first.stdout)).toEqual(expected)
    expect(first.stdout).toContain('to be asked again in 30 seconds')
    expect(first).toMatchObject({ code: 0, asked: false })
    expect(await otpost.messagesTo(phone)).toHaveLength(2)

    // It ends at the first answer that is another one: too soon for another code, then a key that is wrong.
    const again = await session(env, phone)
    expect(again.code).toBe(1)
    expect(again.stderr).toBe('expected 200 -\n')
    expect(verdicts(again.stdout)).toEqual(['429 cooldown_active'])
    const wrong = await session({ ...env, OTPOST_API_KEY: 'a "wrong" \\ key' }, '+1 202 555 0144')
    expect(wrong.code).toBe(1)
    expect(verdicts(wrong.stdout)).toEqual(['403 forbidden'])
    const none = await session({ ...env, OTPOST_BRAND_ID: '' }, phone)
    expect(none.code).not.toBe(0)
    expect(none.stderr).toContain('OTPOST_BRAND_ID')

    // Where there is no outbox, whoever has the phone types the code.
    await using server = serverWithoutOutbox(otpost.url)
    const typed = await session({ ...env, OTPOST_URL: server.url }, '+1 202 555 0145', () =>
      otpost.codeFor('+1 202 555 0145'),
    )
    expect(typed).toMatchObject({ code: 0, stderr: '', asked: true })
    expect(verdicts(typed.stdout)).toEqual(expected)
    for (const { stdout, stderr } of [first, again, wrong, none, typed]) {
      expect(stdout + stderr).not.toContain(otpost.apiKey)
    }
  },
)

/** The same otpost, as if its messages went out. */
function serverWithoutOutbox(url: string) {
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      const { pathname } = new URL(request.url)
      if (pathname.startsWith('/outbox')) return new Response(null, { status: 404 })
      return fetch(new URL(pathname, url), {
        method: request.method,
        headers: { 'content-type': 'application/json' },
        body: request.body,
      })
    },
  })
  return { url: server.url.origin, [Symbol.asyncDispose]: () => server.stop(true) }
}
