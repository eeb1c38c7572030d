import type { Attempt, Call, Standing } from './call.ts'
import type { Channel } from './contact.ts'
import type { ReceiptState } from './receipts.ts'

/** What a request asked for. */
export type Operation = 'send' | 'resend' | 'verify' | 'notify'

/** What became of one request, for whoever asks later; no key, no code, no full recipient, no text. */
export interface Story {
  readonly requestId: string
  /** When it came, epoch milliseconds. */
  readonly at: number
  readonly operation: Operation
  readonly app: string
  readonly brand: string | null
  readonly channel: Channel | null
  /** Masked; null where it had none or several. */
  readonly recipient: string | null
  readonly recipients: number | null
  readonly limits: readonly Standing[]
  /** Null while it is under way, and for ever where the process ended meanwhile. */
  readonly end: StoryEnd | null
}

export interface StoryEnd {
  readonly status: number
  /** The code of the answer's envelope; null: it was a success. */
  readonly error: string | null
  /** What was wrong with which field, on validation_error. */
  readonly message: string | null
  readonly durationMs: number
}

/** A row of the delivery log: an attempt, whose it was, and what receipts have said of it since. */
export interface Delivery extends Omit<Attempt, 'error'> {
  readonly requestId: string
  readonly app: string
  readonly brand: string | null
  readonly receipt: ReceiptState | null
}

/** Which deliveries: of a request, of a recipient (by any of its keyed hashes), since a time; the latest `limit` of them. */
export interface DeliveryQuery {
  readonly requestId?: string
  readonly recipientSubjects?: readonly string[]
  /** Epoch milliseconds. */
  readonly since?: number
  readonly limit: number
}

/**
 * What requests leave behind for the operator. Writing never throws and is not waited for; what can't be written is told
 * in the log.
 */
export interface Journal {
  /**
   * A request is about to have messages handed over, or an attempt to do so has ended: what is known of it by now is
   * kept, since the rest may take its time.
   */
  note(call: Call): void
  /** A request has been answered. */
  end(call: Call, end: StoryEnd): void
}

/** The journal as it is read. */
export interface JournalReader {
  story(requestId: string): Promise<Story | undefined>
  /** Oldest first. */
  deliveries(query: DeliveryQuery): Promise<readonly Delivery[]>
  /**
   * The provider that accepted the last code for a recipient of a brand by SMS, or left it open; undefined: none is known.
   *
   * @param recipientSubjects the recipient by each key
   */
  lastProviderOf(recipientSubjects: readonly string[], brandSlug: string): Promise<string | undefined>
}

/** How a message stands: by the last word of its receipts where there is one, else by what the provider said. */
export function statusOf({
  outcome,
  receipt,
}: Pick<Delivery, 'outcome' | 'receipt'>): Delivery['outcome'] | 'delivered' | 'failed' {
  return receipt && receipt.status !== 'pending' && (outcome === 'accepted' || outcome === 'unknown')
    ? receipt.status
    : outcome
}

/** Takes a story in the place of an earlier one of that request, and attempts beside earlier ones. Never throws. */
export type KeepStory = (story: Story, attempts: readonly Attempt[]) => void

/** Requests of one application a minute that are kept although they were refused before they were counted. */
const keptRefusals = 60

/**
 * The journal of a server. Requests without right credentials are not kept, and of those that an application may make
 * without end (refused by a limit or for their brand, and so not counted) no more than some a minute: nobody can fill the
 * disk.
 */
export function createJournal(keepStory: KeepStory): Journal {
  const refusals = new Map<string, number>()
  let minute = 0
  /** How many attempts of a request under way have been taken. */
  const taken = new WeakMap<Call, number>()

  function keep(call: Call, end: StoryEnd | null): void {
    const { operation, app } = call.trail
    if (operation === undefined || app === undefined) return
    const { brand = null, channel = null, recipient = null, recipients = null, limits, attempts } = call.trail
    const { requestId, at } = call
    const story = { requestId, at, operation, app, brand, channel, recipient, recipients, limits, end }
    keepStory(story, attempts.slice(taken.get(call) ?? 0))
    if (end === null) taken.set(call, attempts.length)
  }

  /** Whether an application has had as many uncounted requests refused within this minute as are kept. */
  function isTooMany({ at, trail: { app = '', limits } }: Call): boolean {
    const isCounted = limits.length > 0 && !limits.some(({ refused }) => refused)
    if (isCounted) return false
    const current = Math.floor(at / 60_000)
    // Only a later one: a request that took its time must not open the minute anew.
    if (current > minute) refusals.clear()
    minute = Math.max(minute, current)
    const count = (refusals.get(app) ?? 0) + 1
    refusals.set(app, count)
    return count > keptRefusals
  }

  return {
    note: (call) => keep(call, null),
    end: (call, end) => {
      if (end.status < 400 || !isTooMany(call)) keep(call, end)
    },
  }
}
