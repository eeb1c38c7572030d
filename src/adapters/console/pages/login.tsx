/** @jsxImportSource preact */
import { signedOutPage } from '../components.tsx'

/** `problem`: why the last attempt failed. */
export function loginPage(problem: string | null): string {
  return signedOutPage(
    'Sign in',
    <>
      <form method="post" action="/admin/login" class="form">
        {/* For password managers, which store a password by its user name. */}
        <input type="text" name="username" value="operator" autocomplete="username" hidden readOnly />
        <div class="field">
          <label for="password">Password</label>
          <input
            id="password"
            name="password"
            type="password"
            autocomplete="current-password"
            required
            aria-invalid={problem ? 'true' : undefined}
            aria-describedby={problem ? 'problem' : undefined}
            data-focus
          />
          <button type="button" class="button plain small" aria-pressed="false" data-shows="password" hidden>
            Show what you type
          </button>
          {problem && (
            <p class="wrong" id="problem" role="alert">
              {problem}
            </p>
          )}
        </div>
        <button type="submit" class="button primary">
          Sign in
        </button>
      </form>
      <p class="hint">
        No password at hand? On the server, <code>otpost admin link</code> prints a link that signs you in
        once.
      </p>
    </>,
  )
}

/** The page of a sign-in link. The token is in the fragment, so that no server or proxy logs it; link.js posts it. */
export function linkPage(): string {
  return signedOutPage(
    'Sign in',
    <>
      <form method="post" action="/admin/link" class="form" id="link">
        <input type="hidden" name="token" />
        <p id="link-words">You were given a link that signs you in once.</p>
        <button type="submit" class="button primary" disabled>
          Sign in to the console
        </button>
      </form>
      <noscript>
        <p class="hint">
          The link needs JavaScript, since its secret never travels in an address. Allow it for this server,
          or sign in with the password, if there is one.
        </p>
      </noscript>
    </>,
    ['link.js'],
  )
}
