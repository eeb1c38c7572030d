import { segmentsOf } from '../../src/adapters/sms/segments.ts'
import { createApp } from '../../src/app.ts'
import { readConfig } from '../../src/config/config.ts'
import { silent } from '../../src/context.ts'
import type { SmsProvider } from '../../src/domain/ground/providers.ts'
import { putBrand } from '../../src/domain/operator/brands.ts'
import { operate, tester } from '../../test/support/operator.ts'
import { brandId, credentials } from '../workloads.ts'
import { allowed, type Visit } from './traffic.ts'

export interface Setting {
  readonly mode: 'off' | 'record' | 'deny'
  /** Whether rules of destinations allow the home country and a few others. */
  readonly hasRules: boolean
  /** What the app reports of the form's user. */
  readonly client?: 'clientIp' | 'deviceId' | undefined
  /** Units a day, by scope. */
  readonly budgets?: Readonly<Record<string, number>> | undefined
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
  env: Readonly<Record<string, string>>,
  { mode, hasRules, client, budgets = {} }: Setting,
  visits: readonly Visit[],
): Promise<Outcome[]> {
  const outcomes = visits.map((visit): Outcome => ({ visit, segments: 0, isRefused: false }))
  const steps = outcomes.flatMap(stepsOf).sort((a, b) => a.atMs - b.atMs)
  await using server = await openServer(env, steps[0]?.atMs ?? 0)
  const { clock, delivered, post } = server
  workSeldom(server)
  for (const country of hasRules ? allowed : [])
    await operate(server, 'destination set', { rule: country, action: 'allow' })
  for (const [scope, amount] of Object.entries(budgets))
    await operate(server, 'budget set', { scope, period: 'day', amount: String(amount) })
  await operate(server, 'guard mode', { mode })

  const take = async ({ kind, outcome }: Step): Promise<void> => {
    const { visit } = outcome
    const { phone } = visit
    if (kind === 'send' || kind === 'resend') {
      // A user whose code is refused gives up.
      if (outcome.isRefused) return
      const status = await post(`/otp/${kind}`, { phone, ...(client && { [client]: visit[client] }) })
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
  let together: Step[] = []
  for (const step of steps) {
    if (step.atMs >= clock.now + togetherMs) {
      await Promise.all(together.map(take))
      together = []
      clock.now = step.atMs
    }
    together.push(step)
  }
  await Promise.all(together.map(take))
  return outcomes
}

export type Server = Awaited<ReturnType<typeof openServer>>

/** A whole server in this process, with a clock and a provider of its own. It does not listen. */
export async function openServer(
  env: Readonly<Record<string, string>>,
  startAtMs: number,
  info: (line: object) => void = () => {},
) {
  const clock = { now: startAtMs }
  const config = readConfig({
    APP_CREDENTIALS: JSON.stringify({ [credentials.appId]: credentials.apiKey }),
    GLOBAL_LIMIT_PER_MINUTE: '1000000',
    ...env,
  })
  /** The last SMS to each number. */
  const delivered = new Map<string, { readonly code: string; readonly segments: number }>()
  const provider: SmsProvider = {
    name: 'simulation',
    async send({ to, text }) {
      delivered.set(to, { code: /\d{6}/.exec(text)?.[0] ?? '', segments: segmentsOf(text).count })
      return { kind: 'accepted' }
    },
  }
  const app = await createApp(
    { ...config, phoneRoutes: { plain: [() => provider], template: [] } },
    { now: () => clock.now, stopwatch: () => clock.now, log: { ...silent, info } },
  )
  await putBrand(app.context.acting(tester), brandId, { displayName: 'Acme' })
  return {
    app,
    clock,
    delivered,
    /** Resolves to the status. */
    async post(path: string, fields: object): Promise<number> {
      const { status } = await app.handle(
        new Request(`http://localhost${path}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ ...credentials, brandId, ...fields }),
        }),
      )
      return status
    },
    [Symbol.asyncDispose]: () => app.close(),
  }
}

/** The clock moves by seconds from request to request, so what is due every few seconds would take most of the time. */
function workSeldom({ app: { alerts, guard }, clock }: Server): void {
  const sync = guard.sync.bind(guard)
  let syncedAt = clock.now
  Object.assign(alerts, { tick() {} })
  Object.assign(guard, {
    async sync() {
      if (clock.now < syncedAt + syncMs) return
      syncedAt = clock.now
      await sync()
    },
  })
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
