/** @jsxImportSource preact */

import { ExactTime } from '../../pages/components.tsx'
import { Card, consolePage, Table } from '../components.tsx'
import type { PageContext } from '../page-context.ts'

export interface SearchModel {
  /** As entered. Empty: none. */
  readonly query: string
  readonly hits: readonly {
    readonly title: string
    readonly detail: string
    readonly href: string
    /** Of a request. */
    readonly at?: number
  }[]
  /** Earlier requests were not searched by reference and message ID. Null: all were. */
  readonly since: number | null
}

export function searchPage(pageContext: PageContext, { query, hits, since }: SearchModel): string {
  const unread = since !== null && (
    <p class="hint">
      Requests before <ExactTime at={since} /> were not searched by reference and message ID.
    </p>
  )
  return consolePage(
    pageContext,
    { title: 'Search', section: null, query },
    hits.length > 0 ? (
      <Card title={`Results for ${query}`}>
        <Table
          caption={`Results for ${query}`}
          columns={['Found', 'Details', 'Time (UTC)']}
          rows={hits.map(({ title, detail, href, at }) => [
            <a href={href}>{title}</a>,
            <bdi>{detail}</bdi>,
            at === undefined ? '' : <ExactTime at={at} />,
          ])}
          empty=""
        />
        {unread}
      </Card>
    ) : (
      <Card>
        {query !== '' && (
          <p role="alert">
            Nothing was found for <strong>{query}</strong>.
          </p>
        )}
        <p>The search covers:</p>
        <ul class="steps">
          <li>
            request IDs of calls and of integration requests, and the last 8 characters of those of calls
          </li>
          <li>
            recipients: the whole phone number, with + and its country code, or e-mail address, since otpost
            stores only its hash
          </li>
          <li>apps and brands: any part of an app ID, slug or name</li>
          <li>references of callers and message IDs of providers: the whole text, in upper and lower case</li>
        </ul>
        <p class="hint">
          Requests older than <code>DELIVERY_LOG_DAYS</code> are deleted.
        </p>
        {unread}
      </Card>
    ),
  )
}
