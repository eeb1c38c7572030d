import { copyFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import Driver from 'better-sqlite3'
import { sql } from 'drizzle-orm'
import { isHashOf } from '../../src/adapters/crypto/secrets.ts'
import { type Database, openDatabase } from '../../src/adapters/sqlite/database.ts'
import { createOtpStore } from '../../src/adapters/sqlite/otp-store.ts'
import { tables } from '../../src/adapters/sqlite/schema.ts'
import { createSweep } from '../../src/adapters/sqlite/sweep.ts'
import { operatorOf, sqliteStores } from '../support/operator.ts'
import { appsOf, type Breakage, type Ground, makeBrands, type Server, type Site, turn } from './ground.ts'
import type { Profile } from './history.ts'
import { baseProfile } from './profile.ts'
import { Random } from './random.ts'

const { codesAndLimits } = tables

interface SqliteServer extends Server {
  readonly database: Database
}

/** The probability of a database failure; a database in memory has no lock and no page limit. */
const breakages = { memory: 0, 'shared file': 4, 'own file': 25 } as const
type SqliteStorage = keyof typeof breakages

const problems: Site['problems'] = {
  busy: () => new Driver.SqliteError('database is locked', 'SQLITE_BUSY'),
  full: () => new Driver.SqliteError('database or disk is full', 'SQLITE_FULL'),
  'answer lost': () => new Driver.SqliteError('disk I/O error', 'SQLITE_IOERR'),
}

/**
 * A database in memory and a file that histories share one after another, with servers that take turns,
 * because opening one takes longer than a history; and a folder for histories with a separate file.
 */
export class SqliteGround implements Ground {
  private readonly file: string
  private readonly memory = openDatabase(':memory:')
  private readonly inMemory: SqliteServer[] = []
  private readonly onFile: SqliteServer[] = []
  private turns = 0
  private files = 0
  private histories = 0

  constructor(private readonly folder: string) {
    this.file = this.newFile()
  }

  async prepare(): Promise<void> {
    await makeFile(this.file)
    await makeBrands(operatorOf(this.memory))
    for (let count = 0; count < 4; count++) {
      this.inMemory.push(serverOn(this.memory))
      this.onFile.push(serverOn(openQuickly(this.file)))
    }
  }

  profileOf(seed: number): Profile {
    const random = new Random(seed ^ 0x5eed)
    const storage = random.weighted([
      [872, 'memory'],
      [120, 'shared file'],
      [8, 'own file'],
    ] as const)
    const servers = storage !== 'memory' && random.chance(0.4) ? 2 : 1
    const profile = baseProfile(random)
    const crashes = storage === 'own file' || profile.crashes
    return { ...profile, storage, servers, crashes, isExact: true }
  }

  beginning(): number {
    return Date.UTC(2026, 0, 1, 12) + 400 * 86_400_000 * this.histories++
  }

  async open({ storage, servers }: Profile): Promise<Site> {
    if (storage === 'postgres') throw new Error('this ground is of SQLite')
    const count = Array.from({ length: servers })
    // Otherwise the rows of earlier histories decide which calls fail when the database has no free page.
    if (storage === 'shared file') this.onFile[0]?.database.orm.delete(codesAndLimits).run()
    if (storage !== 'own file')
      return this.sharedSite(
        storage,
        count.map(() => this.server(storage)),
      )
    const file = this.newFile()
    await makeFile(file)
    return this.ownSite(
      file,
      count.map(() => serverOn(openQuickly(file))),
    )
  }

  async close(): Promise<void> {
    await this.memory.close()
    for (const { database } of this.onFile) await database.close()
  }

  private sharedSite(storage: 'memory' | 'shared file', servers: SqliteServer[]): Site {
    return {
      ...this.siteOn(storage, servers, () => this.file),
      crash: async (index) => {
        servers[index] = this.server(storage)
      },
      close: async () => {},
    }
  }

  private ownSite(first: string, servers: SqliteServer[]): Site {
    let file = first
    return {
      ...this.siteOn('own file', servers, () => file),
      crash: async (index) => {
        const before = file
        // Copies the data that a killed process leaves: the file and its WAL, not checkpointed.
        if (servers.length === 1) {
          file = this.newFile()
          for (const suffix of ['', '-wal']) {
            if (existsSync(before + suffix)) copyFileSync(before + suffix, file + suffix)
          }
        }
        const server = servers[index]
        servers[index] = serverOn(openQuickly(file))
        await server?.database.close()
      },
      close: async () => {
        for (const { database } of servers) await database.close()
      },
    }
  }

  private siteOn(storage: SqliteStorage, servers: readonly SqliteServer[], file: () => string) {
    return {
      servers,
      problems,
      breakages: breakages[storage],
      isConcerned: () => true,
      breakage: (random: Random) => (random.chance(0.7) ? outOfRoom(servers) : locked(file())),
      outlivesCalls: false,
    }
  }

  /** A newly started server. */
  private server(storage: 'memory' | 'shared file'): SqliteServer {
    const servers = storage === 'memory' ? this.inMemory : this.onFile
    const server = servers[this.turns++ % servers.length]
    if (!server) throw new Error('the ground is not prepared')
    return server
  }

  /** The name of a file that does not exist. */
  private newFile(): string {
    return join(this.folder, `${this.files++}.db`)
  }
}

function outOfRoom(servers: readonly SqliteServer[]): Breakage {
  return {
    what: 'the database has no free page',
    fails: true,
    async run(calls) {
      const own = servers.find((server) => server === calls.server)
      if (!own) throw new Error('the calls are of no server of this history')
      const { orm } = own.database
      // SQLite's minimum is the current number of pages.
      fill(orm)
      orm.get(sql`PRAGMA max_page_count = 1`)
      calls.start()
      await calls.settled()
      orm.get(sql`PRAGMA max_page_count = 1073741823`)
      orm.run(sql`DELETE FROM filler`)
    },
  }
}

function locked(file: string): Breakage {
  return {
    what: 'another process holds the lock',
    fails: false,
    async run(calls) {
      calls.note('database: locked')
      const other = new Driver(file)
      other.exec('BEGIN IMMEDIATE')
      calls.start()
      for (let time = 0; time < 3; time++) await turn()
      other.exec('ROLLBACK')
      other.close()
      await calls.settled()
    },
  }
}

function serverOn(database: Database): SqliteServer {
  const { brands, keys } = sqliteStores(database)
  return {
    database,
    store: createOtpStore(database, isHashOf),
    brands,
    apps: appsOf(keys),
    sweep: createSweep(database),
  }
}

/** Creates a database with the brands of every history, in small pages, so that a few rows need a new one. */
async function makeFile(file: string): Promise<void> {
  const driver = new Driver(file)
  driver.pragma('page_size = 512')
  driver.exec('VACUUM')
  driver.close()
  const database = openDatabase(file)
  database.orm.run(sql`CREATE TABLE filler (bytes BLOB)`)
  await makeBrands(operatorOf(database))
  await database.close()
}

/** No power loss here, so writes need not wait for the disk. */
function openQuickly(file: string): Database {
  const database = openDatabase(file)
  database.orm.run(sql`PRAGMA synchronous = OFF`)
  return database
}

/** Uses up the free pages of a file. */
function fill(orm: Database['orm']): void {
  while ((orm.get<{ freelist_count: number }>(sql`PRAGMA freelist_count`)?.freelist_count ?? 0) > 0) {
    orm.run(sql`INSERT INTO filler VALUES (zeroblob(400))`)
  }
}
