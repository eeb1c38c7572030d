import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readConfig } from '../../src/config/config.ts'
import { openContext } from '../../src/context.ts'
import { notifyTemplateKeys } from '../../src/domain/messages/templates.ts'
import { putBrand } from '../../src/domain/operator/operator.ts'
import type { Answer } from '../support/app.ts'
import { temporaryFolder } from '../support/folder.ts'
import { tester } from '../support/operator.ts'
import { programEnv, programLine } from '../support/program.ts'
import { otpost, startServer } from '../support/server.ts'

/** One way around a limit, tried on a running server. */
export interface Attack {
  /** What is tried, such as `5 spellings of one number`. */
  readonly title: string
  /** Resolves to what happened where a limit was passed; undefined: the limit held. */
  readonly play: () => Promise<string | undefined>
}

/** The active brands of each target. Those of `dlt` go by the template route where OTP_SMS_MODE says so. */
export const brands = ['acme', 'second', 'third', 'dlt'] as const

/** What lets one target send often enough for an attack on another limit. */
export const noSendLimits = {
  SMS_COOLDOWN_SECONDS: '0',
  PHONE_LIMIT_PER_MINUTE: '1000000',
  PHONE_LIMIT_PER_HOUR: '1000000',
}

/** The attack can choose its IP address with the header X-Forwarded-For. */
export const behindProxy = { TRUSTED_PROXIES: '127.0.0.1' }

/** A server process of its own, with a new database that has the brands. */
export async function startTarget(env: Readonly<Record<string, string>> = {}) {
  const ending = new AsyncDisposableStack()
  const folder = temporaryFolder()
  ending.defer(() => folder.remove())
  const database = { DATABASE_URL: `file:${join(folder.path, 'otpost.db')}` }
  const settings = { ...database, ...env }
  try {
    const context = await openContext(readConfig(database))
    for (const slug of brands) {
      const properties = {
        displayName: `Brand ${slug}`,
        notifyTemplates: notifyTemplateKeys,
        loginIdEnabled: true,
      }
      await putBrand(context.acting(tester), slug, { ...properties, dltEnabled: slug === 'dlt' })
    }
    await context.close()
    const server = await startServer(settings)
    ending.defer(async () => void (await server.stop('SIGKILL')))
    return {
      ...server,
      /** What a command on the same machine needs to find it. */
      env: { ...settings, PORT: server.url.port },
      /** A POST from an IP address, where the server is behind a proxy. */
      postFrom: (ip: string, path: string, fields: object): Promise<Answer> =>
        server.request('POST', path, {
          headers: { 'content-type': 'application/json', 'x-forwarded-for': ip },
          body: JSON.stringify(fields),
        }),
      /** The messages of the outbox. */
      async messages(to?: string): Promise<readonly { to: string; text: string }[]> {
        const { body } = await server.get(`/outbox/messages${to ? `?to=${encodeURIComponent(to)}` : ''}`)
        return body.messages
      },
      [Symbol.asyncDispose]: () => ending.disposeAsync(),
    }
  } catch (error) {
    await ending.disposeAsync()
    throw error
  }
}

export type Target = Awaited<ReturnType<typeof startTarget>>

/** An attack on a target with these settings. */
export function attack(
  title: string,
  settings: Readonly<Record<string, string>>,
  play: (target: Target) => Promise<string | undefined>,
): Attack {
  return {
    title,
    async play() {
      await using target = await startTarget(settings)
      return await play(target)
    },
  }
}

/** What an answer says in one word. */
export function verdict({ status, body }: Answer): string {
  return body?.error === undefined ? String(status) : `${status} ${body.error}`
}

/** What is wrong where this is not what was to be answered. */
export function unless(expected: string | RegExp, answer: Answer, what: string): string | undefined {
  const found = verdict(answer)
  const isExpected = typeof expected === 'string' ? found === expected : expected.test(found)
  return isExpected ? undefined : `${what}: ${found}`
}

/** The problems among some, as one. */
export function anyOf(problems: readonly (string | undefined)[]): string | undefined {
  const found = problems.filter((problem) => problem !== undefined)
  return found.length === 0 ? undefined : found.join('; ')
}

/** Whether a server with these settings refuses to start because of one of them. */
export async function unlessRefused(
  name: string,
  env: Readonly<Record<string, string>>,
): Promise<string | undefined> {
  try {
    await using _ = await startTarget(env)
    return `${name}=${env[name]} starts`
  } catch (error) {
    return String(error).includes(name) ? undefined : String(error)
  }
}

/** What `doctor` says that is not all right, with a word in it. */
export async function doctorWarning(
  words: RegExp,
  env: Readonly<Record<string, string>>,
): Promise<string | undefined> {
  const { stdout, stderr } = await otpost(['doctor', '--json'], env)
  if (stdout === '') throw new Error(stderr)
  const findings: readonly { level: string }[] = JSON.parse(stdout)
  return findings
    .filter(({ level }) => level !== 'ok')
    .map((finding) => JSON.stringify(finding))
    .find((finding) => words.test(finding))
}

/** Whether a log has a warning with these words. */
export function hasWarned(lines: readonly string[], words: RegExp): boolean {
  return lines.some((line) => words.test(line) && JSON.parse(line).level >= 40)
}

/** Runs a command with a standard input; resolves to its exit status. */
export async function statusWith(args: readonly string[], stdin: string): Promise<number> {
  const stdio = { stdin: Buffer.from(stdin), stdout: 'ignore', stderr: 'ignore' } as const
  return Bun.spawn(programLine(args), { env: programEnv(), ...stdio }).exited
}

/** The status of a GET of exactly this path with exactly this Host, and the whole answer. */
export async function rawGet(
  { url }: Pick<Target, 'url'>,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ status: number; text: string }> {
  const { promise, resolve } = Promise.withResolvers<string>()
  let text = ''
  const lines = Object.entries({ host: url.host, connection: 'close', ...headers })
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  await Bun.connect({
    hostname: '127.0.0.1',
    port: Number(url.port),
    socket: {
      open: (socket) => void socket.write(`GET ${path} HTTP/1.1\r\n${head}\r\n`),
      data: (_, bytes) => {
        text += bytes.toString()
      },
      close: () => resolve(text),
    },
  })
  const whole = await promise
  return { status: Number(whole.split(' ')[1]), text: whole }
}

/** A file of the repository. */
export function repositoryFile(path: string): string {
  return readFileSync(join(import.meta.dir, '../..', path), 'utf8')
}
