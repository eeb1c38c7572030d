import { measure, newSeed, requireStatus } from '../measure.ts'
import { type Latency, pace } from '../paced.ts'
import { type Figure, milliseconds, type PartResult, perSecond } from '../report.ts'
import type { Scale } from '../scale.ts'
import type { Bench } from '../servers.ts'
import { send, verifyWrong, type Workload } from '../workloads.ts'

const aimMs = { p99: 20, stall: 50 } as const

/**
 * How long answers take, and the event loop stalls: with as many requests as the service can take, and at half of that
 * rate, which is where a service should be run.
 */
export async function latency(bench: Bench, { latencySeconds, warmupSeconds }: Scale): Promise<PartResult> {
  const service = await bench.otpost({ databaseFile: await bench.database('latency'), probe: true })
  await measure(service, send, { seconds: warmupSeconds, seed: newSeed() })
  await service.longestStallMs()

  const seed = newSeed()
  const sends = await measure(service, send, { seconds: latencySeconds, seed })
  const sendStallMs = await service.longestStallMs()
  const guesses = await measure(service, verifyWrong, {
    seconds: latencySeconds,
    seed,
    population: sends.requests,
  })
  const guessStallMs = await service.longestStallMs()

  const recipients: string[] = []
  const half = async (workload: Workload, ofPerSecond: number, nextPhone: () => string) => {
    const measured = await paced(service.url, workload, {
      perSecond: ofPerSecond / 2,
      seconds: latencySeconds,
      nextPhone,
    })
    await service.statuses(measured.requests)
    return { ...measured, perSecond: ofPerSecond / 2, stallMs: await service.longestStallMs() }
  }
  const halfSends = await half(send, sends.perSecond, () => {
    const phone = randomPhone()
    recipients.push(phone)
    return phone
  })
  shuffle(recipients)
  let guess = 0
  const halfGuesses = await half(verifyWrong, guesses.perSecond, () => {
    guess += 1
    return recipients[guess % recipients.length] ?? ''
  })
  await service.stop()

  const saturated = (
    name: string,
    load: { perSecond: number; p50Ms: number; p99Ms: number },
    stallMs: number,
  ) => figures(`${name}, at saturation (${perSecond(load.perSecond)})`, load, stallMs, false)
  const atHalf = (name: string, load: Latency & { perSecond: number; stallMs: number }) =>
    figures(`${name}, at half of that (${perSecond(load.perSecond)})`, load, load.stallMs, true)
  return {
    title: 'Time to the answer, p50 and p99, and the longest stall of the event loop',
    figures: [
      saturated(send.name, sends, sendStallMs),
      atHalf(send.name, halfSends),
      saturated(verifyWrong.name, guesses, guessStallMs),
      atHalf(verifyWrong.name, halfGuesses),
    ],
  }
}

function figures(
  name: string,
  { p50Ms, p99Ms }: { p50Ms: number; p99Ms: number },
  stallMs: number,
  aimed: boolean,
): Figure {
  return {
    name,
    measured: `${milliseconds(p50Ms)}, ${milliseconds(p99Ms)}; stall ${milliseconds(stallMs)}`,
    ...(aimed
      ? {
          aim: {
            text: `p99 ≤ ${aimMs.p99} ms, stall ≤ ${aimMs.stall} ms`,
            holds: p99Ms <= aimMs.p99 && stallMs <= aimMs.stall,
          },
        }
      : {}),
  }
}

/** Requests at a fixed rate for some seconds, which must be answered as the workload says. */
export async function paced(
  url: URL,
  workload: Workload,
  options: { perSecond: number; seconds: number; nextPhone: () => string },
): Promise<Latency> {
  const pacing = await pace(url, {
    next: () => workload.request.replace('PHONE_NUMBER', options.nextPhone()),
    perSecond: options.perSecond,
  })
  await Bun.sleep(options.seconds * 1000)
  const measured = await pacing.stop()
  requireStatus(workload, measured.statuses)
  return measured
}

export function randomPhone(): string {
  return `91${String(Math.floor(Math.random() * 1e10)).padStart(10, '0')}`
}

function shuffle(list: string[]): void {
  for (let index = list.length - 1; index > 0; index -= 1) {
    const other = Math.floor(Math.random() * (index + 1))
    const [a, b] = [list[index] ?? '', list[other] ?? '']
    list[index] = b
    list[other] = a
  }
}
