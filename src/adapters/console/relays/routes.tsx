/** @jsxImportSource preact */

import { appOf } from '../../../domain/integration/relayed.ts'
import { relayAdd, relayRemove } from '../../../domain/operator/relays.ts'
import { type Relay, relayKinds, relayListing, relayUrl } from '../../../domain/policy/relay.ts'
import { Time } from '../../pages/components.tsx'
import { ActionButton, ActionForm } from '../action-form.tsx'
import { html } from '../answers.ts'
import { actions, Card, columnsOf, consolePage, ShownOnce, Table } from '../components.tsx'
import { logUrl } from '../deliveries/query.ts'
import type { PageContext } from '../page-context.ts'
import type { PageHandler } from '../page-handler.ts'

export function relayRoutes({ get, after, ports, settings: { ownUrl } }: PageHandler): void {
  const { apps, brands, policy } = ports

  get('/admin/relays', (_, pageContext) => shown(pageContext))
  after(relayAdd, ({ text, secret = '' }, _, __, pageContext) => shown(pageContext, { title: text, secret }))

  async function shown(
    pageContext: PageContext,
    added?: { title: string; secret: string },
  ): Promise<Response> {
    const [{ relays }, ofBrands, ofApps] = await Promise.all([policy.rows(), brands.list(), apps.list()])
    const options = {
      brand: Object.fromEntries(ofBrands.map(({ slug }) => [slug, slug])),
      ...(ofApps.length > 0 && { app: Object.fromEntries(ofApps.map(({ appId }) => [appId, appId])) }),
    }
    return html(
      consolePage(
        pageContext,
        { title: 'Relays', section: null, parent: { title: 'Apps', href: '/admin/apps' } },
        <>
          {added && (
            <ShownOnce title={added.title} thing="secret" text={added.secret}>
              Enter it in the identity system. If you lose it, remove the relay and add it again.
            </ShownOnce>
          )}
          <Card
            title="Relays"
            hint="URLs that identity systems call to have their own codes delivered, with the brand's texts, limits, guard and budgets."
          >
            <Table
              caption="Relays"
              columns={[
                ...columnsOf(
                  relayListing(ownUrl()),
                  'name',
                  'kind',
                  'brand',
                  'app',
                  'url',
                  'reportsVerified',
                  'createdAt',
                ),
                actions,
              ]}
              rows={relays.map(cells)}
              empty="None."
            />
          </Card>
          <Card title="Add a relay">
            <ActionForm of={relayAdd} options={options} submit="Add" />
          </Card>
        </>,
      ),
    )
  }

  function cells(relay: Relay) {
    const { name, kind, brandSlug, appId, reportsVerified, createdAt } = relay
    return [
      <a key="name" href={logUrl('calls', { app: appOf(relay), call: 'code' })}>
        {name}
      </a>,
      relayKinds[kind],
      <bdi key="brand">{brandSlug}</bdi>,
      appId ?? '–',
      <code key="url" class="breaks">
        {relayUrl(relay, ownUrl())}
      </code>,
      reportsVerified ? 'yes' : 'no',
      <Time key="created" at={createdAt} />,
      <ActionButton
        key="remove"
        of={relayRemove}
        with={{ name }}
        kind="danger"
        confirm={`Remove the relay ${name}? ${relayKinds[kind]} can send no more codes by it.`}
      >
        Remove<span class="sr-only"> {name}</span>
      </ActionButton>,
    ]
  }
}
