import { describe, expect, test } from 'bun:test'
import { ConversionFeedback, type FeedbackResult } from '../../src/domain/delivery/conversion-feedback.ts'
import type { Outcome } from '../../src/domain/ground/providers.ts'
import { newRequestContext } from '../../src/domain/request/request-context.ts'

const accepted: Outcome = { kind: 'accepted' }
const busy: Outcome = { kind: 'retryable', reason: 'HTTP 503' }
const unknownMessage: Outcome = { kind: 'rejected', scope: 'account', reason: '20404' }

/** Calls that a test answers. */
function world() {
  const calls: { readonly messageId: string; readonly answer: (outcome: Outcome | Error) => void }[] = []
  const results: FeedbackResult[] = []
  const feedback = new ConversionFeedback(
    [
      {
        name: 'twilio',
        send: async () => accepted,
        reportConversion: (messageId) =>
          new Promise((resolve, reject) => {
            const answer = (outcome: Outcome | Error) =>
              outcome instanceof Error ? reject(outcome) : resolve(outcome)
            calls.push({ messageId, answer })
          }),
      },
      { name: 'vonage', send: async () => accepted },
    ],
    4000,
    (result) => results.push(result),
  )
  function verified(providerMessageId: string | null, provider = 'twilio'): void {
    const context = newRequestContext({ requestId: 'request', at: 0, clientIp: '127.0.0.1' })
    context.verified = { provider, providerMessageId, ageMs: 1000 }
    const common = { method: 'POST', route: '/otp/verify', status: 200, durationMs: 1 }
    feedback.ended({ context, ...common, failure: undefined, error: undefined })
  }
  async function answer(...outcomes: (Outcome | Error)[]): Promise<void> {
    for (const outcome of outcomes) {
      calls.shift()?.answer(outcome)
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  return { calls, results, feedback, verified, answer }
}

describe('conversion feedback', () => {
  test('is for verified codes with a message ID, at a provider that accepts it', () => {
    const { calls, feedback, verified } = world()
    expect(['twilio', 'vonage', 'smtp'].filter((name) => feedback.accepts(name))).toEqual(['twilio'])
    verified(null)
    verified('SM1', 'vonage')
    verified('SM2')
    expect(calls.map(({ messageId }) => messageId)).toEqual(['SM2'])
  })

  test.each<[string, (Outcome | Error)[], string, string | null]>([
    ['accepted at once', [accepted], 'accepted', null],
    ['accepted the second time', [busy, accepted], 'accepted', null],
    ['refused twice', [busy, busy], 'retryable', 'HTTP 503'],
    ['rejected, which is final', [unknownMessage], 'rejected', '20404'],
    ['a fault twice', [new Error('secret'), new Error('secret')], 'unknown', 'provider fault'],
  ])('%s', async (_, answers, outcome, reason) => {
    const { calls, results, verified, answer } = world()
    verified('SM1')
    await answer(...answers)
    expect(calls).toEqual([])
    expect(results as unknown[]).toEqual([{ provider: 'twilio', outcome, reason }])
  })

  test('makes 4 calls at once, keeps 1000 waiting, and drops more', async () => {
    const { calls, results, verified, answer } = world()
    for (let index = 0; index < 1006; index++) verified(`SM${index}`)
    expect(calls.map(({ messageId }) => messageId)).toEqual(['SM0', 'SM1', 'SM2', 'SM3'])
    const dropped = { provider: 'twilio', outcome: 'dropped', reason: 'too many waiting' } as const
    expect(results).toEqual([dropped, dropped])
    await answer(accepted)
    expect(calls.map(({ messageId }) => messageId)).toEqual(['SM1', 'SM2', 'SM3', 'SM4'])
    verified('SM1006')
    verified('SM1007')
    expect(results.filter(({ outcome }) => outcome === 'dropped')).toHaveLength(3)
  })
})
