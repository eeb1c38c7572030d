import type { Body } from '../../../domain/ground/body.ts'
import type { Failure } from '../../../domain/ground/failures.ts'
import { codePattern, type RelayRequest } from '../../../domain/integration/relayed.ts'
import type { Attempt } from '../../../domain/request/request-context.ts'
import type { Proof } from './proof.ts'

/** How an identity system calls a relay: its formats (design D53). */
export interface RelayKind {
  readonly proof: Proof
  /** Until it gives up. */
  readonly waitsMs: number
  /** By path below the URL of the relay. */
  readonly routes: Readonly<Record<string, RelayRoute>>
  /** Undefined: the error envelope of otpost, with its status. */
  readonly failed?: (failed: FailedCall) => RelayAnswer
}

export interface FailedCall {
  readonly failure: Failure
  /** As otpost answers. */
  readonly status: number
  readonly call: RelayCall
  readonly path: string
  /** Of the providers, oldest first. */
  readonly attempts: readonly Attempt[]
  /** Of the phone number, ISO 3166-1. Undefined: it is a number of no country, or was not looked at. */
  readonly country: string | undefined
}

interface RelayRoute {
  readonly isForm?: true
  /** Several are carried out in order, until one fails. @throws Failure */
  readonly read: (call: RelayCall) => RelayRequest | readonly RelayRequest[]
  /** @param requestId of this request, also the ID of a code that otpost made */
  readonly done: (call: RelayCall, requestId: string) => RelayAnswer
}

export interface RelayCall {
  readonly body: Body
  readonly headers: Headers
  /** The user of a Basic login. */
  readonly account: string
}

export interface RelayAnswer {
  readonly status: number
  /** Null: none. */
  readonly body: object | null
  readonly headers?: Readonly<Record<string, string>>
}

/** For callers that read the status alone. */
export const sent = (): RelayAnswer => ({ status: 200, body: {} })

/** The object in a field. Empty: there is none, so that its own fields are missing. */
export function partOf(body: Body, name: string): Body {
  const part = body[name]
  return typeof part === 'object' && part !== null && !Array.isArray(part) ? (part as Body) : {}
}

/** Reports that the caller verified its own code, for the guard. */
export const verified: RelayRoute = {
  read: ({ body }) => ({ asks: 'nothing', verifiedPhone: body.phone }),
  done: sent,
}

export function isCode(text: unknown): boolean {
  return typeof text === 'string' && codePattern.test(text)
}

/** Whether a field is the phone number of a code or of a text. */
export function isRecipient(field: string | undefined): boolean {
  return field === 'phone' || field === 'to[0]'
}

/** A code with the brand's text, else an SMS with the text of the caller. An e-mail needs a code. */
export function textOr({
  to,
  code,
  text,
  lang,
}: Readonly<Record<'to' | 'code' | 'text', unknown>> & { readonly lang?: unknown }): RelayRequest {
  if (isAddress(to)) return { asks: 'code', email: to, code: code ?? null, lang }
  if (code === undefined || code === null || code === '') return { asks: 'text', phone: to, text }
  return { asks: 'code', phone: to, code, lang }
}

/** An e-mail address, as no phone number has an @. */
export function isAddress(to: unknown): boolean {
  return typeof to === 'string' && to.includes('@')
}
