import { readStoreConfig } from '../../src/config/store.ts'
import { openContext } from '../../src/context.ts'
import { putBrand } from '../../src/domain/operator/operator.ts'
import type { Answer } from '../support/app.ts'
import { type Ask, contradictions, History, type Load, load, readBack } from '../support/history.ts'
import { tester } from '../support/operator.ts'
import { type PostgresServer, queryOnce } from '../support/postgres.ts'
import { startReceiver } from '../support/receiver.ts'
import { expectError } from '../support/rows.ts'
import { startServer, type TestServer } from '../support/server.ts'

/**
 * A request that was answered 500, or not at all: nobody knows whether it had its effect. Where it had, it had it before
 * this is thrown.
 */
export class Unsure extends Error {
  override readonly name = 'Unsure'
}

/** One server of several on a database. */
export interface Node {
  readonly name: string
  readonly server: TestServer
  /**
   * For a history: rejects with Unsure where nobody can know what has been done, once the database is there and through
   * with it.
   */
  readonly ask: Ask
  /** As `ask`, but rejects at once: for a phone that is asked for once. */
  readonly probe: Ask
  /** Ends it by SIGKILL; resolves when nothing is left of it in the database either. */
  kill(): Promise<void>
}

/** What a scene is played on. */
export interface SceneOptions {
  /** Settings of all nodes. */
  readonly env?: Readonly<Record<string, string>>
  /** Leaves the database empty: no schema, no brand. */
  readonly isEmpty?: boolean
}

/**
 * A database of its own with brand `acme`, a gateway for SMS, the history of both, and as many nodes as are asked for; all
 * ended after it.
 */
export async function openScene(postgres: PostgresServer, { env = {}, isEmpty = false }: SceneOptions = {}) {
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
  /** What is asked beside the nodes. */
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
    /** Tells that the data are on another server from now on, with the same users. */
    movedTo(port: number): void {
      const url = new URL(postgres.url)
      url.port = String(port)
      watched = { query: (text, values) => queryOnce(url.href, text, values) }
    },
    /** How many requests were answered 500, and how long the slowest of them took. */
    refusals: () => ({ count: refused.size, longestMs: Math.round(longestRefusalMs) }),
    /** The database's user of a node, by which its connections are told from those of others; and its URL. */
    async userOf(name: string, port = postgres.port): Promise<string> {
      const user = `node_${name}_${databaseUrl.slice(-8)}`
      const url = new URL(databaseUrl)
      await postgres.query(
        `DO $$ BEGIN CREATE ROLE "${user}" SUPERUSER LOGIN PASSWORD '${url.password}'; EXCEPTION WHEN duplicate_object THEN END $$`,
      )
      url.username = user
      url.port = String(port)
      return url.href
    },
    /**
     * Starts a node.
     *
     * @param name the same for one that is started again
     * @param options the port that the database is reached by, settings, and a module that is loaded first
     */
    async start(
      name: string,
      options: { port?: number; env?: Readonly<Record<string, string>>; preload?: string } = {},
    ): Promise<Node> {
      const url = await scene.userOf(name, options.port)
      const user = new URL(url).username
      const server = await startServer({ ...settings, DATABASE_URL: url, ...options.env }, options.preload)
      let killed: Promise<void> | undefined
      /** Resolves when the database is through with all that this node has asked for. */
      const idle = async (): Promise<void> => {
        let since: unknown = null
        for (;;) {
          try {
            const [row] = await watched.query(
              `SELECT clock_timestamp()::text AS now, count(*) FILTER (WHERE $2 OR (state <> 'idle'
                  AND query_start <= coalesce($3::timestamptz, clock_timestamp())))::int AS count
                FROM pg_stat_activity WHERE usename = $1`,
              [user, killed !== undefined, since],
            )
            if (row?.count === 0) return
            // What begins later is somebody else's.
            since ??= row?.now
          } catch {
            // A server that is away does nothing for anybody.
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
    /** Like `load`, but who gets no sure answer goes on too, and each thinks for a moment before the next request. */
    async load(
      asks: () => readonly Ask[],
      { seed, clients, phones, goesOn = () => true }: Load,
      answered: () => void,
    ) {
      const askOf = (index: number): Ask => {
        return (path, fields) => {
          const present = asks()
          const ask = present[index % present.length]
          if (!ask) throw new Error('nobody is there to be asked')
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
          // So that the machine has time for what is started meanwhile.
          await Bun.sleep(thinkMs)
        }
      }
      await Promise.all(Array.from({ length: clients }, (_, index) => client(index)))
    },
    /**
     * Asks each node for codes, one new phone after another, until all have sent one again. What they refuse in the
     * meantime must be told in the envelope.
     *
     * @param healing when the database came back, as performance.now() told; undefined until then
     * @returns after how many milliseconds from there each node sent its first code
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
    /** Asks a node for what the database knows of the history, and compares; fails with what does not fit. */
    async check({ ask }: Node, told: string): Promise<void> {
      await readBack(history, ask)
      const problems = contradictions(history, { cooldownMs: 1000, phonePerMinute: 3 })
      for (const { requestId, phone } of receiver.received.map(({ body }) => ({ ...body, phone: body.to }))) {
        if (refused.has(requestId)) problems.push(`${phone}: a send that was answered 500 was delivered`)
      }
      if (problems.length > 0) throw new Error(`${told}\n${problems.join('\n')}`)
    },
    /** Fails where too little of something has happened for the check to mean much. */
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

/** FAULTS_SEED lets the same clients ask the same again, as far as a busy machine allows. */
export function newSeed(): number {
  return Number(process.env.FAULTS_SEED ?? Date.now() % 1_000_000)
}

/** Shows what was measured, where FAULTS_FIGURES asks for it. */
export function tell(what: string, figures: object): void {
  if (process.env.FAULTS_FIGURES) console.log(`${what}: ${JSON.stringify(figures)}`)
}
