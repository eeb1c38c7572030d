/** @jsxImportSource preact */

import { clientSnippet } from '../../pages/client-snippet.ts'
import { curl, Snippet } from '../../pages/components.tsx'
import { Card, consolePage, ShownOnce } from '../components.tsx'
import type { PageContext } from '../page-context.ts'
import { RequestMailCard, type RequestMailModel } from '../requests/page.tsx'

export interface KeyModel {
  readonly appId: string
  readonly apiKey: string
  /** Created with the key; null: none. */
  readonly brandSlug: string | null
  /** The only brand that the app can use. */
  readonly brandId: string | null
  readonly hasOther: boolean
  readonly origin: string
  /** An e-mail that was not sent. */
  readonly mail: RequestMailModel | null
}

/** The only page with a whole API key. */
export function keyPage(
  pageContext: PageContext,
  { appId, apiKey, brandSlug, brandId: known, hasOther, origin, mail }: KeyModel,
): string {
  const brandId = known ?? 'BRAND'
  const send = curl(`${origin}/otp/send`, { appId, apiKey, brandId, phone: '+1 202 555 0143' })
  return consolePage(
    pageContext,
    { title: `API key for ${appId}`, section: 'apps' },
    <>
      <ShownOnce title="New API key" thing="key" text={apiKey} done={{ title: 'Apps', href: '/admin/apps' }}>
        otpost stores only its hash. Copy the key to a secret store now. If you lose it, create another key.
      </ShownOnce>
      {mail && (
        <RequestMailCard model={mail}>
          <p>
            <strong>Copy the API key first.</strong> Sending the e-mail leaves this page.
          </p>
        </RequestMailCard>
      )}
      {brandSlug !== null && (
        <Card title="Next steps">
          <ol class="steps">
            <li>
              Send the app ID <code>{appId}</code>, the key and the program below to the integrator over a
              secure channel.
            </li>
            <li>
              Check the brand <a href={`/admin/brands/${encodeURIComponent(brandSlug)}`}>{brandSlug}</a>: its
              templates, domain and message previews.
            </li>
          </ol>
        </Card>
      )}
      {hasOther && (
        <Card title="Rotation">
          <ol class="steps">
            <li>Both keys of {appId} are valid now.</li>
            <li>Deploy the new key.</li>
            <li>
              <a href="/admin/apps">Apps</a> shows when each key was last used. When the previous key is no
              longer used, revoke it.
            </li>
          </ol>
        </Card>
      )}
      <Card
        title="Try it"
        hint={
          known === null
            ? 'Replace BRAND with the slug of an active brand, and the phone number with your own.'
            : 'Replace the phone number with your own. This call may send a real message.'
        }
      >
        <Snippet title="curl" text={send} />
        <p class="hint">The command contains the key, and your shell may store it in its history.</p>
        <Snippet title="TypeScript" text={clientSnippet({ url: origin, appId, brandId })} />
        <p class="hint">
          The program reads the key from <code>OTPOST_API_KEY</code>. In the source of otpost,{' '}
          <code>bun run build:package</code> builds its package. <a href="/docs">The API documentation</a>{' '}
          describes all calls.
        </p>
      </Card>
    </>,
  )
}
