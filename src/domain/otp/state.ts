import { clockToleranceMs } from '../ports.ts'
import { type Claim, decide, type Grant, type LimitDecision, type Window } from './limits.ts'
import { type GuessAttempt, maxAttempts, type OtpRecord, type OtpScope, type Verdict } from './store.ts'

// What a store does in each step of `OtpStore`, as plain functions over what it keeps of the subjects concerned. A store
// reads, runs one of these and writes, as one atomic step; the rules are here and nowhere else.

/** A code as a ledger holds it, under the slug of its brand. */
export interface Code {
  readonly id: string
  readonly hash: string
  /** Guesses charged so far. */
  readonly attempts: number
  /** Epoch milliseconds. */
  readonly createdAt: number
  /** Epoch milliseconds. */
  readonly expiresAt: number
}

/** All that is kept of one subject (a recipient, an application, a network address), together so that it is one row. */
export interface Ledger {
  /** The open windows of its limits, by name. */
  readonly windows: Map<string, Window>
  /** Its live codes, by slug of the brand (spec 2.2: one per brand and recipient). */
  readonly codes: Map<string, Code>
}

/** The ledgers that a step reads and changes; a subject nothing is known of has an empty one. */
export interface Ledgers {
  read(subject: string): Ledger
  /** The ledger to be changed: it is stored when the step is over. */
  change(subject: string): Ledger
}

/** `OtpStore.admit`: takes all claims or none. */
export function take(ledgers: Ledgers, claims: readonly Claim[], now: number): LimitDecision {
  const { decision, changes } = decide(
    claims,
    ({ subject, name }) => ledgers.read(subject).windows.get(name),
    now,
  )
  for (const { subject, name, count, endsAt } of changes) {
    ledgers.change(subject).windows.set(name, { count, endsAt })
  }
  return decision
}

/** `OtpStore.beginSend`: takes the claims and replaces the code of the scope, or does neither. */
export function begin(
  ledgers: Ledgers,
  claims: readonly Claim[],
  { subject, brandSlug, id, hash, createdAt, expiresAt }: OtpRecord,
  now: number,
): LimitDecision {
  const decision = take(ledgers, claims, now)
  if (decision.admitted) {
    ledgers.change(subject).codes.set(brandSlug, { id, hash, attempts: 0, createdAt, expiresAt })
  }
  return decision
}

/**
 * `OtpStore.moveEnd`: lets the window of a taking end at another instant. One that is open in its place, of a later
 * taking, is not cut short; it lasts until then where it would have ended before.
 */
export function reschedule(ledgers: Ledgers, grant: Grant, endsAt: number, now: number): void {
  const window = ledgers.read(grant.subject).windows.get(grant.name)
  const isOwn = window?.endsAt === grant.endsAt
  const isOther = window !== undefined && !isOwn && window.endsAt > now
  if (isOther && window.endsAt >= endsAt) return
  const count = isOwn || isOther ? window.count : 1
  ledgers.change(grant.subject).windows.set(grant.name, { count, endsAt })
}

/** `OtpStore.abandonSend`: removes the code unless a newer one has replaced it, and gives the takings back. */
export function abandon(
  ledgers: Ledgers,
  { id, subject, brandSlug }: Pick<OtpRecord, 'id' | keyof OtpScope>,
  grants: readonly Grant[],
): void {
  if (ledgers.read(subject).codes.get(brandSlug)?.id === id) ledgers.change(subject).codes.delete(brandSlug)
  for (const grant of grants) giveBack(ledgers, grant)
}

/** A window that counted nothing else is closed again: windows open with their first counted request (design D3). */
function giveBack(ledgers: Ledgers, grant: Grant): void {
  const window = windowOf(ledgers, grant)
  if (!window) return
  const { windows } = ledgers.change(grant.subject)
  if (window.count === 1) windows.delete(grant.name)
  else windows.set(grant.name, { ...window, count: window.count - 1 })
}

/** The window that counted a taking, unless a later one has taken its place. */
function windowOf(ledgers: Ledgers, { subject, name, endsAt }: Grant): Window | undefined {
  const window = ledgers.read(subject).windows.get(name)
  return window?.endsAt === endsAt ? window : undefined
}

/**
 * `OtpStore.guess` (spec 3.1, design D1, D23): takes the claims; charges the attempt; and removes the code on a match.
 *
 * @param isHashOf whether a stored hash is that of a keyed code within the record of this id; compares in constant time
 */
export function judge(
  ledgers: Ledgers,
  { claims, failureBudget, scope, keyedCodes }: GuessAttempt,
  now: number,
  isHashOf: (hash: string, recordId: string, keyedCode: string) => boolean,
): Verdict {
  const { subject, brandSlug } = scope
  const code = ledgers.read(subject).codes.get(brandSlug)
  const isLive = code !== undefined && code.expiresAt > now && code.createdAt <= now + clockToleranceMs
  // The budget is looked at with the other limits, and counted only once the code is known to be wrong.
  const budget = failureBudget && { ...failureBudget, counted: false }
  const decision = take(ledgers, budget ? [...claims, budget] : claims, now)
  if (!decision.admitted) return { kind: 'refused', refusal: decision }
  if (!isLive) return { kind: 'absent' }
  if (code.attempts >= maxAttempts) return { kind: 'locked', expiresAt: code.expiresAt }

  const { codes, windows } = ledgers.change(subject)
  if (keyedCodes.some((keyedCode) => isHashOf(code.hash, code.id, keyedCode))) {
    codes.delete(brandSlug)
    if (failureBudget) windows.delete(failureBudget.name)
    return { kind: 'verified' }
  }
  codes.set(brandSlug, { ...code, attempts: code.attempts + 1 })
  if (failureBudget) take(ledgers, [failureBudget], now)
  return { kind: 'mismatch' }
}

/**
 * `OtpStore.adopt`: moves what is kept of former names of a subject to its present one. Where both were used, the newer
 * code counts, and of a window that is open all that was counted.
 */
export function rekey(ledgers: Ledgers, subject: string, former: readonly string[], now: number): void {
  for (const name of former) {
    const { windows, codes } = ledgers.read(name)
    if (name === subject || (windows.size === 0 && codes.size === 0)) continue
    const into = ledgers.change(subject)
    for (const [brandSlug, code] of codes) {
      const own = into.codes.get(brandSlug)
      if (!own || own.createdAt < code.createdAt) into.codes.set(brandSlug, code)
    }
    for (const [limit, window] of windows) {
      if (window.endsAt <= now) continue
      const own = into.windows.get(limit)
      into.windows.set(
        limit,
        own && own.endsAt > now
          ? { count: window.count + own.count, endsAt: Math.max(window.endsAt, own.endsAt) }
          : window,
      )
    }
    const left = ledgers.change(name)
    left.windows.clear()
    left.codes.clear()
  }
}

/** Drops what is over, and tells the instant from which on nothing of the rest matters; undefined when nothing is left. */
export function prune({ windows, codes }: Ledger, now: number): number | undefined {
  let endsAt: number | undefined
  for (const [name, window] of windows) {
    if (window.endsAt <= now) windows.delete(name)
    else endsAt = Math.max(endsAt ?? 0, window.endsAt)
  }
  for (const [brandSlug, code] of codes) {
    if (code.expiresAt <= now) codes.delete(brandSlug)
    else endsAt = Math.max(endsAt ?? 0, code.expiresAt)
  }
  return endsAt
}
