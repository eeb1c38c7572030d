import { statSync } from 'node:fs'
import { join } from 'node:path'
import { fill } from './fill.ts'
import { type Latency, pace, randomPhone } from './paced.ts'
import { Bench, root } from './servers.ts'
import { send } from './workloads.ts'

// What `otpost backup` and `forget` cost the requests beside them: `bun bench/care.ts [ROWS] [PER_SECOND]`.

const [rows = 1_000_000, perSecond = 300] = Bun.argv.slice(2).map(Number)
const quietMs = 10_000

await using bench = new Bench()
const databaseFile = await bench.database('care')
fill(databaseFile, rows, Date.now())
const service = await bench.otpost({ databaseFile })
const copy = join(bench.folder, 'copy.db')

/** Sends at the fixed rate while something else goes on. */
async function during(work: () => Promise<unknown>): Promise<Latency & { seconds: number; logMiB: number }> {
  const sends = await pace(service.url, send, { nextPhone: randomPhone, perSecond })
  let logBytes = 0
  const looking = setInterval(() => {
    logBytes = Math.max(logBytes, statSync(`${databaseFile}-wal`).size)
  }, 20)
  const startedAt = performance.now()
  await work()
  const seconds = (performance.now() - startedAt) / 1000
  const latency = await sends.stop()
  clearInterval(looking)
  return { ...latency, seconds, logMiB: logBytes / 2 ** 20 }
}

async function otpost(...args: string[]): Promise<void> {
  const child = Bun.spawn([process.execPath, 'src/main.ts', ...args], {
    cwd: root,
    env: { ...process.env, DATABASE_URL: `file:${databaseFile}` },
    stdout: 'inherit',
    stderr: 'ignore',
  })
  if ((await child.exited) !== 0) throw new Error(`otpost ${args[0]} failed`)
}

function say(
  when: string,
  { requests, p50Ms, p99Ms, maxMs, statuses, seconds, logMiB }: Awaited<ReturnType<typeof during>>,
): void {
  const answers = [...statuses].map(([status, count]) => `${count} × ${status}`).join(', ')
  console.log(
    `${when.padEnd(7)} ${seconds.toFixed(1)} s, ${requests} sends: p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms, longest ${maxMs.toFixed(1)} ms; ${answers}; log up to ${logMiB.toFixed(1)} MiB`,
  )
}

await during(() => Bun.sleep(3000))
say('before', await during(() => Bun.sleep(quietMs)))
say('backup', await during(() => otpost('backup', copy)))
say('between', await during(() => Bun.sleep(quietMs)))
say('forget', await during(() => otpost('forget', '12025550143')))
say('after', await during(() => Bun.sleep(quietMs)))
console.log(
  `database ${(statSync(databaseFile).size / 2 ** 20).toFixed(0)} MiB, ${rows} rows, ${perSecond} sends/s`,
)
await service.stop()
