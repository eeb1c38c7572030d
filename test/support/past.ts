import type { Books } from '../../src/books.ts'
import type { Attempt, Trail } from '../../src/domain/call.ts'
import { createJournal } from '../../src/domain/journal.ts'

/** A past to look back on: what a service of some brands and providers would have left, by the journal's own hand. */
export interface Past {
  /** Epoch milliseconds. */
  readonly from: number
  readonly until: number
  /** How many codes were asked for in all. */
  readonly sends: number
}

const brands = [
  { slug: 'acme', share: 0.62 },
  { slug: 'globex', share: 0.27 },
  { slug: 'initech', share: 0.11 },
] as const

/** Whole numbers that look like chance and are the same in every run (xorshift32). */
function chance(seed: number): () => number {
  let state = seed
  return () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) / 2 ** 32
  }
}

/** Lives through a past: sends, failures, limits, receipts, verifications, notifications and mails, a day like a day. */
export async function livePast(books: Books, { from, until, sends }: Past, seed = 7): Promise<void> {
  const random = chance(seed)
  const journal = createJournal(books.journal.add, books.journal.count)
  const pick = () => {
    const value = random()
    const [first, second] = brands
    return value < first.share ? first.slug : value < first.share + second.share ? second.slug : 'initech'
  }
  const attemptOf = (
    at: number,
    attempt: number,
    to: { channel: 'SMS' | 'EMAIL'; recipient: string; subject: string },
    provider: string,
    outcome: 'accepted' | 'retryable' | 'unknown',
    template: string,
  ): Attempt => ({
    attempt,
    at,
    channel: to.channel,
    route: to.channel === 'SMS' ? 'plain' : null,
    provider,
    template,
    recipient: to.recipient,
    position: null,
    recipientSubject: to.subject,
    segments: to.channel === 'SMS' ? { count: 1, encoding: 'GSM-7' } : null,
    outcome,
    errorClass: outcome === 'accepted' ? null : outcome,
    reason: outcome === 'retryable' ? 'HTTP 503' : outcome === 'unknown' ? 'time-out' : null,
    vendorId: outcome === 'accepted' && to.channel === 'SMS' ? `SM${Math.floor(random() * 1e12)}` : null,
    receiptKey: outcome === 'accepted' && to.channel === 'SMS' ? `${at}.${Math.floor(random() * 1e9)}` : null,
    durationMs: outcome === 'unknown' ? 4000 : 90 + Math.floor(random() * 400),
  })
  const tell = (at: number, trail: Partial<Trail>, error: string | null, status: number) => {
    const id = Bun.randomUUIDv7('hex', at)
    journal.end(
      {
        requestId: `${id.slice(0, 14)}4${id.slice(15)}`,
        at,
        clientIp: 'unknown',
        trail: { limits: [], begun: 0, attempts: [], app: 'shop', ...trail },
      },
      { status, error, message: null, durationMs: 3 + Math.floor(random() * 200) },
    )
  }

  for (let index = 0; index < sends; index++) {
    const even = from + ((until - from) * index) / sends
    // More by day than by night.
    const hour = (even / 3_600_000) % 24
    if (random() > 0.35 + 0.65 * Math.max(0, Math.sin(((hour - 5) / 24) * 2 * Math.PI))) continue
    const at = Math.min(until, Math.round(even + random() * 30_000))
    const isMail = random() < 0.18
    const number = Math.floor(random() * 1e4)
    const to = isMail
      ? {
          channel: 'EMAIL' as const,
          recipient: `${'abcdefghij'[number % 10]}***@example.com`,
          identity: `p${number}@example.com`,
        }
      : {
          channel: 'SMS' as const,
          recipient: `91********${String(number % 100).padStart(2, '0')}`,
          identity: `9198765${String(number).padStart(5, '0')}`,
        }
    const [subject] = books.secrets.subjects(to.channel, to.identity)
    const about = { ...to, subject }
    const trail = { brand: pick(), channel: to.channel, recipient: to.recipient, recipientSubject: subject }
    const roll = random()
    if (roll < 0.04) {
      const limits = [{ limit: 'cooldown' as const, max: 1, used: 1, endsAt: at + 20_000, refused: true }]
      tell(at, { ...trail, operation: 'send', limits }, 'cooldown_active', 429)
      continue
    }
    const isOutage = hour > 9.2 && hour < 9.9
    const attempts: Attempt[] = []
    const provider = isMail ? 'smtp' : 'twilio'
    const fails = random() < (isOutage && !isMail ? 0.6 : 0.012)
    if (fails)
      attempts.push(attemptOf(at, 1, about, provider, random() < 0.8 ? 'retryable' : 'unknown', 'LOGIN_OTP'))
    if (!fails) attempts.push(attemptOf(at, 1, about, provider, 'accepted', 'LOGIN_OTP'))
    else if (!isMail && attempts[0]?.outcome === 'retryable') {
      attempts.push(
        attemptOf(at + 300, 2, about, 'vonage', random() < 0.97 ? 'accepted' : 'retryable', 'LOGIN_OTP'),
      )
    }
    const sent = attempts.at(-1)?.outcome === 'accepted'
    tell(at, { ...trail, operation: 'send', attempts }, sent ? null : 'sms_failed', sent ? 200 : 502)
    const taken = attempts.at(-1)
    if (sent && taken?.receiptKey) {
      const status = random() < 0.965 ? ('delivered' as const) : ('failed' as const)
      if (random() < 0.97) {
        await books.journal.keepReceipts(taken.provider, [
          [taken.receiptKey, { status, reason: status === 'failed' ? '30003' : null, at: at + 3000 }],
        ])
      }
    }
    if (sent && random() < 0.86) {
      const later = at + Math.round(6000 + 40_000 * random() ** 3 + (random() < 0.05 ? 150_000 : 0))
      if (random() < 0.06) tell(later - 4000, { ...trail, operation: 'verify' }, 'mismatch', 401)
      tell(Math.min(later, until), { ...trail, operation: 'verify' }, null, 200)
    }
    if (random() < 0.3) {
      const done = attemptOf(at + 60, 1, about, provider, 'accepted', 'ORDER_PLACED')
      tell(at + 50, { ...trail, operation: 'notify', recipients: 1, attempts: [done] }, null, 200)
    }
    if (index % 200 === 0) await books.journal.flush()
  }
  await books.journal.flush()
}
