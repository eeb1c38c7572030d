import { TOTP } from 'otpauth'
import type { Context } from '../../src/context.ts'
import { notSetUp } from '../../src/domain/accounts/account-changes.ts'
import type { Role } from '../../src/domain/ground/role.ts'
import type { TestApp } from './app.ts'
import { password, passwordHash, type Seen, Visitor } from './console.ts'

/** The code that the authenticator app of an account shows. */
export function codeOf(uri: string, now: number): string {
  const { searchParams } = new URL(uri)
  return new TOTP({ secret: searchParams.get('secret') ?? '' }).generate({ timestamp: now })
}

interface Place {
  readonly app: { readonly context: Pick<Context, 'sessions' | 'consoleSecrets'> }
  readonly clock: { readonly now: number }
}

/** An account that is set up, with the password of all tests and an authenticator app. */
export async function addAccount({ app, clock }: Place, email: string, role: Role) {
  const { sessions, consoleSecrets } = app.context
  const id = consoleSecrets.newId()
  const totpSecret = consoleSecrets.newTotpSecret(id)
  const uri = consoleSecrets.totpUri({ id, email }, totpSecret, 'localhost') ?? ''
  const account = { ...notSetUp, id, email, role, passwordHash, totpSecret, createdAt: clock.now }
  await sessions.change({ now: clock.now }, () => ({ saveAccount: account, entry: null }))
  return { id, email, code: () => codeOf(uri, clock.now) }
}

/** Signs in with the password and a new code of the app, and looks at the overview. */
export async function enterAs(
  app: TestApp,
  { email, code }: { readonly email: string; readonly code: () => string },
  visitor = new Visitor(app),
): Promise<Visitor> {
  app.advance(30)
  const next = await nextStep(visitor, email)
  const entered = await visitor.post('/admin/login/code', { next, code: code() })
  if (entered.status !== 303) throw new Error(`not signed in: ${entered.status}`)
  await visitor.get('/admin')
  return visitor
}

/** The proof of the first step, the right password. */
export async function nextStep(visitor: Visitor, email: string): Promise<string> {
  const { status, html } = await visitor.post('/admin/login', { email, password })
  const next = hidden(html, 'next')
  if (status !== 200 || next === '') throw new Error(`no second step: ${status}`)
  return next
}

export function hidden(html: string, name: string): string {
  return new RegExp(`name="${name}" value="([^"]*)"`).exec(html)?.[1] ?? ''
}

/** The options of the passkey form of a page. */
export function optionsIn({ html }: Pick<Seen, 'html'>) {
  const [, options = ''] = /data-options="([^"]*)"/.exec(html) ?? []
  return JSON.parse(options.replaceAll('&quot;', '"').replaceAll('&amp;', '&'))
}
