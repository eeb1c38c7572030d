/** @jsxImportSource preact */

import { type AuditFilters, type AuditRecord, auditListing } from '../../../domain/ground/audit.ts'
import { capitalized } from '../../../domain/ground/format.ts'
import { auditGroups, auditWords, detailWords } from '../../../domain/operator/audit-words.ts'
import {
  Button,
  Choice,
  Empty,
  ExactTime,
  Field,
  LinkButton,
  Select,
  withTimes,
} from '../../pages/components.tsx'
import { appHref } from '../apps/paths.ts'
import { auditUrl, Card, columnsOf, consolePage, end, Pager, Table } from '../components.tsx'
import { timeText } from '../deliveries/query.ts'
import type { PageContext } from '../page-context.ts'

interface AuditModel {
  readonly filters: AuditFilters
  /** E-mail addresses of accounts. */
  readonly people: readonly string[]
  readonly records: readonly AuditRecord[]
  /** Ids. Null: there are no newer or older entries. */
  readonly newer: number | null
  readonly next: number | null
}

export function auditPage(
  pageContext: PageContext,
  { filters, people, records, newer, next }: AuditModel,
): string {
  const isFiltered = auditUrl(filters) !== auditUrl({})
  return consolePage(
    pageContext,
    { title: 'Audit log', section: 'audit' },
    <>
      <Card
        class="audit"
        hint="Changes by commands and in this console, latest first. Entries cannot be changed."
        actions={<LinkButton href={auditUrl(filters, {}, '.csv')}>Download as CSV</LinkButton>}
      >
        <Filters filters={filters} people={people} />
        {isFiltered && (
          <p class="found">
            <a class="in-force" href={auditUrl({})}>
              Show all entries <span aria-hidden="true">×</span>
            </a>
          </p>
        )}
        <Table
          caption="Audit log"
          columns={[
            ...columnsOf(auditListing, 'action', 'target', 'details', 'by'),
            end(auditListing.at.title),
          ]}
          rows={records.map((record) => auditCells(record))}
          empty={
            <Empty title={isFiltered ? 'No entries match' : 'No entries'}>
              Changes in this console and with `otpost` commands appear here.
            </Empty>
          }
        />
      </Card>
      <Pager
        first={newer === null ? null : auditUrl(filters)}
        newer={newer === null ? null : auditUrl(filters, { after: newer })}
        next={next === null ? null : auditUrl(filters, { before: next })}
      />
    </>,
  )
}

function Filters({ filters, people }: Pick<AuditModel, 'filters' | 'people'>) {
  const { group = '', action = group, actorName = '', target = '', withoutSignIns = false } = filters
  const { since, until } = filters
  const time = (at: number | undefined) => (at === undefined ? '' : timeText(at))
  return (
    <form method="get" action="/admin/audit" class="form filters" autocomplete="off">
      <details class="fold" open={auditUrl({ ...filters, withoutSignIns: false }) !== auditUrl({})}>
        <summary>Filter</summary>
        <div class="fields">
          <Select
            label="Actions"
            name="group"
            value={action}
            options={{ '': 'all', ...kinds }}
            hint="All of a group, or one."
          />
          <Field
            label="Operator"
            name="by"
            value={actorName}
            known={people}
            hint="An e-mail address, a session ID or the user of a command."
          />
          <Field
            label="Target"
            name="target"
            value={target}
            hint="As in the list, such as an app ID, a brand or a country."
          />
          <Field label="From" name="from" isTime value={time(since)} />
          <Field label="Until" name="until" isTime value={time(until)} />
        </div>
        <Choice label="Hide sign-ins" name="hide" value="sign-ins" checked={withoutSignIns} />
        <p class="buttons">
          <Button kind="primary">Apply</Button>
        </p>
      </details>
    </form>
  )
}

/** Each group, followed by its actions. */
const kinds: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(auditGroups).flatMap(([group, title]) => [
    [group, capitalized(title)],
    ...Object.entries(auditWords)
      .filter(([action]) => action.startsWith(`${group}.`))
      .map(([action, words]) => [action, `– ${words}`]),
  ]),
)

function auditCells({ action, target, details, actor, at }: AuditRecord) {
  return [
    auditWords[action] ?? action,
    <Target action={action} target={target} />,
    <Changes action={action} changes={details} />,
    <span class="who">
      <code>{actor.name}</code> <span class="hint">{actorKinds[actor.by]}</span>
    </span>,
    <ExactTime at={at} />,
  ]
}

const actorKinds = {
  command: 'by command',
  console: 'in the console',
  token: 'by the management API',
} as const

export function Changes({ action, changes }: { action: string; changes: AuditRecord['details'] }) {
  const entries = Object.entries(changes).map(([name, value]) => detailWords(action, name, value))
  if (entries.length === 0) return null
  return (
    <dl class="changes">
      {entries.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{withTimes(value)}</dd>
        </div>
      ))}
    </dl>
  )
}

function Target({ action, target }: { action: string; target: string }) {
  const [group = ''] = action.split('.')
  const href = pageOf(group, target)
  return href === undefined ? (
    <code>{target}</code>
  ) : (
    <a href={href}>
      <code>{target}</code>
    </a>
  )
}

function pageOf(group: string, target: string): string | undefined {
  if (group === 'brand' || group === 'text') return `/admin/brands/${encodeURIComponent(target)}`
  if (group === 'request') return `/admin/requests/${encodeURIComponent(target)}`
  if (group === 'app') return appHref(target)
  if (group === 'destination') return '/admin/destinations'
  if (group === 'guard') return '/admin/guard'
  return group === 'budget' ? '/admin/money' : undefined
}
