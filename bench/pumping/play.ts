import { segmentsOf } from '../../src/adapters/sms/segments.ts'
import { createApp } from '../../src/app.ts'
import { readConfig } from '../../src/config/config.ts'
import type { SmsProvider } from '../../src/domain/ground/providers.ts'
import { putBrand } from '../../src/domain/operator/brands.ts'
import { brandId, credentials } from '../workloads.ts'
import type { Visit } from './scenarios.ts'

/** One of the compared configurations of the server. */
export interface Setting {
  readonly name: string
  readonly env: Readonly<Record<string, string>>
}

/** What the server did for one visit. */
export interface Outcome {
  readonly visit: Visit
  /** Segments of all SMS that the provider accepted. */
  segments: number
  /** Whether a limit refused a code. */
  isRefused: boolean
}

/**
 * Sends the requests of all visits to the handler of a real server, one after the other, by a clock that they move.
 *
 * @param visits oldest first
 * @throws if an answer is neither a success nor a refusal by a limit
 */
export async function play(
  databaseEnv: Readonly<Record<string, string>>,
  { env }: Setting,
  visits: readonly Visit[],
): Promise<Outcome[]> {
  const outcomes = visits.map((visit): Outcome => ({ visit, segments: 0, isRefused: false }))
  const steps = outcomes.flatMap(stepsOf).sort((a, b) => a.atMs - b.atMs)
  let now = steps[0]?.atMs ?? 0
  const config = readConfig({
    APP_CREDENTIALS: JSON.stringify({ [credentials.appId]: credentials.apiKey }),
    GLOBAL_LIMIT_PER_MINUTE: '1000000',
    ...databaseEnv,
    ...env,
  })
  const delivered = { code: '', segments: 0 }
  const provider: SmsProvider = {
    name: 'simulation',
    async send({ text }) {
      delivered.code = /\d{6}/.exec(text)?.[0] ?? ''
      delivered.segments += segmentsOf(text).count
      return { kind: 'accepted' }
    },
  }
  const app = await createApp(
    { ...config, smsRoutes: { plain: [() => provider], template: [] } },
    { now: () => now, stopwatch: () => now },
  )
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
  try {
    await putBrand(app.context.acting({ by: 'command', name: 'simulation' }), brandId, {
      displayName: 'Acme',
    })
    const codes = new Map<Outcome, string>()
    for (const { atMs, kind, outcome } of steps) {
      now = atMs
      const { phone, clientIp } = outcome.visit
      if (kind === 'send' || kind === 'resend') {
        const status = await post(`/otp/${kind}`, { phone, clientIp })
        if (status === 429) outcome.isRefused = true
        else if (status !== 200) throw new Error(`${kind} answered ${status}`)
        else codes.set(outcome, delivered.code)
        outcome.segments += delivered.segments
        delivered.segments = 0
      } else {
        const code = codes.get(outcome)
        if (code === undefined) continue
        const isWrong = kind === 'typo'
        const otp = isWrong ? otherThan(code) : code
        const status = await post('/otp/verify', { phone, otp })
        if (status !== (isWrong ? 401 : 200)) throw new Error(`verify answered ${status} to ${kind}`)
      }
    }
  } finally {
    await app.close()
  }
  return outcomes
}

interface Step {
  readonly atMs: number
  readonly kind: 'send' | 'resend' | 'typo' | 'enter'
  readonly outcome: Outcome
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

/** From a wrong code to the right one. */
const typoMs = 3000

function otherThan(code: string): string {
  return code === '111111' ? '222222' : '111111'
}
