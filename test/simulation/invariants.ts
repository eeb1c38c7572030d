import { routesOf } from '../../src/domain/delivery/way.ts'
import {
  brands,
  type Handover,
  type History,
  mailboxes,
  name,
  type Operation,
  otpTtlMs,
  people,
  providerTimeoutMs,
  type StoreCall,
} from './history.ts'

// Rules for every history, checked from outside the domain. A request with an unknown outcome (a 500, a
// crash, no response yet) may have happened or not, and each rule allows both. Two events of the same step
// may have happened in either order.
//
// A store call is atomic, and the order of calls is known. So a code is created at the last call before it is
// first sent, and a verification is decided at the last call before its response.

/** A rule that a history broke. */
export class Violation extends Error {
  override readonly name = 'Violation'
}

/**
 * The maximum time between reading the clock and the store call, in which concurrent requests may change
 * order.
 */
export const overtakingMs = 5000

/** The tolerance for the start of a cooldown at the end of the delivery. */
const cooldownToleranceMs = 500

export class Invariants {
  constructor(private readonly history: History) {}

  /** Checks a message that a provider got. */
  handedOver(send: Operation, handover: Handover): void {
    const { to, channel } = people[send.person]
    if (send.kind !== 'send') broken(`${name(send)} delivers a message`)
    if (send.answer) broken(`${name(send)} sends a message after its response`)
    if (send.callsBefore === 0) broken(`${name(send)} sends a code that is not stored`)
    if (handover.code !== send.code)
      broken(`${name(send)} delivers the code ${handover.code}, not ${send.code}`)
    if (handover.to !== to && handover.to.toLowerCase() !== to) {
      broken(`${name(send)} delivers to ${handover.to}`)
    }
    if (handover.brandSlug !== send.brand) broken(`${name(send)} delivers for ${handover.brandSlug}`)
    const [first] = send.handovers
    if (!first || first === handover) return
    if (channel === 'EMAIL') broken(`${name(send)} sends a second mail`)
    if (first.messageId !== handover.messageId) broken(`${name(send)} creates a second message`)
    const before = send.handovers.at(-2)
    if (!before?.answer) broken(`${name(send)} tries a second provider beside the first`)
    if (endsDelivery(before)) broken(`${name(send)} tries another provider after ${kindOf(before)}`)
    if (handover.startedAtMs >= first.startedAtMs + 2 * providerTimeoutMs) {
      broken(`${name(send)} tries a provider after its deadline`)
    }
  }

  /** Checks a send against the limits, after its code was created and sent. */
  begun(send: Operation): void {
    const birth = birthCall(send)
    if (!birth || this.wasSetBackBy(birth.step)) return
    const { limits } = this.history.profile
    this.withinBudget(send, birth, [{ ...birth, isSure: true }])
    if (people[send.person].channel === 'SMS') {
      this.oneAtATime(send, birth)
      this.within(send, birth, limits.phonePerMinute, 60_000, 'a minute')
      this.within(send, birth, limits.phonePerHour, 3_600_000, 'an hour')
    } else if (limits.emailPerHour > 0) {
      this.within(send, birth, limits.emailPerHour, 3_600_000, 'an hour')
    }
  }

  /** Checks a response. */
  answered(operation: Operation): void {
    const { answer } = operation
    if (!answer) return
    if (answer.kind === 'error') {
      if (operation.faults === 0) broken(`${name(operation)} fails without a fault: ${String(answer.error)}`)
      return
    }
    if (operation.kind === 'send') this.sendAnswered(operation, answer)
    else this.verifyAnswered(operation, answer)
    this.withinGlobal(operation)
  }

  /** Checks everything again at the end, and that every request was answered. */
  ended(): void {
    for (const operation of this.history.operations) {
      if (!operation.answer && operation.lostAtStep === undefined) broken(`${name(operation)} hangs`)
      this.answered(operation)
    }
  }

  private sendAnswered(send: Operation, answer: NonNullable<Operation['answer']>): void {
    const last = send.handovers.at(-1)
    const accepted = send.handovers.filter((handover) => kindOf(handover) === 'accepted')
    if (answer.kind === 'ok') {
      if (accepted.length !== 1 || accepted[0] !== last) {
        broken(`${name(send)} returns 200 with ${accepted.length} accepted deliveries`)
      }
      this.attemptsCounted(send)
      this.quickEnd(send)
      return
    }
    if (answer.kind !== 'refused') return
    switch (answer.failure) {
      case 'sms_failed':
        if (!last) broken(`${name(send)} returns 502, but no provider was called`)
        if (accepted.length > 0) broken(`${name(send)} returns 502, but a provider accepted the message`)
        if (!endsDelivery(last)) this.allWereTried(send)
        this.attemptsCounted(send)
        return
      case 'cooldown_active':
        this.deliveredNothing(send)
        this.cooldownExplained(send)
        return
      case 'rate_limited':
        this.deliveredNothing(send)
        this.limitExplained(send)
        return
      default:
        broken(`${name(send)} returns ${answer.failure}`)
    }
  }

  /** Each attempt after the first that may have been sent was counted once. */
  private attemptsCounted(send: Operation): void {
    if (send.faults > 0) return
    const counted = countedAgain(send).length
    const further = Math.max(0, sentTimes(send) - 1)
    if (counted !== further) broken(`${name(send)} counts ${counted} further attempts, not ${further}`)
  }

  /** A fast send is one store call, and one more if another provider than planned took the message. */
  private quickEnd(send: Operation): void {
    const birth = birthCall(send)
    const { smsCooldownSeconds } = this.history.profile.limits
    // A shorter cooldown has to replace the lease of the delivery.
    const isShort = people[send.person].channel === 'SMS' && smsCooldownSeconds * 1000 < 10_000
    const ms = birth && Math.abs(send.reading - birth.reading)
    if (ms === undefined || ms > cooldownToleranceMs || isShort || sentTimes(send) > 1) return
    const further = send.calls.slice(send.callsBefore).filter(({ what }) => what !== 'store.setProvider')
    if (send.faults === 0 && further.length > 0) {
      broken(`${name(send)} took ${ms} ms, and calls the store once more`)
    }
  }

  private deliveredNothing(send: Operation): void {
    if (send.handovers.length > 0) broken(`${name(send)} is rejected, but delivered`)
  }

  private allWereTried(send: Operation): void {
    if (people[send.person].channel === 'EMAIL') return
    const [first] = send.handovers
    const last = send.handovers.at(-1)
    const { smsMode, plainProviders } = this.history.profile
    const endedAtMs = last?.answer?.elapsedMs ?? 0
    // No call starts with less than a quarter of the time-out left.
    const isLate = first && endedAtMs > first.startedAtMs + 1.75 * providerTimeoutMs
    for (const route of routesOf(smsMode, brands[send.brand] && send.person === 'ann')) {
      const asked = send.handovers.filter((handover) => handover.route === route)
      const providers = route === 'plain' ? plainProviders : 1
      if (isLate || asked.length === providers) continue
      broken(`${name(send)} gives up after ${asked.length} of ${providers} providers of the ${route} route`)
    }
  }

  // -------------------------------------------------------------------------------------------------------------------
  // Codes
  // -------------------------------------------------------------------------------------------------------------------

  private verifyAnswered(verify: Operation, answer: NonNullable<Operation['answer']>): void {
    if (answer.kind === 'ok') {
      this.verified(verify)
      return
    }
    if (answer.kind !== 'refused') return
    switch (answer.failure) {
      case 'mismatch':
        this.mismatched(verify)
        return
      case 'max_attempts':
        if (!this.candidates(verify).some((send) => this.mayBeLocked(send, verify))) {
          broken(`${name(verify)} returns max_attempts, but no code of it can have three wrong guesses`)
        }
        return
      case 'not_found': {
        const live = this.sends(verify).find((send) => this.isSurelyLive(send, verify))
        if (live) broken(`${name(verify)} returns not_found, but ${name(live)} is live`)
        return
      }
      case 'rate_limited':
        this.limitExplained(verify)
        return
      default:
        broken(`${name(verify)} returns ${answer.failure}`)
    }
  }

  private verified(verify: Operation): void {
    const verdict = verdictStep(verify)
    const send = this.sends(verify).find(({ code }) => code === verify.guess)
    if (!send) broken(`${name(verify)} succeeds with a code that is not of its brand and recipient`)
    const twin = this.verifications(verify).find(
      (other) => other !== verify && other.guess === verify.guess && other.answer?.kind === 'ok',
    )
    if (twin) broken(`${name(verify)} succeeds with the code that ${name(twin)} has used`)
    const killer = this.deathOf(send, verify)
    if (killer && killer.step < verdict) broken(`${name(verify)} succeeds, but its code ${killer.cause}`)
    if (!this.mayBeInTime(send, verify)) broken(`${name(verify)} succeeds, but its code is expired`)
    const wrong = this.verifications(verify).filter(
      (other) => verdictStep(other) < verdict && this.surelyJudgedBy(other) === send,
    )
    if (wrong.length >= 3) broken(`${name(verify)} succeeds after three wrong guesses`)
  }

  private mismatched(verify: Operation): void {
    const send = this.surelyJudgedBy(verify)
    if (send === null)
      broken(`${name(verify)} returns mismatch, but there is no code that it can have missed`)
    if (send === undefined) return
    const wrong = this.verifications(verify).filter((other) => this.surelyJudgedBy(other) === send)
    if (wrong.length > 3) broken(`${wrong.length} wrong guesses of ${name(send)} are evaluated`)
  }

  /**
   * The code that a wrong guess was compared with: undefined if there are several candidates, null if there
   * is none.
   */
  private surelyJudgedBy(verify: Operation): Operation | undefined | null {
    if (verify.answer?.kind !== 'refused' || verify.answer.failure !== 'mismatch') return undefined
    const others = this.candidates(verify).filter(({ code }) => code !== verify.guess)
    return others.length > 1 ? undefined : (others[0] ?? null)
  }

  /** The codes that may have been live during a verification. */
  private candidates(verify: Operation): Operation[] {
    const verdict = verdictStep(verify)
    return this.sends(verify).filter((send) => {
      const births = birthSteps(send)
      if (births.length === 0 || Math.min(...births) > verdict) return false
      const killer = this.deathOf(send, verify)
      return !(killer && killer.step < verify.startedAtStep) && this.mayBeInTime(send, verify)
    })
  }

  /** When a code certainly became invalid, and why. */
  private deathOf(send: Operation, except: Operation): { step: number; cause: string } | undefined {
    const born = Math.max(...birthSteps(send))
    const deaths: { step: number; cause: string }[] = []
    for (const other of this.sends(send)) {
      const step = birthCall(other)?.step
      if (other !== send && step !== undefined && step > born) {
        deaths.push({ step, cause: `was replaced by ${name(other)}` })
      }
    }
    for (const other of this.verifications(send)) {
      if (other !== except && other.guess === send.code && other.answer?.kind === 'ok') {
        deaths.push({ step: verdictStep(other), cause: `was used by ${name(other)}` })
      }
    }
    if (send.answer?.kind === 'refused' && send.answer.failure === 'sms_failed') {
      deaths.push({ step: send.answer.step, cause: 'was revoked when its delivery failed' })
    }
    return deaths.sort((a, b) => a.step - b.step)[0]
  }

  /** Whether a verification must find this code, live or locked, because nothing can have ended it. */
  private isSurelyLive(send: Operation, verify: Operation): boolean {
    const birth = birthCall(send)
    const verdict = verdictStep(verify)
    if (!birth || birth.step >= verify.startedAtStep) return false
    const replaced = this.sends(send).some(
      (other) => other !== send && birthSteps(other).some((step) => step >= birth.step && step <= verdict),
    )
    const used = this.verifications(send).some(
      (other) =>
        other !== verify &&
        other.guess === send.code &&
        (other.answer?.kind === 'ok' || isUnknown(other)) &&
        other.calls.some(({ step }) => step >= birth.step && step <= verdict),
    )
    if (replaced || used || mayBeRevoked(send, verdict)) return false
    // Any server that read a time at which the code has expired may have deleted it.
    const created = this.timesBetween(send.startedAtStep, birth.step)
    const times = this.timesBetween(birth.step, verdict)
    return times.max < created.min + otpTtlMs && times.min >= created.max - overtakingMs
  }

  private mayBeInTime(send: Operation, verify: Operation): boolean {
    const created = this.timesBetween(send.startedAtStep, Math.max(...birthSteps(send)))
    const times = this.timesBetween(verify.startedAtStep, verdictStep(verify))
    return times.min < created.max + otpTtlMs && times.max >= created.min - overtakingMs
  }

  private mayBeLocked(send: Operation, verify: Operation): boolean {
    const born = Math.min(...birthSteps(send))
    const verdict = verdictStep(verify)
    const wrong = this.verifications(send).filter(
      (other) =>
        other !== verify &&
        mayBeWrong(other) &&
        other.calls.some(({ step }) => step >= born && step <= verdict),
    )
    return wrong.length >= 3
  }

  // -------------------------------------------------------------------------------------------------------------------
  // Limits
  // -------------------------------------------------------------------------------------------------------------------

  /** One SMS in progress per brand and phone, and one per cooldown. */
  private oneAtATime(send: Operation, birth: StoreCall): void {
    const cooldownMs = this.history.profile.limits.smsCooldownSeconds * 1000
    for (const earlier of this.sends(send)) {
      const began = birthCall(earlier)
      if (!began || began.order >= birth.order || mayBeRevoked(earlier, birth.step)) continue
      const isOvertaken = this.sends(send).some(
        (other) =>
          other !== send &&
          other !== earlier &&
          birthCalls(other).some(({ order }) => order > began.order && order < birth.order),
      )
      if (isOvertaken) continue
      const at = timeOf(birth)
      const underWayUntil = began.reading + Math.max(cooldownMs, 2 * providerTimeoutMs)
      if (earlier.answer?.kind === 'ok') {
        // If the end of the delivery failed, its lease applies in place of the cooldown.
        const cooled = earlier.reading + cooldownMs - cooldownToleranceMs
        const end = earlier.faults > 0 ? Math.min(cooled, underWayUntil) : cooled
        if (earlier.answer.step < birth.step && at < end) {
          broken(`${name(send)} begins in the cooldown of ${name(earlier)}`)
        }
      } else if (earlier.calls.length === earlier.callsBefore) {
        if (at < underWayUntil) broken(`${name(send)} begins while ${name(earlier)} is in progress`)
      }
    }
  }

  /**
   * The sends to one phone or mailbox fit into fixed windows with at most `max` sends each, beside the
   * counted further attempts.
   */
  private within(send: Operation, birth: StoreCall, max: number, windowMs: number, what: string): void {
    const counted = this.history.operations.flatMap((other): Counted[] => {
      if (other.kind !== 'send' || mailboxes[other.person] !== mailboxes[send.person]) return []
      const isKept = sentTimes(other) > 0 || !mayBeRevoked(other, birth.step)
      const isSure = other.handovers.length > 0 && isKept
      return [
        ...birthCalls(other).map((call) => ({ ...call, isSure })),
        ...countedAgain(other).map((call) => ({ ...call, isSure: other.faults === 0, isBeyond: true })),
      ]
    })
    const released = upTo(counted, birth.order)
    const orders = this.history.profile.isExact ? [released] : [released, furtherLast(released)]
    if (!orders.some((calls) => fits(calls, max, windowMs))) {
      broken(`${name(send)} is more than ${max} sends ${what} to its recipient`)
    }
  }

  /** The requests of one app, and the wrong guesses of one recipient, fit into their windows. */
  private withinGlobal(operation: Operation): void {
    const last = operation.calls.at(-1)
    if (!last || this.wasSetBackBy(last.step)) return
    const { globalPerMinute } = this.history.profile.limits
    if (globalPerMinute <= 100) {
      const counted = this.history.operations
        .filter(({ app }) => app === operation.app)
        .flatMap((other) => decisions(other))
      if (!fits(upTo(counted, last.order), globalPerMinute, 60_000)) {
        broken(`${name(operation)} is more than ${globalPerMinute} requests a minute of ${operation.app}`)
      }
    }
    if (operation.kind === 'verify') this.withinBudget(operation, last)
  }

  /**
   * The wrong guesses of one recipient, for all brands, fit into fixed windows.
   *
   * @param checked what must fit in a window beside them
   */
  private withinBudget(operation: Operation, last: StoreCall, checked: readonly Counted[] = []): void {
    const { failureBudgetPerDay } = this.history.profile.limits
    if (failureBudgetPerDay === 0) return
    const verifications = this.verificationsOf(operation.person)
    const cleared = Math.max(-1, ...verifications.filter(isVerified).map(verdictOrder))
    const perhapsCleared = Math.max(-1, ...verifications.filter(isUnknown).map(verdictOrder))
    // With several servers at once, a guess of the same step may precede the reset.
    const clearedSteps = new Set(
      this.history.profile.isExact ? [] : verifications.filter(isVerified).map(verdictStep),
    )
    const counted = verifications.flatMap((other): Counted[] => {
      const call = other.calls.at(-1)
      if (!call || call.order < cleared || !mayBeWrong(other)) return []
      const isCounted = call.order > perhapsCleared && !clearedSteps.has(call.step)
      return [{ ...call, isSure: other.answer?.kind === 'refused' && isCounted }]
    })
    if (!fits(upTo([...counted, ...checked], last.order), failureBudgetPerDay, 86_400_000)) {
      broken(`${name(operation)} is accepted beyond the budget of ${failureBudgetPerDay} wrong guesses`)
    }
  }

  private cooldownExplained(send: Operation): void {
    const refusal = send.calls.at(-1)
    if (!refusal || this.wasSetBackBy(refusal.step)) return
    const cooldownMs = this.history.profile.limits.smsCooldownSeconds * 1000
    const isExplained = this.sends(send).some((other) => {
      const began = birthCalls(other).at(-1)
      if (other === send || !began || began.step > refusal.step) return false
      if (isSurelyRevoked(other, send)) return false
      if (other.answer?.kind === 'ok' && other.faults === 0 && other.answer.step < send.startedAtStep) {
        return other.reading + cooldownMs + cooldownToleranceMs > refusal.reading
      }
      // The contract does not define the length of a delivery's lease, but it must end.
      const held = began.reading + Math.max(cooldownMs, 60_000)
      return Math.max(held, other.reading + cooldownMs) > refusal.reading
    })
    if (!isExplained) broken(`${name(send)} returns cooldown_active, but there is none`)
  }

  private limitExplained(operation: Operation): void {
    const refusal = operation.calls.at(-1)
    if (!refusal || this.wasSetBackBy(refusal.step)) return
    const { limits } = this.history.profile
    const since = (windowMs: number) => refusal.reading - windowMs - overtakingMs
    const { operations } = this.history
    const isUsedUp = (max: number, windowMs: number, counted: readonly Operation[]) =>
      counted.filter(
        (other) =>
          other !== operation &&
          other.calls.some(({ reading, step }) => reading > since(windowMs) && step <= refusal.step),
      ).length >= max
    const requests = operations.filter(({ app, answer }) => app === operation.app && !isLimited(answer))
    if (isUsedUp(limits.globalPerMinute, 60_000, requests)) return
    const guesses = this.verificationsOf(operation.person)
    const cleared = Math.max(
      -1,
      ...guesses
        .filter((other) => isVerified(other) && other.answer && other.answer.step < operation.startedAtStep)
        .map(verdictOrder),
    )
    const wrong = guesses.filter((other) => mayBeWrong(other) && verdictOrder(other) >= cleared)
    const budget = limits.failureBudgetPerDay
    if (budget > 0 && isUsedUp(budget, 86_400_000, wrong)) return
    if (operation.kind === 'send') {
      const sends = operations
        .filter(
          (other) =>
            mailboxes[other.person] === mailboxes[operation.person] &&
            birthCalls(other).length > 0 &&
            (sentTimes(other) > 0 || !isSurelyRevoked(other, operation)),
        )
        .flatMap((other) => [other, ...countedAgain(other).map(() => other)])
      if (people[operation.person].channel === 'EMAIL') {
        if (limits.emailPerHour > 0 && isUsedUp(limits.emailPerHour, 3_600_000, sends)) return
      } else {
        if (isUsedUp(limits.phonePerMinute, 60_000, sends)) return
        if (isUsedUp(limits.phonePerHour, 3_600_000, sends)) return
      }
    }
    broken(`${name(operation)} returns rate_limited, but no limit can be used up`)
  }

  // -------------------------------------------------------------------------------------------------------------------
  // The history
  // -------------------------------------------------------------------------------------------------------------------

  private sends(of: Operation): Operation[] {
    return this.inScope(of, 'send')
  }

  private verifications(of: Operation): Operation[] {
    return this.inScope(of, 'verify')
  }

  private verificationsOf(person: Operation['person']): Operation[] {
    return this.history.operations.filter((other) => other.kind === 'verify' && other.person === person)
  }

  private inScope({ brand, person }: Operation, kind: Operation['kind']): Operation[] {
    return this.history.operations.filter(
      (other) => other.kind === kind && other.brand === brand && other.person === person,
    )
  }

  private wasSetBackBy(step: number): boolean {
    return this.history.firstSetBack <= step
  }

  /** The earliest and the latest time of day that could be read between two steps. */
  private timesBetween(from: number, to: number): { min: number; max: number } {
    let min = Number.POSITIVE_INFINITY
    let max = Number.NEGATIVE_INFINITY
    const { clock } = this.history
    for (let index = clock.length - 1; index >= 0; index--) {
      const entry = clock[index]
      if (!entry || entry.step > to) continue
      min = Math.min(min, entry.timeMs)
      max = Math.max(max, entry.timeMs)
      // The entry in effect at the start of the span is the last that counts; one of the same step may be
      // later.
      if (entry.step < from) break
    }
    return { min, max }
  }
}

/** A request as a window counts it; an uncertain one may still have opened the window. */
interface Counted extends StoreCall {
  readonly isSure: boolean
  /** It is counted after the delivery, also beyond the limit. */
  readonly isBeyond?: boolean
}

function upTo(counted: readonly Counted[], order: number): Counted[] {
  return counted.filter((call) => call.order <= order).sort((a, b) => a.order - b.order)
}

/** The order in which several servers at once count their further attempts after the sends of the same step. */
function furtherLast(counted: readonly Counted[]): Counted[] {
  return counted.toSorted((a, b) => a.step - b.step || Number(a.isBeyond ?? 0) - Number(b.isBeyond ?? 0))
}

/** The time of a call, by the clock or by the records that had been deleted as expired. */
function timeOf({ reading, timeMs }: StoreCall): number {
  return Math.max(reading, timeMs)
}

/**
 * Whether there are fixed windows, each opened by one of the requests, none of which counts more than `max`.
 */
function fits(
  counted: readonly Counted[],
  max: number,
  windowMs: number,
  from = 0,
  window = { endsAt: Number.NEGATIVE_INFINITY, count: 0 },
): boolean {
  let { endsAt, count } = window
  for (const [index, call] of counted.entries()) {
    if (index < from) continue
    const isOpen = call.reading < endsAt
    if (isOpen && timeOf(call) < endsAt) {
      if (call.isSure && ++count > max && !call.isBeyond) return false
      continue
    }
    // The window has ended, or has for a server that deletes expired records. This request opens the next, if
    // it was counted.
    const next = { endsAt: call.reading + windowMs, count: call.isSure ? 1 : 0 }
    if (call.isSure && !isOpen) {
      endsAt = next.endsAt
      count = next.count
    } else {
      if (fits(counted, max, windowMs, index + 1, next)) return true
      if (call.isSure && ++count > max && !call.isBeyond) return false
    }
  }
  return true
}

/** The call that certainly created a code. */
function birthCall(send: Operation): StoreCall | undefined {
  return send.handovers.length > 0 ? send.calls[send.callsBefore - 1] : undefined
}

/** The calls that created a code, or may have. */
function birthCalls(send: Operation): readonly StoreCall[] {
  if (send.kind !== 'send') return []
  const birth = birthCall(send)
  if (birth) return [birth]
  return isUnknown(send) ? send.calls : []
}

function birthSteps(send: Operation): number[] {
  return birthCalls(send).map(({ step }) => step)
}

/** Whether a send may have revoked its code before a step: it called the store after a failed delivery. */
function mayBeRevoked(send: Operation, step: number): boolean {
  const last = send.handovers.at(-1)
  if (!last?.answer || kindOf(last) === 'accepted') return false
  return send.calls.slice(send.callsBefore).some((call) => call.step <= step)
}

function isSurelyRevoked({ answer }: Operation, before: Operation): boolean {
  return answer?.kind === 'refused' && answer.failure === 'sms_failed' && answer.step < before.startedAtStep
}

function kindOf({ answer }: Handover): string {
  if (!answer) return 'nothing yet'
  return answer.outcome === 'threw' ? 'threw' : answer.outcome.kind
}

function endsDelivery({ answer }: Handover): boolean {
  if (!answer || answer.outcome === 'threw') return false
  const { outcome } = answer
  return outcome.kind === 'accepted' || (outcome.kind === 'rejected' && outcome.scope === 'recipient')
}

/** How many attempts sent the code, or may have. */
function sentTimes({ handovers }: Operation): number {
  return handovers.filter((handover) => kindOf(handover) === 'accepted' || leavesOpen(handover)).length
}

/** The calls that counted further attempts. */
function countedAgain({ kind, handovers, calls, callsBefore }: Operation): readonly StoreCall[] {
  if (kind !== 'send' || handovers.length === 0) return []
  return calls.slice(callsBefore).filter(({ what }) => what === 'store.admit')
}

/** Whether the message may have been accepted. */
function leavesOpen(handover: Handover): boolean {
  const kind = kindOf(handover)
  return kind === 'unknown' || kind === 'threw'
}

function isUnknown({ answer }: Operation): boolean {
  return answer === undefined || answer.kind === 'error'
}

function isVerified({ answer }: Operation): boolean {
  return answer?.kind === 'ok'
}

function mayBeWrong(verify: Operation): boolean {
  const { answer } = verify
  return isUnknown(verify) || (answer?.kind === 'refused' && answer.failure === 'mismatch')
}

function isLimited(answer: Operation['answer']): boolean {
  return (
    answer?.kind === 'refused' && (answer.failure === 'rate_limited' || answer.failure === 'cooldown_active')
  )
}

/** The calls at which the limits counted a request, or may have. */
function decisions(operation: Operation): Counted[] {
  if (isLimited(operation.answer)) return []
  if (operation.kind === 'send') {
    const isSure = operation.handovers.length > 0
    return birthCalls(operation).map((call) => ({ ...call, isSure }))
  }
  const isSure = !isUnknown(operation)
  return operation.calls.slice(isSure ? -1 : 0).map((call) => ({ ...call, isSure }))
}

function verdictStep(verify: Operation): number {
  return verify.calls.at(-1)?.step ?? verify.answer?.step ?? verify.startedAtStep
}

function verdictOrder(verify: Operation): number {
  return verify.calls.at(-1)?.order ?? -1
}

function broken(what: string): never {
  throw new Violation(what)
}
