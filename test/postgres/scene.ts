import { readStoreConfig } from '../../src/config/store.ts'
import { openContext } from '../../src/context.ts'
import { putBrand } from '../../src/domain/operator/brands.ts'
import type { Answer } from '../support/app.ts'
import { type Ask, contradictions, History, type Load, load, readBack } from '../support/history.ts'
import { tester } from '../support/operator.ts'
import {
  freshDatabase,
  givenDatabase,
  type PostgresServer,
  partitionTables,
  queryOnce,
  startPostgres,
  withoutOwnPostgres,
} from '../support/postgres.ts'
import { startReceiver } from '../support/receiver.ts'
import { expectError } from '../support/rows.ts'
import { startServer, type TestServer } from '../support/server.ts'

/**
 * A request that was answered 500, or not at all: its effect is unknown. If it has an effect, then before this is thrown.
 */
export class Unsure extends Error {
  override readonly name = 'Unsure'
}

/** A server, one of several on a database. */
export interface Node {
  readonly name: string
  readonly server: TestServer
  /**
   * For a history: rejects with Unsure if the effect is unknown, once the database is available and has finished the
   * request.
   */
  readonly ask: Ask
  /** As `ask`, but rejects at once: for a phone that is used once. */
  readonly probe: Ask
  /** Ends it by SIGKILL. Resolves when its connections have left the database too. */
  kill(): Promise<void>
}

/** The database and settings of a scene. */
export interface SceneOptions {
  /** Settings of all nodes. */
  readonly env?: Readonly<Record<string, string>>
  /** Empties the database: no schema, no brand. */
  readonly isEmpty?: boolean
}

export type SceneServer = Pick<
  PostgresServer,
  'url' | 'port' | 'database' | 'query' | typeof Symbol.asyncDispose
>

/** What to say where there is no server for a scene; undefined where there is one. */
export const withoutSceneServer = givenDatabase === undefined ? withoutOwnPostgres : undefined

/** The server of the given database, whose tables are there from the start, or a PostgreSQL of the test's own. */
export async function sceneServer(): Promise<SceneServer> {
  if (givenDatabase === undefined) return startPostgres()
  const { url, remove } = await freshDatabase()
  return {
    url,
    port: Number(new URL(url).port || 5432),
    database: async () => url,
    query: (text, values) => queryOnce(url, text, values),
    [Symbol.asyncDispose]: remove,
  }
}

/**
 * A database with brand `acme`, an SMS gateway, the history of both, and any number of nodes. All of them end with the
 * scene.
 */
export async function openScene(postgres: SceneServer, { env = {}, isEmpty = false }: SceneOptions = {}) {
  const ending = new AsyncDisposableStack()
  const receiver = startReceiver()
  ending.defer(() => receiver.stop())
  const databaseUrl = await postgres.database()
  const settings = {
    DATABASE_URL: databaseUrl,
    SECRET_KEY: 'the-secret-of-the-tests-of-32-bytes-or-more',
    PROVIDER_TIMEOUT_MS: '30000',
    SMS_COOLDOWN_SECONDS: '1',
    SMS_PLAIN: 'webhook',
    ...receiver.env,
    ...env,
  }
  if (!isEmpty) {
    const context = await openContext(readStoreConfig(settings))
    await putBrand(context.acting(tester), 'acme', { displayName: 'Acme' })
    await context.close()
  }
  const history = new History(receiver)
  /** Direct access to the database, beside the nodes. */
  let watched: Pick<PostgresServer, 'query'> = postgres
  const refused = new Set<string>()
  let longestRefusalMs = 0

  /** A 500 in the envelope. */
  const noteRefusal = (answer: Answer, tookMs: number): void => {
    expectError(answer, 500, 'internal_error')
    refused.add(answer.body.requestId)
    longestRefusalMs = Math.max(longestRefusalMs, tookMs)
  }

  const scene = {
    settings,
    databaseUrl,
    receiver,
    history,
    /** Sets the server of the database, which has the same users. */
    movedTo(port: number): void {
      const url = new URL(postgres.url)
      url.port = String(port)
      watched = { query: (text, values) => queryOnce(url.href, text, values) }
    },
    /** Divides the rows as a distributed database does. A given one may be distributed. */
    async partition(): Promise<void> {
      if (givenDatabase === undefined) await partitionTables(databaseUrl)
    },
    /** The number of requests that were answered 500, and the time of the slowest of them. */
    refusals: () => ({ count: refused.size, longestMs: Math.round(longestRefusalMs) }),
    /** The database user of a node, which identifies its connections, and its URL. */
    async userOf(name: string, port = postgres.port): Promise<string> {
      const user = `node_${name}_${databaseUrl.slice(-8)}`
      const url = new URL(databaseUrl)
      if (port !== postgres.port) url.host = `127.0.0.1:${port}`
      // There a test may have no right to create users.
      if (givenDatabase !== undefined) return url.href
      await postgres.query(
        `DO $$ BEGIN CREATE ROLE "${user}" SUPERUSER LOGIN PASSWORD '${url.password}'; EXCEPTION WHEN duplicate_object THEN END $$`,
      )
      url.username = user
      return url.href
    },
    /**
     * Starts a node.
     *
     * @param name that of the earlier process for a restarted node
     * @param options the port of the database, settings, and a module to preload
     */
    async start(
      name: string,
      options: { port?: number; env?: Readonly<Record<string, string>>; preload?: string } = {},
    ): Promise<Node> {
      const url = await scene.userOf(name, options.port)
      const user = new URL(url).username
      const server = await startServer({ ...settings, DATABASE_URL: url, ...options.env }, options.preload)
      let killed: Promise<void> | undefined
      /** Resolves when the database has finished all statements of this node. */
      const idle = async (): Promise<void> => {
        let since: unknown = null
        for (;;) {
          try {
            const [row] = await watched.query(
              `SELECT clock_timestamp()::text AS now, count(*) FILTER (WHERE $2 OR (state <> 'idle'
                  AND query_start <= coalesce($3::timestamptz, clock_timestamp())))::int AS count
                FROM pg_stat_activity WHERE usename = $1 AND application_name = 'otpost'`,
              // Connections of one user can be those of any node.
              [user, killed !== undefined && givenDatabase === undefined, since],
            )
            if (row?.count === 0) return
            // Later transactions belong to another node.
            since ??= row?.now
          } catch {
            // A server that is away runs no statement.
          }
          await Bun.sleep(5)
        }
      }
      const probe: Ask = async (path, fields) => {
        const startedAt = performance.now()
        const answer = await server.post(path, fields).catch(async () => {
          await killed
          throw new Unsure()
        })
        if (answer.status < 500) return answer
        noteRefusal(answer, performance.now() - startedAt)
        throw new Unsure()
      }
      const node: Node = {
        name,
        server,
        probe,
        ask: (path, fields) =>
          probe(path, fields).catch(async (error) => {
            await (killed ?? idle())
            throw error
          }),
        kill() {
          killed ??= server.stop('SIGKILL').then(() => idle())
          return killed
        },
      }
      ending.defer(async () => void (await server.stop('SIGKILL')))
      return node
    },
    /** Like `load`, but clients continue after an unknown result, and each pauses before the next request. */
    async load(
      asks: () => readonly Ask[],
      { seed, clients, phones, goesOn = () => true }: Load,
      answered: () => void,
    ) {
      const askOf = (index: number): Ask => {
        return (path, fields) => {
          const present = asks()
          const ask = present[index % present.length]
          if (!ask) throw new Error('no node is running')
          return ask(path, fields)
        }
      }
      const client = async (index: number) => {
        for (let times = 0; goesOn(); times++) {
          let isAnswered = false
          const once = {
            seed: seed + 1009 * index + 31 * times,
            clients: 1,
            phones,
            goesOn: () => goesOn() && !isAnswered,
          }
          await load(
            history,
            () => askOf(index),
            once,
            () => {
              isAnswered = true
              answered()
            },
          )
          // Leaves time for processes that start meanwhile.
          await Bun.sleep(thinkMs)
        }
      }
      await Promise.all(Array.from({ length: clients }, (_, index) => client(index)))
    },
    /**
     * Requests codes from each node, one new phone after another, until all have sent one again. Errors in the meantime
     * must be in the envelope.
     *
     * @param healing the time from performance.now() at which the database came back; undefined until then
     * @returns the milliseconds from there to the first code of each node
     */
    untilHealed(nodes: readonly Node[], healing: () => number | undefined): Promise<number[]> {
      const heal = async ({ probe }: Node) => {
        for (;;) {
          const isSent = await history.send(probe, '/otp/send', probePhone()).then(
            ({ verdict }) => verdict === '200',
            () => false,
          )
          const since = healing()
          if (isSent && since !== undefined) return Math.round(performance.now() - since)
          await Bun.sleep(20)
        }
      }
      return Promise.all(nodes.map(heal))
    },
    /** Compares the state in the database with the history, through a node. Fails at each difference. */
    async check({ ask }: Node, told: string): Promise<void> {
      await readBack(history, ask)
      const problems = contradictions(history, { cooldownMs: 1000, phonePerMinute: 3 })
      for (const { requestId, phone } of receiver.received.map(({ body }) => ({ ...body, phone: body.to }))) {
        if (refused.has(requestId)) problems.push(`${phone}: a send that was answered 500 was delivered`)
      }
      if (problems.length > 0) throw new Error(`${told}\n${problems.join('\n')}`)
    },
    /** Fails if too few events have happened for a meaningful check. */
    expectEnough(least: number, told: string): void {
      for (const answer of [
        '200',
        '401 mismatch',
        '404 not_found',
        '429 max_attempts',
        '429 cooldown_active',
      ]) {
        const count = history.answers(answer)
        if (count < least) throw new Error(`${told}: only ${count} answers are ${answer}`)
      }
    },
    [Symbol.asyncDispose]: () => ending.disposeAsync(),
  }
  return scene
}

export type Scene = Awaited<ReturnType<typeof openScene>>

const thinkMs = 15

let probes = 0

/** A phone that is in no history. */
function probePhone(): string {
  probes += 1
  return `1303${String(probes).padStart(7, '0')}`
}

/** The phones of a load. */
export function phonesOf(count: number, from = 0): string[] {
  return Array.from({ length: count }, (_, index) => `1${2_000_000_000 + from + index}`)
}

/** With FAULTS_SEED, the same clients send the same requests again, as far as a busy machine allows. */
export function newSeed(): number {
  return Number(process.env.FAULTS_SEED ?? Date.now() % 1_000_000)
}

/** Prints the figures if FAULTS_FIGURES is set. */
export function tell(what: string, figures: object): void {
  if (process.env.FAULTS_FIGURES) console.log(`${what}: ${JSON.stringify(figures)}`)
}
