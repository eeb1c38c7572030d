/** @jsxImportSource preact */

import { type Account, isSetUp } from '../../../domain/accounts/accounts.ts'
import { counted } from '../../../domain/ground/format.ts'
import { Button, Facts, LinkButton, Time } from '../../pages/components.tsx'
import { actions, Card, consolePage, Form, PasskeyForm, Problem, Table } from '../components.tsx'
import type { PageContext } from '../page-context.ts'
import { UserName } from '../sessions/page.tsx'
import { QrCode } from './qr-code.tsx'

interface OwnAccountModel {
  readonly account: Account
  /** A new secret: encrypted, and as an app reads it. `isTried`: with a code that was rejected. */
  readonly app: { readonly secret: string; readonly uri: string; readonly isTried: boolean }
  /** The options of the browser's call, in JSON. */
  readonly passkey: string
  readonly problem: string | null
}

type AccountModel = OwnAccountModel | { readonly account: null }

export function accountPage(pageContext: PageContext, model: AccountModel): string {
  const title = pageContext.person.isSetUp ? 'Your account' : 'Set up your account'
  const options = { title, section: null, scripts: ['passkey.js'] }
  if (model.account === null) {
    return consolePage(
      pageContext,
      options,
      <Card>
        <p>
          You signed in as the server administrator, not with an account, so the audit log has the ID of your
          session instead of your name. <a href="/admin/operators">Invite yourself</a> to get an account.
        </p>
      </Card>,
    )
  }
  const { account, problem } = model
  return consolePage(
    pageContext,
    options,
    isSetUp(account) ? (
      <>
        <Problem text={problem} />
        <Card>
          <Facts entries={{ 'E-mail address': account.email, Role: account.role }} />
          <p class="hint">
            <a href="/admin/settings">Settings</a> has your sessions.
          </p>
        </Card>
        <div class="columns">
          <div class="stack">
            <Passkeys {...model} />
            <RecoveryCodes account={account} />
          </div>
          <div class="stack">
            <Password account={account} />
            <App {...model} />
          </div>
        </div>
      </>
    ) : (
      <>
        <p class="prose">
          Choose how <strong>{account.email}</strong> signs in: with a passkey, or with a password and an
          authenticator app. You can add the other later.
        </p>
        <Problem text={problem} />
        <div class="columns">
          <div class="stack">
            <Passkeys {...model} />
          </div>
          <App {...model} />
        </div>
      </>
    ),
  )
}

function Passkeys({ account, passkey }: OwnAccountModel) {
  return (
    <Card
      title={isSetUp(account) ? 'Passkeys' : 'Passkey'}
      hint="Your device, password manager or security key stores it. It replaces password and code, and cannot be phished."
    >
      {account.passkeys.length > 0 && (
        <Table
          caption="Your passkeys"
          columns={['Name', 'Added', 'Last used', actions]}
          rows={account.passkeys.map(({ credentialId, name, createdAt, usedAt }) => [
            name,
            <Time at={createdAt} />,
            usedAt === 0 ? <span class="hint">never</span> : <Time at={usedAt} />,
            <Form
              action="/admin/account/passkey/remove"
              hidden={{ credentialId }}
              confirm={`Remove the passkey ${name}?`}
            >
              <Button kind="danger" small>
                Remove<span class="sr-only"> {name}</span>
              </Button>
            </Form>,
          ])}
          empty=""
        />
      )}
      <PasskeyForm kind="create" options={passkey} action="/admin/account/passkey" submit="Add a passkey">
        <div class="field">
          <label for="passkey-name">Name of the passkey</label>
          <input id="passkey-name" name="name" maxLength={40} autocomplete="off" placeholder="Laptop" />
        </div>
      </PasskeyForm>
    </Card>
  )
}

function Password({ account }: { account: Account }) {
  if (account.passwordHash === null) return null
  return (
    <Card title="Password" hint="A new password ends your other sessions.">
      <Form action="/admin/account/password" submit="Change password">
        <PresentPassword id="present-password" email={account.email} />
        <PasswordField id="new-password" />
      </Form>
    </Card>
  )
}

function PresentPassword({ id, email }: { id: string; email: string }) {
  return (
    <div class="field">
      <UserName value={email} />
      <label for={id}>Present password</label>
      <input
        id={id}
        name="present"
        type="password"
        autocomplete="current-password"
        maxLength={256}
        required
      />
    </div>
  )
}

function PasswordField({ id }: { id: string }) {
  return (
    <div class="field">
      <label for={id}>New password</label>
      <input
        id={id}
        name="password"
        type="password"
        autocomplete="new-password"
        minLength={15}
        maxLength={256}
        required
        aria-describedby={`${id}-hint`}
      />
      <p class="hint" id={`${id}-hint`}>
        15 to 256 characters, such as five random words.
      </p>
      <button type="button" class="button plain small" aria-pressed="false" data-shows={id} hidden>
        Show password
      </button>
    </div>
  )
}

function App({ account, app }: OwnAccountModel) {
  const hasApp = account.totpSecret !== null
  return (
    <Card
      title={account.passwordHash === null ? 'Password and authenticator app' : 'Authenticator app'}
      hint={
        hasApp
          ? 'A new app replaces the present app and your recovery codes. It ends your other sessions.'
          : 'Scan the QR code with an app such as Aegis, Google Authenticator or 1Password. Then enter the code that the app shows.'
      }
    >
      {hasApp ? (
        <details open={app.isTried}>
          <summary>Replace the app</summary>
          <AppForm account={account} app={app} />
        </details>
      ) : (
        <AppForm account={account} app={app} />
      )}
    </Card>
  )
}

function AppForm({ account, app }: Pick<OwnAccountModel, 'account' | 'app'>) {
  return (
    <Form action="/admin/account/app" hidden={{ secret: app.secret }} submit="Save">
      {account.passwordHash === null ? (
        <>
          <UserName value={account.email} />
          <PasswordField id="app-password" />
        </>
      ) : (
        <PresentPassword id="app-present-password" email={account.email} />
      )}
      <QrCode text={app.uri} label="QR code for an authenticator app" />
      <details>
        <summary>Without a camera</summary>
        <p>
          <a href={app.uri}>Open an app on this device</a>, or enter this secret in the app:{' '}
          <code class="breaks">{new URL(app.uri).searchParams.get('secret')}</code>
        </p>
      </details>
      <div class="field">
        <label for="app-code">Code that the app shows</label>
        <input
          id="app-code"
          name="code"
          class="code"
          inputMode="numeric"
          autocomplete="one-time-code"
          maxLength={10}
          required
        />
      </div>
    </Form>
  )
}

function RecoveryCodes({ account }: { account: Account }) {
  if (account.totpSecret === null) return null
  return (
    <Card
      title="Recovery codes"
      hint={`Each replaces one code of the app. You have ${counted(account.recoveryCodes.length, 'unused code')}.`}
    >
      <Form
        action="/admin/account/recovery-codes"
        confirm="Create new recovery codes? The present ones stop working."
        submit="Create new codes"
        kind="plain"
      />
    </Card>
  )
}

export function recoveryCodesPage(pageContext: PageContext, codes: readonly string[]): string {
  const { person } = pageContext
  return consolePage(
    // This page follows the set-up, too.
    { ...pageContext, person: { ...person, isSetUp: true } },
    { title: 'Recovery codes', section: null, parent: { title: 'Your account', href: '/admin/account' } },
    <section class="key" aria-labelledby="codes-title">
      <h2 id="codes-title">
        {codes.length} codes for {person.email}
      </h2>
      <ol class="key-value codes">
        {codes.map((code) => (
          <li key={code}>
            <code>{code}</code>
          </li>
        ))}
      </ol>
      <p class="key-warning">
        <strong>These codes are shown only once.</strong> Each signs you in once instead of a code of the app.
        Store them where you can read them without your phone: in a password manager, or on paper.
      </p>
      <p class="buttons">
        <button type="button" class="button primary" data-copy={codes.join('\n')}>
          Copy codes
        </button>
        <LinkButton href="/admin/account">Done: go to your account</LinkButton>
      </p>
    </section>,
  )
}
