import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { residentBytes } from '../processor.ts'
import { megabytes, milliseconds, whole } from '../report.ts'
import { Bench, freePort, type Otpost, root } from '../servers.ts'
import { percentile } from '../statistics.ts'
import { Client, type Service } from './client.ts'
import { Gateway, providerTimeoutMs } from './gateway.ts'
import { Random } from './random.ts'
import { Traces } from './scenarios.ts'
import { openFiles, slope } from './steady.ts'

const help = `bun run soak [SECONDS] [--seed NUMBER] [--binary PATH]

Runs the real process under mixed load with faults for so many seconds (60): a
provider that fails, is slow and hangs up; wrong codes and bad input; restarts by
SIGTERM and kill -9 for the first part, then steady load to see whether memory,
files and latency hold; at last the simulation and the fuzzer of the tests, with
new seeds for as long as there is time. Ends with 1 when something does not hold.
`

/** The share of the time for each phase. */
const shares = { restarts: 0.35, steady: 0.5 } as const
const callers = 24
const longestPauseMs = 100
const betweenRestartsMs = { least: 1000, most: 4000 } as const
const reportMs = 5000

/** How many violations, and lines of the log, are shown. */
const shown = 20

/** Tests whose steps depend on a seed. */
const searches = ['test/simulation', 'test/fuzz']

const limits = {
  p99Ms: 50,
  /** Limits of the growth of RSS. A heap that still grows may add the slack. */
  bytesPerMinute: 2 ** 20,
  slackBytes: 24 * 2 ** 20,
  /** Connections that stay open: their number depends on how many scenarios ran at once. */
  moreFiles: 64,
  /** The time of the slowest delivery, and what draining takes beyond it. */
  stopMs: 2 * providerTimeoutMs + 5000,
} as const

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
    binary: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
const seconds = Number(positionals[0] ?? 60)
if (options.help || !(seconds >= 10)) {
  process.stdout.write(options.help ? help : 'SECONDS must be a number from 10 on\n')
  process.exit(options.help ? 0 : 2)
}

const random = new Random(Number(options.seed))
await using bench = new Bench(options.binary && resolve(options.binary))
const gateway = new Gateway(random)
const provider = await gateway.start()
const databaseFile = await bench.database('soak')
const port = freePort()
const service: Service = { url: new URL(`http://127.0.0.1:${port}`), isUp: false, starts: 0 }
const client = new Client(service)
const traces = new Traces(client, gateway, random)
const violations = client.violations
const faultLines: string[] = []
print(`seed ${options.seed}`)

let server = await startServer()
const startedAt = performance.now()
const traffic = startTraffic()
const reporter = setInterval(report, reportMs)
await untilShare(shares.restarts, restart)
const steady = await measureSteady()
clearInterval(reporter)
await traffic.stop()
await stopGracefully()
readLog()
gateway.stop()
const tests = await runTests()
verdict()

async function startServer(): Promise<Otpost> {
  const started = await bench.otpost({ databaseFile, env: provider, port })
  service.isUp = true
  service.starts += 1
  return started
}

/** Callers that run one scenario after another, with a pause between them. */
function startTraffic(): { quiet(work: () => void): Promise<void>; stop(): Promise<void> } {
  let running = true
  let gate = Promise.resolve()
  let underWay = 0
  let settled = () => {}
  const call = async () => {
    while (running) {
      await gate
      if (service.isUp) {
        underWay += 1
        await traces.tell()
        underWay -= 1
        if (underWay === 0) settled()
      }
      await Bun.sleep(random.integer(0, longestPauseMs))
    }
  }
  const all = Promise.all(Array.from({ length: callers }, call))
  return {
    /** Runs a function while no scenario is in progress. */
    async quiet(work) {
      const { promise, resolve: open } = Promise.withResolvers<void>()
      gate = promise
      if (underWay > 0) await new Promise<void>((resolve) => (settled = resolve))
      work()
      open()
    },
    async stop() {
      running = false
      await all
    },
  }
}

/** Stops or kills the server after some time, and starts it again. */
async function restart(): Promise<void> {
  await Bun.sleep(random.integer(betweenRestartsMs.least, betweenRestartsMs.most))
  if (random.chance(0.5)) {
    await stopGracefully()
  } else {
    service.isUp = false
    await server.stop('SIGKILL')
  }
  server = await startServer()
}

async function stopGracefully(): Promise<void> {
  service.isUp = false
  const since = performance.now()
  const { exitCode, signal } = await server.stop('SIGTERM')
  const tookMs = performance.now() - since
  if (exitCode !== 0) violations.push(`SIGTERM ended the server with ${exitCode ?? signal}`)
  if (tookMs > limits.stopMs) violations.push(`the server took ${milliseconds(tookMs)} to stop`)
}

/** Steady load: how memory, files and latency develop. The first third of it is for the new server to warm up. */
async function measureSteady() {
  await untilShare(shares.restarts + shares.steady / 3, () => Bun.sleep(500))
  const filesBefore = await openFilesAtRest()
  client.latenciesMs.length = 0
  const memory: [minutes: number, bytes: number][] = []
  const begunAt = performance.now()
  await untilShare(shares.restarts + shares.steady, async () => {
    await Bun.sleep(500)
    memory.push([(performance.now() - begunAt) / 60_000, residentBytes(server)])
  })
  return {
    minutes: (performance.now() - begunAt) / 60_000,
    bytesPerMinute: slope(memory),
    p99Ms: p99(client.latenciesMs),
    filesBefore,
    filesAfter: await openFilesAtRest(),
  }
}

/** Files and sockets that the server has open while no request is in progress. */
async function openFilesAtRest(): Promise<number> {
  let count = 0
  await traffic.quiet(() => {
    count = openFiles(server)
  })
  return count
}

function p99(latenciesMs: readonly number[]): number {
  return percentile(
    [...latenciesMs].sort((a, b) => a - b),
    99,
  )
}

/** The tests that search at random, with new seeds each time, for what is left of the time; at least once. */
async function runTests(): Promise<{ runs: number; failed: boolean }> {
  let runs = 0
  let failed = false
  await untilShare(1, async () => {
    runs += 1
    const child = Bun.spawn([process.execPath, 'test', '--timeout', '600000', ...searches], {
      cwd: root,
      env: { ...process.env, FUZZ_SEED: 'random' },
      stdout: 'ignore',
      stderr: 'pipe',
    })
    const [output, code] = await Promise.all([new Response(child.stderr).text(), child.exited])
    if (code !== 0) {
      failed = true
      print(output)
    }
  })
  return { runs, failed }
}

function verdict(): void {
  const allowed = limits.bytesPerMinute + limits.slackBytes / steady.minutes
  const rows: [holds: boolean, what: string][] = [
    [
      violations.length === 0,
      `${whole(client.requests)} requests, ${violations.length} violations, ${client.lost} lost with the ${service.starts - 1} restarts`,
    ],
    [gateway.repeated.length === 0, `${gateway.repeated.length} messages were handed to the provider twice`],
    [
      steady.p99Ms <= limits.p99Ms,
      `p99 of verify and health ${milliseconds(steady.p99Ms)}, at most ${limits.p99Ms} ms`,
    ],
    [
      steady.bytesPerMinute <= allowed,
      `memory ${megabytes(steady.bytesPerMinute)} a minute, at most ${megabytes(allowed)} over ${steady.minutes.toFixed(1)} minutes`,
    ],
    [
      steady.filesAfter <= steady.filesBefore + limits.moreFiles,
      `open files at rest ${steady.filesBefore}, then ${steady.filesAfter}, at most ${limits.moreFiles} more`,
    ],
    [!tests.failed, `${tests.runs} runs of the simulation and the fuzzer`],
  ]
  for (const violation of violations.slice(0, shown)) print(`violation: ${violation}`)
  for (const line of faultLines.slice(0, shown)) print(`log: ${line}`)
  for (const [holds, what] of rows) print(`${holds ? 'holds' : 'FAILS'}  ${what}`)
  print([...traces.told].map(([trace, count]) => `${trace} ${whole(count)}`).join(', '))
  process.exitCode = rows.every(([holds]) => holds) ? 0 : 1
}

/** Keeps the log lines about faults of the server itself. */
function readLog(): void {
  const faults = server.takeLog().filter((line) => /"error":"internal_error"|"level":60/.test(line))
  faultLines.push(...faults.slice(0, shown))
}

function report(): void {
  readLog()
  const line = [
    `${((performance.now() - startedAt) / 1000).toFixed(0).padStart(5)} s`,
    `${whole(client.requests)} requests`,
    `${service.starts} starts`,
    ...(client.latenciesMs.length > 0 ? [`p99 ${milliseconds(p99(client.latenciesMs))}`] : []),
    ...(service.isUp ? [`${megabytes(residentBytes(server))}`, `${openFiles(server)} files`] : []),
    `${violations.length} violations`,
  ]
  print(line.join('  '))
}

/** Repeats a step until a share of the time has passed. */
async function untilShare(share: number, step: () => Promise<void>): Promise<void> {
  do await step()
  while (performance.now() - startedAt < share * seconds * 1000)
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
