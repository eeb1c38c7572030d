/** @jsxImportSource preact */

import type { ExplainedCode } from '../../../domain/delivery/provider-codes.ts'
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
  /** An API key was entered, which no page shows. */
  readonly isKey: boolean
  readonly codes: readonly ExplainedCode[]
  /** Earlier requests were not searched by reference and message ID. Null: all were. */
  readonly since: number | null
}

export function searchPage(pageContext: PageContext, model: SearchModel): string {
  const { query, isKey, hits, codes, since } = model
  const unread = since !== null && (
    <p class="hint">
      Requests before <ExactTime at={since} /> were not searched by reference and message ID.
    </p>
  )
  const title = <>Results for {isKey ? 'an API key' : <bdi>{query}</bdi>}</>
  return consolePage(
    pageContext,
    { title: 'Search', section: null, query },
    hits.length + codes.length > 0 ? (
      <Card title={title} class="search-results">
        {hits.length > 0 && (
          <Table
            caption="Results"
            columns={['Found', 'Details', 'Time (UTC)']}
            rows={hits.map(({ title, detail, href, at }) => [
              <a href={href}>{title}</a>,
              <bdi>{detail}</bdi>,
              at === undefined ? '' : <ExactTime at={at} />,
            ])}
            empty=""
          />
        )}
        <Codes list={codes} />
        {unread}
      </Card>
    ) : (
      <Card class="search-results">
        {isKey && <p role="alert">No app has this API key. If it was of another server, revoke it there.</p>}
        {query !== '' && (
          <p role="alert">
            Nothing was found for <bdi>{query}</bdi>.
          </p>
        )}
        <p>The search covers:</p>
        <ul class="steps">
          <li>
            request IDs of calls and of integration requests, and the last 8 characters of those of calls
          </li>
          <li>
            recipients: the whole phone number or e-mail address, since otpost stores only its hash; a number
            without its country code in the countries that SMS go to
          </li>
          <li>
            apps and brands: any part of an app ID, slug or name; operators: any part of an e-mail address
          </li>
          <li>API keys: the whole key, which is neither shown nor logged, or its last four characters</li>
          <li>countries by name or code, and prefixes of numbers, with +; error codes of providers</li>
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

function Codes({ list }: { list: readonly ExplainedCode[] }) {
  if (list.length === 0) return null
  return (
    <ul class="findings">
      {list.map(({ provider, code, meaning, remedy, page }) => (
        <li key={provider}>
          <p>
            <strong>
              {provider} <code>{code}</code>
            </strong>
          </p>
          <p>
            {meaning} {remedy}
          </p>
          {page !== undefined && (
            <p>
              <a href={page} rel="noreferrer" target="_blank">
                Page of {provider}
              </a>
            </p>
          )}
        </li>
      ))}
    </ul>
  )
}
