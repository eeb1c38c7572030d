import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Answer, credentials } from './app.ts'
import { programEnv, programLine } from './program.ts'
import { ended } from './run.ts'

const root = join(import.meta.dir, '../..')

/** The credentials of a demo, whose files are in this folder. */
export function demoIn(folder: string) {
  return { appId: 'demo', apiKey: readFileSync(join(folder, 'demo.apikey'), 'utf8').trim(), brandId: 'acme' }
}

/** Runs one command of otpost to its end, in a process of its own. */
export async function otpost(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  stdin: Uint8Array | 'ignore' = 'ignore',
): Promise<{ code: number; stdout: string; stderr: string }> {
  return await ended(programLine(args), { cwd: root, env: programEnv(env), stdin })
}

/** Servers that a failed test left running end with this process. */
const running = new Set<Bun.Subprocess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/**
 * Starts a real server process on a free port and resolves once it says that it listens.
 *
 * @param env its settings, beside a free port, the shop's credentials and a generous global limit
 * @param preload a module that Bun loads before the program
 * @param line what starts it
 */
export async function startServer(
  env: Readonly<Record<string, string>>,
  preload?: string,
  line = programLine(['serve']),
) {
  const child = Bun.spawn(line, {
    cwd: root,
    env: programEnv({
      PORT: '0',
      APP_CREDENTIALS: JSON.stringify({ [credentials.appId]: credentials.apiKey }),
      GLOBAL_LIMIT_PER_MINUTE: '1000000',
      // What a binary listens to as well.
      ...(preload === undefined ? {} : { BUN_OPTIONS: `--preload=${preload}` }),
      ...env,
    }),
    stdout: 'pipe',
    stderr: 'pipe',
  })
  running.add(child)
  const lines: string[] = []
  const listening = Promise.withResolvers<string>()
  const awaited: { words: string; resolve: () => void }[] = []
  const reading = readLines(child.stdout, (line) => {
    lines.push(line)
    const { msg, url } = JSON.parse(line)
    if (msg === 'listening') listening.resolve(url)
    for (const { words, resolve } of awaited) if (line.includes(words)) resolve()
  })
  const stderr = new Response(child.stderr).text()
  const exited = child.exited.then(async (code) => {
    running.delete(child)
    await reading
    listening.reject(new Error(`the server ended with ${code}: ${await stderr}`))
    return code
  })
  const url = new URL(await listening.promise)

  const request = async (method: string, path: string, init: RequestInit = {}): Promise<Answer> => {
    const response = await fetch(new URL(path, url), { method, ...init })
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.includes('json') ?? false
    return {
      status: response.status,
      headers: response.headers,
      body: isJson && text !== '' ? JSON.parse(text) : text,
    }
  }
  return {
    url,
    child,
    /** Resolves to the exit code, when all it wrote has been read. */
    exited,
    /** Its log, line by line. */
    lines,
    /** Resolves when it has logged a line with these words. */
    logged(words: string): Promise<void> {
      if (lines.some((line) => line.includes(words))) return Promise.resolve()
      return new Promise((resolve) => awaited.push({ words, resolve }))
    },
    stderr,
    request,
    get: (path: string) => request('GET', path),
    /** A POST with the shop's credentials, and with brand `acme` on /otp/*. */
    post: (
      path: string,
      fields: Readonly<Record<string, unknown>> = {},
      headers: Readonly<Record<string, string>> = {},
    ) =>
      request('POST', path, {
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify({
          ...credentials,
          ...(path.startsWith('/otp/') ? { brandId: 'acme' } : {}),
          ...fields,
        }),
      }),
    /** Asks it to stop, and waits until it has. */
    async stop(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<number> {
      child.kill(signal)
      return exited
    },
  }
}

export type TestServer = Awaited<ReturnType<typeof startServer>>

async function readLines(stream: ReadableStream<Uint8Array>, take: (line: string) => void): Promise<void> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) take(line)
  }
}
