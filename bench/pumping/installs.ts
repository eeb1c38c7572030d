import type { CountryCode } from 'libphonenumber-js/max'
import { operate } from '../../test/support/operator.ts'
import type { Figure } from '../report.ts'
import { Random } from '../soak/random.ts'
import { openServer, type Server } from './play.ts'
import { expensive } from './scenarios.ts'
import { hourMs, randomMobile } from './traffic.ts'

// What a server does as it was installed: GUARD=record, no rules, no budgets. And what a leaked API key can send.

type Env = Readonly<Record<string, string>>

/** Prefixes of the kinds, and how many digits follow. */
const specialNumbers = {
  'premium-rate': ['4490', 8],
  'shared-cost': ['49180', 7],
  pager: ['447640', 6],
  satellite: ['8816', 8],
  personal: ['4470', 8],
  uan: ['4455', 8],
  freephone: ['44800', 7],
} as const

const blockedAlways: readonly string[] = ['premium-rate', 'shared-cost', 'pager', 'satellite']
const blockedWithRules: readonly string[] = [...blockedAlways, 'personal', 'uan']

export async function installFigures(
  env: () => Promise<Env>,
  startAtMs: number,
  seed: number,
): Promise<Figure[]> {
  return [
    ...(await specialKinds(await env(), startAtMs, new Random(seed))),
    await uzbekMobiles(await env(), startAtMs, new Random(seed)),
    ...(await leakedKey(env, startAtMs, new Random(seed))),
  ]
}

/** 20 codes to each kind of number. */
async function specialKinds(env: Env, startAtMs: number, random: Random): Promise<Figure[]> {
  await using server = await openServer(env, startAtMs)
  const figures: Figure[] = []
  for (const blocked of [blockedAlways, blockedWithRules]) {
    const hasRule = blocked === blockedWithRules
    if (hasRule) await operate(server, 'destination set', { rule: 'GB', action: 'allow' })
    const sent: [string, number][] = []
    for (const [kind, [prefix, digits]] of Object.entries(specialNumbers)) {
      let codes = 0
      for (let tries = 0; tries < 20; tries++) {
        const phone = prefix + String(random.integer(0, 10 ** digits - 1)).padStart(digits, '0')
        server.clock.now += 5000
        if ((await server.post('/otp/send', { phone })) === 200) codes++
      }
      sent.push([kind, codes])
    }
    figures.push({
      name: `${hasRule ? 'a rule allows GB' : 'default install'}: codes sent of 20 to each kind of number`,
      measured: sent.map(([kind, codes]) => `${kind} ${codes}`).join(', '),
      aim: {
        text: `0 to ${blocked.join(', ')}`,
        holds: sent.every(([kind, codes]) => codes === 0 || !blocked.includes(kind)),
      },
    })
  }
  return figures
}

/** 5,000 codes in two hours. */
async function uzbekMobiles(env: Env, startAtMs: number, random: Random): Promise<Figure> {
  const recordedAtMs: number[] = []
  await using server = await openServer(env, startAtMs, (line) => {
    if ('flags' in line && line.flags !== undefined) recordedAtMs.push(server.clock.now)
  })
  let sent = 0
  const alertedAtMs = await eachWithin(server, 5000, 2 * hourMs, 'guard.pumping', async () => {
    if ((await server.post('/otp/send', { phone: randomMobile(random, 'UZ') })) === 200) sent++
  })
  const seconds = ((alertedAtMs ?? Number.POSITIVE_INFINITY) - (recordedAtMs[9] ?? 0)) / 1000
  return {
    name: 'default install: 5,000 Uzbek mobiles in 2 hours',
    measured: `${sent} sent, ${recordedAtMs.length} recorded; ${alertedAtMs === undefined ? 'no alert' : `alert ${seconds.toFixed(0)} s after the tenth recorded code`}`,
    aim: { text: 'alert within 60 s of the tenth recorded code', holds: seconds <= 60 },
  }
}

/** 10,800 notifications in three hours to countries to which the app sent nothing before. */
async function leakedKey(env: () => Promise<Env>, startAtMs: number, random: Random): Promise<Figure[]> {
  const figures: Figure[] = []
  for (const limit of [undefined, 50]) {
    await using server = await openServer(await env(), startAtMs)
    if (limit !== undefined)
      await operate(server, 'app set', { appId: 'bench', newCountrySmsPerDay: String(limit) })
    let sent = 0
    const alertedAtMs = await eachWithin(server, 10_800, 3 * hourMs, 'notify.surge', async () => {
      const to = [`+${randomMobile(random, random.of<CountryCode>(expensive))}`]
      if (
        (await server.post('/notify', { channel: 'SMS', to, message: 'Your parcel arrives today.' })) === 200
      )
        sent++
    })
    const minutes = ((alertedAtMs ?? Number.POSITIVE_INFINITY) - startAtMs) / 60_000
    const most = limit === undefined ? 10_800 : limit * expensive.length
    figures.push({
      name: `leaked API key: 10,800 notifications in 3 hours to ten countries, ${limit === undefined ? 'without a limit' : `at most ${limit} SMS a day to a new country`}`,
      measured: `${sent} sent; ${alertedAtMs === undefined ? 'no alert' : `alert after ${minutes.toFixed(1)} minutes`}`,
      aim: { text: `alert within 10 minutes; at most ${most} sent`, holds: minutes <= 10 && sent <= most },
    })
  }
  return figures
}

/** Makes requests at equal distances, with what a server does every second. Resolves to the time of the first alert. */
async function eachWithin(
  { app, clock }: Server,
  count: number,
  durationMs: number,
  kind: string,
  request: () => Promise<void>,
): Promise<number | undefined> {
  const startAtMs = clock.now
  let alertedAtMs: number | undefined
  for (let index = 0; index < count; index++) {
    clock.now = startAtMs + Math.floor((index * durationMs) / count)
    await request()
    app.alerts.tick()
    app.notifyWatch.tick()
    await app.alerts.idle()
    if ((app.alerts.counts.get(kind) ?? 0) > 0) alertedAtMs ??= clock.now
  }
  return alertedAtMs
}
