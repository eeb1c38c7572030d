import { judged } from '../ground/body.ts'
import { Failure } from '../ground/failures.ts'
import type { Clock } from '../ground/time.ts'
import { mayBeSent, type RequestContext } from '../request/request-context.ts'
import type { ClaimStore } from './claim-store.ts'
import type { Effect } from './effects.ts'
import {
  type Claim,
  type Delivered,
  type Gate,
  type Grant,
  type Granted,
  type LimitDecision,
  type Refusal,
  reasonOf,
  refusalMessage,
  type Settlement,
  type StoredClaim,
} from './limits.ts'

// The checks of a request are one list of gates, in the order of the contract. `pass` carries it out.

/** A function is called when no gate before it has rejected the request. */
export type GateEntry = Gate | undefined | (() => Gate | undefined | Promise<Gate | undefined>)

export interface ClaimPorts {
  readonly store: ClaimStore
  readonly now: Clock
}

/**
 * Carries out the list. The first gate that rejects the request decides, unless a limit before it rejects the request first. A rejected
 * request counts on no limit, except that an invalid request counts where `countsInvalid` says so.
 * @param step takes the claims and writes the effects
 * @throws the failure of the gate or limit
 */
export async function pass<Decision extends Granted>(
  ports: ClaimPorts,
  context: RequestContext,
  entries: readonly GateEntry[],
  step: (claims: readonly StoredClaim[], effects: readonly Effect[]) => Promise<Decision | Refusal>,
): Promise<Passed<Decision>> {
  const gates: Gate[] = []
  try {
    for (const entry of entries) {
      const reached = typeof entry === 'function' ? entry() : entry
      const gate = reached instanceof Promise ? await reached : reached
      if (!gate) continue
      gates.push(gate)
      if (gate.refusal) throw await rejected(ports, context, gates, gate.refusal)
    }
    const claims: Claim[] = []
    const effects: Effect[] = []
    for (const gate of gates) {
      for (const each of gate.claims ?? none) claims.push(each)
      for (const each of gate.effects ?? none) effects.push(each)
    }
    const decision = await step(claims, effects)
    noteLimits(context, claims, decision)
    if (!decision.allowed) {
      const by = claims[decision.refusedBy]
      for (const gate of gates) if (by) gate.limited?.(by)
      throw refused(claims, decision)
    }
    const passed: PassedGate[] = []
    let place = 0
    for (const gate of gates) {
      const grants = gate.claims ? grantsOf(gate.claims, decision, place) : none
      place += grants.length
      passed.push({ gate, grants })
      const waiting = gate.admitted?.(grants)
      if (waiting) await waiting
    }
    return { decision, settle: (failed, end) => settle(ports, context, passed, failed, end) }
  } catch (error) {
    for (const gate of gates) gate.settle?.({ sent: 0, failed: [] }, [])
    throw error
  }
}

interface Passed<Decision> {
  readonly decision: Decision
  /**
   * Stores what the gates change after the delivery. Call it once.
   * @param end the last step: gives back and writes
   */
  readonly settle: Settle
}

export type Settle = (failed: Delivered['failed'], end?: EndStep) => Promise<void>

/** A step that only claims and writes. */
export function admitting({ store, now }: ClaimPorts) {
  return async (claims: readonly StoredClaim[], effects: readonly Effect[]): Promise<LimitDecision> =>
    claims.length + effects.length === 0 ? { allowed: true, counts: [] } : store.admit(claims, now(), effects)
}

/**
 * Delivers, then settles. A fault of the store then changes no answer, since the messages may be sent.
 * @param deliver adds to `failed` the positions of messages that no provider accepted
 */
export async function settling<Result>(
  context: RequestContext,
  settle: Settle,
  deliver: (failed: (number | null)[]) => Promise<Result>,
): Promise<Result> {
  const failed: (number | null)[] = []
  try {
    return await deliver(failed)
  } finally {
    await settle(failed).catch((error: unknown) => {
      context.fault = error
    })
  }
}

type EndStep = (back: readonly Grant[], effects: readonly Effect[]) => Promise<void>

interface PassedGate {
  readonly gate: Gate
  readonly grants: readonly Grant[]
}

const none: readonly never[] = []

/** The last gate rejects the request. @throws the failure of a limit of an earlier gate */
async function rejected(
  ports: ClaimPorts,
  context: RequestContext,
  gates: readonly Gate[],
  refusal: Failure,
): Promise<Failure> {
  const isInvalid = refusal.kind !== 'rate_limited'
  const claims = gates.flatMap((gate) =>
    isInvalid && gate.countsInvalid ? (gate.claims ?? []) : uncounted(gate.claims ?? []),
  )
  await claim(ports, context, claims)
  await gates.at(-1)?.admitted?.([])
  return refusal
}

async function settle(
  { store, now }: ClaimPorts,
  { attempts }: RequestContext,
  passed: readonly PassedGate[],
  failed: Delivered['failed'],
  end?: EndStep,
): Promise<void> {
  const delivered = { sent: attempts.filter(mayBeSent).length, failed }
  const back: Grant[] = []
  const further: StoredClaim[] = []
  const restarts: NonNullable<Settlement['restart']>[] = []
  const effects: Effect[] = []
  for (const { gate, grants } of passed) {
    const settling = gate.settle?.(delivered, grants)
    const changes = settling instanceof Promise ? await settling : settling
    if (changes?.back) back.push(...changes.back)
    if (changes?.further) further.push(...changes.further)
    if (changes?.restart) restarts.push(changes.restart)
    if (changes?.effects) effects.push(...changes.effects)
  }
  try {
    // Before the cooldown is given back: the next send then meets all counts.
    if (further.length > 0)
      for (let attempt = 2; attempt <= delivered.sent; attempt++) await store.admit(further, now())
    for (const { grant, durationMs } of restarts) await store.reschedule(grant, durationMs, now())
  } finally {
    if (end) await end(back, effects)
    else if (back.length + effects.length > 0) await store.giveBack(back, now(), effects)
  }
}

/** The fields of a request. */
export class ReadFields<Value> implements Gate {
  readonly refusal: Failure | undefined
  private readonly result: Value | Failure

  constructor(read: () => Value) {
    this.result = judged(read)
    this.refusal = this.result instanceof Failure ? this.result : undefined
  }

  /** For later gates, and what follows them. */
  get value(): Value {
    if (this.result instanceof Failure) throw this.result
    return this.result
  }
}

/** For what a gate and the delivery share. */
export function once<Value>(make: () => Value): () => Value {
  let made: { readonly value: Value } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}

/**
 * Takes all claims or none.
 * @throws the failure of the first exhausted limit
 */
export async function claim(
  { store, now }: { readonly store: Pick<ClaimStore, 'admit'>; readonly now: Clock },
  context: RequestContext,
  claims: readonly Claim[],
): Promise<readonly Grant[]> {
  if (claims.length === 0) return []
  return granted(context, claims, await store.admit(claims, now()))
}

export function granted(
  context: RequestContext,
  claims: readonly Claim[],
  decision: LimitDecision,
): readonly Grant[] {
  noteLimits(context, claims, decision)
  if (!decision.allowed) throw refused(claims, decision)
  return grantsOf(claims, decision)
}

/**
 * Of the claims that count, in their order.
 * @param start where their counts begin
 */
export function grantsOf(claims: readonly StoredClaim[], { counts }: Granted, start = 0): readonly Grant[] {
  const grants: Grant[] = []
  for (const { subject, name, units, counted } of claims) {
    const limit = counted ? counts[start + grants.length] : undefined
    if (limit) grants.push({ subject, name, units, count: limit.count, expiresAt: limit.expiresAt })
  }
  return grants
}

export function noteLimits(context: RequestContext, claims: readonly Claim[], decision: LimitDecision): void {
  let index = 0
  let place = 0
  for (const { limit, max, units, budget, ended, retryMs = 0, counted } of claims) {
    const isRefused = !decision.allowed && decision.refusedBy === index
    const known = counted && decision.allowed ? decision.counts[place++] : undefined
    const used = isRefused ? max : (known?.count ?? null)
    const endsAt = isRefused ? decision.expiresAt : (known?.expiresAt ?? null)
    if (limit !== null) {
      context.limits.push(
        ended === undefined
          ? {
              limit,
              max,
              used,
              endsAt,
              refused: isRefused,
              budget,
              ...(budget && isRefused && { refusedMicros: units }),
            }
          : {
              limit,
              max: max - ended,
              used: used && used - ended,
              endsAt: context.at + retryMs,
              refused: isRefused,
            },
      )
    }
    if (isRefused) return
    index++
  }
}

export function uncounted(claims: readonly Claim[]): readonly Claim[] {
  return claims.map((each) => ({ ...each, counted: false }))
}

/** @param claims those of the refusal */
export function refused(claims: readonly Claim[], { refusedBy, resetsInMs }: Refusal): Failure {
  const claim = claims[refusedBy]
  const seconds = retryAfterSeconds(claim?.retryMs ?? resetsInMs)
  const message = claim && refusalMessage(claim, durationInWords(seconds))
  const reason = claim && reasonOf(claim)
  return new Failure(claim?.failure ?? 'rate_limited', message, { retryAfterSeconds: seconds, reason })
}

/** Rounded up: 90 is "90 seconds", 200 is "4 minutes". */
export function durationInWords(seconds: number): string {
  const [count, unit] =
    seconds < 120
      ? [seconds, 'second']
      : seconds < 7200
        ? [Math.ceil(seconds / 60), 'minute']
        : [Math.ceil(seconds / 3600), 'hour']
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}

/** Retry-After: rounded up, at least 1 (RFC 9110 section 10.2.3). */
export function retryAfterSeconds(resetsInMs: number): number {
  return Math.max(1, Math.ceil(resetsInMs / 1000))
}
