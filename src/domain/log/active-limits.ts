import type { RequestListener } from '../request/request-ended.ts'
import type { ActiveLimit } from './statistics.ts'

/** Bounds memory, since callers can open any number of windows. */
const maxEntries = 500

/** For display only: rejections by this process. Budgets that reject are incidents. */
export class ActiveLimits {
  private readonly known = new Map<string, ActiveLimit>()

  readonly ended: RequestListener = ({ context }) => {
    const refusal = context.limits.find(({ refused }) => refused)
    if (!refusal || refusal.endsAt === null || refusal.budget) return
    const { app = null, brand = null, recipient = null } = context
    const isOfApp = ['app-minute', 'status-minute', 'queue'].includes(refusal.limit)
    const about = {
      app: isOfApp ? app : null,
      brand: refusal.limit === 'cooldown' ? brand : null,
      recipient: isOfApp ? null : recipient,
    }
    // Different recipients may have the same mask.
    const recipientKey = about.recipient && (context.recipientHash ?? about.recipient)
    const key = JSON.stringify([refusal.limit, about.app, about.brand, recipientKey])
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

  list(now: number): ActiveLimit[] {
    for (const [key, { endsAt }] of this.known) if (endsAt <= now) this.known.delete(key)
    return [...this.known.values()].sort((a, b) => b.endsAt - a.endsAt)
  }
}
