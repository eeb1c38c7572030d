import { countryName } from '../../../domain/delivery/destination.ts'
import { explainedCodes } from '../../../domain/delivery/provider-codes.ts'
import type { Channel } from '../../../domain/ground/contact.ts'
import { keysEnding, readSearchText, type SearchText } from '../../../domain/operator/search-text.ts'
import { relayKinds } from '../../../domain/policy/relay.ts'
import { isRequestId } from '../../../domain/request/request-context.ts'
import { html, seeOther } from '../answers.ts'
import { appHref } from '../apps/paths.ts'
import { auditUrl, withPlus } from '../components.tsx'
import { logUrl } from '../deliveries/query.ts'
import { field } from '../form-fields.ts'
import type { PageHandler } from '../page-handler.ts'
import { type SearchModel, searchPage } from './page.tsx'

type Hit = SearchModel['hits'][number]

const longestName = 200
/** In which a national number is searched. */
const mostCountries = 20

const nothing: SearchModel = { query: '', isKey: false, hits: [], codes: [], since: null }

export function searchRoutes({ get, post, ports, settings }: PageHandler): void {
  const { eventLog, requests, brands, apps, secrets, policy } = ports

  get('/admin/search', (_, pageContext) => html(searchPage(pageContext, nothing)))
  post('/admin/search', async ({ form, request }, pageContext) => {
    const query = field(form, 'q')
    if (query === '') return seeOther('/admin/search')
    const asked = readSearchText(query)
    const ofKey = await withKey(query, asked)
    // A key is shown nowhere, and no other search gets it.
    if (asked.isKey || ofKey.some(({ isWholeKey }) => isWholeKey))
      return html(searchPage(pageContext, { ...nothing, isKey: true, hits: ofKey }))
    const [byId, byRecipient, byName, byPlace] = await Promise.all([
      withId(query.toLowerCase()),
      withRecipient(query, asked, pageContext.now),
      withName(query.toLowerCase()),
      withPlace(query.toLowerCase(), asked),
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
    const codes = explainedCodes(query, settings.providerCodes)
    const hits = [...byId, ...byRecipient, ...named, ...ofKey, ...byName, ...byPlace]
    const [first, second] = hits
    const isDialog = request.headers.has('x-otpost-dialog')
    if (first && !second && codes.length === 0 && !isDialog) return seeOther(first.href)
    return html(searchPage(pageContext, { ...nothing, query, hits, codes, since }))
  })

  /** Whose key leaked: by the key, also within other text, or by its last four characters. */
  async function withKey(text: string, { lastFour }: SearchText): Promise<(Hit & { isWholeKey: boolean })[]> {
    const inText = /otp_live_\w+/.exec(text)?.[0] ?? text
    const owner = (await apps.ownerOf(inText)) ?? (await apps.ownerOf(text))
    const ending = lastFour === undefined || owner ? [] : keysEnding(lastFour, await apps.list())
    const keys = owner ? [owner] : ending
    return keys.map(({ appId, key }) => ({
      title: key && key.revokedAt !== null ? 'Revoked API key' : 'API key',
      detail: `of app ${appId}`,
      href: appHref(appId),
      isWholeKey: owner !== undefined,
    }))
  }

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

  async function withRecipient(text: string, { national }: SearchText, now: number): Promise<Hit[]> {
    const whole = settings.contacts.phone(text) ?? settings.contacts.email(text)
    const found = whole ? await requestsTo(whole.channel, whole.to) : []
    if (found.length > 0 || national === undefined) return found
    const countries = [
      ...new Set([
        ...settings.smsCountries,
        ...(await eventLog.countries(now)).map(({ country }) => country),
      ]),
    ]
    const read = countries
      .slice(0, mostCountries)
      .flatMap((country) => settings.numbers.phoneIn(national, country) ?? [])
    return (await Promise.all([...new Set(read)].map((to) => requestsTo('SMS', to)))).flat()
  }

  async function requestsTo(channel: Channel, to: string): Promise<Hit[]> {
    // Hashed, since proxies log URLs.
    const recipientHashes = secrets.subjects(channel, to)
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

  /** Countries, prefixes and operators. */
  async function withPlace(text: string, { prefix }: SearchText): Promise<Hit[]> {
    const { countries, countryOfPrefix, formatPrefix } = settings.numbers
    const ofPrefix = prefix === undefined ? null : countryOfPrefix(prefix)
    const named = countries.filter(
      (code) =>
        code.toLowerCase() === text || (text.length > 3 && countryName(code).toLowerCase().includes(text)),
    )
    const accounts = text.length > 2 ? await ports.sessions.accounts() : []
    return [
      ...(prefix === undefined
        ? []
        : [
            {
              title: `Prefix ${formatPrefix(prefix)}`,
              detail: ofPrefix ? countryName(ofPrefix) : '',
              href: '/admin/guard',
            },
          ]),
      ...[...new Set([...named, ...(ofPrefix === null ? [] : [ofPrefix])])].map((country) => ({
        title: `Deliveries to ${countryName(country)}`,
        detail: country,
        href: logUrl('deliveries', { country }),
      })),
      ...accounts
        .filter(({ email }) => email.toLowerCase().includes(text))
        .map(({ email, role }) => ({
          title: `Changes by ${email}`,
          detail: role,
          href: auditUrl({ actorName: email }),
        })),
    ]
  }

  async function withName(text: string): Promise<Hit[]> {
    const [allBrands, stored, { relays }] = await Promise.all([brands.list(), apps.list(), policy.rows()])
    const isNamed = (name: string) => name.toLowerCase().includes(text)
    const ofRelays = ['relays', ...Object.entries(relayKinds).flat(), ...relays.map(({ name }) => name)]
    return [
      ...(text.length > 3 && ofRelays.some(isNamed)
        ? [{ title: 'Relays', detail: 'codes of identity systems', href: '/admin/relays' }]
        : []),
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
