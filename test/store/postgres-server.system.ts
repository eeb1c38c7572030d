import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { queryOnce, startPostgres, withoutOwnPostgres } from '../support/postgres.ts'

// Tests the PostgreSQL servers of other tests: that data survives, and that no server is left running.

const skipped = withoutOwnPostgres === undefined ? '' : ` (${withoutOwnPostgres})`

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port })
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}

test.skipIf(skipped !== '')(`a server has all data after a crash or stop${skipped}`, async () => {
  const server = await startPostgres()
  try {
    const url = await server.database('kept')
    await queryOnce(url, 'CREATE TABLE words (word text)')
    for (const mode of ['immediate', 'fast'] as const) {
      await queryOnce(url, 'INSERT INTO words VALUES ($1)', [mode])
      await server.stop(mode)
      expect(await accepts(server.port)).toBe(false)
      await server.start()
    }
    expect(await queryOnce(url, 'SELECT word FROM words ORDER BY word')).toEqual([
      { word: 'fast' },
      { word: 'immediate' },
    ])
    // A collation other than by bytes, as on most servers.
    expect(await server.query("SELECT 'a' < 'B' AS sorted")).toEqual([{ sorted: true }])
  } finally {
    await server[Symbol.asyncDispose]()
  }
  expect([await accepts(server.port), existsSync(server.dataFolder)]).toEqual([false, false])
})

test.skipIf(skipped !== '')(
  `a server ends with the process that started it, even if that is killed${skipped}`,
  async () => {
    const script = `
    const { startPostgres } = await import('${join(import.meta.dir, '../support/postgres.ts')}')
    const { port, dataFolder } = await startPostgres()
    console.log(JSON.stringify({ port, dataFolder }))
    await new Promise(() => setInterval(() => {}, 60_000))`
    const child = Bun.spawn([process.execPath, '-e', script], { stdout: 'pipe', stderr: 'inherit' })
    let said = ''
    for await (const chunk of child.stdout) {
      said += new TextDecoder().decode(chunk)
      if (said.endsWith('\n')) break
    }
    const { port, dataFolder } = JSON.parse(said)
    expect([await accepts(port), existsSync(dataFolder)]).toEqual([true, true])
    child.kill('SIGKILL')
    // Without it this would never end, and so fail.
    while ((await accepts(port)) || existsSync(dataFolder)) await Bun.sleep(20)
  },
)
