/** @jsxImportSource preact */
import { rich } from '../../pages/components.tsx'
import { signedOutPage } from '../components.tsx'

export function loginPage(problem: string | null): string {
  return signedOutPage(
    'Sign in',
    <>
      <form method="post" action="/admin/login" class="form">
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
            Show password
          </button>
          {problem && (
            <p class="wrong" id="problem" role="alert">
              {rich(problem)}
            </p>
          )}
        </div>
        <button type="submit" class="button primary">
          Sign in
        </button>
      </form>
      <p class="hint">
        No password? Run <code>otpost admin link</code> on the server. It prints a sign-in link that works
        once.
      </p>
    </>,
  )
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
          Sign-in links require JavaScript. Enable it for this site, or sign in with the password.
        </p>
      </noscript>
    </>,
    ['link.js'],
  )
}
