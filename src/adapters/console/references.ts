import type { Advice, Reference } from '../../domain/ground/advice.ts'
import { actionOf } from '../../domain/operator/actions.ts'
import { appHref } from './apps/paths.ts'
import { sectionOf } from './components.tsx'
import { ruleId } from './destinations/page.tsx'
import { filled } from './form-access.ts'
import { testPath } from './test-send/page.tsx'
import { webhookPath } from './webhooks/page.tsx'

export interface PageLink {
  readonly title: string
  readonly href: string
}

/** The page of an action or a list. Undefined: the console has none. */
export function pageOf({ to, fields }: Reference): PageLink | undefined {
  const page = pages[to]
  if (page) return page(fields)
  const [group = ''] = to.split(' ')
  const form = actionOf(to)?.form
  const section = form?.page ?? form?.path.split('/')[0] ?? sections[group]
  return section === undefined ? undefined : { title: sectionOf(section), href: filled(section, {}) }
}

/** With the title of each page in backticks. */
export function pageWords(advice: Advice): string {
  return advice
    .map((part) => (typeof part === 'string' ? part : `\`${pageOf(part)?.title ?? `otpost ${part.to}`}\``))
    .join('')
}

/** Of lists, and of actions that are not declared: by the first word. */
const sections: Readonly<Record<string, string>> = {
  brand: 'brands',
  budget: 'money',
  destination: 'destinations',
  guard: 'guard',
  queue: 'queue',
}

/** Those that are not their section alone. */
const pages: Readonly<Record<string, (fields: Reference['fields']) => PageLink>> = {
  'app set': ({ appId = '' }) => ({ title: 'Change the limit', href: appHref(appId) }),
  'guard block': () => ({ title: 'Choose what to block', href: '/admin/guard' }),
  'budget lift': () => ({ title: 'Lift or raise it', href: '/admin/money' }),
  'app webhook': ({ appId = '' }) => ({ title: `Webhook of ${appId}`, href: webhookPath(appId) }),
  'brand put': brandPage,
  'brand status': brandPage,
  'brand template': textsPage,
  'destination remove': ({ rule = '', brand }) => ({
    title: `Rule ${rule}`,
    href: `/admin/destinations#${encodeURIComponent(ruleId(rule, brand))}`,
  }),
  'relay list': () => ({ title: 'Relays', href: '/admin/relays' }),
  'test-send': (fields) => ({ title: 'Send a test', href: testPath(fields) }),
  'text lint': textsPage,
}

function textsPage({ slug = '' }: Reference['fields']): PageLink {
  return { title: `Texts of ${slug}`, href: `/admin/brands/${encodeURIComponent(slug)}/texts` }
}

function brandPage({ slug }: Reference['fields']): PageLink {
  return slug === undefined
    ? { title: 'Brands', href: '/admin/brands' }
    : { title: `Brand ${slug}`, href: `/admin/brands/${encodeURIComponent(slug)}` }
}
