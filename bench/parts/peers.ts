import { type Measured, measure, newSeed, repeat, sendFactor } from '../measure.ts'
import { pace, percentilesOf } from '../paced.ts'
import { type Contestant, contestants, otpost } from '../peers.ts'
import { residentBytes } from '../processor.ts'
import { type Figure, loadText, megabytes, milliseconds, type PartResult, spread } from '../report.ts'
import { idleMs, type Scale } from '../scale.ts'
import type { Bench, Server } from '../servers.ts'
import { median } from '../statistics.ts'

/** A load at saturation, and the p99 at half of its rate. */
interface Load extends Measured {
  readonly halfP99Ms: number
}

/** What one start of a contestant measured. */
interface Turn {
  readonly send: Load
  readonly guess: Load
  readonly idleBytes: number
  readonly loadedBytes: number
}

const kinds = ['send', 'guess'] as const

/**
 * otpost beside other programs that send and verify codes, in turns. Each starts with an empty database in each turn,
 * and warms up. Sends go to new recipients, and each wrong code to a recipient with a live code and attempts left.
 */
export async function peers(bench: Bench, scale: Scale): Promise<PartResult> {
  const { all, leftOut } = contestants()
  const turns = new Map(all.map((contestant) => [contestant, [] as Turn[]]))
  const rounds = Math.max(4, scale.rounds)
  await repeat(rounds, async () => {
    const round: [Contestant, Turn][] = []
    for (const contestant of all) {
      const server = await contestant.start(bench)
      try {
        round.push([contestant, await takeTurn(bench, server, contestant, scale)])
      } finally {
        await server.stop()
      }
    }
    for (const [contestant, turn] of round) turns.get(contestant)?.push(turn)
  })
  const own = turns.get(otpost) ?? []
  return {
    title: `Beside other programs, median of ${rounds} rounds (least–greatest)`,
    figures: [
      ...[...turns].flatMap(([contestant, of]) => [
        ...kinds.map((kind) => loadFigure(kind, contestant, of, own)),
        {
          name: `${contestant.name}: memory idle, under load`,
          measured: `${megabytes(median(of.map(({ idleBytes }) => idleBytes)))}, ${megabytes(median(of.map(({ loadedBytes }) => loadedBytes)))}`,
        },
      ]),
      ...leftOut.map((reason) => ({ name: reason, measured: 'not measured' })),
    ],
  }
}

async function takeTurn(
  bench: Bench,
  server: Server,
  contestant: Contestant,
  { seconds, warmupSeconds }: Scale,
): Promise<Turn> {
  await Bun.sleep(idleMs)
  const memory = () => server.pids.reduce((sum, pid) => sum + residentBytes({ pid }), 0)
  const idleBytes = memory()
  const warmUp = { seconds: warmupSeconds, seed: newSeed() }
  const { requests } = await measure(server, contestant.send, warmUp)
  await measure(server, contestant.guess, {
    ...warmUp,
    seconds: Math.ceil(warmupSeconds / sendFactor),
    population: requests,
  })

  const seed = newSeed()
  const send = await measure(server, contestant.send, { seconds: seconds * sendFactor, seed })
  const guess = await measure(server, contestant.guess, { seconds, seed, population: send.requests })
  const loadedBytes = memory()
  const paced = newSeed()
  const halfSend = await pace(
    bench,
    server.url,
    contestant.send,
    { perSecond: send.perSecond / 2, seed: paced },
    () => Bun.sleep(seconds * sendFactor * 1000),
  )
  const halfGuess = await pace(
    bench,
    server.url,
    contestant.guess,
    { perSecond: guess.perSecond / 2, seed: paced, population: halfSend.requests },
    () => Bun.sleep(seconds * 1000),
  )
  return {
    send: { ...send, halfP99Ms: percentilesOf(halfSend).p99Ms },
    guess: { ...guess, halfP99Ms: percentilesOf(halfGuess).p99Ms },
    idleBytes,
    loadedBytes,
  }
}

function loadFigure(
  kind: (typeof kinds)[number],
  contestant: Contestant,
  turns: readonly Turn[],
  own: readonly Turn[],
): Figure {
  const loads = turns.map((turn) => turn[kind])
  const halfP99Ms = median(loads.map((load) => load.halfP99Ms))
  const ratios = (of: 'perSecond' | 'cpuUs' | 'p99Ms') =>
    own.map((turn, index) => turn[kind][of] / (loads[index]?.[of] ?? Number.NaN))
  const [rate, cpu, p99] = [ratios('perSecond'), ratios('cpuUs'), ratios('p99Ms')]
  const text = (all: readonly number[]) => spread(median(all), all)
  const checks = Object.entries(contestant.aims ?? {}).map(([of, aim]) => {
    if (of === 'rate') return { text: `rate ≥ ${aim}`, holds: median(rate) >= aim }
    if (of === 'p99') return { text: `p99 ≤ ${aim}`, holds: median(p99) <= aim }
    return { text: `p99 at half ≤ ${aim} ms`, holds: halfP99Ms <= aim }
  })
  return {
    name: `${contestant.name}: ${contestant[kind].name}`,
    measured: `${loadText(loads)}, at half of this rate p99 ${milliseconds(halfP99Ms)}. otpost ÷ it: rate ${text(rate)}, CPU ${text(cpu)}, p99 ${text(p99)}`,
    aim:
      checks.length > 0
        ? { text: checks.map(({ text }) => text).join(', '), holds: checks.every(({ holds }) => holds) }
        : undefined,
  }
}
