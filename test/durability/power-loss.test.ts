import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { cpSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { codeIn, otherThan, temporaryFolder } from '../support/app.ts'
import { startReceiver } from '../support/receiver.ts'
import { otpost, startServer, type TestServer } from '../support/server.ts'

const compiler = Bun.which('cc')
if (!compiler || process.platform !== 'linux') {
  console.warn('power loss: skipped, since it needs Linux and a C compiler (apt-get install gcc libc6-dev)')
}

/** What one phone was answered before the cut. */
interface History {
  readonly phone: string
  /** Undefined while no SMS has come. */
  code?: string
  sent: boolean
  verified: boolean
  wrong: number
  locked: boolean
  /** A request was under way at the cut: its effect may be there or not. */
  open: boolean
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
  test.each([1, 2, 3])('under load, all that was answered holds (cut %p)', async (round) => {
    const { histories, broken } = await cutAndRestart(`full-${round}`, 150 + 120 * round)
    expect(histories.filter(({ sent }) => sent).length).toBeGreaterThan(20)
    expect(broken).toEqual([])
  })

  test('it does not where commits are not synced: the test can tell', async () => {
    const preload = join(import.meta.dir, '../support/synchronous-normal.ts')
    const { broken } = await cutAndRestart('normal', 300, ['--preload', preload])
    expect(broken.length).toBeGreaterThan(0)
  })
})

/** Serves under load, cuts the power after so many answers, restarts on what the disk holds and compares. */
async function cutAndRestart(name: string, answersBeforeCut: number, runtimeArgs: readonly string[] = []) {
  const live = join(folder.path, name, 'live')
  const disk = join(folder.path, name, 'disk')
  mkdirSync(live, { recursive: true })
  const settings = { SMS_PLAIN: 'webhook', ...receiver.env, FAILURE_BUDGET_PER_DAY: '0' }
  const made = await otpost(['brand', 'put', 'acme', '--name', 'Acme'], {
    DATABASE_URL: `file:${join(live, 'otpost.db')}`,
  })
  expect(made.code).toBe(0)
  cpSync(live, disk, { recursive: true })

  const env = { DATABASE_URL: `file:${join(live, 'otpost.db')}`, ...settings }
  const powered = { LD_PRELOAD: library, POWER_LOSS_LIVE: live, POWER_LOSS_DISK: disk }
  const before = await startServer({ ...env, ...powered }, runtimeArgs)
  const histories = await load(before, answersBeforeCut)

  const after = await startServer({ ...env, DATABASE_URL: `file:${join(disk, 'otpost.db')}` })
  const broken: string[] = []
  for (const history of histories) {
    const problem = await contradiction(after, history)
    if (problem) broken.push(`${history.phone}: ${problem}`)
  }
  await after.stop()
  return { histories, broken }
}

/** Sends and verifies from many clients at once; kills the server, with what is under way, after so many answers. */
async function load(server: TestServer, answersBeforeCut: number): Promise<History[]> {
  const histories: History[] = []
  let answers = 0
  const ask = async (history: History, path: string, fields: object) => {
    history.open = true
    const { status } = await server.post(path, { phone: history.phone, ...fields })
    history.open = false
    answers++
    if (answers === answersBeforeCut) server.child.kill('SIGKILL')
    return status
  }
  const client = async (index: number) => {
    for (let turn = 0; ; turn++) {
      const phone = `1${2_000_000_000 + index * 1000 + turn}`
      const history = { phone, sent: false, verified: false, wrong: 0, locked: false, open: false } as History
      histories.push(history)
      history.sent = (await ask(history, '/otp/send', {})) === 200
      const code = codeSentTo(phone)
      history.code = code
      for (let guess = 0; guess < turn % 5; guess++) {
        const status = await ask(history, '/otp/verify', { otp: otherThan(code) })
        if (status === 401) history.wrong++
        if (status === 429) history.locked = true
      }
      if (turn % 2 === 0 && !history.locked && history.wrong < 3) {
        history.verified = (await ask(history, '/otp/verify', { otp: code })) === 200
      }
    }
  }
  await Promise.allSettled(Array.from({ length: 24 }, (_, index) => client(index)))
  await server.exited
  return histories
}

/** How the restarted server contradicts what was answered; undefined when it does not. */
async function contradiction(server: TestServer, history: History): Promise<string | undefined> {
  const { phone, code, sent, verified, locked, wrong, open } = history
  // Of a send that was not answered nothing was promised.
  if (!sent || code === undefined) return undefined
  const verify = async (otp: string) =>
    (await server.post('/otp/verify', { phone, otp })).body.error ?? 'verified'
  if (verified) {
    const again = await verify(code)
    return again === 'not_found' ? undefined : `a code that was used answers ${again}`
  }
  if (!open && wrong === 0) {
    const send = (await server.post('/otp/send', { phone })).body.error
    if (send !== 'cooldown_active') return `a send within the cooldown answers ${send ?? 'success'}`
  }
  let left = 0
  let answer = await verify(otherThan(code))
  while (answer === 'mismatch' && left < 4) {
    left++
    answer = await verify(otherThan(code))
  }
  if (open && answer === 'not_found') return undefined
  if (answer !== 'max_attempts') return `a code that was sent answers ${answer}`
  const most = locked ? 0 : 3 - wrong
  const least = open ? most - 1 : most
  return left >= least && left <= most ? undefined : `${left} guesses are left where ${most} were`
}

function codeSentTo(phone: string): string {
  return codeIn(receiver.received.findLast(({ body }) => body.to === phone)?.body.text)
}
