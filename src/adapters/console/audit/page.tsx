/** @jsxImportSource preact */

import {
  type AuditAction,
  type AuditFilters,
  type AuditRecord,
  auditGroups,
} from '../../../domain/ground/audit.ts'
import { Button, Choice, Empty, ExactTime, Field, Select } from '../../pages/components.tsx'
import { appHref } from '../apps/page.tsx'
import { auditUrl, Card, consolePage, Pager, Table } from '../components.tsx'
import type { PageContext } from '../page-context.ts'

export interface AuditModel {
  readonly filters: AuditFilters
  /** E-mail addresses of accounts. */
  readonly people: readonly string[]
  readonly records: readonly AuditRecord[]
  /** Ids. Null: there are no newer or older entries. */
  readonly newer: number | null
  readonly next: number | null
}

const actions: Readonly<Record<AuditAction, string>> = {
  'brand.created': 'Brand created',
  'brand.changed': 'Brand changed',
  'brand.status': 'Brand status changed',
  'brand.template': 'Template registered',
  'text.set': 'Text set',
  'text.removed': 'Text removed',
  'message.tested': 'Test message sent',
  'app.issued': 'App created',
  'app.changed': 'App changed',
  'app.rotated': 'Key rotated',
  'app.key-revoked': 'Key revoked',
  'app.revoked': 'App revoked',
  'app.webhook-set': 'Webhook set',
  'app.webhook-removed': 'Webhook ended',
  'app.event-sent': 'Event sent',
  'destination.set': 'Destination rule set',
  'destination.removed': 'Destination rule removed',
  'guard.set': 'Guard prefix set',
  'guard.removed': 'Guard prefix removed',
  'review-number.added': 'Review number added',
  'review-number.removed': 'Review number removed',
  'review-number.used': 'Review number used',
  'price.imported': 'Prices imported',
  'budget.set': 'Budget set',
  'budget.lifted': 'Budget lifted',
  'budget.removed': 'Budget removed',
  'queue.retried': 'Queued messages retried',
  'queue.cancelled': 'Queued messages cancelled',
  'request.approved': 'Request approved',
  'request.rejected': 'Request rejected',
  'request.mail': 'E-mail to requester started',
  'request.mailed': 'E-mail to requester sent',
  'request.mail-failed': 'E-mail to requester failed',
  'console.link': 'Sign-in link created',
  'console.login': 'Signed in',
  'console.logout': 'Signed out',
  'console.session-revoked': 'Session ended',
  'operator.invited': 'Operator invited',
  'operator.reset': 'Sign-in reset',
  'operator.role': 'Role changed',
  'operator.removed': 'Operator removed',
  'operator.password-set': 'Password changed',
  'operator.app-set': 'Authenticator app set',
  'operator.recovery-codes-renewed': 'Recovery codes created',
  'operator.passkey-added': 'Passkey added',
  'operator.passkey-removed': 'Passkey removed',
  'data.forgotten': 'Personal data deleted',
  'data.restored': 'Database restored',
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
            { title: 'Action', isHeader: true },
            'Target',
            'Details',
            'Operator',
            { title: 'Time', align: 'end' },
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
  const { group = '', actorName = '', target = '', withoutSignIns = false } = filters
  return (
    <form method="get" action="/admin/audit" class="form filters" autocomplete="off">
      <details class="fold" open={group !== '' || actorName !== '' || target !== ''}>
        <summary>Filter</summary>
        <div class="fields">
          <Select
            label="Actions"
            name="group"
            value={group}
            options={{ '': 'all', ...auditGroups }}
            hint="Of changes to these."
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
        </div>
        <Choice label="Hide sign-ins" name="hide" value="sign-ins" checked={withoutSignIns} />
        <p class="buttons">
          <Button kind="primary">Apply</Button>
        </p>
      </details>
    </form>
  )
}

function auditCells({ action, target, details, actor, at }: AuditRecord) {
  return [
    actions[action],
    <Target key="target" action={action} target={target} />,
    <Changes key="details" changes={details} />,
    <span key="who" class="who">
      <code>{actor.name}</code>{' '}
      <span class="hint">{actor.by === 'command' ? 'by command' : 'in the console'}</span>
    </span>,
    <ExactTime key="time" at={at} />,
  ]
}

export function Changes({ changes }: { changes: AuditRecord['details'] }) {
  const entries = Object.entries(changes)
  if (entries.length === 0) return null
  return (
    <dl class="changes">
      {entries.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}

function Target({ action, target }: { action: AuditAction; target: string }) {
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
