/** @jsxImportSource preact */
import { curl, LinkButton, Snippet } from '../../pages/components.tsx'
import { Card, consolePage } from '../components.tsx'
import type { KeyModel, PageContext } from '../models.ts'

/** The only page that shows a new key. */
export function keyPage(
  pageContext: PageContext,
  { appId, apiKey, brandSlug, hasOther, origin }: KeyModel,
): string {
  const brandId = brandSlug ?? 'BRAND'
  const send = curl(`${origin}/otp/send`, { appId, apiKey, brandId, phone: '+1 202 555 0143' })
  return consolePage(
    pageContext,
    { title: `Key of ${appId}`, section: 'apps' },
    <>
      <section class="key" aria-labelledby="key-title">
        <h2 id="key-title">
          The API key of <bdi class="breaks">{appId}</bdi>
        </h2>
        <p class="key-value">
          <code>{apiKey}</code>
        </p>
        <p class="key-warning">
          <strong>It will never be shown again.</strong> Only its hash is kept, so copy it now, into a place
          for secrets. When it is lost, make another.
        </p>
        <p class="buttons">
          <button type="button" class="button primary" data-copy={apiKey}>
            Copy the key
          </button>
          <LinkButton href="/admin/apps">I have it: go to the apps</LinkButton>
        </p>
      </section>
      {brandSlug !== null && (
        <Card title="What next">
          <ol class="steps">
            <li>
              Hand over the app id <code>{appId}</code> and the key, each by a safe way.
            </li>
            <li>
              Look at the brand <a href={`/admin/brands/${encodeURIComponent(brandSlug)}`}>{brandSlug}</a>:
              its templates, its domain, how its messages read.
            </li>
          </ol>
        </Card>
      )}
      {hasOther && (
        <Card title="Rotation">
          <ol class="steps">
            <li>Both keys of {appId} work now. Nothing breaks.</li>
            <li>Deploy this one.</li>
            <li>
              When <a href="/admin/apps">Apps</a> shows that this one is used and the old one no longer is,
              revoke the old one.
            </li>
          </ol>
        </Card>
      )}
      <Card
        title="Try it"
        hint={
          brandSlug === null
            ? 'Put the slug of an active brand for BRAND, and a phone of your own.'
            : 'Put a phone of your own. A real message may go out.'
        }
      >
        <Snippet title="Send a code" text={send} />
        <p class="hint">
          It has the key in it, and shells remember what was typed. <a href="/docs">/docs</a> describes all
          calls.
        </p>
      </Card>
    </>,
  )
}
