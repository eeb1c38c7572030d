import type { ManageActions } from './manage-contract.ts'

export type { ManageActions } from './manage-contract.ts'

export interface ManageOptions {
  /** Of the server, such as https://otp.example.com. */
  readonly url: string | URL
  /** As `otpost admin token create` prints it. */
  readonly token: string
  readonly fetch?: typeof fetch
  /** Of one call. Default: 30,000. */
  readonly timeoutMs?: number
}

export interface Managed {
  readonly requestId: string
  /** What was changed, in words. */
  readonly message?: string
  /** An API key, a token or a webhook secret. It is in this answer only. */
  readonly secret?: string
  readonly warnings?: readonly string[]
  /** Of a list. */
  readonly rows?: readonly Readonly<Record<string, unknown>>[]
  /** Where the next page of a list begins. Null: there is none. */
  readonly next?: string | null
  readonly [field: string]: unknown
}

interface Rejection {
  readonly success?: boolean
  readonly error?: string
  readonly field?: string
}

/** The server rejected the call: nothing was changed. */
export class ManageError extends Error {
  override readonly name = 'ManageError'

  constructor(
    message: string,
    readonly status: number,
    /** Such as `validation_error`. */
    readonly error: string,
    /** Of the body, if one is at fault. */
    readonly field: string | undefined,
    readonly requestId: string | undefined,
    readonly retryAfterSeconds: number | undefined,
  ) {
    super(message)
  }
}

/**
 * A client of the management API: `manage('budget.set', { scope: 'server', period: 'month', amount: '100' })`.
 * @returns rejects with a ManageError, or as `fetch` does
 */
export function createManageClient({ url, token, fetch: send = fetch, timeoutMs = 30_000 }: ManageOptions) {
  const base = new URL(url)
  if (!base.pathname.endsWith('/')) base.pathname += '/'
  return async <Name extends keyof ManageActions>(
    name: Name,
    body: ManageActions[Name],
  ): Promise<Managed> => {
    const response = await send(new URL(`api/manage/${name}`, base), {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(timeoutMs),
    })
    const answer = (await response.json().catch(() => ({}))) as Managed & Rejection
    if (response.ok && answer.success) return answer
    const {
      message = `The answer has the status ${response.status}.`,
      error = 'unexpected',
      field,
      requestId,
    } = answer
    const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN)
    const seconds = Number.isNaN(retryAfter) ? undefined : retryAfter
    throw new ManageError(message, response.status, error, field, requestId, seconds)
  }
}
