/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact'
import { rich } from '../../pages/components.tsx'
import { PasskeyForm, Problem, signedOutPage } from '../components.tsx'

interface LoginModel {
  /** The options of the browser's call, in JSON. */
  readonly passkey: string | null
  readonly email: string
  readonly problem: string | null
}

export function loginPage({ passkey, email, problem }: LoginModel): string {
  return signedOutPage(
    'Sign in',
    <>
      <Problem text={problem} />
      {passkey && (
        <PasskeyForm
          kind="get"
          options={passkey}
          action="/admin/login/passkey"
          submit="Sign in with a passkey"
        />
      )}
      <form method="post" action="/admin/login" class="form">
        <div class="field">
          <label for="email">E-mail address</label>
          <input
            id="email"
            name="email"
            type="email"
            autocomplete="username"
            maxLength={254}
            required
            value={email}
            data-focus={email === '' || undefined}
          />
        </div>
        <div class="field">
          <label for="password">Password</label>
          <input
            id="password"
            name="password"
            type="password"
            autocomplete="current-password"
            required
            aria-invalid={problem ? 'true' : undefined}
            data-focus={email !== '' || undefined}
          />
          <button type="button" class="button plain small" aria-pressed="false" data-shows="password" hidden>
            Show password
          </button>
        </div>
        <button type="submit" class="button primary">
          Sign in
        </button>
      </form>
      <p class="hint">
        {rich(
          'Cannot sign in? Ask an owner to reset your sign-in. `otpost admin link`, run on the server, prints a sign-in link that works once.',
        )}
      </p>
    </>,
    passkey ? ['passkey.js'] : [],
  )
}

/** @param next the proof of the first step */
export function codePage({
  next,
  problem,
}: {
  readonly next: string
  readonly problem: string | null
}): string {
  return signedOutPage(
    'Enter the code',
    <>
      <Problem text={problem} />
      <CodeForms name="code">
        {(field) => (
          <form method="post" action="/admin/login/code" class="form">
            <input type="hidden" name="next" value={next} />
            {field}
            <button type="submit" class="button primary">
              Sign in
            </button>
          </form>
        )}
      </CodeForms>
      <p class="hint">
        <a href="/admin/login">Back to e-mail address and password</a>
      </p>
    </>,
  )
}

interface CodeFormsProps {
  readonly name: string
  readonly children: (field: ComponentChildren) => ComponentChildren
}

/** Two forms, since the keyboards of phones for the code of the app have only digits. */
export function CodeForms({ name, children }: CodeFormsProps) {
  return (
    <>
      {children(
        <div class="field">
          <label for={name}>Code of your authenticator app</label>
          <input
            id={name}
            name={name}
            class="code"
            inputMode="numeric"
            autocomplete="one-time-code"
            maxLength={40}
            required
            data-focus
          />
        </div>,
      )}
      <details class="other-way">
        <summary>Use a recovery code</summary>
        {children(
          <div class="field">
            <label for={`recovery-${name}`}>Recovery code</label>
            <input
              id={`recovery-${name}`}
              name={name}
              class="code"
              autocomplete="off"
              autocapitalize="characters"
              maxLength={40}
              required
              spellcheck={false}
              placeholder="K5FD-2Q7A-9MXC-W3RT"
            />
          </div>,
        )}
      </details>
    </>
  )
}

/** Password managers store the password under it. */
export function UserName({ value }: { value: string }) {
  return <input type="text" name="username" value={value} autocomplete="username" hidden readOnly />
}

/** The token is in the URL's fragment, so that no server or proxy logs it. link.js posts it. */
export function linkPage(): string {
  return signedOutPage(
    'Sign in',
    <>
      <form method="post" action="/admin/link" class="form" id="link">
        <input type="hidden" name="token" />
        <p id="link-words">This link signs you in to the console once.</p>
        <button type="submit" class="button primary" disabled>
          Sign in
        </button>
      </form>
      <noscript>
        <p class="hint">
          Sign-in links require JavaScript. Enable it for this site, or sign in at{' '}
          <a href="/admin/login">the sign-in form</a>.
        </p>
      </noscript>
    </>,
    ['link.js'],
  )
}
