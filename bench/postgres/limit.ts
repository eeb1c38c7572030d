import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'
import type { Limit } from './results.ts'

const update = 'UPDATE one SET n = n + 1 WHERE id = 1'

/** How often a second the server can update one row by one statement: what no row that all requests change can exceed. */
export async function measureLimit(url: string, seconds: number, folder: string): Promise<Limit> {
  const client = await connected(url)
  await client.query('CREATE TABLE one (id int PRIMARY KEY, n int NOT NULL)')
  await client.query('INSERT INTO one VALUES (1, 0)')
  await client.end()
  const pgbench = findPgbench()
  const rate = (clients: number) =>
    pgbench === undefined
      ? ownRate(url, clients, seconds)
      : pgbenchRate(pgbench, url, clients, seconds, folder)
  return {
    by: pgbench === undefined ? 'a loop over node-postgres' : 'pgbench',
    oneClientPerSecond: await rate(1),
    eightClientsPerSecond: await rate(8),
  }
}

/** On the path, or where Debian has it. */
function findPgbench(): string | undefined {
  const onPath = Bun.which('pgbench')
  if (onPath !== null) return onPath
  const versions = '/usr/lib/postgresql'
  try {
    const [newest] = readdirSync(versions).sort((a, b) => Number(b) - Number(a))
    return Bun.which(join(versions, newest ?? '', 'bin/pgbench')) ?? undefined
  } catch {
    return undefined
  }
}

async function pgbenchRate(
  pgbench: string,
  url: string,
  clients: number,
  seconds: number,
  folder: string,
): Promise<number> {
  const script = join(folder, 'update-one.sql')
  await Bun.write(script, `${update};\n`)
  const { hostname, port, username, password, pathname } = new URL(url)
  const child = Bun.spawn(
    [
      ...[pgbench, '--no-vacuum', '--protocol=prepared', '--file', script],
      ...['--client', String(clients), '--jobs', '1', '--time', String(seconds)],
      ...['--host', hostname, '--port', port, '--username', decodeURIComponent(username), pathname.slice(1)],
    ],
    { env: { ...process.env, PGPASSWORD: decodeURIComponent(password) }, stdout: 'pipe', stderr: 'pipe' },
  )
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  const rate = /^tps = ([\d.]+)/m.exec(stdout)?.[1]
  if (rate === undefined) throw new Error(`pgbench failed:\n${stdout}${stderr}`)
  return Number(rate)
}

async function ownRate(url: string, clients: number, seconds: number): Promise<number> {
  const all = await Promise.all(Array.from({ length: clients }, () => connected(url)))
  const startedAt = performance.now()
  const endsAt = startedAt + seconds * 1000
  let updates = 0
  await Promise.all(
    all.map(async (client) => {
      while (performance.now() < endsAt) {
        await client.query({ name: 'update', text: update })
        updates += 1
      }
    }),
  )
  const perSecond = (updates * 1000) / (performance.now() - startedAt)
  await Promise.all(all.map((client) => client.end()))
  return perSecond
}

async function connected(url: string): Promise<Client> {
  const client = new Client({ connectionString: url })
  await client.connect()
  return client
}
