import type { RequestListener } from './request-ended.ts'
import type { Limited } from './statistics.ts'

/** Callers determine how many limits there are. */
const maxEntries = 500

/** The limits that reject requests now, as seen by this process; for display only. */
export class ActiveLimits {
  private readonly known = new Map<string, Limited>()

  readonly ended: RequestListener = ({ context }) => {
    const refusal = context.limits.find(({ refused }) => refused)
    if (!refusal || refusal.endsAt === null) return
    const { app = null, brand = null, recipient = null } = context
    const about = {
      app: refusal.limit === 'app-minute' ? app : null,
      brand: refusal.limit === 'cooldown' ? brand : null,
      recipient: refusal.limit === 'app-minute' ? null : recipient,
    }
    // Different recipients may have the same mask.
    const whom = about.recipient && (context.recipientSubject ?? about.recipient)
    const key = JSON.stringify([refusal.limit, about.app, about.brand, whom])
    const before = this.known.get(key)
    const isSame = before !== undefined && before.endsAt > context.at
    this.known.delete(key)
    this.known.set(key, {
      limit: refusal.limit,
      ...about,
      refusals: isSame ? before.refusals + 1 : 1,
      endsAt: refusal.endsAt,
    })
    if (this.known.size > maxEntries) {
      const [oldest = ''] = this.known.keys()
      this.known.delete(oldest)
    }
  }

  /** The active limits, the last to reset first. */
  list(now: number): Limited[] {
    for (const [key, { endsAt }] of this.known) if (endsAt <= now) this.known.delete(key)
    return [...this.known.values()].sort((a, b) => b.endsAt - a.endsAt)
  }
}
