/** @jsxImportSource preact */

import { count, counted } from '../../../domain/ground/format.ts'
import { type StoredEvent, type Webhook, whileOff } from '../../../domain/ground/webhook-events.ts'
import type { FailingEvents } from '../../../domain/integration/event-store.ts'
import { webhookStateOf } from '../../../domain/integration/webhook-state.ts'
import type { Entered } from '../../../domain/operator/fields.ts'
import {
  appWebhook,
  appWebhookResend,
  appWebhookResendAll,
  appWebhookTest,
  shownUrl,
} from '../../../domain/operator/webhooks.ts'
import { Badge, Facts, Time } from '../../pages/components.tsx'
import { ActionButton, ActionForm } from '../action-form.tsx'
import { appHref } from '../apps/paths.ts'
import { actions, Card, consolePage, ShownOnce, Table } from '../components.tsx'
import type { PageContext } from '../page-context.ts'

interface WebhookModel {
  readonly appId: string
  readonly webhook: Webhook | null
  readonly failing: FailingEvents | undefined
  /** What the form begins with. */
  readonly start: Entered
  /** Newest first. */
  readonly events: readonly StoredEvent[]
}

export function webhookPath(appId: string): string {
  return `/admin/apps/webhook?app=${encodeURIComponent(appId)}`
}

export function webhookPage(pageContext: PageContext, model: WebhookModel): string {
  const { appId, webhook, failing, start, events } = model
  const hasFailed = failing !== undefined || events.some(({ state }) => state === 'failed')
  const again = hasFailed && webhook?.disabledAt === null && (
    <ActionButton of={appWebhookResendAll} with={{ appId }}>
      Send all failed events now
    </ActionButton>
  )
  return consolePage(
    pageContext,
    { title: `Webhook of ${appId}`, section: 'apps', parent: { title: appId, href: appHref(appId) } },
    <div class="columns wide-first loose">
      <div class="stack">
        <Card title="Last deliveries" hint="Events of this app, latest first." actions={again}>
          <Table
            caption="Last deliveries"
            columns={['Event', 'Status', 'Time', actions]}
            rows={events.map((event) => eventCells(appId, event))}
            empty="No events."
          />
        </Card>
      </div>
      <div class="stack">
        {webhook && (
          <Card
            title="Webhook"
            actions={
              <>
                {webhook.disabledAt === null && (
                  <ActionButton of={appWebhookTest} with={{ appId }}>
                    Send test event
                  </ActionButton>
                )}
                <ActionButton
                  of={appWebhook}
                  with={{ appId, off: true }}
                  confirm={`End the webhook of ${appId}? Events that wait are deleted.`}
                  kind="danger"
                >
                  End
                </ActionButton>
              </>
            }
          >
            <Facts
              entries={{
                URL: <code class="breaks">{shownUrl(webhook.url)}</code>,
                Events: webhook.eventTypes.join(', ') || 'all',
                State: <WebhookState webhook={webhook} failing={failing} />,
              }}
            />
            {failing && failing.answer !== null && (
              <>
                <h3>Body of the latest answer</h3>
                <pre class="answer">{failing.answer}</pre>
                <p class="hint">otpost hides what looks like a secret, an e-mail address or a number.</p>
              </>
            )}
            {webhook.disabledAt !== null && (
              <p class="hint">
                An event failed at its last try, or the receiver answered 410. To switch the webhook on, save
                it again.
              </p>
            )}
          </Card>
        )}
        <Card
          title={webhook ? 'Change the webhook' : 'Set a webhook'}
          hint="The next page shows a new secret once. A previous secret signs events too for 24 hours."
        >
          <ActionForm
            of={appWebhook}
            start={start}
            hidden={{ appId }}
            without={['off', 'keepSecret']}
            submit="Save"
          />
        </Card>
      </div>
    </div>,
  )
}

interface WebhookStateProps {
  readonly webhook: Webhook
  readonly failing: FailingEvents | undefined
}

export function WebhookState({ webhook, failing }: WebhookStateProps) {
  const state = webhookStateOf(webhook, failing)
  if (state === 'on') return <Badge tone="good">on</Badge>
  return (
    <span class="two-lines">
      <span>
        <Badge tone="bad">{state === 'off' ? 'switched off' : state}</Badge>{' '}
        {webhook.disabledAt !== null && <Time at={webhook.disabledAt} />}
      </span>
      {failing && (
        <small>
          {counted(failing.events, 'event')} will be tried again, the oldest <Time at={failing.since} />:{' '}
          {failing.error}
        </small>
      )}
    </span>
  )
}

function eventCells(appId: string, event: StoredEvent) {
  const { id, at, type, state, requestId, recipient } = event
  return [
    <span class="two-lines">
      {requestId === null ? (
        <code>{type}</code>
      ) : (
        <a href={`/admin/deliveries/${encodeURIComponent(requestId)}`}>
          <code>{type}</code>
        </a>
      )}
      {recipient !== null && <small class="masked">{recipient}</small>}
    </span>,
    <EventStatus event={event} />,
    <Time at={at} />,
    state !== 'delivered' && state !== 'failed' ? null : (
      <ActionButton of={appWebhookResend} with={{ appId, id }}>
        Send again
      </ActionButton>
    ),
  ]
}

function EventStatus({ event: { state, tries, dueAt, httpStatus, error, endedAt } }: { event: StoredEvent }) {
  const answer = error ?? (httpStatus === null ? undefined : `HTTP ${httpStatus}`)
  const unknown = endedAt === null && (tries === 0 ? 'not tried yet' : 'being sent')
  const isRetried = endedAt === null && answer !== undefined
  return (
    <span class="two-lines">
      {state === 'delivered' ? (
        <Badge tone="good">delivered</Badge>
      ) : state === 'failed' ? (
        <Badge tone="bad">failed</Badge>
      ) : isRetried ? (
        <Badge tone="warn">failed, will be tried again</Badge>
      ) : (
        <Badge tone="quiet">waiting</Badge>
      )}
      <small>
        {[answer ?? unknown, tries > 1 && `${count(tries)} tries`].filter(Boolean).join(', ')}
        {isRetried && dueAt < whileOff && (
          <>
            . Next try <Time at={dueAt} isUpcoming />
          </>
        )}
      </small>
    </span>
  )
}

/** The only page with the secret of a webhook. */
export function webhookSecretPage(
  pageContext: PageContext,
  { appId, secret }: { readonly appId: string; readonly secret: string },
): string {
  const parent = { title: `Webhook of ${appId}`, href: webhookPath(appId) }
  return consolePage(
    pageContext,
    { title: `Webhook secret of ${appId}`, section: 'apps', parent },
    <ShownOnce
      title="New webhook secret"
      thing="secret"
      text={secret}
      done={{ title: 'the webhook', href: parent.href }}
    >
      The receiver of the events verifies their signature with it. If you lose it, save the webhook again to
      create another one.
    </ShownOnce>,
  )
}
