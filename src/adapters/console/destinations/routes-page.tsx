/** @jsxImportSource preact */
import { cellsOf } from '../../../domain/ground/listing.ts'
import { destinationSet } from '../../../domain/operator/destinations.ts'
import { ladderWords, orderWords, type Routes, routeListing } from '../../../domain/operator/routes.ts'
import { ExactTime, rich } from '../../pages/components.tsx'
import { ActionButton } from '../action-form.tsx'
import { actions, Card, columnsOf, consolePage, Table } from '../components.tsx'
import type { PageContext } from '../page-context.ts'
import { pageWords } from '../references.ts'

export function routesPage(pageContext: PageContext, { since, rows, orders, ladders, note }: Routes): string {
  const { currency: _, ...shown } = routeListing
  const parent = { title: 'Destinations', href: '/admin/destinations' }
  return consolePage(
    pageContext,
    { title: 'Routes by evidence', section: 'destinations', parent },
    <>
      <Card
        title="Providers by country"
        hint="Delivered: of the messages with a final delivery report. Verified: of the codes; a verified code counts for the provider that sent it last. In parentheses is the interval of 95 %."
        actions={<ExactTime at={since} toMinute />}
      >
        <Table
          caption="Providers by country"
          columns={columnsOf(shown)}
          rows={rows.map((row) => cellsOf(routeListing, row))}
          figures
          empty="No SMS was sent in the last 7 days."
        />
        {note && <p class="hint">{note}</p>}
      </Card>
      <Card
        title="Orders"
        hint="By the lower bound of conversion, or of delivery where no codes were sent. Nothing is reordered automatically."
      >
        <Table
          caption="Orders of providers"
          columns={['Order', actions]}
          rows={orders.map((order) => [
            rich(pageWords(orderWords(order))),
            !order.isSet && (
              <ActionButton
                of={destinationSet}
                with={{ ...order.rule, providers: order.providers }}
                foretellsAt="field-rule"
              >
                Set this order<span class="sr-only"> for {order.country}</span>
              </ActionButton>
            ),
          ])}
          empty="No country has messages of two providers."
        />
        {ladders.map((each) => (
          <p key={each.country}>{ladderWords(each)}</p>
        ))}
      </Card>
    </>,
  )
}
