import { expect, test } from 'bun:test'
import { existsSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { secretsFrom } from '../../src/adapters/crypto/secret-file.ts'
import { readStoreConfig } from '../../src/config/store.ts'
import { openContext } from '../../src/context.ts'
import { inProcesses } from '../store/at-once.ts'
import { createTestApp, temporaryFolder } from '../support/app.ts'
import { otpost, startServer } from '../support/server.ts'
import { inDatabase, place } from './scene.ts'

// A file records fingerprints of its secret keys, so that a command with another secret fails instead of finding nothing.
// On PostgreSQL, nodes with another secret are rejected: test/store/postgres.system.ts.

const own = 'the-own-secret-of-32-bytes-or-more'
const other = 'another-secret-of-32-bytes-or-more'
const former = 'the-former-secret-of-32-bytes-or-more'
const phone = '12025550143'

/** A file after a server with these settings has sent a code. */
async function served(here: ReturnType<typeof place>, settings: Readonly<Record<string, string>>) {
  const service = await createTestApp({ ...here.env, ...settings })
  // As the server does once it listens.
  await service.app.context.noteSecret()
  const sent = await service.post('/otp/send', { phone })
  await service.eventsOf(sent)
  await service.close()
}

const deliveries = (file: string) =>
  inDatabase(file, (driver) =>
    driver.prepare('SELECT count(*) FROM requests WHERE provider IS NOT NULL').pluck().get(),
  )

test.each([
  [{ SECRET_KEY: other }, 'SECRET_KEY does not have a secret key of the server'],
  [{}, '.key is missing'],
])('no search runs with %j if the server had another secret key', async (settings, problem) => {
  using here = place()
  await served(here, { SECRET_KEY: own })
  for (const args of [['forget', phone], ['deliveries', '--to', phone], ['callbacks']]) {
    const { code, stdout, stderr } = await otpost(args, {
      ...here.env,
      PUBLIC_URL: 'https://otp.example.com',
      ...settings,
    })
    expect({ args, code, stdout }).toEqual({ args, code: 1, stdout: '' })
    expect(stderr).toContain(problem)
  }
  expect(deliveries(here.file)).toBe(1)
  expect(await otpost(['deliveries'], { ...here.env, ...settings })).toMatchObject({ code: 0 })
  expect(here.names()).toEqual(['otpost.db', 'otpost.db.created'])
  const erased = await otpost(['forget', phone], { ...here.env, SECRET_KEY: own })
  expect(erased.stdout).toStartWith('Erased: 1 request, 1 delivery, ')
})

test('the doctor reports whether the secret key is the server’s', async () => {
  using here = place()
  await served(here, {})
  const secret = async (settings: Readonly<Record<string, string>> = {}) => {
    const { stdout } = await otpost(['doctor', '--json'], { PORT: '0', ...here.env, ...settings })
    return JSON.parse(stdout)
      .filter(({ what }: { what: string }) => what === 'secret')
      .map(({ level }: { level: string }) => level)
  }
  expect(await secret()).toEqual(['ok', 'ok'])
  expect(await secret({ SECRET_KEY: other })).toEqual(['fail'])
  writeFileSync(`${here.file}.key`, `${other}\n`, { mode: 0o600 })
  expect(await secret()).toEqual(['ok', 'fail'])
})

test('a command needs the previous secret keys for as long as the server has them', async () => {
  using here = place()
  await served(here, { SECRET_KEY: `${own},${former}` })
  const known = async (SECRET_KEY: string) => {
    const context = await openContext(readStoreConfig({ ...here.env, SECRET_KEY }))
    try {
      context.requireSecret()
      return true
    } catch {
      return false
    } finally {
      await context.close()
    }
  }
  expect([await known(own), await known(`${former},${own}`)]).toEqual([false, true])
  await served(here, { SECRET_KEY: own })
  expect([await known(own), await known(`${other},${own}`), await known(former)]).toEqual([true, true, false])
})

test('a server starts with any secret key, and warns of a new one', async () => {
  using here = place()
  const warnings = async (settings: Readonly<Record<string, string>> = {}) => {
    const said: string[] = []
    const warn = (_: object, message: string) => void said.push(message)
    const context = await openContext(readStoreConfig({ ...here.env, ...settings }), {
      serves: true,
      log: { info: () => {}, warn, error: warn },
    })
    await context.noteSecret()
    await context.close()
    return said
  }
  expect(await warnings()).toEqual([])
  expect(await warnings()).toEqual([])
  rmSync(`${here.file}.key`)
  expect(await warnings()).toEqual([expect.stringContaining('the key file was missing and was created')])
  expect(await warnings({ SECRET_KEY: own })).toEqual([expect.stringContaining('SECRET_KEY=NEW,PREVIOUS')])
  expect(await warnings({ SECRET_KEY: `${other},${own}` })).toEqual([])
  expect(await warnings({ SECRET_KEY: other })).toEqual([])
})

test('a server records its secret key once it listens, and not if it can not', async () => {
  using here = place()
  const server = await startServer({ ...here.env, SECRET_KEY: own })
  const port = new URL(server.url).port
  const second = await otpost(['serve'], { ...here.env, SECRET_KEY: other, PORT: port })
  expect([second.code, second.stderr]).toEqual([1, expect.stringContaining('in use')])
  await server.stop()
  const forget = (SECRET_KEY: string) => otpost(['forget', phone], { ...here.env, SECRET_KEY })
  expect((await forget(other)).code).toBe(1)
  expect((await forget(own)).code).toBe(0)
})

test('migrate creates a secret key only with a new database', async () => {
  using here = place()
  const keyFile = `${here.file}.key`
  expect((await otpost(['migrate'], here.env)).code).toBe(0)
  expect(existsSync(keyFile)).toBe(true)
  renameSync(keyFile, here.at('kept'))
  for (const args of [['app', 'issue', 'shop'], ['audit'], ['migrate']]) {
    expect({ args, ...(await otpost(args, here.env)) }).toMatchObject({ args, code: 0 })
  }
  expect(existsSync(keyFile)).toBe(false)
})

test('processes that start at the same time create one secret key and all use it', async () => {
  const folder = temporaryFolder()
  try {
    const files = Array.from({ length: 50 }, (_, index) => join(folder.path, 'keys', `${index}.key`))
    const outputs = await inProcesses(
      3,
      `import { secretsFrom } from './src/adapters/crypto/secret-file.ts'`,
      `process.stdout.write(JSON.stringify(${JSON.stringify(files)}.map((file) => secretsFrom(file).secrets)))`,
    )
    const kept = JSON.stringify(files.map((each) => secretsFrom(each).secrets))
    expect(outputs).toEqual([kept, kept, kept])
    expect(readdirSync(join(folder.path, 'keys'))).toHaveLength(files.length)
  } finally {
    folder.remove()
  }
})
