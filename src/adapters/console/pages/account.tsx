/** @jsxImportSource preact */
import type { Account } from '../../../domain/operator/accounts.ts'
import { Button, Facts, LinkButton, Time } from '../../pages/components.tsx'
import { counted } from '../../pages/words.ts'
import { Card, consolePage, Form, Notice, PasskeyForm, Problem, Table } from '../components.tsx'
import type { AccountModel, OwnAccountModel, PageContext } from '../models.ts'
import { QrCode } from '../qr-code.tsx'

export function accountPage(pageContext: PageContext, model: AccountModel): string {
  const options = { title: 'Your account', section: null, scripts: ['passkey.js'] }
  if (model.account === null) {
    return consolePage(
      pageContext,
      options,
      <Card>
        <p>
          You signed in without an account, so the audit log has the ID of your session instead of your name.{' '}
          <a href="/admin/operators">Invite yourself</a> to get an account.
        </p>
      </Card>,
    )
  }
  const { account, problem } = model
  return consolePage(
    pageContext,
    options,
    model.isSetUp ? (
      <>
        <Problem text={problem} />
        <Card>
          <Facts entries={{ 'E-mail address': account.email, Role: account.role }} />
          <p class="hint">
            <a href="/admin/settings">Settings</a> has your sessions.
          </p>
        </Card>
        <Passkeys {...model} />
        <Password account={account} />
        <App {...model} />
        <RecoveryCodes account={account} />
      </>
    ) : (
      <>
        <Notice tone="warn">
          Set up your account: add a passkey, or choose a password and an authenticator app. Until then you
          cannot use the console.
        </Notice>
        <Problem text={problem} />
        <Passkeys {...model} />
        <App {...model} />
      </>
    ),
  )
}

function Passkeys({ account, passkey, unavailable }: OwnAccountModel) {
  return (
    <Card
      title="Passkeys"
      hint="A passkey replaces password and code. It is kept by your device, your password manager or a security key."
    >
      {account.passkeys.length > 0 && (
        <Table
          caption="Your passkeys"
          columns={['Name', 'Added', 'Last used', { title: 'Actions', align: 'end', isQuiet: true }]}
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
      {unavailable && <p class="hint">{unavailable}</p>}
      {passkey && (
        <PasskeyForm kind="create" options={passkey} action="/admin/account/passkey" submit="Add a passkey">
          <div class="field">
            <label for="passkey-name">Name</label>
            <input id="passkey-name" name="name" maxLength={40} placeholder="Laptop" />
          </div>
        </PasskeyForm>
      )}
    </Card>
  )
}

function Password({ account }: { account: Account }) {
  if (account.passwordHash === null) return null
  return (
    <Card title="Password" hint="A new password ends your other sessions.">
      <Form action="/admin/account/password" submit="Change password">
        <PasswordField id="new-password" />
      </Form>
    </Card>
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
          ? 'A new app replaces the present one and your recovery codes, and ends your other sessions.'
          : 'Scan the QR code with an app such as Aegis, Google Authenticator or 1Password, then enter the code that it shows.'
      }
    >
      {hasApp ? (
        <details>
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
      {account.passwordHash === null && <PasswordField id="app-password" />}
      <QrCode text={app.uri} label="QR code for an authenticator app" />
      <details>
        <summary>Without a camera</summary>
        <p>
          Enter this secret in the app: <code>{new URL(app.uri).searchParams.get('secret')}</code>
        </p>
      </details>
      <div class="field">
        <label for="app-code">Code that the app shows</label>
        <input
          id="app-code"
          name="code"
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
      hint={`A recovery code replaces the code of the app once. You have ${counted(account.recoveryCodes.length, 'unused code')}.`}
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
  return consolePage(
    pageContext,
    { title: 'Recovery codes', section: null, parent: { title: 'Your account', href: '/admin/account' } },
    <Card hint="Store these codes where you find them without your phone. Each replaces the code of the app once. They are not shown again.">
      <pre class="key-value">
        <code>{codes.join('\n')}</code>
      </pre>
      <p class="buttons">
        <button type="button" class="button primary" data-copy={codes.join('\n')}>
          Copy the codes
        </button>
        <LinkButton href="/admin/account">Done</LinkButton>
      </p>
    </Card>,
  )
}
