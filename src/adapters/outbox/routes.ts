import { Elysia } from 'elysia'
import type { Numbers } from '../../domain/delivery/destination.ts'
import type { Contacts } from '../../domain/ground/contact.ts'
import { Failure, invalidField } from '../../domain/ground/failures.ts'
import type { Outbox, OutboxEntry, OutboxQuery } from '../../domain/ground/ports.ts'
import type { Clock } from '../../domain/ground/time.ts'
import { formatMicros, unitCurrency } from '../../domain/money/amounts.ts'
import type { PriceList } from '../../domain/money/prices.ts'
import type { ContextOf } from '../../domain/request/request-context.ts'
import { headersOf, mailPolicy, pagePolicy, staticRoutes } from '../pages/static.ts'
import { authorize, type OutboxAccess } from './access.ts'
import { type Demo, type OutboxWords, outboxFiles, outboxPage } from './page.tsx'

export interface OutboxPorts extends Omit<OutboxWords, 'priceOf'> {
  readonly messages: Outbox
  readonly now: Clock
  /** PUBLIC_URL, else the URL on which the server listens. Never from the Host header. */
  readonly ownUrl: () => string
  readonly demo: Demo | undefined
  readonly stopping: AbortSignal
  readonly access: OutboxAccess
  readonly contacts: Contacts
  readonly destinationOf: Numbers['destinationOf']
  /** The source of an e-mail. */
  readonly rawMail: (mail: OutboxEntry) => Promise<string>
  readonly policy: () => Promise<{ readonly prices: PriceList }> | { readonly prices: PriceList }
}

/** The page has a form that clears the outbox. */
const ownFormPolicy = pagePolicy.replace("form-action 'none'", "form-action 'self'")

const maxWaitSeconds = 60
const maxMessages = 500

export function outboxRoutes(outbox: OutboxPorts, contextOf: ContextOf) {
  const routes = new Elysia({ strictPath: true, normalize: false })
    .onBeforeHandle(({ request }) => authorize(outbox.access, request))
    .use(staticRoutes(outboxFiles))
    .get('/outbox', async ({ query: { to } }) => {
      const priceOf = pricesIn((await outbox.policy()).prices)
      const recipient = outbox.contacts.phone(to) ?? outbox.contacts.email(to)
      const page = outboxPage({
        messages: await outbox.messages.list({ limit: maxMessages }),
        to: recipient?.to ?? (to?.trim() || null),
        demo: outbox.demo,
        origin: outbox.ownUrl(),
        now: outbox.now(),
        words: { ...outbox, priceOf },
      })
      const headers = { ...headersOf('text/html', ownFormPolicy), 'cache-control': 'no-store' }
      return new Response(page, { headers })
    })
    .get('/outbox/messages', async ({ request, query, server }) => {
      const wanted = readQuery(query, outbox.contacts)
      server?.timeout(request, 0)
      const signal = AbortSignal.any([request.signal, outbox.stopping])
      const messages = await outbox.messages.wait(wanted, waitSeconds(query.wait) * 1000, signal)
      return { success: true, messages, requestId: contextOf(request).requestId }
    })
    .get('/outbox/messages/:id/html', async ({ params }) => {
      const entry = await entryOf(params.id)
      if (!entry?.html) throw new Failure('route_not_found', 'No such e-mail.')
      return new Response(entry.html, { headers: headersOf('text/html', mailPolicy) })
    })
    .get('/outbox/messages/:id/raw', async ({ params }) => {
      const entry = await entryOf(params.id)
      if (entry?.channel !== 'EMAIL') throw new Failure('route_not_found', 'No such e-mail.')
      return new Response(await outbox.rawMail(entry), { headers: headersOf('text/plain', mailPolicy) })
    })
    .post('/outbox/clear', async ({ request }) => {
      requireOwnForm(request)
      await outbox.messages.clear()
      return new Response(null, { status: 303, headers: { location: '/outbox' } })
    })

  return routes

  /** Of an SMS in the currency of the prices. Undefined: no prices are imported. */
  function pricesIn(prices: PriceList) {
    return ({ to, text }: OutboxEntry): string | undefined => {
      if (prices.currency === unitCurrency) return undefined
      const { priceMicros } = prices.find(to, outbox.destinationOf(to).kind, 'outbox')
      return formatMicros(priceMicros * outbox.segmentsOf(text).count, prices.currency)
    }
  }

  async function entryOf(text: string) {
    const id = Number(text)
    return Number.isSafeInteger(id) ? outbox.messages.get(id) : undefined
  }
}

/** Browsers say which site sent a form. Other clients need no check, since they have no cookie. */
function requireOwnForm({ headers }: Request): void {
  const site = headers.get('sec-fetch-site')
  if (site === null ? headers.has('origin') && headers.has('cookie') : site !== 'same-origin')
    throw new Failure('forbidden', 'Another site sent the form.')
}

type Query = Readonly<Record<string, string | undefined>>

function readQuery({ to, after, limit }: Query, contacts: Contacts): OutboxQuery {
  const recipient = contacts.phone(to) ?? contacts.email(to)
  if (to !== undefined && !recipient) {
    throw invalidField('to', contacts.faultOf(to))
  }
  return {
    ...(recipient ? { to: recipient.to } : {}),
    ...(after === undefined ? {} : { after: readNumber('after', after, Number.MAX_SAFE_INTEGER) }),
    limit: limit === undefined ? maxMessages : readNumber('limit', limit, maxMessages),
  }
}

function waitSeconds(wait: string | undefined): number {
  return wait === undefined ? 0 : readNumber('wait', wait, maxWaitSeconds)
}

function readNumber(name: string, value: string, max: number): number {
  const number = /^[0-9]{1,16}$/.test(value) ? Number(value) : Number.NaN
  if (number <= max) return number
  throw invalidField(name, `must be a whole number from 0 to ${max}.`)
}
