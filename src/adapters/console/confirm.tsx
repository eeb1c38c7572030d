/** @jsxImportSource preact */

import { Card, consolePage, Form, PasskeyForm, Problem } from './components.tsx'
import type { PageContext } from './page-context.ts'
import { CodeForms } from './sessions/page.tsx'

export interface ConfirmModel {
  readonly action: string
  readonly fields: readonly (readonly [name: string, value: string])[]
  readonly by: 'code' | 'link' | null
  /** The options of the browser's call, in JSON. */
  readonly passkey: string | null
  readonly problem: string | null
}

/** Submits the rejected form again, with a proof that its person is still there. */
export function confirmPage(
  pageContext: PageContext,
  { action, fields, by, passkey, problem }: ConfirmModel,
): string {
  return consolePage(
    pageContext,
    { title: 'Confirm that it is you', section: null, scripts: passkey ? ['passkey.js'] : [] },
    <Card hint="This change requires a confirmation, because you signed in more than 15 minutes ago. Your entries are kept.">
      <Problem text={problem} />
      {passkey && (
        <PasskeyForm
          kind="get"
          name="confirm-passkey"
          options={passkey}
          action={action}
          fields={fields}
          submit="Confirm with a passkey"
        />
      )}
      {!passkey && !by && <p>Sign out, sign in again, and repeat the change.</p>}
      {by === 'code' && (
        <CodeForms name="confirm-code">
          {(field) => (
            <Form action={action} fields={fields} submit="Confirm">
              {field}
            </Form>
          )}
        </CodeForms>
      )}
      {by === 'link' && (
        <Form action={action} fields={fields} submit="Confirm">
          <div class="field">
            <label for="confirm-link">New sign-in link</label>
            <input
              id="confirm-link"
              name="confirm-link"
              type="password"
              autocomplete="off"
              required
              aria-describedby="confirm-link-hint"
              data-focus
            />
            <p class="hint" id="confirm-link-hint">
              Run <code>otpost admin link</code> on the server, and paste the link that it prints.
            </p>
          </div>
        </Form>
      )}
    </Card>,
  )
}
