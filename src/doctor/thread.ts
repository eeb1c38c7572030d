import { type Env, variablesOfFiles } from '../config/setting-source.ts'
import { type Finding, fail } from '../domain/health/problem.ts'

export interface Examination {
  readonly env: Env
  /** The file of each variable that came from one. */
  readonly files: ReadonlyMap<string, string>
}

/** More than the time-outs of all checks. */
const longestMs = 15_000

/** The checks of `otpost doctor` in a server, on a thread of their own. Callers at the same time share a run. */
export function checksOn(env: Env): () => Promise<readonly Finding[]> {
  let running: Promise<readonly Finding[]> | undefined
  return () => {
    running ??= run({ env: { ...env }, files: variablesOfFiles(env) }).finally(() => {
      running = undefined
    })
    return running
  }
}

function run(examination: Examination): Promise<readonly Finding[]> {
  const { promise, resolve } = Promise.withResolvers<readonly Finding[]>()
  const thread = new Worker(new URL('./thread-main.ts', import.meta.url).href)
  const broken = (why: string) =>
    resolve([fail('checks', `The checks did not end: ${why}.`, 'Run `otpost doctor`.')])
  const timer = setTimeout(() => broken(`they took longer than ${longestMs / 1000} s`), longestMs)
  thread.onmessage = ({ data }: MessageEvent<readonly Finding[]>) => resolve(data)
  thread.onerror = ({ message }) => broken(message)
  thread.postMessage(examination)
  return promise.finally(() => {
    clearTimeout(timer)
    thread.terminate()
  })
}
