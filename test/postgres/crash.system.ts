import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { randomNumbers } from '../support/history.ts'
import { startPostgres, withoutOwnPostgres } from '../support/postgres.ts'
import { newSeed, openScene, phonesOf, tell } from './scene.ts'

// Other tests use the same two cores.
setDefaultTimeout(300_000)

if (withoutOwnPostgres) console.warn(withoutOwnPostgres)

/** The time in which a node answers: the time-outs of connecting (2 s) and of a statement (5.5 s), and more for a busy machine. */
const longestAnswerMs = 30_000

describe.skipIf(withoutOwnPostgres !== undefined)('two nodes under load whose PostgreSQL', () => {
  test('crashes and restarts answer errors in the envelope, recover by themselves, and keep every answered change', async () => {
    const seed = newSeed()
    await using postgres = await startPostgres()
    await using trace = await openScene(postgres)
    const { history } = trace
    const nodes = await Promise.all(['one', 'two'].map((name) => trace.start(name)))
    const asks = () => nodes.map(({ ask }) => ask)

    const crashes: object[] = []
    for (let round = 0; round < 2; round++) {
      const phones = phonesOf(60, 30 * round)
      let isOver = false
      let answersLeft = 200 + (seed % 100)
      const enough = Promise.withResolvers<void>()
      const loading = trace.load(
        asks,
        { seed: seed + round, clients: 16, phones, goesOn: () => !isOver },
        () => {
          if (--answersLeft === 0) enough.resolve()
        },
      )
      await enough.promise
      const refusalsBefore = trace.refusals().count
      let startedAt: number | undefined
      await postgres.stop('immediate')
      const downAt = performance.now()
      const healing = trace.untilHealed(nodes, () => startedAt)
      // By then, all requests under way have been answered, and some later ones too.
      while (trace.refusals().count < refusalsBefore + 40) await Bun.sleep(5)
      const smsBefore = trace.receiver.received.length
      for (const { server } of nodes) expect((await server.get('/health')).status).toBe(503)
      expect(trace.receiver.received).toHaveLength(smsBefore)
      await postgres.start()
      startedAt = performance.now()
      const downMs = Math.round(startedAt - downAt)
      const healedAfterMs = await healing
      crashes.push({ downMs, refusals: trace.refusals().count - refusalsBefore, healedAfterMs })
      answersLeft = 100
      while (answersLeft > 0) await Bun.sleep(5)
      isOver = true
      await loading
    }

    const [one] = nodes
    if (one) await trace.check(one, `FAULTS_SEED=${seed}`)
    trace.expectEnough(10, `FAULTS_SEED=${seed}`)
    expect(trace.refusals().longestMs).toBeLessThan(longestAnswerMs)
    tell('crash', { requests: history.operations.length, ...trace.refusals(), crashes })
    for (const { server } of nodes) expect(await server.stop()).toBe(0)
  })

  test('cuts connections at random continue on the others, and keep every answered change', async () => {
    const seed = newSeed()
    const random = randomNumbers(seed)
    await using postgres = await startPostgres()
    await using trace = await openScene(postgres)
    const { history } = trace
    const nodes = await Promise.all(['one', 'two'].map((name) => trace.start(name)))

    let cuts = 0
    let answers = 0
    const cutOne = async () => {
      const backends = await postgres.query(
        "SELECT pid FROM pg_stat_activity WHERE application_name = 'otpost' ORDER BY pid",
      )
      const backend = backends[Math.floor(random() * backends.length)]
      const [row] = await postgres.query('SELECT pg_terminate_backend($1, 10000) AS is_cut', [
        backend?.pid ?? 0,
      ])
      if (row?.is_cut) cuts++
    }
    const loading = trace.load(
      () => nodes.map(({ ask }) => ask),
      { seed, clients: 16, phones: phonesOf(80), goesOn: () => answers < 500 || cuts < 25 },
      () => {
        answers++
      },
    )
    let isOver = false
    const cutting = (async () => {
      while (!isOver) await cutOne()
    })()
    await loading
    isOver = true
    await cutting
    await trace.untilHealed(nodes, () => performance.now())

    const [one, two] = nodes
    if (two) await trace.check(two, `FAULTS_SEED=${seed}`)
    trace.expectEnough(10, `FAULTS_SEED=${seed}`)
    // Some were cut in the middle of a transaction.
    expect(trace.refusals().count).toBeGreaterThan(0)
    expect(trace.refusals().longestMs).toBeLessThan(longestAnswerMs)
    expect((await one?.server.get('/health'))?.status).toBe(200)
    tell('cuts', { requests: history.operations.length, answers, cuts, ...trace.refusals() })
    for (const { server } of nodes) expect(await server.stop()).toBe(0)
  })
})
