import type { Call } from './call.ts'
import type { Limited } from './statistics.ts'

/** How many are remembered: callers decide how many there could be. */
const mostKept = 500

/**
 * What limits refuse now, as this process has seen it: for whoever looks, who need not know of every one. It decides
 * nothing.
 */
export class LimitedNow {
  private readonly known = new Map<string, Limited>()

  /** A request has ended. */
  note({ trail, at }: Call): void {
    const refusal = trail.limits.find(({ refused }) => refused)
    if (!refusal || refusal.endsAt === null) return
    const { app = null, brand = null, recipient = null } = trail
    // The limit of an application is one over all its brands and recipients, and that of a phone over all brands.
    const about =
      refusal.limit === 'app-minute'
        ? { app, brand: null, recipient: null }
        : { app, brand: isOfBrand(refusal.limit) ? brand : null, recipient }
    const key = JSON.stringify([refusal.limit, about.brand, about.recipient, recipient === null ? app : null])
    const before = this.known.get(key)
    const isSame = before !== undefined && before.endsAt > at
    this.known.delete(key)
    this.known.set(key, {
      limit: refusal.limit,
      ...about,
      refusals: isSame ? before.refusals + 1 : 1,
      endsAt: refusal.endsAt,
    })
    if (this.known.size > mostKept) {
      const [oldest = ''] = this.known.keys()
      this.known.delete(oldest)
    }
  }

  /** Those that refuse at this moment, the one that frees last first. */
  list(now: number): Limited[] {
    for (const [key, { endsAt }] of this.known) if (endsAt <= now) this.known.delete(key)
    return [...this.known.values()].sort((a, b) => b.endsAt - a.endsAt)
  }
}

function isOfBrand(limit: Limited['limit']): boolean {
  return limit === 'cooldown' || limit === 'failures'
}
