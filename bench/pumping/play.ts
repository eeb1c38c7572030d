import { segmentsOf } from '../../src/adapters/sms/segments.ts'
import { createApp } from '../../src/app.ts'
import { readConfig } from '../../src/config/config.ts'
import type { SmsProvider } from '../../src/domain/ground/providers.ts'
import { putBrand } from '../../src/domain/operator/brands.ts'
import { operate, tester } from '../../test/support/operator.ts'
import { brandId, credentials } from '../workloads.ts'
import { allowed, type Visit } from './traffic.ts'

/** What the app reports of the form's user. */
export const clientFields = {
  neither: () => ({}),
  clientIp: ({ clientIp }: Visit) => ({ clientIp }),
  deviceId: ({ deviceId }: Visit) => ({ deviceId }),
} as const

export interface Setting {
  readonly mode: 'off' | 'record' | 'deny'
  readonly hasRules: boolean
  readonly client: keyof typeof clientFields
  /** Units a day, by scope. */
  readonly budgets?: Readonly<Record<string, number>>
}

/** What the server did for one visit. */
export interface Outcome {
  readonly visit: Visit
  /** Segments of all SMS that the provider accepted. */
  segments: number
  /** Whether a limit refused a code. */
  isRefused: boolean
}

interface Step {
  readonly atMs: number
  readonly kind: 'send' | 'resend' | 'typo' | 'enter'
  readonly outcome: Outcome
}

/** Steps of this time are sent at once, so that they share transactions. A visit has no two of them. */
const togetherMs = 2000

/** In place of 5 s. */
const syncMs = 300_000

/** From a wrong code to the right one. */
const typoMs = 3000

/**
 * Sends the requests of all visits to the handler of a real server, by a clock that they move.
 *
 * @param visits oldest first
 * @throws if an answer is neither a success nor a refusal by a limit
 */
export async function play(
  databaseEnv: Readonly<Record<string, string>>,
  { mode, hasRules, client, budgets = {} }: Setting,
  visits: readonly Visit[],
): Promise<Outcome[]> {
  const outcomes = visits.map((visit): Outcome => ({ visit, segments: 0, isRefused: false }))
  const steps = outcomes.flatMap(stepsOf).sort((a, b) => a.atMs - b.atMs)
  let now = steps[0]?.atMs ?? 0
  const config = readConfig({
    APP_CREDENTIALS: JSON.stringify({ [credentials.appId]: credentials.apiKey }),
    GLOBAL_LIMIT_PER_MINUTE: '1000000',
    ...databaseEnv,
  })
  const delivered = new Map<string, { code: string; segments: number }>()
  const provider: SmsProvider = {
    name: 'simulation',
    async send({ to, text }) {
      delivered.set(to, { code: /\d{6}/.exec(text)?.[0] ?? '', segments: segmentsOf(text).count })
      return { kind: 'accepted' }
    },
  }
  const app = await createApp(
    { ...config, smsRoutes: { plain: [() => provider], template: [] } },
    { now: () => now, stopwatch: () => now },
  )
  // The clock moves by seconds from request to request, so what is due every few seconds would take most of the time.
  Object.assign(app.alerts, { tick() {} })
  const { guard } = app
  const sync = guard.sync.bind(guard)
  let syncedAt = now
  Object.assign(guard, {
    sync() {
      if (now < syncedAt + syncMs) return Promise.resolve()
      syncedAt = now
      return sync()
    },
  })
  const post = async (path: string, fields: object): Promise<number> => {
    const { status } = await app.handle(
      new Request(`http://localhost${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ ...credentials, brandId, ...fields }),
      }),
    )
    return status
  }
  const take = async ({ kind, outcome }: Step): Promise<void> => {
    const { visit } = outcome
    const { phone } = visit
    if (kind === 'send' || kind === 'resend') {
      // A user whose code is refused gives up.
      if (outcome.isRefused) return
      const status = await post(`/otp/${kind}`, { phone, ...clientFields[client](visit) })
      if (status === 429) outcome.isRefused = true
      else if (status === 200) outcome.segments += delivered.get(phone)?.segments ?? 0
      else throw new Error(`${kind} answered ${status}`)
      return
    }
    const code = outcome.segments > 0 ? delivered.get(phone)?.code : undefined
    if (code === undefined) return
    const isWrong = kind === 'typo'
    const status = await post('/otp/verify', { phone, otp: isWrong ? otherThan(code) : code })
    if (status !== (isWrong ? 401 : 200)) throw new Error(`verify answered ${status} to ${kind}`)
  }
  try {
    await putBrand(app.context.acting(tester), brandId, { displayName: 'Acme' })
    for (const country of hasRules ? allowed : [])
      await operate({ app }, 'destination set', { rule: country, action: 'allow' })
    for (const [scope, amount] of Object.entries(budgets))
      await operate({ app }, 'budget set', { scope, period: 'day', amount: String(amount) })
    await operate({ app }, 'guard mode', { mode })
    let together: Step[] = []
    for (const step of steps) {
      if (step.atMs >= now + togetherMs) {
        await Promise.all(together.map(take))
        together = []
        now = step.atMs
      }
      together.push(step)
    }
    await Promise.all(together.map(take))
  } finally {
    await app.close()
  }
  return outcomes
}

function stepsOf(outcome: Outcome): Step[] {
  const { atMs, resendAfterMs, enterAfterMs, hasTypo } = outcome.visit
  const steps: Step[] = [{ atMs, kind: 'send', outcome }]
  if (resendAfterMs !== undefined) steps.push({ atMs: atMs + resendAfterMs, kind: 'resend', outcome })
  if (enterAfterMs !== undefined) {
    if (hasTypo) steps.push({ atMs: atMs + enterAfterMs - typoMs, kind: 'typo', outcome })
    steps.push({ atMs: atMs + enterAfterMs, kind: 'enter', outcome })
  }
  return steps
}

function otherThan(code: string): string {
  return code === '111111' ? '222222' : '111111'
}
