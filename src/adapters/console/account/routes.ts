import { type OwnPorts, own } from '../../../domain/accounts/account-changes.ts'
import { type Account, isSetUp } from '../../../domain/accounts/accounts.ts'
import { isOwnPassword, newChallenge } from '../../../domain/accounts/sessions.ts'
import { OperatorError } from '../../../domain/ground/operator-error.ts'
import type { Visit } from '../access.ts'
import { done, html } from '../answers.ts'
import { tooManyAttempts } from '../confirmation.ts'
import { field } from '../form-fields.ts'
import type { PageContext } from '../page-context.ts'
import { orAgain, type PageHandler, type PageRequest } from '../page-handler.ts'
import { accountPage, recoveryCodesPage } from './page.tsx'

/** What people change about their own account. */
export function accountRoutes({
  get,
  post,
  ports,
  settings: { ownUrl },
  visitorOf,
  missing,
}: PageHandler): void {
  const { consoleSecrets, passkeys } = ports

  get('/admin/account', ({ visit }, pageContext) => shown(pageContext, visit))
  post('/admin/account/password', (pageRequest, pageContext) =>
    change(pageRequest, pageContext, async (ownPorts) => {
      await requirePresent(pageRequest, ownPorts.account)
      await own.setPassword(ownPorts, await passwordHash(pageRequest.form, ownPorts.account))
      return done(
        pageRequest.visit,
        '/admin/account',
        'Changed your password. Your other sessions have ended.',
      )
    }),
  )
  post('/admin/account/app', (pageRequest, pageContext) =>
    change(pageRequest, pageContext, async (ownPorts) => {
      const { form } = pageRequest
      const { account } = ownPorts
      const given = { totpSecret: field(form, 'secret'), code: field(form, 'code') }
      if (account.passwordHash !== null) await requirePresent(pageRequest, account)
      const hash = account.passwordHash === null ? await passwordHash(form, account) : undefined
      const codes = await own.setApp(ownPorts, { ...given, passwordHash: hash })
      return html(recoveryCodesPage(pageContext, codes))
    }),
  )
  post('/admin/account/recovery-codes', (pageRequest, pageContext) =>
    change(pageRequest, pageContext, async (ownPorts) =>
      html(recoveryCodesPage(pageContext, await own.renewRecoveryCodes(ownPorts))),
    ),
  )
  post('/admin/account/passkey', (pageRequest, pageContext) =>
    change(pageRequest, pageContext, async (ownPorts) => {
      const { form, visit } = pageRequest
      await own.addPasskey(ownPorts, field(form, 'passkey'), field(form, 'name'))
      const text = isSetUp(ownPorts.account)
        ? 'Added the passkey.'
        : 'Your account is ready. Sign in with this passkey from now on.'
      return done(visit, '/admin/account', text)
    }),
  )
  post('/admin/account/passkey/remove', (pageRequest, pageContext) =>
    change(pageRequest, pageContext, async (ownPorts) => {
      await own.removePasskey(ownPorts, field(pageRequest.form, 'credentialId'))
      return done(pageRequest.visit, '/admin/account', 'Removed the passkey.')
    }),
  )

  async function change(
    { visit, form, actor }: PageRequest,
    pageContext: PageContext,
    act: (ownPorts: OwnPorts) => Promise<Response>,
  ): Promise<Response> {
    const { session, account } = visit
    if (!account) return missing(pageContext, 'Account not found', 'You signed in without an account.')
    return orAgain(
      () => act({ ...ports, session, account, actor }),
      (problem) => shown(pageContext, visit, { problem, secret: field(form, 'secret') }),
    )
  }

  async function requirePresent({ form, request }: PageRequest, account: Account): Promise<void> {
    const present = form.get('present') ?? ''
    const isRight = await isOwnPassword(ports, visitorOf(request), account, present).catch((error) => {
      throw new OperatorError(tooManyAttempts(error))
    })
    if (!isRight) throw new OperatorError('The present password is wrong.')
  }

  async function passwordHash(form: URLSearchParams, { email }: Account): Promise<string> {
    const password = form.get('password') ?? ''
    const problem = await consoleSecrets.passwordProblem(password, [email, new URL(ownUrl()).hostname])
    if (problem !== undefined) throw new OperatorError(problem)
    return consoleSecrets.passwordHash(password)
  }

  function shown(
    pageContext: PageContext,
    visit: Visit,
    { problem = null, secret: given = '' }: { problem?: string | null; secret?: string } = {},
  ): Response {
    const { account } = visit
    if (!account) return html(accountPage(pageContext, { account: null }))
    const host = new URL(ownUrl()).host
    const kept = given === '' ? undefined : consoleSecrets.totpUri(account, given, host)
    const secret = kept === undefined ? consoleSecrets.newTotpSecret(account.id) : given
    const uri = kept ?? consoleSecrets.totpUri(account, secret, host) ?? ''
    const model = {
      account,
      app: { secret, uri, isTried: kept !== undefined },
      passkey: passkeys.forNew(account, newChallenge(ports, `new ${account.id}`)),
      problem,
    }
    return html(accountPage(pageContext, model), problem === null ? 200 : 409)
  }
}
