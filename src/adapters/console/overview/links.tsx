/** @jsxImportSource preact */

import { Fragment } from 'preact'
import { docsAt } from '../../../domain/ground/docs.ts'
import type { See } from '../../../domain/health/problem.ts'
import { logUrl } from '../deliveries/query.ts'
import { type PageLink, pageOf } from '../references.ts'

/** The pages of what a problem names, each once. */
export function linksOf(see: readonly See[]): readonly PageLink[] {
  const links = see.flatMap((each) => linkOf(each) ?? [])
  // The overview lists the problem itself, and a path in the repository is no link.
  const others = links.filter(({ href }) => href !== '/admin' && !href.startsWith('docs/'))
  return [...new Map(others.map((link) => [link.href, link])).values()]
}

/** After a text. */
export function Links({ of }: { of: readonly PageLink[] }) {
  return of.map(({ title, href }) => (
    <Fragment key={href}>
      {' '}
      <a href={href}>{title}</a>
    </Fragment>
  ))
}

function linkOf(see: See): PageLink | undefined {
  if ('docs' in see) return { title: 'Documentation', href: docsAt(`${see.docs}.md`) }
  if ('setting' in see) return { title: 'Settings', href: '/admin/settings' }
  if ('list' in see) {
    const { list, filters, title = list === 'calls' ? 'Calls' : 'Deliveries' } = see
    return { title, href: logUrl(list, filters) }
  }
  return pageOf(see)
}
