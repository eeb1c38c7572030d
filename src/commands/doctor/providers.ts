import { developmentOnly } from '../../adapters/sms/index.ts'
import type { PolicyFacts } from '../../adapters/store/condition.ts'
import type { DestinationConfig } from '../../config/destinations.ts'
import { hourMs } from '../../domain/ground/time.ts'
import { attemptsWindowMs, providerVerdicts } from '../../domain/health/conditions.ts'
import { rejectionSteps } from '../../domain/log/rejections.ts'
import { isTrouble } from '../../domain/log/statistics.ts'
import { wayName } from '../../domain/log/stats.ts'
import { type Finding, fail, warn } from './finding.ts'

export function providerFindings(
  { rejections: counts, attempts: minutes }: Pick<PolicyFacts, 'rejections' | 'attempts'>,
  now: number,
): readonly Finding[] {
  const lately = minutes.filter(({ at }) => at >= now - attemptsWindowMs)
  const dead = providerVerdicts(lately, new Set(), new Map())
    .filter(({ lasts }) => lasts)
    .map(({ condition: { problem, remedy } }) => fail('providers', problem, remedy))
  const [lastDay] = rejectionSteps(now)
  const recent = counts.filter(
    ({ kind, stepMs, at }) => kind === 'attempt' && stepMs === hourMs && at >= (lastDay?.from ?? now),
  )
  const byProvider = Map.groupBy(recent, ({ provider }) => provider)
  const failing = [...byProvider].flatMap(([provider, attempts]) => {
    const all = sumOf(attempts)
    const failed = all - sumOf(attempts.filter(({ detail }) => detail.startsWith('accepted')))
    if (!isTrouble(failed, all)) return []
    return warn(
      'providers',
      `${provider}: ${failed} of ${all} attempts failed or have an unknown result in the last 24 hours.`,
      'See the reasons with `otpost deliveries --since 1d`, or in the console.',
    )
  })
  return [...dead, ...failing]
}

/** Of the providers in use, apart from those that deliver nothing. */
export function untestedFindings(
  accepted: PolicyFacts['accepted'],
  { plain, template }: DestinationConfig['routes'],
  hasSmtp: boolean,
): readonly Finding[] {
  const ways = [...new Set([...plain, ...template])]
    .filter((provider) => !developmentOnly.includes(provider))
    .map((provider) => {
      const registered = plain.includes(provider) ? '' : ' --brand SLUG --template LOGIN_OTP'
      return { channel: 'SMS', provider, options: `NUMBER --provider ${provider}${registered}` } as const
    })
  const mail = { channel: 'EMAIL', provider: 'smtp', options: 'EMAIL --provider smtp' } as const
  return [...ways, ...(hasSmtp ? [mail] : [])]
    .filter(({ channel, provider }) => !accepted.includes(wayName(channel, provider)))
    .map(({ provider, options }) =>
      warn(
        'providers',
        `${provider} has never accepted a message.`,
        `Send a test message to yourself: \`otpost test-send ${options}\`.`,
      ),
    )
}

function sumOf(counts: PolicyFacts['rejections']): number {
  return counts.reduce((sum, { count }) => sum + count, 0)
}
