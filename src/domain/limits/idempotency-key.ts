import { type Body, isObject } from '../ground/body.ts'
import { Failure, type FailureKind, invalid } from '../ground/failures.ts'
import type { Secrets } from '../ground/ports.ts'
import type { Clock, EpochMs } from '../ground/time.ts'
import { noteFlag, type RequestContext } from '../request/request-context.ts'
import type { ClaimStore } from './claim-store.ts'
import type { Effect } from './effects.ts'
import { type IdempotencyKeys, keyLimitName, type NewKey, type StoredKey } from './idempotency-store.ts'
import type { Grant, LimitDecision, Refusal, StoredClaim, Subject } from './limits.ts'

export interface IdempotencyPorts {
  readonly store: Pick<ClaimStore, 'giveBack'>
  readonly secrets: Pick<Secrets, 'subjects'>
  readonly now: Clock
  readonly idempotencyKeys: IdempotencyKeys
  /** Names this process. */
  readonly owner: string
  /** Whether the process of an owner has certainly ended. False for a process of another machine. */
  readonly hasEnded: (owner: string) => boolean
}

interface KeySettings {
  /** From the claim until the key can be used for another request. */
  readonly windowMs: number
  /** The longest time that a key is in progress. */
  readonly longestMs: number
  /** Failures with status 500 that are repeated instead of tried again. */
  readonly kept: readonly FailureKind[]
}

interface StatusAndValue {
  readonly status: number
  readonly value: object
}

export interface KeptAnswer<Result> {
  readonly result: Result
  readonly expiresAt: EpochMs
}

/** A step of `ClaimStore` that takes claims. */
type ClaimStep<Decision> = (claims: readonly StoredClaim[], effects?: readonly Effect[]) => Promise<Decision>

/** Undefined: the request has no Idempotency-Key. */
export function idempotencyKeyOf<Result extends object>(
  ports: IdempotencyPorts,
  context: RequestContext,
  body: Body,
  settings: KeySettings,
): IdempotencyKey<Result> | undefined {
  const { idempotencyKey } = context
  return idempotencyKey === undefined
    ? undefined
    : new IdempotencyKey(ports, context, body, idempotencyKey, settings)
}

/** Runs the step, with the claim of the key first if there is one. */
export function claimWithKey<Decision extends LimitDecision>(
  key: IdempotencyKey<object> | undefined,
  claims: readonly StoredClaim[],
  step: ClaimStep<Decision>,
  effects?: readonly Effect[],
): Promise<Decision> {
  return key ? key.claim(claims, step, effects) : step(claims, effects)
}

/**
 * The Idempotency-Key of a request (design D43). Its limit of one makes it unique, on every store and node: the request that
 * takes it is the only one with the key until it ends or the key expires.
 */
export class IdempotencyKey<Result extends object> {
  /** Whether the process of an earlier request with this key ended before its answer. */
  followsCrash = false
  private subject: Subject | undefined
  /** Under each secret key. */
  private bodyHashes: Subject | undefined
  /** While the request is in progress. */
  private grant: Grant | undefined
  private answer: StatusAndValue | undefined

  constructor(
    private readonly ports: IdempotencyPorts,
    private readonly context: RequestContext,
    private readonly body: Body,
    private readonly key: string,
    private readonly settings: KeySettings,
  ) {}

  /**
   * After the checks of credentials, scope and brand, before all limits. Undefined: the request must be carried out.
   * @throws Failure a kept failure, `idempotency_in_progress`, `idempotency_key_reused`, or `validation_error` for a bad key
   */
  async keptAnswer(): Promise<KeptAnswer<Result> | undefined> {
    const { app, operation } = this.context
    if (!/^[!-~]{1,255}$/.test(this.key))
      throw invalid('The `Idempotency-Key` header must be one value of 1 to 255 visible ASCII characters.')
    this.subject = this.ports.secrets.subjects('idempotency-key', JSON.stringify([app, operation, this.key]))
    this.bodyHashes = this.ports.secrets.subjects('idempotency-body', canonical(this.body))
    const row = await this.ports.idempotencyKeys.find(this.subject)
    if (!row) return undefined
    if (this.isAbandoned(row)) {
      await this.ports.idempotencyKeys.release(row)
      this.followsCrash = true
      return undefined
    }
    return this.answerOf(row)
  }

  /** The answer is known before the claim, and is stored with it. */
  answerWithClaim(status: number, result: Result): void {
    this.answer = { status, value: result }
  }

  /** @throws Failure if another request with the key was first */
  async claim<Decision extends LimitDecision>(
    claims: readonly StoredClaim[],
    step: ClaimStep<Decision>,
    effects: readonly Effect[] = [],
  ): Promise<Decision> {
    const { ports, answer } = this
    const { own, key } = this.begin()
    const { subject } = own
    const first: Effect[] = [{ kind: 'key', key }]
    if (answer) first.push(this.keep(answer, key.expiresAt))
    const decision = await step([own, ...claims], [...first, ...effects]).catch(async (error: unknown) => {
      // The step happened if the connection was lost at its commit.
      await ports.idempotencyKeys.release(key).catch(() => {})
      throw error
    })
    if (!decision.allowed) {
      if (decision.refusedBy > 0) return { ...decision, refusedBy: decision.refusedBy - 1 }
      const row = await ports.idempotencyKeys.find(subject)
      if (row) this.requireSameBody(row)
      throw inProgress()
    }
    const [count, ...counts] = decision.counts
    if (count && !answer) this.grant = { subject, name: keyLimitName, ...count }
    return { ...decision, counts }
  }

  /**
   * For a guess, which stores its answer with its effect: the key is never in progress.
   * @returns the answer of another request with the key, if that was first
   * @throws Failure that answer if it is a failure, or `idempotency_key_reused`
   */
  async guess<Verdict extends { readonly kind: string }>(
    claims: readonly StoredClaim[],
    answers: Readonly<Record<KeptVerdict, StatusAndValue>>,
    step: (claims: readonly StoredClaim[], key: GuessKey) => Promise<Verdict | RefusedVerdict>,
  ): Promise<Verdict | RefusedVerdict | KeptAnswer<Result>> {
    const { own, key } = this.begin()
    const storing = (answer: StatusAndValue): Effect[] => [
      { kind: 'key', key },
      this.keep(answer, key.expiresAt),
    ]
    const stored = { verified: storing(answers.verified), mismatch: storing(answers.mismatch) }
    const verdict = await step([{ ...own, counted: false }, ...claims], { claim: own, answers: stored })
    if (!isRefused(verdict)) return verdict
    const { refusedBy } = verdict.refusal
    if (refusedBy > 0) return { ...verdict, refusal: { ...verdict.refusal, refusedBy: refusedBy - 1 } }
    const row = await this.ports.idempotencyKeys.find(own.subject)
    if (!row) throw inProgress()
    return this.answerOf(row)
  }

  private begin(): { readonly own: StoredClaim; readonly key: NewKey } {
    const { ports, subject, bodyHashes, context, settings } = this
    if (!subject || !bodyHashes) throw new Error('keptAnswer must come first')
    const { windowMs } = settings
    const [hash] = subject
    const { requestId } = context
    const { owner } = ports
    const expiresAt = ports.now() + windowMs
    return {
      own: { subject, name: keyLimitName, max: 1, windowMs, counted: true },
      key: { hash, requestId, bodyHash: bodyHashes[0], owner, expiresAt },
    }
  }

  /** Resolves or rejects as `work` does, once its answer is stored or the key is free again. */
  async ended(work: Promise<Result>): Promise<Result> {
    try {
      const result = await work
      await this.end((grant) => [[], [this.keep({ status: 200, value: result }, grant.expiresAt)]])
      return result
    } catch (error) {
      const { kind, message, details }: Failure =
        error instanceof Failure ? error : new Failure('internal_error')
      await this.end((grant) => {
        if (!this.settings.kept.includes(kind)) return [[grant], [this.free()]]
        const value = { kind, message, details: { ...details, cause: undefined } }
        return [[], [this.keep({ status: 500, value }, grant.expiresAt)]]
      })
      throw error
    }
  }

  /** @throws Failure as `keptAnswer` */
  private answerOf(row: StoredKey): KeptAnswer<Result> {
    this.requireSameBody(row)
    const { status, answer, requestId, expiresAt } = row
    if (status === null || answer === null) throw inProgress()
    this.context.replayOf = requestId
    noteFlag(this.context, 'replayed')
    const value: unknown = JSON.parse(answer)
    if (status < 400) return { result: value as Result, expiresAt }
    const { kind, message, details } = value as Failure
    throw new Failure(kind, message, details)
  }

  /** The result of the request does not change if the store fails. The key is then free once the request counts as abandoned. */
  private async end(
    change: (grant: Grant) => [grants: readonly Grant[], effects: readonly Effect[]],
  ): Promise<void> {
    const { grant, ports, context } = this
    if (!grant) return
    this.grant = undefined
    const [grants, effects] = change(grant)
    await ports.store.giveBack(grants, ports.now(), effects).catch((error: unknown) => {
      context.fault = error
    })
  }

  private keep({ status, value }: StatusAndValue, expiresAt: EpochMs): Effect {
    return { kind: 'answer', ...this.row(), status, answer: JSON.stringify(value), expiresAt }
  }

  private free(): Effect {
    return { kind: 'free-key', ...this.row() }
  }

  private row(): Pick<StoredKey, 'hash' | 'requestId'> {
    return { hash: this.subject?.[0] ?? '', requestId: this.context.requestId }
  }

  /** Its process has ended or, on another machine, did not end it in twice the longest time. */
  private isAbandoned({ status, owner, expiresAt }: StoredKey): boolean {
    const { windowMs, longestMs } = this.settings
    if (status !== null) return false
    return this.ports.hasEnded(owner) || expiresAt - windowMs + 2 * longestMs <= this.ports.now()
  }

  private requireSameBody({ bodyHash }: StoredKey): void {
    if (!this.bodyHashes?.includes(bodyHash)) throw new Failure('idempotency_key_reused')
  }
}

function inProgress(): Failure {
  return new Failure('idempotency_in_progress', undefined, { retryAfterSeconds: 1 })
}

/** Of a body. The key belongs to the app, and the API key may be rotated between two requests (design D49). */
const uncompared = ['appId', 'apiKey']

/** JSON with sorted keys, to compare bodies. The HTTP adapter limits their levels. */
function canonical(value: unknown, level = 0): string {
  if (Array.isArray(value)) return `[${value.map((each) => canonical(each, level + 1)).join()}]`
  if (!isObject(value)) return JSON.stringify(value)
  const fields = Object.keys(value)
    .sort()
    .filter((name) => level > 0 || !uncompared.includes(name))
  return `{${fields.map((name) => `${JSON.stringify(name)}:${canonical(value[name], level + 1)}`).join()}}`
}

/** The Idempotency-Key of a guess (design D43). */
export interface GuessKey {
  /** Of one. It is also the first of the attempt's claims, not counted, and is counted with an answer that is kept. */
  readonly claim: StoredClaim
  /** Store the key and its answer. Another verdict leaves the key free. */
  readonly answers: Readonly<Record<KeptVerdict, readonly Effect[]>>
}

export type KeptVerdict = 'verified' | 'mismatch'

/** A limit rejects the guess. */
export interface RefusedVerdict {
  readonly kind: 'refused'
  readonly refusal: Refusal
}

function isRefused(verdict: { readonly kind: string }): verdict is RefusedVerdict {
  return verdict.kind === 'refused'
}
