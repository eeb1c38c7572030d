import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fillLog } from '../fill.ts'
import { type Measured, measure, newSeed, sendFactor } from '../measure.ts'
import { signIn } from '../operator.ts'
import { type Latency, pace, percentilesOf } from '../paced.ts'
import { type Contestant, gateways, otpost } from '../peers.ts'
import { plot } from '../plot.ts'
import { residentBytes } from '../processor.ts'
import { type Figure, loadText, megabytes, type PartResult, spread, whole } from '../report.ts'
import { idleMs, type Scale } from '../scale.ts'
import { type Bench, root, type Server } from '../servers.ts'
import { median, percentile } from '../statistics.ts'
import { connections, wrk } from '../wrk.ts'

const rounds = 3
const sendsPerSecond = 1500
const mebibyte = 2 ** 20

/** What one answer may take. */
type Most = Partial<Record<'p50Ms' | 'p99Ms', number>>
const byConnections: ReadonlyMap<number, Most> = new Map([
  [1, { p50Ms: 0.6, p99Ms: 3 }],
  [2, {}],
  [4, { p50Ms: 0.8, p99Ms: 4 }],
  [8, {}],
  [16, {}],
])
const atHalf = { send: { p99Ms: 8 }, guess: { p99Ms: 6 } } as const
const atFixedRate = { p50Ms: 1, p99Ms: 6 } as const
const mostByOperator = 1.2

/** For one send. */
const mostCalls: Readonly<Record<string, number>> = { pwrite64: 6, pread64: 1, madvise: 0.1 }
const otherCalls = ['futex', 'fsync', 'fdatasync']

const kinds = ['send', 'guess'] as const
type Rates = Readonly<Record<(typeof kinds)[number], number>>
const half = '50 %'
const loads: Readonly<Record<string, number>> = { '25 %': 0.25, [half]: 0.5, '75 %': 0.75 }
const fixedRate = `${whole(sendsPerSecond)}/s`
const fullLog = `${half}, full event log`
const withOperator = `${fullLog}, an operator at work`

interface Running {
  readonly contestant: Contestant
  readonly server: Server
}

interface Closed {
  readonly contestant: Contestant
  readonly connections: number
  readonly measured: Measured
}

interface Paced {
  readonly contestant: Contestant
  readonly kind: (typeof kinds)[number]
  readonly load: string
  readonly perSecond: number
  readonly latency: Latency
}

/**
 * The time of one answer: closed loop with few connections, and at fixed rates, also while an operator reads the console
 * of a server with a full event log. The gateways that have an aim run at the same time, and are measured in
 * turns.
 */
export async function tail(
  bench: Bench,
  scale: Scale,
  { isWhole }: { readonly isWhole: boolean },
): Promise<PartResult> {
  const databaseFile = await bench.database('tail')
  const { all, leftOut } = gateways()
  const others = all.filter(({ aims }) => Object.keys(aims ?? {}).length > 0)
  const running: Running[] = []
  for (const contestant of others) running.push({ contestant, server: await contestant.start(bench) })
  const server = await bench.otpost({ databaseFile })
  const own: Running = { contestant: otpost, server }
  await Bun.sleep(idleMs)
  const idleBytes = residentBytes(server)
  for (const each of [own, ...running]) await warmUp(each, scale)

  const samples = new Samples(bench, scale)
  const rates: Rates[] = []
  for (let round = 0; round < rounds; round += 1) {
    rates.push(await samples.round(own))
    for (const other of running) await samples.round(other)
  }
  const memory = [idleBytes, residentBytes(server), residentBytes(server, 'VmHWM')]
  const calls = await systemCalls(bench, server, scale)
  for (const each of [own, ...running]) await each.server.stop()

  fillLog(databaseFile, scale.loggedRequests)
  const filled: Running = { contestant: otpost, server: await bench.otpost({ databaseFile }) }
  await warmUp(filled, scale)
  const browse = await signIn(bench, databaseFile, filled.server.url)
  const halves = {
    send: median(rates.map(({ send }) => send)) / 2,
    guess: median(rates.map(({ guess }) => guess)) / 2,
  }
  for (let round = 0; round < rounds; round += 1) {
    await samples.pair(filled, fullLog, halves)
    await samples.pair(filled, withOperator, halves, browse)
  }
  await filled.server.stop()

  if (isWhole) writeFileSync(join(root, 'docs/answer-time.svg'), samples.plot())
  return {
    title: `The time of one answer, median of ${rounds} rounds; at fixed rates in milliseconds, p99 with the least–greatest, the delay of the client as its p99`,
    figures: [
      ...samples.figures(),
      ...memoryFigures(memory),
      ...calls,
      ...leftOut.map((reason) => ({ name: reason, measured: 'not measured' })),
    ],
  }
}

/** Compiling takes part of the first requests. */
async function warmUp({ contestant, server }: Running, { seconds, warmupRequests }: Scale): Promise<void> {
  for (let done = 0; done < warmupRequests; ) {
    const seed = newSeed()
    const sends = await wrk(server.url, contestant.send.request, { seconds: seconds * sendFactor, seed })
    const options = { seconds, seed, population: sends.requests }
    done += sends.requests + (await wrk(server.url, contestant.guess.request, options)).requests
  }
}

class Samples {
  private readonly closed: Closed[] = []
  private readonly paced: Paced[] = []

  constructor(
    private readonly bench: Bench,
    private readonly scale: Scale,
  ) {}

  /** All loads but those of the operator. Returns the rates at saturation. */
  async round(running: Running): Promise<Rates> {
    const { contestant, server } = running
    const { seconds } = this.scale
    // The log has requests that `measure` does not expect.
    await server.statuses?.(0)
    const seed = newSeed()
    const sends = await measure(server, contestant.send, { seconds: seconds * sendFactor, seed })
    const guesses = await measure(server, contestant.guess, { seconds, seed, population: sends.requests })
    for (const connections of byConnections.keys()) {
      const measured = await measure(server, contestant.send, { seconds, seed: newSeed(), connections })
      this.closed.push({ contestant, connections, measured })
    }
    this.closed.push({ contestant, connections, measured: sends })
    const rates = { send: sends.perSecond, guess: guesses.perSecond }
    // Each server has other rates, so these are no comparison.
    for (const [load, share] of contestant === otpost ? Object.entries(loads) : []) {
      await this.pair(running, load, { send: rates.send * share, guess: rates.guess * share })
    }
    await this.pair(running, fixedRate, { send: sendsPerSecond, guess: sendsPerSecond })
    return rates
  }

  /** Sends at a fixed rate, then wrong codes to their recipients. */
  async pair(
    { contestant, server }: Running,
    load: string,
    rates: Rates,
    work: (seconds: number) => Promise<unknown> = (seconds) => Bun.sleep(seconds * 1000),
  ): Promise<void> {
    const seed = newSeed()
    let population = 0
    for (const kind of kinds) {
      const options = { perSecond: rates[kind], seed, population }
      const latency = await pace(this.bench, server.url, contestant[kind], options, () =>
        work(this.scale.seconds),
      )
      this.paced.push({ contestant, kind, load, perSecond: rates[kind], latency })
      population = latency.requests
    }
  }

  figures(): Figure[] {
    const closed = Map.groupBy(
      this.closed,
      ({ contestant, connections }) =>
        `${contestant.name}: ${contestant.send.name}, ${connections} at a time`,
    )
    const paced = Map.groupBy(
      this.paced,
      ({ contestant, kind, load }) => `${contestant.name}: ${contestant[kind].name}, ${load}`,
    )
    return [
      ...[...closed].map(([name, all]) => closedFigure(name, all)),
      ...[...paced].map(([name, all]) => this.pacedFigure(name, all)),
    ]
  }

  private pacedFigure(name: string, all: readonly Paced[]): Figure {
    const ofRounds = all.map(({ latency }) => percentilesOf(latency))
    const numbers = (of: keyof ReturnType<typeof percentilesOf>) => ofRounds.map((round) => round[of])
    const [p50Ms, p99Ms] = [median(numbers('p50Ms')), median(numbers('p99Ms'))]
    const perSecond = median(all.map(({ perSecond }) => perSecond))
    const texts = {
      p50: p50Ms.toFixed(2),
      p99: spread(p99Ms, numbers('p99Ms')),
      'p99.9': median(numbers('p999Ms')).toFixed(2),
      longest: Math.max(...numbers('maxMs')).toFixed(2),
      'delay of the client': median(numbers('delayP99Ms')).toFixed(2),
    }
    const [first] = all
    return {
      name,
      measured: `${whole(perSecond)}/s: ${Object.entries(texts)
        .map(([what, text]) => `${what} ${text}`)
        .join(', ')}`,
      aim: first?.contestant === otpost ? holds({ p50Ms, p99Ms }, this.mostOf(first)) : undefined,
    }
  }

  private mostOf({ kind, load }: Paced): Most {
    if (load === half) return atHalf[kind]
    if (load === withOperator) return { p99Ms: mostByOperator * this.p99Of(otpost, kind, fullLog) }
    if (load !== fixedRate || kind !== 'send') return {}
    const others = new Set(this.paced.map(({ contestant }) => contestant).filter((one) => one !== otpost))
    const theirs = [...others].map((one) => this.p99Of(one, kind, fixedRate))
    return { ...atFixedRate, p99Ms: Math.min(atFixedRate.p99Ms, ...theirs) }
  }

  private p99Of(contestant: Contestant, kind: Paced['kind'], load: string): number {
    return median(this.latencies(contestant, kind, load).map((latency) => percentilesOf(latency).p99Ms))
  }

  private latencies(contestant: Contestant, kind: Paced['kind'], load: string): Latency[] {
    return this.paced
      .filter((one) => one.contestant === contestant && one.kind === kind && one.load === load)
      .map(({ latency }) => latency)
  }

  plot(): string {
    const curves = [...Object.keys(loads), withOperator].map((name) => {
      const rounds = this.latencies(otpost, 'send', name).map(({ latenciesMs }) => latenciesMs)
      return { name, at: (percent: number) => median(rounds.map((round) => percentile(round, percent))) }
    })
    return plot('Time of a send by percentile, at shares of the highest rate', curves)
  }
}

function closedFigure(name: string, all: readonly Closed[]): Figure {
  const measured = all.map((one) => one.measured)
  const middle = (of: 'p50Ms' | 'p99Ms') => median(measured.map((load) => load[of]))
  const [first] = all
  const aim = first?.contestant === otpost ? byConnections.get(first.connections) : undefined
  return {
    name,
    measured: loadText(measured),
    aim: holds({ p50Ms: middle('p50Ms'), p99Ms: middle('p99Ms') }, aim),
  }
}

function holds(found: Required<Most>, { p50Ms, p99Ms }: Most = {}): Figure['aim'] {
  const bounds = [
    ...(p50Ms === undefined ? [] : [{ text: `p50 ≤ ${p50Ms} ms`, holds: found.p50Ms <= p50Ms }]),
    ...(p99Ms === undefined
      ? []
      : [{ text: `p99 ≤ ${Number(p99Ms.toFixed(1))} ms`, holds: found.p99Ms <= p99Ms }]),
  ]
  if (bounds.length === 0) return undefined
  return {
    text: bounds.map(({ text }) => text).join(', '),
    holds: bounds.every(({ holds }) => holds),
  }
}

function memoryFigures(bytes: readonly number[]): Figure[] {
  const aims = [60, 110, 130].map((mebibytes) => mebibytes * mebibyte)
  return ['idle', 'after all loads', 'peak'].map((when, index) => {
    const [found = 0, aim = 0] = [bytes[index], aims[index]]
    return {
      name: `otpost: memory ${when}`,
      measured: megabytes(found),
      aim: { text: `≤ ${megabytes(aim)}`, holds: found <= aim },
    }
  })
}

/** The system calls of all threads during sends over one connection. */
async function systemCalls(bench: Bench, { url, pid }: Server, { tracedSends }: Scale): Promise<Figure[]> {
  const name = 'otpost: system calls of a send, one connection'
  if (Bun.which('strace') === null) return [{ name, measured: 'not measured: strace is not installed' }]
  const file = join(bench.folder, 'system-calls')
  const tracer = Bun.spawn(['strace', '-f', '-c', '-o', file, '-p', String(pid)], { stderr: 'ignore' })
  let sends = 0
  try {
    // It attaches to one thread after the other.
    await Bun.sleep(idleMs)
    while (sends < tracedSends) {
      sends += (await wrk(url, otpost.send.request, { seconds: 2, seed: newSeed(), connections: 1 })).requests
    }
  } finally {
    tracer.kill('SIGINT')
    await tracer.exited
  }
  const counts = readFileSync(file, 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
  return [...Object.keys(mostCalls), ...otherCalls].map((call) => {
    const perSend = Number(counts.find((fields) => fields.at(-1) === call)?.[3] ?? 0) / sends
    const aim = mostCalls[call]
    return {
      name: `${name}: ${call}`,
      measured: `${perSend.toFixed(2)} (${whole(sends)} sends)`,
      aim: aim === undefined ? undefined : { text: `≤ ${aim}`, holds: perSend <= aim },
    }
  })
}
