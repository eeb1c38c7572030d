import { Client } from 'pg'
import { isHashOf } from '../../src/adapters/crypto/secrets.ts'
import { type Database, openDatabase } from '../../src/adapters/postgres/database.ts'
import { createOtpStore } from '../../src/adapters/postgres/otp-store.ts'
import { DatabaseUnavailable, StatementError } from '../../src/adapters/postgres/pool.ts'
import { createSweep } from '../../src/adapters/postgres/sweep.ts'
import { postgresStores, targetOf } from '../store/postgres-database.ts'
import { tester } from '../support/operator.ts'
import type { DatabaseOfATest } from '../support/postgres.ts'
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts'
import {
  appsOf,
  type Breakage,
  type Calls,
  type Ground,
  makeBrands,
  type Server,
  type Site,
} from './ground.ts'
import type { Profile } from './history.ts'
import { baseProfile } from './profile.ts'
import { Random } from './random.ts'

/** A server with its own connections over its own proxy. */
interface PostgresServer extends Server {
  readonly database: Database
  readonly network: TcpProxy
}

const problems: Site['problems'] = {
  busy: () => new DatabaseUnavailable('none of the connections was free'),
  full: () => new StatementError('otpost_insert_rows: could not extend file (53100)', '53100'),
  'answer lost': () => new DatabaseUnavailable('the connection broke off before it answered'),
}

/** Longer than a history's clock can advance. */
const historyMs = 400 * 86_400_000

/**
 * One database for all histories, with up to four servers that stay open, because opening one takes longer
 * than a history.
 */
export class PostgresGround implements Ground {
  private readonly servers: PostgresServer[] = []
  private histories = 0
  private opened = 0

  private constructor(
    private readonly url: string,
    /** Takes locks and ends connections from outside. */
    private readonly side: Client,
  ) {}

  static async start({ url }: DatabaseOfATest): Promise<PostgresGround> {
    const side = new Client({ connectionString: url })
    await side.connect()
    const ground = new PostgresGround(url, side)
    const { database } = await ground.server(0)
    await makeBrands({ operator: postgresStores(database).operator, now: () => 0, actor: tester })
    return ground
  }

  profileOf(seed: number): Profile {
    const random = new Random(seed ^ 0x9057)
    const servers = random.pick([1, 2, 2, 4] as const)
    const isExact = servers === 1 || random.chance(0.4)
    const profile = { ...baseProfile(random), storage: 'postgres', servers, isExact } as const
    if (!isExact) return profile
    // So small that no unit is leased: a renewal is a transaction beside those of the calls, in any order.
    const globalPerMinute = Math.min(profile.limits.globalPerMinute, 100)
    return { ...profile, limits: { ...profile.limits, globalPerMinute } }
  }

  beginning(): number {
    return Date.UTC(2026, 0, 1, 12) + historyMs * this.histories++
  }

  async open(profile: Profile): Promise<Site> {
    await this.side.query('DELETE FROM codes_and_limits')
    const servers: PostgresServer[] = []
    for (let index = 0; index < profile.servers; index++) servers.push(await this.server(index))
    return {
      servers,
      problems,
      breakages: 4,
      isConcerned: () => true,
      breakage: (random) => {
        const breakage = this.breakage(servers, random)
        return {
          ...breakage,
          run: async (calls) => {
            await breakage.run(calls)
            for (const server of servers) await healed(server)
          },
        }
      },
      outlivesCalls: true,
      crash: async (index, calls) => {
        const server = servers[index]
        if (!server) return
        // Its connections end during its statements, which continue without it.
        await this.whileLocked('table', calls, async (waits) => {
          if (waits) calls.note('crash in the middle of a call')
          server.network.cut()
        })
        await this.quiet()
        await this.end(index)
        servers[index] = await this.server(index)
      },
      close: async () => {},
    }
  }

  async close(): Promise<void> {
    for (const index of this.servers.keys()) await this.end(index)
    await this.side.end()
  }

  /** The server at an index; starts it if there is none. */
  private async server(index: number): Promise<PostgresServer> {
    const present = this.servers[index]
    if (present) return present
    const to = new URL(this.url)
    const network = await startTcpProxy(Number(to.port || 5432), to.hostname)
    to.host = `127.0.0.1:${network.port}`
    const database = await openDatabase(
      { ...targetOf(to.href), poolSize: 2 },
      // Each call has its own time.
      () => 0,
      () => {},
    )
    const { brands, keys } = postgresStores(database)
    const server = {
      database,
      network,
      store: createOtpStore(database, isHashOf),
      brands,
      apps: appsOf(keys),
      sweep: createSweep(database, `node ${++this.opened}`),
    }
    this.servers[index] = server
    return server
  }

  private async end(index: number): Promise<void> {
    const server = this.servers[index]
    if (!server) return
    delete this.servers[index]
    await server.database.close()
    await server.network[Symbol.asyncDispose]()
  }

  private breakage(servers: readonly PostgresServer[], random: Random): Breakage {
    const networkOf = (calls: Calls) => servers.find((server) => server === calls.server)?.network
    return random.weighted<Breakage>([
      [
        3,
        {
          what: 'another session locks all rows for a moment',
          fails: false,
          run: async (calls) => {
            await this.whileLocked('rows', calls, async (waits) => {
              if (waits) calls.note('database: locked')
            })
            await calls.settled()
          },
        },
      ],
      [
        3,
        {
          what: 'the connections are ended during calls',
          fails: true,
          run: async (calls) => {
            await this.whileLocked('table', calls, async (waits) => {
              if (waits) calls.note('database: terminated')
              await this.terminate()
            })
            await calls.settled()
          },
        },
      ],
      [
        4,
        {
          what: 'the network is cut before the responses arrive',
          fails: true,
          run: async (calls) => {
            const network = networkOf(calls)
            await this.whileLocked('table', calls, async (waits) => {
              if (waits) calls.note('database: answer lost')
              network?.silencePresent()
            })
            await this.quiet()
            network?.cut()
            await calls.settled()
          },
        },
      ],
    ])
  }

  /**
   * Lets calls run while writes are blocked, and acts when they wait for that or none does: locks the
   * existing rows, or the whole tables.
   */
  private async whileLocked(
    what: 'rows' | 'table',
    calls: Calls,
    work: (waits: boolean) => Promise<void>,
  ): Promise<void> {
    await this.side.query('BEGIN')
    await this.side.query(
      what === 'rows'
        ? 'SELECT FROM codes_and_limits ORDER BY subject, name FOR UPDATE'
        : // Rows can still be read and locked: the statement that waits is the last of a batch, followed by its COMMIT.
          'LOCK TABLE codes_and_limits IN SHARE MODE',
    )
    calls.start()
    let waits = false
    do {
      waits = (await this.countOf("wait_event_type = 'Lock'")) > 0
    } while (!waits && calls.isUnderWay())
    await work(waits)
    await this.side.query('ROLLBACK')
  }

  /** Ends all connections that wait for a lock, and resolves when they are closed. */
  private async terminate(): Promise<void> {
    await this.side.query(
      `SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND wait_event_type = 'Lock'`,
    )
  }

  /** Resolves when the database is idle, except for transactions whose next statement does not come. */
  private async quiet(): Promise<void> {
    const stalled = "state = 'idle in transaction' AND state_change < now() - interval '50 ms'"
    while ((await this.countOf(`state <> 'idle' AND NOT (${stalled})`)) > 0);
  }

  private async countOf(condition: string): Promise<number> {
    const { rows } = await this.side.query<{ count: number }>(
      `SELECT count(*)::int AS count FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND ${condition}`,
    )
    return rows[0]?.count ?? 0
  }
}

/** Resolves when a server has reconnected; it pauses after a failed attempt. */
async function healed({ database }: PostgresServer): Promise<void> {
  for (let isHealed = false; !isHealed; ) {
    isHealed = await database.pool.rows('SELECT 1', []).then(
      () => true,
      () => Bun.sleep(5).then(() => false),
    )
  }
}
