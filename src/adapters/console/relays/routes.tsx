/** @jsxImportSource preact */

import { docsAt } from '../../../domain/ground/docs.ts'
import { appOf } from '../../../domain/integration/relayed.ts'
import { relayAdd, relayRemove, relaySet } from '../../../domain/operator/relays.ts'
import { type Relay, relayKinds, relayListing, relayUrl } from '../../../domain/policy/relay.ts'
import { Empty } from '../../pages/components.tsx'
import { ActionButton, ActionForm } from '../action-form.tsx'
import { html } from '../answers.ts'
import { actions, Card, columnsOf, consolePage, Notice, ShownOnce, Table } from '../components.tsx'
import { logUrl } from '../deliveries/query.ts'
import type { PageContext } from '../page-context.ts'
import type { PageHandler } from '../page-handler.ts'

export function relayRoutes({ get, after, ports, settings: { ownUrl } }: PageHandler): void {
  const { apps, brands, policy } = ports

  get('/admin/relays', (_, pageContext) => shown(pageContext))
  after(relayAdd, ({ text, secret = '' }, _, __, pageContext) => {
    const lines = secret.split('\n').map((line) => line.split(': '))
    return shown(pageContext, { title: text, ...Object.fromEntries(lines) })
  })

  async function shown(
    pageContext: PageContext,
    added?: { readonly title: string; readonly user?: string; readonly secret?: string },
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
          {added && !added.secret && <Notice tone="good">{added.title}</Notice>}
          {added?.secret && (
            <ShownOnce title={added.title} thing="secret" text={added.secret}>
              Enter it with the URL in the identity system{added.user && `, with the user ${added.user}`}. If
              you lose it, remove the relay and add it again.
            </ShownOnce>
          )}
          <Card
            title="Relays"
            hint="URLs that identity systems call to have their own codes delivered, with the brand's texts, limits, guard and budgets."
          >
            <Table
              caption="Relays"
              columns={[
                ...columnsOf(relayListing(ownUrl()), 'name', 'brand', 'app', 'reportsVerified'),
                actions,
              ]}
              rows={relays.map(cells)}
              empty={
                <Empty title="No relays">
                  Supabase Auth, ZITADEL, Logto, Ory Kratos, Authgear, authentik, Keycloak, clients of Twilio
                  and CAMARA can have their codes delivered. Add one with the form on this page, or run
                  `otpost relay add`. {docsAt('relays')} has a page for each, with what to enter there.
                </Empty>
              }
            />
          </Card>
          {relays.length > 0 && (
            <Card title="Change a relay" hint="Its URL and its secret stay.">
              <ActionForm of={relaySet} options={options} submit="Change" />
            </Card>
          )}
          <Card title="Add a relay">
            <ActionForm of={relayAdd} options={options} submit="Add" />
          </Card>
        </>,
      ),
    )
  }

  function cells(relay: Relay) {
    const { name, kind, brandSlug, appId, reportsVerified } = relay
    return [
      <span class="two-lines">
        <a href={logUrl('calls', { app: appOf(relay), call: 'code' })}>{name}</a>
        <small>{relayKinds[kind]}</small>
        <small class="breaks">{relayUrl(relay, ownUrl())}</small>
      </span>,
      <bdi>{brandSlug}</bdi>,
      appId ?? '–',
      reportsVerified ? 'yes' : 'no',
      <ActionButton
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
