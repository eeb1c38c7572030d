import type { ConversionFeedback } from '../delivery/conversion-feedback.ts'
import {
  type DeliveryPorts,
  deliverSms,
  longestDeliveryMs,
  noStep,
  saveSkipped,
} from '../delivery/delivery.ts'
import { mayCall, type SmsWay, smsWay, type WayPorts } from '../delivery/way.ts'
import { judged } from '../ground/body.ts'
import { mask } from '../ground/contact.ts'
import { Failure } from '../ground/failures.ts'
import type { LadderRow } from '../ground/ladder-row.ts'
import { clockToleranceMs, type Log, type Sealing, type Secrets } from '../ground/ports.ts'
import type { PhoneWay, Segments } from '../ground/providers.ts'
import { minuteMs } from '../ground/time.ts'
import type { GuardedSend } from '../guard/guard.ts'
import type { Effect } from '../limits/effects.ts'
import { pass, type Settle } from '../limits/gates.ts'
import { type Claim, type Gate, type LimitSettings, type Subject, sendLimits } from '../limits/limits.ts'
import { Charge } from '../money/charge.ts'
import type { Policy, ReadPolicy } from '../policy/policy.ts'
import {
  mayBeSent,
  newRequestContext,
  type Operation,
  type RequestContext,
} from '../request/request-context.ts'
import type { Brands } from '../texts/brand.ts'
import { type SmsContent, smsOf } from '../texts/sms.ts'
import type { GuardedPorts } from './guarded.ts'
import { type DueLadder, dueAfter, type Ladder, type LadderStore, stepOf, waysIn } from './ladder.ts'
import type { OtpStore } from './store.ts'

interface LadderPorts extends DeliveryPorts, WayPorts, GuardedPorts {
  readonly ladder: Ladder
  readonly ladderStore: LadderStore
  readonly store: OtpStore
  readonly brands: Brands
  readonly policy: ReadPolicy
  readonly secrets: Pick<Secrets, 'subjects'>
  readonly sealing: Sealing
  readonly limits: LimitSettings
  readonly otpTtlSeconds: number
  readonly segmentsOf: (text: string) => Segments
  readonly conversionFeedback: Pick<ConversionFeedback, 'accepts'> | undefined
  /** Called after each message by a further way, except those of a request. */
  readonly tried: (context: RequestContext) => void
  readonly log: Log
}

/** What each message with the code needs. Stored encrypted. */
export interface WaitingCode extends Pick<GuardedSend, 'ip' | 'device' | 'isTrustedUser'> {
  readonly to: string
  readonly app: string
  readonly brand: string
  readonly operation: Operation
  readonly content: SmsContent
}

/** Messages by the next ways, until a provider accepts one. */
interface Climb {
  readonly row: Pick<LadderRow, 'requestId' | 'ways' | 'reportKeys' | 'expiresAt'>
  readonly waiting: WaitingCode
  /** Of the request, by the stopwatch. */
  readonly deadline?: number
}

/** `taken`: another process sends it. */
type Sent = 'accepted' | 'next' | 'taken' | { readonly end: string }

const gone = { end: 'the code has expired or was revoked' } as const

/** Of a way that is closed to the number. */
const nowhere = { kind: 'ordinary', isAllowed: false, rule: null, providers: [], paused: [] } as const

/** In flight in a process. */
const concurrency = 64

/** Beyond a delivery. Claims keep a late process from sending twice. */
const leaseMarginMs = 5000

/** A crash may leave attempts in the event log that the row does not count. */
const attemptsOfLostMessage = 50

/**
 * Sends a code by its next ways (design D54): at once after a failure, else when a report says failed, or none arrives in time. Each
 * message is claimed once in the step that checks the code, so that no crash and no second process sends it again.
 */
export class Ladders {
  private readonly inFlight = new Set<Promise<void>>()
  private run: Promise<void> | undefined
  private isStopped = false

  constructor(private readonly ports: LadderPorts) {}

  /** Call it at start and every second. */
  readonly tick = (): void => {
    if (this.isStopped || this.run) return
    this.run = this.takeDue().finally(() => {
      this.run = undefined
    })
  }

  /** Resolves when no ladder is being looked at. */
  async idle(): Promise<void> {
    while (this.run || this.inFlight.size > 0) await Promise.all([this.run, ...this.inFlight])
  }

  /** Ends what is in flight, and begins nothing else. */
  async stop(): Promise<void> {
    this.isStopped = true
    await this.idle()
  }

  /** Of a new code. */
  begin(context: RequestContext, subject: string, waiting: WaitingCode) {
    const { now, sealing, ladder, otpTtlSeconds } = this.ports
    const { requestId } = context
    const at = now()
    const row: LadderRow = {
      ...{ requestId, subject, sealed: sealing.seal(JSON.stringify(waiting), ownerOf(requestId)) },
      ...{ ways: ladder.ways.slice(1).join(), reportKey: null, reportKeys: '', causes: '', sentAt: null },
      ...{ attempts: attemptsOfLostMessage, dueAt: at + this.leaseMs, ended: null },
      expiresAt: at + otpTtlSeconds * 1000,
    }
    return {
      /** Stored in the step that stores the code. */
      row,
      /**
       * After the first message. Never rejects.
       * @param deadline of the request, by the stopwatch
       * @returns whether a provider accepted the code, now by any way
       */
      goOn: async (isAccepted: boolean, deadline: number): Promise<boolean> => {
        try {
          if (!isAccepted) return await this.climb(context, { row, waiting, deadline })
          await this.saveSent(context, row, waysIn(row.ways))
        } catch (error) {
          context.fault = error
        }
        return context.attempts.some(({ outcome }) => outcome === 'accepted')
      },
    }
  }

  private get leaseMs(): number {
    return longestDeliveryMs(this.ports.providerTimeoutMs) + leaseMarginMs
  }

  private async takeDue(): Promise<void> {
    const { ladderStore: ladders, now, ladder, log } = this.ports
    try {
      while (!this.isStopped) {
        const limit = concurrency - this.inFlight.size
        if (limit <= 0) return
        const at = now()
        const latestDueAt = Math.max(dueAfter(ladder, at), at + this.leaseMs) + minuteMs + clockToleranceMs
        const due = await ladders.take({ now: at, latestDueAt, leaseMs: this.leaseMs, limit })
        if (due.length === 0) return
        for (const each of due) this.start(each)
      }
    } catch (err) {
      log.error({ err }, 'codes that wait for their next way could not be read; otpost will try again')
    }
  }

  private start(due: DueLadder): void {
    const { requestId } = due
    const work = this.process(due)
      .catch((err: unknown) =>
        this.ports.log.error(
          { err, requestId },
          'a code could not be sent by its next way; otpost will try again',
        ),
      )
      .finally(() => {
        this.inFlight.delete(work)
        this.tick()
      })
    this.inFlight.add(work)
  }

  private async process(due: DueLadder): Promise<void> {
    const { ladderStore: ladders, ladder, now, sealing, secrets, store, conversionFeedback } = this.ports
    const { requestId } = due
    const step = stepOf(due, ladder)
    if ('end' in step) return ladders.end(requestId, step.end)
    const opened = sealing.unseal(due.sealed, ownerOf(requestId))
    if (!opened) return ladders.end(requestId, 'no secret key of the server opens the code')
    const waiting: WaitingCode = JSON.parse(opened.text)
    const { to, app, brand, operation } = waiting
    const context: RequestContext = {
      ...newRequestContext({ requestId, at: now(), clientIp: '' }),
      ...{ isJob: true, operation, app, brand, channel: 'SMS', recipient: mask({ channel: 'SMS', to }) },
      ...{ recipientHash: secrets.subjects('SMS', to)[0], attemptsBegun: due.attempts },
    }
    await ladders.stepped(requestId, due.attempts + 1, step.next)
    const isAccepted = await this.climb(context, { row: due, waiting })
    const last = context.attempts.findLast(mayBeSent)
    if (isAccepted && last) {
      const code = { subject: secrets.subjects('SMS', to), brandSlug: brand, id: requestId }
      const messageId = conversionFeedback?.accepts(last.provider) ? last.providerMessageId : null
      await store.setProvider(code, last.provider, messageId, now())
    }
    this.ports.tried(context)
  }

  /** @returns whether a provider accepted the code */
  private async climb(context: RequestContext, climb: Climb): Promise<boolean> {
    const { ladderStore } = this.ports
    const { row } = climb
    const settles: Settle[] = []
    const ways = waysIn(row.ways)
    let sent: Sent = 'next'
    try {
      for (let place = 0; place < ways.length && sent === 'next'; place++) {
        const rest = ways.slice(place + 1)
        sent = await this.send(context, climb, ways.slice(place), settles)
        if (sent === 'accepted') await this.saveSent(context, row, rest)
      }
    } finally {
      for (const settle of settles)
        await settle(sent === 'accepted' ? [] : [null]).catch((error: unknown) => {
          context.fault = error
        })
    }
    if (sent === 'next') await ladderStore.end(row.requestId, 'no way is left that could send the code')
    else if (typeof sent === 'object') await ladderStore.end(row.requestId, sent.end)
    return sent === 'accepted'
  }

  /** @param settles receives what must follow the messages */
  private async send(
    context: RequestContext,
    { row, waiting, deadline }: Climb,
    [way, ...further]: readonly PhoneWay[],
    settles: Settle[],
  ): Promise<Sent> {
    const { ports, leaseMs } = this
    const { to, app, content } = waiting
    const { requestId } = row
    const brand = await ports.brands.bySlug(waiting.brand)
    const policy = await ports.policy()
    const subject = ports.secrets.subjects('SMS', to)
    if (brand?.status !== 'active' || !way) return { end: 'the brand is not active' }
    const about = { field: 'phone', brand, policy, isTemplate: true, way }
    // What it notes is not of the request.
    const noted = { ...context }
    const found = judged(() => smsWay(ports, noted, { channel: 'SMS', to }, about))
    const country = noted.country ?? null
    const message = smsOf(ports, brand, content, found instanceof Failure ? { ...nowhere, country } : found, {
      ...{ requestId, to, recipientHash: subject[0], position: null },
      validitySeconds: Math.max(1, Math.floor((row.expiresAt - ports.now()) / 1000)),
      expectsFeedback: ports.conversionFeedback !== undefined,
    })
    if (found instanceof Failure) {
      const isOpen = way !== 'voice' || mayCall(ports.voiceCountries, country)
      const route = way === 'sms' ? null : way
      const why = isOpen ? 'blocked destination' : 'no calls to this country'
      saveSkipped(ports, context, message, { ...noStep, route }, why)
      return 'next'
    }
    // A request has claimed the limits of all its messages.
    const needsLimits = context.isJob && settles.length === 0
    const limits = needsLimits ? await this.limitsOf(waiting, subject, found, policy) : []
    const charge = new Charge(policy, { app, brand: brand.slug, of: 'codes' }, context, ports, [message])
    const next = { ways: further.join(), attempts: context.attemptsBegun + attemptsOfLostMessage }
    const advance: Effect = { kind: 'ladder-way', requestId, ...next, dueAt: ports.now() + leaseMs }
    const only = { claims: [onlyMessage(subject, requestId, way)], effects: [advance] }
    const code = { subject, brandSlug: brand.slug, id: requestId }
    const limitsBefore = context.limits.length
    let lost: Sent | undefined
    try {
      const { settle } = await pass(ports, context, [only, ...limits, charge], async (claims, effects) => {
        const decision = await ports.store.sendAgain(code, claims, ports.now(), effects)
        if (!decision.allowed && decision.refusedBy === 0) lost = decision.isGone ? gone : 'taken'
        return decision
      })
      settles.push(settle)
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      if (lost) return lost
      const { reason } = error.details
      const why = reason === 'budget' ? 'budget exhausted' : (`rate-limited: ${reason}` as const)
      saveSkipped(ports, context, message, message.steps[0] ?? noStep, why)
      return 'next'
    } finally {
      // Those of the request itself stay.
      if (!context.isJob) context.limits.length = limitsBefore
    }
    const options = { charging: charge, isFollowed: further.length > 0, ...(deadline && { deadline }) }
    const { kind } = await deliverSms(ports, context, message, options)
    return kind === 'accepted' ? 'accepted' : 'next'
  }

  private async limitsOf(
    waiting: WaitingCode,
    subject: Subject,
    { country, isAllowed }: SmsWay,
    { prefixes }: Policy,
  ): Promise<readonly Gate[]> {
    const { to, brand: brandSlug } = waiting
    const recipient = { channel: 'SMS', to, subject, mailbox: subject } as const
    const phone = { to, country, isAllowedCountry: isAllowed }
    const code = { ...waiting, recipient: subject[0], phone }
    const { guard, isVerifiedNumber } = this.ports
    guard.applyOperatorPrefixes(prefixes)
    const entry = guard.enterAgain(code, await isVerifiedNumber(subject))
    const refusal = entry.verdict ? new Failure('rate_limited', undefined, { reason: 'guard' }) : undefined
    const limits = sendLimits(this.ports, recipient, { brandSlug, longestMs: 0 })
    return [...limits.filter(isNoCooldown), { refusal, admitted: () => entry.confirm() }]
  }

  private async saveSent(
    context: RequestContext,
    { requestId, reportKeys: known }: Climb['row'],
    ways: readonly PhoneWay[],
  ): Promise<void> {
    const { ladderStore, ladder, now } = this.ports
    const sent = context.attempts.filter(mayBeSent)
    if (ways.length === 0) return ladderStore.end(requestId, 'its last way was used')
    const sentAt = now()
    const keys = sent.flatMap(({ reportKey }) => reportKey ?? [])
    await ladderStore.sent({
      ...{ requestId, ways: ways.join(), sentAt, dueAt: dueAfter(ladder, sentAt) },
      ...{ attempts: context.attemptsBegun, reportKey: sent.at(-1)?.reportKey ?? null },
      reportKeys: [known, ...keys].join(' ').trim(),
    })
  }
}

/** Each way of a code has one message. */
function onlyMessage(subject: Subject, requestId: string, way: PhoneWay): Claim {
  const about = { limit: null, failure: 'rate_limited', scope: '', max: 1, counted: true } as const
  return { ...about, subject, name: `ladder:${requestId}:${way}`, windowMs: 10 * minuteMs }
}

function isNoCooldown({ claims = [] }: Gate): boolean {
  return !claims.some(({ limit }) => limit === 'cooldown')
}

function ownerOf(requestId: string): string {
  return `ladders ${requestId}`
}
