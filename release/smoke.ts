import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import packageJson from '../package.json'

// Tests a binary on this machine: bun release/smoke.ts BINARY [ARGUMENT…]. It creates a brand and an app,
// serves, sends and verifies a code, makes a backup, and stops. It deletes its folder.

const timeoutMs = 120_000

const phone = '12025550143'

export async function smoke(command: readonly string[]): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'otpost-smoke-'))
  const { PATH, HOME, SYSTEMROOT, TEMP, TMPDIR } = process.env
  const env = {
    ...{ PATH, HOME, SYSTEMROOT, TEMP, TMPDIR },
    DATABASE_URL: `file:${join(folder, 'otpost.db')}`,
    PORT: '0',
    OUTBOX_IN_PRODUCTION: '1',
  }
  const run = async (...args: string[]) => {
    const child = Bun.spawn([...command, ...args], { env, cwd: folder, stdout: 'pipe', stderr: 'pipe' })
    const [out, err, code] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ])
    if (code !== 0) throw new Error(`otpost ${args.join(' ')} ended with ${code}: ${err}${out}`)
    return out.trim()
  }
  try {
    const versionLine = await run('--version')
    if (!versionLine.includes(packageJson.version)) throw new Error(`--version said: ${versionLine}`)
    process.stdout.write(`${versionLine}\n`)
    await run('migrate')
    await run('brand', 'put', 'acme', '--name', 'Acme')
    const credentials = { appId: 'shop', apiKey: await run('app', 'issue', 'shop'), brandId: 'acme' }

    const server = Bun.spawn([...command, 'serve'], { env, cwd: folder, stdout: 'pipe', stderr: 'inherit' })
    const stuck = setTimeout(() => server.kill('SIGKILL'), timeoutMs)
    try {
      const url = await urlIn(server.stdout)
      const post = async (path: string, fields: object) => {
        const response = await fetch(new URL(path, url), {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ ...credentials, phone, ...fields }),
        })
        if (response.status !== 200) throw new Error(`${path}: ${response.status} ${await response.text()}`)
      }
      await post('/otp/send', {})
      const { messages } = (await (await fetch(new URL(`/outbox/messages?to=${phone}`, url))).json()) as {
        messages: readonly { text: string }[]
      }
      await post('/otp/verify', { otp: /\d{6}/.exec(messages.at(-1)?.text ?? '')?.[0] })
      const page = await fetch(new URL('/docs', url))
      if (page.status !== 200) throw new Error(`/docs: ${page.status}`)
      await run('backup', join(folder, 'backup.db'))
      server.kill('SIGTERM')
      const code = await server.exited
      // Windows cannot ask a process to stop.
      if (code !== 0 && process.platform !== 'win32') throw new Error(`the server stopped with ${code}`)
    } finally {
      clearTimeout(stuck)
      server.kill('SIGKILL')
      await server.exited
    }
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 })
  }
}

/** The URL in the log. Later lines are read and dropped. */
async function urlIn(log: ReadableStream<Uint8Array>): Promise<string> {
  const reader = log
    .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
    .getReader()
  let text = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) throw new Error(`the server ended before it listened: ${text}`)
    text += value
    const url = /"url":"([^"]+)"[^\n]*"msg":"listening"/.exec(text)?.[1]
    if (url === undefined) continue
    void (async () => {
      while (!(await reader.read()).done);
    })()
    return url
  }
}

if (import.meta.main) {
  const [program = '', ...args] = process.argv.slice(2)
  const path = resolve(program)
  await smoke([existsSync(`${path}.exe`) ? `${path}.exe` : path, ...args])
  process.stdout.write('sent a code and verified it\n')
}
