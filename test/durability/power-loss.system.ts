import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { cpSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../support/app.ts'
import { contradictions, History, load, readBack } from '../support/history.ts'
import { sourceLine } from '../support/program.ts'
import { startReceiver } from '../support/receiver.ts'
import { otpost, startServer } from '../support/server.ts'

const compiler = Bun.which('cc')
if (!compiler || process.platform !== 'linux') {
  console.warn('power loss: skipped, since it needs Linux and a C compiler (apt-get install gcc libc6-dev)')
}

const folder = temporaryFolder()
const library = join(folder.path, 'power-loss.so')
const receiver = startReceiver()

beforeAll(() => {
  if (!compiler) return
  const source = join(import.meta.dir, '../support/power-loss.c')
  const built = Bun.spawnSync([compiler, '-O2', '-shared', '-fPIC', '-o', library, source])
  expect(built.stderr.toString()).toBe('')
})

afterAll(() => {
  receiver.stop()
  folder.remove()
})

describe.skipIf(!compiler || process.platform !== 'linux')('after a power cut', () => {
  // Seeded by the round, so that a cut can be brought about again as far as a busy machine allows.
  test.each([1, 2, 3])('under load, every answered change is kept (cut %p)', async (round) => {
    const { history, problems } = await cutAndRestart(`full-${round}`, 150 + 120 * round)
    expect(history.answers('200')).toBeGreaterThan(20)
    expect(problems.join('\n')).toBe('')
  })

  // Of the source: a binary brings a SQLite that a test can not reach into.
  test('changes are lost if commits are not synced, which this test detects', async () => {
    const preload = join(import.meta.dir, '../support/without-sync.ts')
    const { problems } = await cutAndRestart('normal', 300, preload)
    expect(problems.length).toBeGreaterThan(0)
  })
})

/** Serves under load, cuts the power after so many answers, restarts on what the disk holds and compares. */
async function cutAndRestart(name: string, answersBeforeCut: number, preload?: string) {
  const live = join(folder.path, name, 'live')
  const disk = join(folder.path, name, 'disk')
  mkdirSync(live, { recursive: true })
  const settings = { SMS_PLAIN: 'webhook', ...receiver.env, PROVIDER_TIMEOUT_MS: '30000' }
  for (const args of [['migrate'], ['brand', 'put', 'acme', '--name', 'Acme']]) {
    const made = await otpost(args, { DATABASE_URL: `file:${join(live, 'otpost.db')}` })
    expect(made.code).toBe(0)
  }
  cpSync(live, disk, { recursive: true })

  const env = { DATABASE_URL: `file:${join(live, 'otpost.db')}`, ...settings }
  const powered = { LD_PRELOAD: library, POWER_LOSS_LIVE: live, POWER_LOSS_DISK: disk }
  const before = await startServer(
    { ...env, ...powered },
    preload,
    preload ? sourceLine(['serve']) : undefined,
  )
  const history = new History(receiver)
  const phones = Array.from({ length: 120 }, (_, index) => `1${2_000_000_000 + index}`)
  let answersLeft = answersBeforeCut
  await load(
    history,
    () => before.post,
    { seed: answersBeforeCut, clients: 24, phones },
    () => {
      if (--answersLeft === 0) before.child.kill('SIGKILL')
    },
  )
  await before.exited

  const after = await startServer({ ...env, DATABASE_URL: `file:${join(disk, 'otpost.db')}` })
  await readBack(history, after.post)
  await after.stop()
  return { history, problems: contradictions(history, { cooldownMs: 30_000, phonePerMinute: 3 }) }
}
