/** @jsxImportSource preact */
import type { AuditAction, AuditRecord } from '../../../domain/operator/audit.ts'
import { Empty, ExactTime } from '../../pages/components.tsx'
import { Card, consolePage, Pager, Table } from '../components.tsx'
import type { AuditModel, PageContext } from '../models.ts'

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

export function auditPage(pageContext: PageContext, { records, next }: AuditModel): string {
  return consolePage(
    pageContext,
    { title: 'Audit log', section: 'audit' },
    <>
      <Card
        class="audit"
        hint="Changes by commands and in this console, latest first. Entries cannot be changed."
      >
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
            <Empty title="No entries">Changes in this console and with `otpost` commands appear here.</Empty>
          }
        />
      </Card>
      <Pager first={null} next={next === null ? null : `/admin/audit?before=${next}`} />
    </>,
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
  const [kind] = action.split('.')
  const path = encodeURIComponent(target)
  const href =
    kind === 'brand' || kind === 'text'
      ? `/admin/brands/${path}`
      : kind === 'request'
        ? `/admin/requests/${path}`
        : undefined
  return href === undefined ? (
    <code>{target}</code>
  ) : (
    <a href={href}>
      <code>{target}</code>
    </a>
  )
}
