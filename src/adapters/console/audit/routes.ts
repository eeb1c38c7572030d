import { type AuditFilters, type AuditRecord, withReasons } from '../../../domain/ground/audit.ts'
import { auditGroups, auditWords, detailWords } from '../../../domain/operator/audit-words.ts'
import { csvDownload, html } from '../answers.ts'
import { csvOf, type FilterColumns, timeIn } from '../deliveries/query.ts'
import { type PageHandler, pageLength } from '../page-handler.ts'
import { auditPage } from './page.tsx'

export function auditRoutes({ get, ports }: PageHandler): void {
  get('/admin/audit', async ({ url }, pageContext) => {
    const query = url.searchParams
    const filters = auditFilters(query)
    const page = async (place: { before?: number | undefined; after?: number | undefined }) =>
      ports.audit.list({ ...filters, ...place, limit: pageLength + 1 })
    const [before, after] = [idIn(query.get('before')), idIn(query.get('after'))]
    const later = after === undefined ? [] : await page({ after })
    const isBetween = later.length > pageLength
    const found = isBetween ? later.slice(1) : await page({ before })
    const shown = found.slice(0, pageLength)
    const [first, last] = [shown.at(0)?.id, shown.at(-1)?.id]
    const newest = first ?? (before === undefined ? undefined : before - 1)
    const hasNewer =
      newest !== undefined && (isBetween || (before !== undefined && (await isFollowed(filters, newest))))
    const hasOlder = isBetween || found.length > pageLength
    const accounts = await ports.sessions.accounts()
    const model = {
      filters,
      people: accounts.map(({ email }) => email),
      records: await withReasons(shown, ports.requests),
      newer: hasNewer ? newest : null,
      next: hasOlder ? (last ?? null) : null,
    }
    return html(auditPage(pageContext, model))
  })

  get('/admin/audit.csv', ({ url }) => {
    const filters = auditFilters(url.searchParams)
    const find = async ({ before, limit }: { before: number | undefined; limit: number }) => {
      const found = await ports.audit.list({ ...filters, before, limit })
      const next = found.length < limit ? null : (found.at(-1)?.id ?? null)
      return { rows: await withReasons(found, ports.requests), next }
    }
    const rows = csvOf(auditColumns, find, Number.POSITIVE_INFINITY)
    return csvDownload('audit', rows)
  })

  async function isFollowed(filters: AuditFilters, after: number): Promise<boolean> {
    return (await ports.audit.list({ ...filters, after, limit: 1 })).length > 0
  }
}

function auditFilters(query: URLSearchParams): AuditFilters {
  const text = (name: string) => query.get(name)?.trim() || undefined
  const kind = text('group')
  return {
    group: Object.keys(auditGroups).find((each) => each === kind),
    action: Object.keys(auditWords).find((each) => each === kind),
    since: timeIn(text('from')),
    until: timeIn(text('until')),
    actorName: text('by'),
    target: text('target'),
    withoutSignIns: query.get('hide') === 'sign-ins',
  }
}

function idIn(text: string | null): number | undefined {
  return text !== null && /^[1-9][0-9]{0,14}$/.test(text) ? Number(text) : undefined
}

const auditColumns: FilterColumns<AuditRecord> = {
  time: ({ at }) => new Date(at).toISOString(),
  operator: ({ actor }) => actor.name,
  by: ({ actor }) => actor.by,
  action: ({ action }) => action,
  words: ({ action }) => auditWords[action] ?? action,
  target: ({ target }) => target,
  details: ({ action, details }) =>
    Object.entries(details)
      .map(([name, value]) => detailWords(action, name, value).join(': '))
      .join('; '),
}
