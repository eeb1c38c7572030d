import { createApp, type Overrides } from '../../src/app.ts'
import { readConfig } from '../../src/config/config.ts'
import type { OutboxEntry } from '../../src/domain/ground/ports.ts'
import { mapRoutes, type PhoneRoutes, type SmsProvider } from '../../src/domain/ground/providers.ts'
import { freshBrand } from '../../src/domain/operator/brands.ts'
import type { Ladder } from '../../src/domain/otp/ladder.ts'
import type { Brand } from '../../src/domain/texts/brand.ts'
import { migratedTestDatabase, type TestDatabase } from './database.ts'
import { storeBrand } from './operator.ts'

export { temporaryFolder } from './folder.ts'

export interface Answer {
  readonly status: number
  readonly headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: an answer is of any shape until a test has looked at it.
  readonly body: any
}

/** The application that tests call as, unless they say otherwise. */
export const credentials = { appId: 'shop', apiKey: 'key-of-the-shop' } as const

/**
 * The whole service in this process: a database of its own on the store under test, the outbox as every provider unless
 * `env` or `phoneRoutes` say otherwise, and a clock that only moves when a test advances it. Brand `acme` is active.
 */
export async function createTestApp(
  env: Readonly<Record<string, string>> = {},
  {
    phoneRoutes,
    ladder,
    ...overrides
  }: Pick<Overrides, 'stopwatch' | 'pause' | 'random' | 'owner' | 'mostWaitingJobs'> & {
    readonly phoneRoutes?: Partial<PhoneRoutes>
    /** LADDER and LADDER_WAIT_SECONDS, of these routes. */
    readonly ladder?: Ladder
  } = {},
) {
  const database = env.DATABASE_URL === undefined ? await migratedTestDatabase() : undefined
  const clock = { now: Date.UTC(2026, 0, 1, 12) }
  const lines: object[] = []
  const log = (fields: object) => void lines.push(fields)
  const settings = {
    ...database?.env,
    APP_CREDENTIALS: JSON.stringify({ [credentials.appId]: credentials.apiKey }),
    GLOBAL_LIMIT_PER_MINUTE: '1000000',
    ...env,
  }
  const config = readConfig(settings)
  const makers = (providers: readonly SmsProvider[]) => providers.map((provider) => () => provider)
  const routes = phoneRoutes && {
    ...mapRoutes({ plain: [], template: [], ...phoneRoutes }, makers),
  }
  const given = { ...config, ...(routes && { phoneRoutes: routes }), ...(ladder && { ladder }) }
  const app = await createApp(given, {
    now: () => clock.now,
    log: { info: log, warn: log, error: log },
    pause: async () => {},
    random: () => 0.5,
    env: settings,
    ...overrides,
  })

  const test = {
    app,
    /** Its database; throws where the settings named one. */
    get database(): TestDatabase {
      if (!database) throw new Error('the database of this app is that of its DATABASE_URL')
      return database
    },
    /** What was logged, as the objects that were given to the logger. */
    lines,
    clock,
    advance(seconds: number): void {
      clock.now += Math.round(seconds * 1000)
    },
    /** Makes or replaces a brand. */
    brand(slug: string, properties: Partial<Brand> = {}): Promise<Brand> {
      return storeBrand(app.context, slug, () => ({
        ...freshBrand(slug),
        displayName: slug,
        ...properties,
      }))
    },
    async request(method: string, path: string, init: RequestInit = {}): Promise<Answer> {
      const response = await app.handle(new Request(`http://localhost${path}`, { method, ...init }))
      const text = await response.text()
      const isJson = response.headers.get('content-type')?.includes('json') ?? false
      return {
        status: response.status,
        headers: response.headers,
        body: isJson && text !== '' ? JSON.parse(text) : text,
      }
    },
    get(path: string): Promise<Answer> {
      return test.request('GET', path)
    },
    /** A POST of exactly this body. */
    postRaw(path: string, body: unknown): Promise<Answer> {
      return test.request('POST', path, {
        headers: { 'content-type': 'application/json' },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      })
    },
    /** A POST with credentials, and with brand `acme` on /otp/*; a field given as undefined is left out. */
    post(path: string, fields: Readonly<Record<string, unknown>> = {}): Promise<Answer> {
      const brand = path.startsWith('/otp/') ? { brandId: 'acme' } : {}
      return test.postRaw(path, { ...credentials, ...brand, ...fields })
    },
    /** The messages in the outbox, oldest first. */
    async outbox(to?: string): Promise<readonly OutboxEntry[]> {
      const { body } = await test.get(`/outbox/messages${to ? `?to=${encodeURIComponent(to)}` : ''}`)
      return body.messages
    },
    /** The code in the last message to a recipient. */
    async lastCode(to: string): Promise<string> {
      return codeIn((await test.outbox(to)).at(-1)?.text)
    },
    /** The event log's record of an answered request. */
    async eventsOf({ body: { requestId } }: Pick<Answer, 'body'>) {
      // The event log gets a request in the turn after the answer.
      await new Promise((resolve) => setImmediate(resolve))
      const { eventLog } = app.context
      const [trace, deliveries] = await Promise.all([
        eventLog.trace(requestId),
        eventLog.deliveries({ requestId, limit: 1000 }),
      ])
      return { trace, deliveries }
    },
    async close(): Promise<void> {
      await app.close()
      await database?.remove()
    },
  }
  await test.brand('acme', { displayName: 'Acme' })
  return test
}

export type TestApp = Awaited<ReturnType<typeof createTestApp>>

/** The six digits in a text. */
export function codeIn(text: string | null | undefined): string {
  const code = /(?<!\d)\d{6}(?!\d)/.exec(text ?? '')?.[0]
  if (code === undefined) throw new Error(`no code in: ${text}`)
  return code
}

/** Another code than this one. */
export function otherThan(code: string): string {
  return code === '111111' ? '222222' : '111111'
}

/** The status of an answer, with the code of an error. */
export function verdict({ status, body }: Pick<Answer, 'status' | 'body'>): string {
  return body?.error === undefined ? String(status) : `${status} ${body.error}`
}
