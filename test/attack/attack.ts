import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readConfig } from '../../src/config/config.ts'
import { openContext } from '../../src/context.ts'
import { putBrand } from '../../src/domain/operator/brands.ts'
import { notifyTemplateKeys } from '../../src/domain/texts/templates.ts'
import type { Answer } from '../support/app.ts'
import { temporaryFolder } from '../support/folder.ts'
import { tester } from '../support/operator.ts'
import { otpost, startServer } from '../support/server.ts'

/** Reports what happened instead where a limit did not hold. */
export type Check = (holds: boolean, otherwise: string) => void

/** One way around a limit, tried on a running server. */
export interface Attack {
  /** What is tried, such as `5 spellings of one number`. */
  readonly title: string
  readonly play: (check: Check) => Promise<void> | void
}

/** An attack on a target with these settings. */
export function attack(
  title: string,
  settings: Readonly<Record<string, string>>,
  play: (target: Target, check: Check) => Promise<void>,
): Attack {
  return {
    title,
    async play(check) {
      await using target = await startTarget(settings)
      await play(target, check)
    },
  }
}

/** Tries one; resolves to what happened where the limit did not hold. */
export async function tryAttack({ play }: Attack): Promise<string | undefined> {
  const happened: string[] = []
  try {
    await play((holds, otherwise) => {
      if (!holds) happened.push(otherwise)
    })
  } catch (error) {
    happened.push(`the attack ended with ${error}`)
  }
  return happened.length === 0 ? undefined : happened.join('; ')
}

/** The active brands of each target. Those of `dlt` use the template route if OTP_SMS_MODE says so. */
const brands = ['acme', 'second', 'third', 'dlt'] as const

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

/** An attack that holds where a server with this setting refuses to start. */
export function refusedSetting(title: string, name: string, value: string): Attack {
  return {
    title: `${title}, ${name}=${value}`,
    async play(check) {
      try {
        await using _ = await startTarget({ [name]: value })
        check(false, 'it starts')
      } catch (error) {
        check(String(error).includes(name), String(error))
      }
    },
  }
}

/** Whether `doctor` reports something with these words that is not all right. */
export async function doctorWarns({ env }: Target, words: RegExp): Promise<boolean> {
  const { stdout, stderr } = await otpost(['doctor', '--json'], env)
  if (stdout === '') throw new Error(stderr)
  const findings: readonly { level: string }[] = JSON.parse(stdout)
  return findings.some((finding) => finding.level !== 'ok' && words.test(JSON.stringify(finding)))
}

/** Stops a server; whether its log has a warning with these words. */
export async function hasWarned({ stop, lines }: Target, words: RegExp): Promise<boolean> {
  await stop()
  return lines.some((line) => words.test(line) && JSON.parse(line).level >= 40)
}

/** The status of a GET of exactly this path with exactly these headers. */
export async function statusOf(
  { url }: Target,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<string>()
  const lines = Object.entries({ host: url.host, connection: 'close', ...headers })
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  await Bun.connect({
    hostname: '127.0.0.1',
    port: Number(url.port),
    socket: {
      open: (socket) => void socket.write(`GET ${path} HTTP/1.1\r\n${head}\r\n`),
      data: (_, bytes) => resolve(bytes.toString()),
      close: () => resolve(''),
    },
  })
  return Number((await promise).split(' ')[1])
}

/** A file of the repository. */
export function repositoryFile(path: string): string {
  return readFileSync(join(import.meta.dir, '../..', path), 'utf8')
}
