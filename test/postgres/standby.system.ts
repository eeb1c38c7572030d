import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { chownSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'
import { conditionOf } from '../../src/adapters/postgres/condition.ts'
import { serverDatabaseFindings } from '../../src/doctor/postgres.ts'
import { targetOf } from '../store/postgres-database.ts'
import { type PostgresServer, queryOnce, startPostgres, withoutOwnPostgres } from '../support/postgres.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { newSeed, openScene, phonesOf, tell } from './scene.ts'

// Other tests use the same two cores.
setDefaultTimeout(300_000)

if (withoutOwnPostgres) console.warn(withoutOwnPostgres)

/** A standby of a primary, which waits for it at each commit. */
interface Standby extends PostgresServer {
  /** Runs a statement on the standby: it has the users and databases of the primary. */
  ask(text: string): Promise<Record<string, unknown>[]>
}

/** Makes a server a copy of a running primary by a base backup, and starts it as a standby. */
async function startStandby(primary: PostgresServer): Promise<Standby> {
  const { password } = new URL(primary.url)
  const standby = await startPostgres({
    primary_conninfo: `host=127.0.0.1 port=${primary.port} user=otpost password=${password} application_name=standby`,
  })
  await standby.stop()
  const present = (folder: string) => readdirSync(folder).map((name) => join(folder, name))
  for (const path of present(standby.dataFolder)) rmSync(path, { recursive: true })
  const client = new Client({ connectionString: primary.url })
  await client.connect()
  await client.query("SELECT pg_backup_start('base', fast => true)")
  const copied = present(primary.dataFolder).filter((path) => !/\/postmaster\.(?:pid|opts)$/.test(path))
  // The files need the right owner, and files may disappear during the copy.
  Bun.spawnSync(['cp', '-a', ...copied, standby.dataFolder])
  const { rows } = await client.query<{ labelfile: string }>('SELECT labelfile FROM pg_backup_stop()')
  await client.end()
  const { uid, gid } = statSync(standby.dataFolder)
  for (const [name, text] of [
    ['backup_label', rows[0]?.labelfile ?? ''],
    ['standby.signal', ''],
  ] as const) {
    const path = join(standby.dataFolder, name)
    writeFileSync(path, text)
    chownSync(path, uid, gid)
  }
  await standby.start()

  const url = new URL(primary.url)
  url.port = String(standby.port)
  await primary.query("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
  await primary.query('SELECT pg_reload_conf()')
  const isFollowing = async () => {
    const rows = await primary.query("SELECT FROM pg_stat_replication WHERE sync_state = 'sync'")
    return rows.length === 1
  }
  while (!(await isFollowing())) await Bun.sleep(10)
  return { ...standby, ask: (text) => queryOnce(url.href, text) }
}

/** URLs of a server for a user who may see all of its settings, and for one who may only log in. */
async function doctorsOn({ url, query }: PostgresServer): Promise<readonly string[]> {
  await query("CREATE ROLE visitor LOGIN PASSWORD 'of the visitor'")
  const visitor = new URL(url)
  visitor.username = 'visitor'
  visitor.password = encodeURIComponent('of the visitor')
  return [url, visitor.href]
}

/** The finding of the doctor on durability for each of them. */
async function durability(urls: readonly string[]): Promise<readonly (string | undefined)[]> {
  const found = await Promise.all(
    urls.map(async (url) =>
      serverDatabaseFindings('it', await conditionOf(targetOf(url), async () => undefined)),
    ),
  )
  return found.map((findings) => {
    const found = findings.find(({ what }) => what === 'durability')
    return `${found?.level}: ${found?.text}`
  })
}

describe.skipIf(withoutOwnPostgres !== undefined)('a primary with a synchronous standby', () => {
  test('that is killed under load loses no answered change: no used code verifies on the promoted standby', async () => {
    const seed = newSeed()
    await using primary = await startPostgres()
    await using trace = await openScene(primary)
    await using standby = await startStandby(primary)
    // Like a virtual IP address or a load balancer in front of the current primary.
    await using proxy = await startTcpProxy(primary.port)
    const { history } = trace
    const nodes = await Promise.all(['one', 'two'].map((name) => trace.start(name, { port: proxy.port })))

    let isOver = false
    let answersLeft = 300 + (seed % 100)
    const enough = Promise.withResolvers<void>()
    const loading = trace.load(
      () => nodes.map(({ ask }) => ask),
      { seed, clients: 16, phones: phonesOf(60), goesOn: () => !isOver },
      () => {
        if (--answersLeft === 0) enough.resolve()
      },
    )
    await enough.promise
    await primary.stop('immediate')
    const downAt = performance.now()
    let promotedAt: number | undefined
    const healing = trace.untilHealed(nodes, () => promotedAt)
    // A standby is read-only, so no code is sent.
    proxy.leadTo(standby.port)
    const refusalsBefore = trace.refusals().count
    while (trace.refusals().count < refusalsBefore + 40) await Bun.sleep(5)
    const smsBefore = trace.receiver.received.length
    const healths = await Promise.all(nodes.map(({ server }) => server.get('/health')))
    expect(healths.map(({ status }) => status)).toEqual([503, 503])
    expect(trace.receiver.received).toHaveLength(smsBefore)

    await standby.ask('SELECT pg_promote(true, 60)')
    promotedAt = performance.now()
    trace.movedTo(standby.port)
    const healedAfterMs = await healing
    answersLeft = 100
    while (answersLeft > 0) await Bun.sleep(5)
    isOver = true
    await loading

    const [one] = nodes
    if (one) await trace.check(one, `FAULTS_SEED=${seed}`)
    trace.expectEnough(5, `FAULTS_SEED=${seed}`)
    const downMs = Math.round(promotedAt - downAt)
    tell('failover', { requests: history.operations.length, ...trace.refusals(), downMs, healedAfterMs })
    for (const { server } of nodes) expect(await server.stop()).toBe(0)
  })

  test('whose standby is away confirms nothing and sends nothing, and continues when it is back', async () => {
    await using primary = await startPostgres()
    await using trace = await openScene(primary)
    await using standby = await startStandby(primary)
    const node = await trace.start('one', { env: { DATABASE_STATEMENT_TIMEOUT_MS: '5000' } })
    const [phone, other] = ['12025550143', '12025550144']
    const ask = async (path: string, fields: Readonly<Record<string, unknown>>) => {
      const { status, body } = await node.server.post(path, fields)
      return body.error === undefined ? String(status) : `${status} ${body.error}`
    }
    expect(await ask('/otp/send', { phone })).toBe('200')
    const [otp] = trace.history.codesOf(phone)
    const doctors = await doctorsOn(primary)
    expect(await durability(doctors)).toEqual([
      expect.stringMatching(/^ok: .*waits for 1 standby \(.*; 1 connected\)/),
      expect.stringMatching(/^ok: .*waits for 1 standby \(.*only members of pg_monitor can see/),
    ])

    await standby.stop()
    const away = expect.stringMatching(/^fail: A commit waits for 1 standby .*none of them is connected/)
    expect(await durability(doctors)).toEqual([away, away])
    expect(await ask('/otp/send', { phone: other })).toBe('500 internal_error')
    expect(await ask('/otp/verify', { phone, otp })).toBe('500 internal_error')
    expect(trace.history.codesOf(other)).toEqual([])
    expect((await node.server.get('/health')).status).toBe(503)
    await standby.start()
    while ((await ask('/otp/send', { phone: '12025550145' })) !== '200') await Bun.sleep(10)
    // The send was committed, but without an SMS, and answered 500; the verify waited for it and timed out.
    expect(await ask('/otp/verify', { phone, otp })).toBe('200')
    expect(await ask('/otp/verify', { phone, otp })).toBe('404 not_found')
    expect(await ask('/otp/send', { phone: other })).toBe('429 cooldown_active')
    expect(trace.history.codesOf(other)).toEqual([])
    expect(await node.server.stop()).toBe(0)
  })
})
