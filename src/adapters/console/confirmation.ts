import {
  type Confirmation,
  confirm,
  isConfirmed,
  type LoginPorts,
  newChallenge,
  type Visitor,
} from '../../domain/accounts/sessions.ts'
import { Failure } from '../../domain/ground/failures.ts'
import { counted } from '../../domain/ground/format.ts'
import type { Log } from '../../domain/ground/ports.ts'
import type { Visit } from './access.ts'
import type { ConfirmModel } from './confirm.tsx'

/** The fields of the page that asks for a confirmation. The other fields are those of the form that waits for it. */
const prefix = 'confirm-'

/**
 * Whether the person of a session is still there: from what the form has, or from the last confirmation.
 * Returns null, or the page that asks.
 */
export function createConfirmation(ports: LoginPorts, log: Log) {
  return async (
    visitor: Visitor,
    url: URL,
    visit: Visit,
    form: URLSearchParams,
  ): Promise<ConfirmModel | null> => {
    if (isConfirmed(visit.session, ports.now())) return null
    const [code, passkey] = [given(form, 'code'), given(form, 'passkey')]
    const link = given(form, 'link').trim().replace(/^.*#/, '')
    const proof = { code, passkey, link }
    const isGiven = Object.values(proof).some((value) => value !== '')
    const problem = isGiven ? await problemOf(visitor, visit, proof) : null
    return isGiven && problem === null ? null : model(url, visit, form, problem)
  }

  async function problemOf(visitor: Visitor, visit: Visit, proof: Confirmation): Promise<string | null> {
    try {
      if (await confirm(ports, visitor, visit, proof)) return null
      const { requestId, clientIp } = visitor.context
      const event = { event: 'console.confirmation-failed', clientIp, requestId }
      log.warn(event, 'a confirmation in the console failed')
      return 'This is not correct, or it was used. Try again.'
    } catch (error) {
      return tooManyAttempts(error)
    }
  }

  function model(url: URL, { account }: Visit, form: URLSearchParams, problem: string | null): ConfirmModel {
    const passkeys = account?.passkeys ?? []
    const ofAccount = account?.totpSecret === null ? null : 'code'
    return {
      action: url.pathname,
      fields: [...form].filter(([name]) => name !== 'csrf' && !name.startsWith(prefix)),
      by: account ? ofAccount : 'link',
      passkey: passkeys.length === 0 ? null : ports.passkeys.forUse(newChallenge(ports, 'confirm'), passkeys),
      problem,
    }
  }
}

/** The advice for a rate-limited attempt. Throws other errors again. */
export function tooManyAttempts(error: unknown): string {
  if (!(error instanceof Failure) || error.kind !== 'rate_limited') throw error
  return `Too many attempts. Try again in ${waitOf(error)}.`
}

/** Until the next attempt, in minutes. */
export function waitOf({ details: { retryAfterSeconds = 1 } }: Failure): string {
  return counted(Math.ceil(retryAfterSeconds / 60), 'minute')
}

function given(form: URLSearchParams, name: keyof Confirmation): string {
  return form.get(`${prefix}${name}`) ?? ''
}
