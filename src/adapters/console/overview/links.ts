import type { See } from '../../../domain/health/problem.ts'
import { logUrl } from '../deliveries/query.ts'
import { testPath } from '../test-send/page.tsx'
import { webhookPath } from '../webhooks/page.tsx'

interface PageLink {
  readonly title: string
  readonly href: string
}

/** The pages of what a problem names, each once. The documentation is not in the console. */
export function linksOf(see: readonly See[]): readonly PageLink[] {
  const links = see.flatMap((each) => linkOf(each) ?? [])
  return [...new Map(links.map((link) => [link.href, link])).values()]
}

function linkOf(see: See): PageLink | undefined {
  if ('docs' in see) return undefined
  if ('setting' in see) return { title: 'Settings', href: '/admin/settings' }
  if ('list' in see) {
    const { list, filters, title = list === 'calls' ? 'Calls' : 'Deliveries' } = see
    return { title, href: logUrl(list, filters) }
  }
  return pages[see.to]?.(see.fields)
}

/** By the name of an action or a list. */
const pages: Readonly<Record<string, (fields: Readonly<Record<string, string>>) => PageLink>> = {
  'app set': (fields) => ({
    title: 'Change the limit',
    href: `/admin/apps/scope?${new URLSearchParams({ app: fields.appId ?? '' })}`,
  }),
  'app webhook': ({ appId = '' }) => ({ title: `Webhook of ${appId}`, href: webhookPath(appId) }),
  'brand list': () => ({ title: 'Brands', href: '/admin/brands' }),
  'budget lift': () => ({ title: 'Money', href: '/admin/money' }),
  'budget list': () => ({ title: 'Money', href: '/admin/money' }),
  'destination list': () => ({ title: 'Destinations', href: '/admin/destinations' }),
  'guard block': () => ({ title: 'Stop it', href: '/admin/guard' }),
  'guard status': () => ({ title: 'Guard', href: '/admin/guard' }),
  'queue list': () => ({ title: 'Queue', href: '/admin/queue' }),
  'review-number remove': () => ({ title: 'Review numbers', href: '/admin/review-numbers' }),
  'test-send': (fields) => ({ title: 'Send a test', href: testPath(fields) }),
  'text lint': ({ slug = '' }) => ({
    title: `Texts of ${slug}`,
    href: `/admin/brands/${encodeURIComponent(slug)}/texts`,
  }),
}
