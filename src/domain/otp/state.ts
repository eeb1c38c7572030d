import { clockToleranceMs } from '../ports.ts'
import {
  type Claim,
  decide,
  type Grant,
  type LimitCount,
  type LimitDecision,
  type Subject,
} from './limits.ts'
import {
  type CodeRef,
  type GuessAttempt,
  maxAttempts,
  type NewCode,
  type OtpStore,
  type Verdict,
} from './store.ts'

// Each step of `OtpStore` as a plain function. A store loads the records of the step's subjects, runs one of these and writes
// the changes, in one transaction.

export interface Code {
  /** 128 random bits in base64url; the salt of the hash. */
  readonly id: string
  /** SHA-256 of the id and the keyed code, in base64url. */
  readonly hash: string
  /** Guesses so far. */
  readonly attempts: number
  /** Epoch milliseconds. */
  readonly createdAt: number
  /** Epoch milliseconds; exclusive. */
  readonly expiresAt: number
}

/**
 * The records that steps read and change. Expired records are absent. Records under previous secret keys are the subject's
 * own; a change moves them to the present key.
 */
export interface State {
  limit(subject: Subject, name: string, now: number): LimitCount | undefined
  /** Undefined removes it. */
  setLimit(subject: Subject, name: string, limit: LimitCount | undefined): void
  code(subject: Subject, brandSlug: string, now: number): Code | undefined
  /** Undefined removes it. */
  setCode(subject: Subject, brandSlug: string, code: Code | undefined): void
}

type StepName = keyof OtpStore

export type Steps = {
  readonly [Name in StepName]: (
    state: State,
    ...input: Parameters<OtpStore[Name]>
  ) => Awaited<ReturnType<OtpStore[Name]>>
}

/** @param isHashOf compares a stored hash with that of a keyed code under this record id, in constant time */
export function otpSteps(isHashOf: (hash: string, recordId: string, keyedCode: string) => boolean): Steps {
  return { admit, beginSend, reschedule, abandonSend, guess }

  function guess(state: State, attempt: GuessAttempt, now: number): Verdict {
    const { claims, failureBudget, subject, brandSlug, keyedCodes } = attempt
    const code = state.code(subject, brandSlug, now)
    // Checked with the other limits, and counted only for a wrong code.
    const budget = failureBudget && { ...failureBudget, counted: false }
    const decision = admit(state, budget ? [...claims, budget] : claims, now)
    if (!decision.allowed) return { kind: 'refused', refusal: decision }
    if (!code || code.createdAt > now + clockToleranceMs) return { kind: 'absent' }
    if (code.attempts >= maxAttempts) return { kind: 'locked', resetsInMs: code.expiresAt - now }
    if (keyedCodes.some((keyedCode) => isHashOf(code.hash, code.id, keyedCode))) {
      state.setCode(subject, brandSlug, undefined)
      if (failureBudget) state.setLimit(failureBudget.subject, failureBudget.name, undefined)
      return { kind: 'verified' }
    }
    state.setCode(subject, brandSlug, { ...code, attempts: code.attempts + 1 })
    if (failureBudget) admit(state, [failureBudget], now)
    return { kind: 'mismatch' }
  }
}

/** The subjects whose records a step reads and changes. */
export const stepSubjects: {
  readonly [Name in StepName]: (...input: Parameters<OtpStore[Name]>) => readonly Subject[]
} = {
  admit: (claims) => claims.map(({ subject }) => subject),
  beginSend: (claims, code) => [...claims.map(({ subject }) => subject), code.subject],
  reschedule: ({ subject }) => [subject],
  abandonSend: ({ subject }, grants) => [subject, ...grants.map((grant) => grant.subject)],
  guess: ({ claims, failureBudget, subject }) => [
    ...claims.map((claim) => claim.subject),
    ...(failureBudget ? [failureBudget.subject] : []),
    subject,
  ],
}

function admit(state: State, claims: readonly Claim[], now: number): LimitDecision {
  const { decision, changes } = decide(claims, ({ subject, name }) => state.limit(subject, name, now), now)
  for (const { subject, name, count, expiresAt } of changes)
    state.setLimit(subject, name, { count, expiresAt })
  return decision
}

function beginSend(state: State, claims: readonly Claim[], code: NewCode, now: number): LimitDecision {
  const decision = admit(state, claims, now)
  const { subject, brandSlug, id, hash, ttlMs } = code
  if (decision.allowed) {
    state.setCode(subject, brandSlug, { id, hash, attempts: 0, createdAt: now, expiresAt: now + ttlMs })
  }
  return decision
}

function reschedule(state: State, grant: Grant, durationMs: number, now: number): void {
  const { subject, name } = grant
  const limit = state.limit(subject, name, now)
  const isOwn = limit?.expiresAt === grant.expiresAt
  const expiresAt = now + durationMs
  // A window of a later grant is not shortened.
  if (limit && !isOwn && limit.expiresAt >= expiresAt) return
  state.setLimit(subject, name, { count: limit?.count ?? 1, expiresAt })
}

function abandonSend(state: State, code: CodeRef, grants: readonly Grant[]): void {
  const { subject, brandSlug, id } = code
  if (state.code(subject, brandSlug, always)?.id === id) state.setCode(subject, brandSlug, undefined)
  for (const { subject, name, expiresAt } of grants) {
    const limit = state.limit(subject, name, always)
    if (limit?.expiresAt !== expiresAt) continue
    // An empty window closes: it opens with the first counted request (design D3).
    state.setLimit(subject, name, limit.count === 1 ? undefined : { ...limit, count: limit.count - 1 })
  }
}

/** Nothing has expired at this time; the clock may be set back. */
const always = 0
