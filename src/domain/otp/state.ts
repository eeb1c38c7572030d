import { isFromBeforeStep } from '../ground/ports.ts'
import type { EpochMs } from '../ground/time.ts'
import type { EventType } from '../ground/webhook-events.ts'
import type { Effect } from '../limits/effects.ts'
import type { KeptVerdict } from '../limits/idempotency-key.ts'
import {
  decide,
  type Grant,
  type LimitCount,
  type LimitDecision,
  type StoredClaim,
  type Subject,
} from '../limits/limits.ts'
import { reviewUseEntry } from '../policy/review-number.ts'
import {
  type AgainDecision,
  type CodeRef,
  type GuessAttempt,
  type GuessDecision,
  maxAttempts,
  type NewCode,
  type OtpStore,
  type SendDecision,
  type Verdict,
} from './store.ts'

// The steps of `OtpStore` as plain functions. A store runs each with its records in one transaction.

export interface Code {
  /** The ID of the request that sent it, and the salt of the hash. */
  readonly id: string
  /** As in `NewCode`. Empty: revoked, and kept for its provider. */
  readonly hash: string
  readonly attempts: number
  readonly createdAt: EpochMs
  /** Exclusive. */
  readonly expiresAt: EpochMs
  readonly provider: string | null
  /** Null unless the provider gets conversion feedback. */
  readonly providerMessageId: string | null
}

/** The records of a step, without expired ones. */
export interface State {
  limit(subject: Subject, name: string, now: number): LimitCount | undefined
  /** Undefined removes it. */
  setLimit(subject: Subject, name: string, limit: LimitCount | undefined): void
  code(subject: Subject, brandSlug: string, now: number): Code | undefined
  setCode(subject: Subject, brandSlug: string, code: Code | undefined): void
  write(effect: Effect): void
}

type StepName = keyof OtpStore

export type Steps = {
  readonly [Name in StepName]: (
    state: State,
    ...input: Parameters<OtpStore[Name]>
  ) => Awaited<ReturnType<OtpStore[Name]>>
}

/** @param isHashOf compares in constant time */
export function otpSteps(isHashOf: (hash: string, recordId: string, keyedCode: string) => boolean): Steps {
  return { admit, beginSend, sendAgain, setProvider, reschedule, giveBack, abandonSend, guess }

  function guess(state: State, attempt: GuessAttempt, now: number): GuessDecision {
    const decision = admit(state, attempt.claims, now)
    return decision.allowed ? { ...decision, verdict: verdictOn(state, attempt, now) } : decision
  }

  function verdictOn(state: State, attempt: GuessAttempt, now: number): Verdict {
    const { key, failureBudget, subject, brandSlug, keyedCodes, eventId, reviewUse, hasLadders } = attempt
    const emit = (type: EventType, { id: requestId }: Code) => {
      if (eventId === undefined) return
      const about = { reportKey: null, position: null, status: null, reason: null }
      state.write({ kind: 'event', event: { id: eventId, at: now, type, requestId, ...about } })
    }
    const endLadder = (ended: string, { id: requestId }: Code) => {
      if (hasLadders) state.write({ kind: 'ladder-end', requestId, ended })
    }
    const kept = <Kept extends KeptVerdict>(verdict: Kept): Kept => {
      if (key) admit(state, [key.claim], now, key.answers(verdict))
      return verdict
    }
    const code = state.code(subject, brandSlug, now)
    const isOther = attempt.id !== undefined && attempt.id !== code?.id
    if (!code || isOther || code.hash === '' || isFromBeforeStep(code.createdAt, now))
      return { kind: 'absent' }
    if (code.attempts >= maxAttempts) return { kind: 'locked', resetsInMs: code.expiresAt - now }
    const [hash = '', ...partHashes] = code.hash.split(' ')
    if (keyedCodes.some((keyedCode) => isHashOf(hash, code.id, keyedCode))) {
      state.setCode(subject, brandSlug, undefined)
      if (failureBudget) state.setLimit(failureBudget.subject, failureBudget.name, undefined)
      emit('otp.verified', code)
      endLadder('the code was verified', code)
      if (reviewUse && code.provider === null) state.write(reviewUseEntry(reviewUse, now))
      const { provider, providerMessageId, createdAt } = code
      return kept({ kind: 'verified', provider, providerMessageId, ageMs: now - createdAt })
    }
    state.setCode(subject, brandSlug, { ...code, attempts: code.attempts + 1 })
    if (code.attempts + 1 === maxAttempts) {
      emit('otp.locked', code)
      endLadder('the code is locked', code)
    }
    if (failureBudget) admit(state, [failureBudget], now)
    return kept({ kind: 'mismatch', ...(partHashes.length > 0 && { sent: { id: code.id, partHashes } }) })
  }
}

export const stepSubjects: {
  readonly [Name in StepName]: (...input: Parameters<OtpStore[Name]>) => readonly Subject[]
} = {
  admit: (claims) => claims.map(({ subject }) => subject),
  beginSend: (claims, code) => [...claims.map(({ subject }) => subject), code.subject],
  sendAgain: (code, claims) => [...claims.map(({ subject }) => subject), code.subject],
  setProvider: ({ subject }) => [subject],
  reschedule: ({ subject }) => [subject],
  giveBack: (grants) => grants.map(({ subject }) => subject),
  abandonSend: ({ subject }, grants) => [subject, ...grants.map((grant) => grant.subject)],
  guess: ({ claims, failureBudget, subject }) => [
    ...claims.map((claim) => claim.subject),
    ...(failureBudget ? [failureBudget.subject] : []),
    subject,
  ],
}

function admit(
  state: State,
  claims: readonly StoredClaim[],
  now: number,
  effects: readonly Effect[] = [],
): LimitDecision {
  const { decision, changes } = decide(claims, ({ subject, name }) => state.limit(subject, name, now), now)
  for (const change of changes) state.setLimit(change.subject, change.name, change)
  if (decision.allowed) for (const effect of effects) state.write(effect)
  return decision
}

function beginSend(
  state: State,
  claims: readonly StoredClaim[],
  code: NewCode,
  now: number,
  effects: readonly Effect[] = [],
): SendDecision {
  const decision = admit(state, claims, now, effects)
  if (!decision.allowed) return decision
  const { subject, brandSlug, ttlMs, id, hash, provider, hasLadders } = code
  const previous = state.code(subject, brandSlug, now)
  const lastProvider = previous?.provider ?? null
  if (hasLadders && previous)
    state.write({ kind: 'ladder-end', requestId: previous.id, ended: 'a new code replaced this one' })
  const expiresAt = now + ttlMs
  const fresh = { id, hash, attempts: 0, createdAt: now, expiresAt, provider, providerMessageId: null }
  state.setCode(subject, brandSlug, fresh)
  return { ...decision, lastProvider }
}

function sendAgain(
  state: State,
  { subject, brandSlug, id }: CodeRef,
  claims: readonly StoredClaim[],
  now: number,
  effects: readonly Effect[],
): AgainDecision {
  const code = state.code(subject, brandSlug, now)
  const isGone = code?.id !== id || code.hash === '' || isFromBeforeStep(code.createdAt, now)
  if (isGone || code.attempts >= maxAttempts)
    return { allowed: false, isGone: true, refusedBy: 0, expiresAt: now, resetsInMs: 0 }
  return admit(state, claims, now, effects)
}

function setProvider(
  state: State,
  { subject, brandSlug, id }: CodeRef,
  provider: string,
  providerMessageId: string | null,
): void {
  const code = state.code(subject, brandSlug, always)
  if (code?.id === id) state.setCode(subject, brandSlug, { ...code, provider, providerMessageId })
}

function reschedule(state: State, grant: Grant, durationMs: number, now: number): void {
  const { subject, name } = grant
  const limit = state.limit(subject, name, now)
  const isOwn = limit?.expiresAt === grant.expiresAt
  const expiresAt = now + durationMs
  // Never shorten the window of a later grant.
  if (limit && !isOwn && limit.expiresAt >= expiresAt) return
  state.setLimit(subject, name, { count: limit?.count ?? 1, expiresAt })
}

function abandonSend(
  state: State,
  { subject, brandSlug, id, hasLadders }: CodeRef,
  grants: readonly Grant[],
  provider: string | null,
  now: number,
  effects: readonly Effect[] = [],
): void {
  const code = state.code(subject, brandSlug, always)
  if (code?.id === id) {
    state.setCode(subject, brandSlug, provider === null ? undefined : { ...code, hash: '', provider })
  }
  if (hasLadders)
    state.write({ kind: 'ladder-end', requestId: id, ended: 'no way is left that could send the code' })
  giveBack(state, grants, now, effects)
}

function giveBack(
  state: State,
  grants: readonly Grant[],
  _now: number,
  effects: readonly Effect[] = [],
): void {
  for (const effect of effects) state.write(effect)
  for (const { subject, name, units = 1, expiresAt } of grants) {
    const limit = state.limit(subject, name, always)
    if (limit?.expiresAt !== expiresAt) continue
    const count = limit.count - units
    // An empty window closes: a window opens with its first counted request (design D3).
    state.setLimit(subject, name, count > 0 ? { ...limit, count } : undefined)
  }
}

/** Before any expiry time, since the clock may be set back. */
const always = 0
