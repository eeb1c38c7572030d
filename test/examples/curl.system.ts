import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { environmentFor, startSandbox } from '../support/sandbox.ts'

const script = join(import.meta.dir, '../../examples/curl/session.sh')
const phone = '+1 202 555 0143'

/** Runs the script; `typed` is the answer to its prompt for the code. */
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

/** The error codes of the answers. */
const verdicts = (stdout: string) =>
  [...stdout.matchAll(/^ {2}(\d{3}) (\{.*\})$/gm)].map(([, status, body = '']) => {
    const { error } = JSON.parse(body)
    return error ? `${status} ${error}` : status
  })
const expected = ['200', '429 cooldown_active', '401 mismatch', '200', '404 not_found', '200']

test.skipIf(!Bun.which('curl'))(
  Bun.which('curl')
    ? 'the curl example sends a code, gets the expected errors, and verifies'
    : 'The curl example is not tested: there is no curl. Install it (apt-get install curl).',
  async () => {
    await using otpost = await startSandbox()
    const env = environmentFor(otpost)
    const first = await session(env, phone)
    expect(first.stderr).toBe('')
    expect(verdicts(first.stdout)).toEqual(expected)
    expect(first.stdout).toContain('retry after 30 seconds')
    expect(first).toMatchObject({ code: 0, asked: false })
    expect(await otpost.messagesTo(phone)).toHaveLength(2)

    // The script stops at the first error: too soon for another code, then a wrong API key.
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

    // Without an outbox, the user types the code from the phone.
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

/** The same otpost, with settings as if it delivered its messages. */
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
