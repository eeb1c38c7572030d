import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { measure, newSeed, repeat } from '../measure.ts'
import { type PartResult, perSecond, spread } from '../report.ts'
import type { Scale } from '../scale.ts'
import type { Bench, Server } from '../servers.ts'
import { median } from '../statistics.ts'
import { send, verifyWrong, type Workload } from '../workloads.ts'
import { type Load, type LoadOptions, wrk } from '../wrk.ts'

const folder = join(import.meta.dir, '../better-auth')

/** The same requests as better-auth takes them: it knows neither applications nor brands. */
const theirs = {
  send: {
    path: '/api/auth/phone-number/send-otp',
    body: JSON.stringify({ phoneNumber: '+PHONE' }),
    status: 200,
    says: 'code sent',
  },
  guess: {
    path: '/api/auth/phone-number/verify',
    body: JSON.stringify({ phoneNumber: '+PHONE', code: '123456' }),
    status: 400,
    says: 'INVALID_OTP',
  },
} as const

type Call = (typeof theirs)[keyof typeof theirs]

/**
 * Requests per second beside those of better-auth's phone-number plugin, in turns: the same runtime, driver, durability,
 * connections and phone numbers drawn at random.
 */
export async function compare(bench: Bench, { rounds, seconds, warmupSeconds }: Scale): Promise<PartResult> {
  await install()
  const service = await bench.otpost({ databaseFile: await bench.database('compare') })
  const other = await startBetterAuth(bench)
  const measured = { send: [] as Pair[], guess: [] as Pair[] }

  await repeat(rounds + 1, async (round) => {
    // The first round warms both up and is left out.
    const options = { seconds: round === 0 ? warmupSeconds : seconds, seed: newSeed() }
    const sends = {
      own: await measure(service, send, options),
      other: await measureTheirs(other, theirs.send, options),
    }
    const guesses = {
      own: await measure(service, verifyWrong, { ...options, population: sends.own.requests }),
      other: await measureTheirs(other, theirs.guess, { ...options, population: sends.other.requests }),
    }
    if (round > 0) {
      measured.send.push(sends)
      measured.guess.push(guesses)
    }
  })
  await Promise.all([service.stop(), other.stop()])

  const rows = [
    { workload: send, pairs: measured.send },
    { workload: verifyWrong, pairs: measured.guess },
  ].map(summary)
  const name = `better-auth ${betterAuthVersion}`
  return {
    title: `Requests per second over those of ${name} (phone-number plugin), median of ${rounds} rounds (least–greatest)`,
    figures: rows.map(({ workload, factors, own, other }) => ({
      name: workload.name,
      measured: `${spread(median(factors), factors)}: ${perSecond(own)} to ${perSecond(other)}`,
    })),
    chart: {
      title: `Requests per second beside ${name}`,
      bars: rows.flatMap(({ workload, own, other }) => {
        const label = workload.name.replaceAll('`', '')
        return [
          { label, value: own, text: `otpost ${perSecond(own)}` },
          { label: '', value: other, text: `better-auth ${perSecond(other)}` },
        ]
      }),
    },
  }
}

interface Pair {
  readonly own: Load
  readonly other: Load
}

function summary({ workload, pairs }: { workload: Workload; pairs: readonly Pair[] }) {
  return {
    workload,
    factors: pairs.map(({ own, other }) => own.perSecond / other.perSecond),
    own: median(pairs.map(({ own }) => own.perSecond)),
    other: median(pairs.map(({ other }) => other.perSecond)),
  }
}

/** Its packages are installed when they are first compared with, so that otpost does not depend on them. */
async function install(): Promise<void> {
  const child = Bun.spawn([process.execPath, 'install', '--frozen-lockfile', '--silent'], {
    cwd: folder,
    stdout: 'ignore',
    stderr: 'inherit',
  })
  if ((await child.exited) !== 0) throw new Error(`the packages of ${folder} could not be installed`)
}

async function startBetterAuth(bench: Bench): Promise<Server> {
  const data = join(bench.folder, 'better-auth')
  mkdirSync(data)
  const server = await bench.start([process.execPath, join(folder, 'server.ts')], {
    env: { DATABASE_FILE: join(data, 'better-auth.db') },
    healthPath: '/api/auth/ok',
  })
  // It writes no log, so the bench first checks that its answers are those of the measured requests.
  for (const call of [theirs.send, theirs.guess]) {
    const response = await fetch(new URL(call.path, server.url), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: call.body.replace('PHONE', '919999999999'),
    })
    const text = await response.text()
    if (response.status !== call.status || !text.includes(call.says)) {
      throw new Error(`better-auth answered ${response.status} to ${call.path}: ${text}`)
    }
  }
  return server
}

async function measureTheirs(server: Server, call: Call, options: LoadOptions): Promise<Load> {
  const load = await wrk(server.url, call, options)
  const expected = call.status < 400 ? load.requests - load.above399 : load.above399
  if (expected < load.requests * 0.995) {
    throw new Error(
      `better-auth should answer ${call.status} to ${call.path}, but did so ${expected} times of ${load.requests}`,
    )
  }
  return load
}

const betterAuthVersion: string = (await Bun.file(join(folder, 'package.json')).json()).dependencies[
  'better-auth'
]
