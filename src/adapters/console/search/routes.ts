import { isRequestId } from '../../../domain/request/request-context.ts'
import { html, seeOther } from '../answers.ts'
import { appHref } from '../apps/page.tsx'
import { withPlus } from '../components.tsx'
import { logUrl } from '../deliveries/query.ts'
import { field } from '../form-fields.ts'
import type { PageHandler } from '../page-handler.ts'
import { type SearchModel, searchPage } from './page.tsx'

type Hit = SearchModel['hits'][number]

const longestName = 200

export function searchRoutes({ get, post, ports, settings }: PageHandler): void {
  const { eventLog, requests, brands, apps, secrets } = ports

  get('/admin/search', (_, pageContext) =>
    html(searchPage(pageContext, { query: '', hits: [], since: null })),
  )
  post('/admin/search', async ({ form }, pageContext) => {
    const query = field(form, 'q')
    if (query === '') return seeOther('/admin/search')
    const [byId, byRecipient, byName] = await Promise.all([
      withId(query.toLowerCase()),
      withRecipient(query),
      withName(query.toLowerCase()),
    ])
    const isFound = byId.length + byRecipient.length > 0
    const isScanned = !isFound && query.length <= longestName
    const { found, since } = isScanned ? await eventLog.named(query) : { found: [], since: null }
    const named = found.map(({ requestId, app, at, isReference }): Hit => {
      const isId = requestId.endsWith(query.replace('…', '').toLowerCase())
      const ofMessage = isId ? 'Request' : 'Message with this provider message ID'
      const title = isReference ? 'Request with this reference' : ofMessage
      return { title, detail: `of app ${app}`, href: `/admin/deliveries/${requestId}`, at }
    })
    const hits = [...byId, ...byRecipient, ...named, ...byName]
    const [first, second] = hits
    if (first && !second) return seeOther(first.href)
    return html(searchPage(pageContext, { query, hits, since }))
  })

  async function withId(id: string): Promise<Hit[]> {
    if (!isRequestId(id)) return []
    const [trace, integration] = await Promise.all([eventLog.trace(id), requests.get(id)])
    return [
      ...(trace ? [{ title: 'Request', detail: id, href: `/admin/deliveries/${id}` }] : []),
      ...(integration
        ? [{ title: 'Integration request', detail: integration.companyName, href: `/admin/requests/${id}` }]
        : []),
    ]
  }

  async function withRecipient(text: string): Promise<Hit[]> {
    const recipient = settings.contacts.phone(text) ?? settings.contacts.email(text)
    if (!recipient) return []
    // Hashed, since proxies log URLs.
    const recipientHashes = secrets.subjects(recipient.channel, recipient.to)
    const { rows } = await eventLog.findCalls({ recipientHashes }, { limit: 1 })
    // Its index finds older ones.
    const found = rows.length > 0 ? rows : await eventLog.deliveries({ recipientHashes, limit: 1 })
    const href = logUrl(rows.length > 0 ? 'calls' : 'deliveries', { recipientHashes })
    return found.map(({ recipient }) => ({
      title: 'Requests to this recipient',
      detail: withPlus(recipient ?? ''),
      href,
    }))
  }

  async function withName(text: string): Promise<Hit[]> {
    const [allBrands, stored] = await Promise.all([brands.list(), apps.list()])
    const isNamed = (name: string) => name.toLowerCase().includes(text)
    return [
      ...allBrands
        .filter(({ slug, displayName }) => isNamed(slug) || isNamed(displayName))
        .map(({ slug, displayName }) => ({
          title: `Brand ${displayName}`,
          detail: slug,
          href: `/admin/brands/${encodeURIComponent(slug)}`,
        })),
      ...[...new Set([...stored.map(({ appId }) => appId), ...apps.configured])]
        .filter(isNamed)
        .map((appId) => ({ title: 'App', detail: appId, href: appHref(appId) })),
    ]
  }
}
