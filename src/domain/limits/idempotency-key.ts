import { type Body, isObject } from '../ground/body.ts'
import { Failure, type FailureKind, invalid } from '../ground/failures.ts'
import type { Secrets } from '../ground/ports.ts'
import type { Clock, EpochMs } from '../ground/time.ts'
import { noteFlag, type RequestContext } from '../request/request-context.ts'
import type { ClaimStore } from './claim-store.ts'
import type { Effect } from './effects.ts'
import { type IdempotencyKeys, keyLimitName, type NewKey, type StoredKey } from './idempotency-store.ts'
import type { Claim, Gate, Grant, StoredClaim, Subject } from './limits.ts'

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

interface KeySettings<Result> {
  /** From the claim until the key can be used for another request. */
  readonly windowMs: number
  /** The longest time that a key is in progress. */
  readonly longestMs: number
  /** Failures with status 500 that are repeated instead of tried again. */
  readonly kept?: readonly FailureKind[]
  /** The kept result, as it is returned again. */
  readonly again?: (result: Result, expiresAt: EpochMs) => Result
}

interface StatusAndValue {
  readonly status: number
  readonly value: object
}

/** The Idempotency-Key of a guess (design D43). */
export interface GuessKey {
  /** Of one. It is also the first of the attempt's claims, not counted, and is counted with an answer that is kept. */
  readonly claim: StoredClaim
  /** Store the key and its answer. Another verdict leaves the key free. */
  readonly answers: (verdict: KeptVerdict) => readonly Effect[]
}

/** `provider` is null for the fixed code of a review number. */
export type KeptVerdict =
  | { readonly kind: 'verified'; readonly provider: string | null }
  | { readonly kind: 'mismatch' }

/**
 * Does the work once for each Idempotency-Key, after the checks of credentials, scope and brand (design D43). A repeated request gets
 * the kept answer of the first one.
 * @param work resolves or rejects with the answer; its first gate is the key. Undefined: the request has no key
 * @throws Failure that of `work`, a kept one, `idempotency_in_progress`, `idempotency_key_reused`, or `validation_error` for a bad key
 */
export function idempotently<Result extends object>(
  ports: IdempotencyPorts,
  context: RequestContext,
  body: Body,
  settings: KeySettings<Result>,
  work: (key: IdempotencyKey<Result> | undefined) => Promise<Result>,
): Promise<Result> {
  const { idempotencyKey } = context
  if (idempotencyKey === undefined) return work(undefined)
  return new IdempotencyKey<Result>(ports, context, body, idempotencyKey, settings).once(work)
}

/**
 * Its limit of one makes it unique, on every store and node: the request that claims it is the only one with the key until it ends or
 * the key expires.
 */
export class IdempotencyKey<Result extends object> implements Gate {
  /** Whether the process of an earlier request with this key ended before its answer. */
  followsCrash = false
  readonly claims: readonly [Claim]
  private readonly subject: Subject
  /** Under each secret key. */
  private readonly bodyHashes: Subject
  /** While the request is in progress. */
  private grant: Grant | undefined
  private answer: StatusAndValue | undefined

  /** @throws Failure `validation_error` for a bad key */
  constructor(
    private readonly ports: IdempotencyPorts,
    private readonly context: RequestContext,
    body: Body,
    key: string,
    private readonly settings: KeySettings<Result>,
  ) {
    const { app, operation } = context
    if (!/^[!-~]{1,255}$/.test(key))
      throw invalid('The `Idempotency-Key` header must be one value of 1 to 255 visible ASCII characters.')
    this.subject = ports.secrets.subjects('idempotency-key', JSON.stringify([app, operation, key]))
    this.bodyHashes = ports.secrets.subjects('idempotency-body', canonical(body))
    const about = { limit: null, failure: 'idempotency_in_progress', scope: '' } as const
    const { subject } = this
    this.claims = [
      { ...about, subject, name: keyLimitName, max: 1, windowMs: settings.windowMs, counted: true },
    ]
  }

  async once(work: (key: IdempotencyKey<Result>) => Promise<Result>): Promise<Result> {
    const kept = await this.keptAnswer()
    if (kept) return kept
    try {
      const result = await work(this)
      await this.end((grant) => [[], [this.keep({ status: 200, value: result }, grant.expiresAt)]])
      return result
    } catch (error) {
      if (!(error instanceof Failure && error.kind === 'idempotency_in_progress')) {
        await this.failed(error)
        throw error
      }
      // Another request claimed the key after `keptAnswer`.
      const answer = await this.keptAnswer()
      if (answer) return answer
      throw inProgress()
    }
  }

  /**
   * Undefined: the request must be carried out.
   * @throws Failure a kept failure, `idempotency_in_progress` or `idempotency_key_reused`
   */
  private async keptAnswer(): Promise<Result | undefined> {
    const row = await this.ports.idempotencyKeys.find(this.subject)
    if (!row) return undefined
    if (this.isAbandoned(row)) {
      await this.ports.idempotencyKeys.release(row)
      this.followsCrash = true
      return undefined
    }
    if (!this.bodyHashes.includes(row.bodyHash)) throw new Failure('idempotency_key_reused')
    const { status, answer, requestId, expiresAt } = row
    if (status === null || answer === null) throw inProgress()
    this.context.replayOf = requestId
    noteFlag(this.context, 'replayed')
    const value: unknown = JSON.parse(answer)
    if (status < 400) return this.settings.again?.(value as Result, expiresAt) ?? (value as Result)
    const { kind, message, details } = value as Failure
    throw new Failure(kind, message, details)
  }

  get effects(): readonly Effect[] {
    const key = this.begun()
    return this.answer ? this.withAnswer(key, this.answer) : [{ kind: 'key', key }]
  }

  readonly admitted = ([grant]: readonly Grant[]): void => {
    if (!this.answer) this.grant = grant
  }

  /** The answer is known before the claim, and is stored with it. */
  answerWithClaim(status: number, result: Result): void {
    this.answer = { status, value: result }
  }

  /** For a guess, which stores its answer with its effect: the key is never in progress. */
  ofGuess(answerTo: (verdict: KeptVerdict) => StatusAndValue): GuessKey {
    const key = this.begun()
    return { claim: this.claims[0], answers: (verdict) => this.withAnswer(key, answerTo(verdict)) }
  }

  private async failed(error: unknown): Promise<void> {
    // The claim happened if the connection was lost at its commit.
    if (!this.grant && !(error instanceof Failure))
      await this.ports.idempotencyKeys.release(this.row()).catch(() => {})
    const { kind, message, details }: Failure =
      error instanceof Failure ? error : new Failure('internal_error')
    await this.end((grant) => {
      if (!this.settings.kept?.includes(kind)) return [[grant], [{ kind: 'free-key', ...this.row() }]]
      const value = { kind, message, details: { ...details, cause: undefined } }
      return [[], [this.keep({ status: 500, value }, grant.expiresAt)]]
    })
  }

  private begun(): NewKey {
    const { ports, bodyHashes, settings } = this
    const { now, owner } = ports
    return { ...this.row(), bodyHash: bodyHashes[0], owner, expiresAt: now() + settings.windowMs }
  }

  private withAnswer(key: NewKey, answer: StatusAndValue): readonly Effect[] {
    return [{ kind: 'key', key }, this.keep(answer, key.expiresAt)]
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

  private row(): Pick<StoredKey, 'hash' | 'requestId'> {
    return { hash: this.subject[0], requestId: this.context.requestId }
  }

  /** Its process has ended or, on another machine, did not end it in twice the longest time. */
  private isAbandoned({ status, owner, expiresAt }: StoredKey): boolean {
    const { windowMs, longestMs } = this.settings
    if (status !== null) return false
    return this.ports.hasEnded(owner) || expiresAt - windowMs + 2 * longestMs <= this.ports.now()
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
