import { run } from '../../release/run.ts'

interface Surroundings {
  readonly cwd?: string
  /** All of it; by default that of the tests. */
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly stdin?: Uint8Array | 'ignore'
}

/** Runs a program to its end. */
export async function ended(
  command: readonly string[],
  { cwd = process.cwd(), env = process.env, stdin = 'ignore' }: Surroundings = {},
): Promise<{ code: number; stdout: string; stderr: string }> {
  const child = Bun.spawn([...command], { cwd, env: { ...env }, stdin, stdout: 'pipe', stderr: 'pipe' })
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  return { code, stdout, stderr }
}

/** The output of a program that must end well. */
export async function outputOf(...call: Parameters<typeof ended>): Promise<string> {
  const { code, stdout, stderr } = await ended(...call)
  if (code !== 0) throw new Error(`${call[0].join(' ')} ended with ${code}: ${stderr}${stdout}`)
  return stdout
}

/** Reads what a program prints, to its end: the program would block on a full pipe. */
export function outputLog(...streams: readonly ReadableStream<Uint8Array>[]) {
  let all = ''
  let searchedTo = 0
  const waiting = new Set<() => void>()
  const read = async (stream: ReadableStream<Uint8Array>) => {
    const decoder = new TextDecoder()
    for await (const chunk of stream) {
      all += decoder.decode(chunk, { stream: true })
      for (const look of waiting) look()
    }
  }
  const ended = Promise.all(streams.map(read)).then(() => all)
  /** The first match from where the last one ended. */
  const said = (pattern: RegExp) => {
    const { promise, resolve, reject } = Promise.withResolvers<RegExpExecArray>()
    const look = () => {
      const match = pattern.exec(all.slice(searchedTo))
      if (!match) return
      waiting.delete(look)
      searchedTo += match.index + match[0].length
      resolve(match)
    }
    waiting.add(look)
    look()
    void ended.then(() => reject(new Error(`it ended without ${pattern}: ${all}`)))
    return promise
  }
  return { said, ended, text: () => all }
}

/** A new key and its certificate, self-signed unless an option says otherwise. */
export function makeCertificate(cert: string, key: string, ...options: readonly string[]): void {
  const kind = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
  run(['openssl', 'req', ...kind, '-keyout', key, '-out', cert, ...options])
}
