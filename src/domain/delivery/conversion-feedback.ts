import type { Outcome, SmsProvider } from '../ground/providers.ts'
import type { RequestListener } from '../request/request-ended.ts'

export interface FeedbackResult {
  readonly provider: string
  /** `dropped`: too many were waiting. */
  readonly outcome: Outcome['kind'] | 'dropped'
  readonly reason: string | null
}

interface Conversion {
  readonly provider: string
  readonly messageId: string
}

/** Reports verified codes to the providers that sent them, after the callers have their answers. */
export class ConversionFeedback {
  private readonly reports = new Map<string, NonNullable<SmsProvider['reportConversion']>>()
  private readonly waiting: Conversion[] = []
  private calls = 0

  /** @param timeoutMs for each of at most two calls for a code */
  constructor(
    providers: readonly SmsProvider[],
    private readonly timeoutMs: number,
    private readonly reported: (result: FeedbackResult) => void,
  ) {
    for (const { name, reportConversion } of providers) {
      if (reportConversion) this.reports.set(name, reportConversion)
    }
  }

  /** Whether codes of this provider need the message ID. */
  accepts(provider: string): boolean {
    return this.reports.has(provider)
  }

  readonly ended: RequestListener = ({ context: { verified } }) => {
    const { provider = null, providerMessageId: messageId = null } = verified ?? {}
    if (provider === null || messageId === null || !this.accepts(provider)) return
    if (this.waiting.length >= maxWaiting) {
      this.reported({ provider, outcome: 'dropped', reason: 'too many waiting' })
      return
    }
    this.waiting.push({ provider, messageId })
    void this.work()
  }

  private async work(): Promise<void> {
    if (this.calls >= maxCalls) return
    this.calls++
    for (let next = this.waiting.shift(); next; next = this.waiting.shift()) {
      let outcome = await this.call(next)
      // A report can be repeated, so one that may have arrived is repeated too.
      if (outcome.kind === 'retryable' || outcome.kind === 'unknown') outcome = await this.call(next)
      const reason = outcome.kind === 'accepted' ? null : outcome.reason
      this.reported({ provider: next.provider, outcome: outcome.kind, reason })
    }
    this.calls--
  }

  private async call({ provider, messageId }: Conversion): Promise<Outcome> {
    try {
      return (await this.reports.get(provider)?.(messageId, this.timeoutMs)) ?? fault
    } catch {
      return fault
    }
  }
}

const fault: Outcome = { kind: 'unknown', reason: 'provider fault' }

const maxWaiting = 1000

const maxCalls = 4
