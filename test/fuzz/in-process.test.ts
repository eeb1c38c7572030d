import { expect, test } from 'bun:test'
import fc from 'fast-check'
import pino from 'pino'
import { createApp } from '../../src/app.ts'
import { readConfig } from '../../src/config/config.ts'
import { issueApp } from '../../src/domain/operator/apps.ts'
import { putBrand } from '../../src/domain/operator/brands.ts'
import { openTestDatabase } from '../support/database.ts'
import {
  documentedAnswers,
  drawShots,
  fuzzBrands,
  fuzzEnv,
  fuzzRuns,
  fuzzSeed,
  Run,
  type Sent,
} from '../support/fuzz.ts'
import { tester } from '../support/operator.ts'
import { startReceiver } from '../support/receiver.ts'
import { logged } from '../support/rows.ts'
import { startSmtp } from '../support/smtp.ts'

// Thousands of requests to the whole service in this process; how to play a seed again is said in support/fuzz.ts.

/** Documented answers that the requests of the usual seed do not cause. */
const rare: readonly string[] = ['/messages/status 200 ok', '/messages/status 429 rate_limited']

/** How many requests are under way at the same time; between two such waves the clock moves. */
const wave = 24

test('no input makes the service answer, log or store anything forbidden', async () => {
  await using ending = new AsyncDisposableStack()
  const database = await openTestDatabase()
  ending.defer(() => database.remove())
  const receiver = startReceiver()
  ending.defer(() => receiver.stop())
  const smtp = await startSmtp()
  ending.defer(() => smtp.stop())
  const log: string[] = []
  const logger = pino({ level: 'trace', base: null }, { write: (text: string) => void log.push(text) })
  const clock = { now: Date.UTC(2026, 0, 1, 12) }
  const config = readConfig({ ...fuzzEnv(receiver, smtp), ...database.env, GLOBAL_LIMIT_PER_MINUTE: '45' })
  const app = await createApp(config, { now: () => clock.now, log: logger })
  ending.defer(() => app.close())
  for (const [slug, brand] of Object.entries(fuzzBrands))
    await putBrand(app.context.acting(tester), slug, brand)
  const { key: issued } = await issueApp(app.context.acting(tester), 'till')
  const run = new Run(receiver, smtp, [issued, receiver.secret])

  const call = async (sent: Sent) => {
    const { shot, body } = sent
    const headers = new Headers(shot.headers)
    // A body with Content-Length is read in another way than a streamed one.
    if (body !== undefined && sent.number % 2 === 0)
      headers.set('content-length', String(Buffer.byteLength(body)))
    const hasBody = body !== undefined && shot.method !== 'GET' && shot.method !== 'HEAD'
    const request = new Request(`http://localhost${shot.target}`, {
      method: shot.method,
      headers,
      ...(hasBody ? { body } : {}),
    })
    const response = await app.handle(request)
    return { status: response.status, headers: response.headers, text: await response.text() }
  }

  const shots = drawShots(fuzzRuns(1600))
  const steps = fc.sample(fc.constantFrom(0, 1, 2, 5, 10, 31, 61, 310), {
    numRuns: Math.ceil(shots.length / wave),
    seed: fuzzSeed,
  })
  for (const [index, seconds] of steps.entries()) {
    const first = index * wave
    const sent = shots.slice(first, first + wave).map((shot, offset) => run.load(shot, first + offset))
    const replies = await Promise.all(sent.map(call))
    for (const [offset, reply] of replies.entries()) {
      const request = sent[offset]
      if (request) run.judge(request, reply)
    }
    clock.now += seconds * 1000
  }

  await logged()
  run.judgeReach(documentedAnswers.filter((answer) => !rare.includes(answer)))
  run.judgeDeliveries()
  run.judgeLog(log.join('').split('\n').slice(0, -1), true)
  run.judgeDatabase(await database.contents())
  run.judgeValues(await database.values())
  run.conclude()
  expect(({} as { x?: unknown }).x).toBeUndefined()
})
