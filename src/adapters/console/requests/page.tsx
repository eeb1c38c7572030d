/** @jsxImportSource preact */

import type { ComponentChildren } from 'preact'
import { useContext } from 'preact/hooks'
import { type AuditRecord, actorWords } from '../../../domain/ground/audit.ts'
import { channelNames } from '../../../domain/ground/contact.ts'
import type { IntegrationRequestRecord } from '../../../domain/integration/integration.ts'
import type { Entered } from '../../../domain/operator/fields.ts'
import { requestApprove, requestMail, requestReject } from '../../../domain/operator/requests.ts'
import { Badge, curl, Empty, Facts, LinkButton, rich, Snippet, Time } from '../../pages/components.tsx'
import { ActionForm } from '../action-form.tsx'
import { Card, consolePage, FormContext, Notice, Pager, Problem, Table } from '../components.tsx'
import type { PageContext } from '../page-context.ts'

interface RequestsModel {
  readonly pending: readonly IntegrationRequestRecord[]
  readonly decided: readonly IntegrationRequestRecord[]
  readonly origin: string
  readonly isLater: boolean
  readonly next: number | null
}

interface RequestModel {
  readonly request: IntegrationRequestRecord
  readonly start: Entered
  /** Of prices. */
  readonly currency: string
  /** Of the name of the brand with other brands, as sentences. */
  readonly resemblances: readonly string[]
  /** Of each form, as its fields. */
  readonly mails: Readonly<Record<'approved' | 'rejected', Entered>>
  readonly mailerName: string
  /** Null: the request is pending. */
  readonly mail: RequestMailModel | null
}

/** Of a decided request. */
export interface RequestMailModel {
  readonly request: IntegrationRequestRecord
  readonly mailerName: string
  readonly last: AuditRecord | null
  readonly problem: string | null
  /** As its fields. */
  readonly mail: Entered
}

export function requestsPage(
  pageContext: PageContext,
  { pending, decided, origin, isLater, next }: RequestsModel,
): string {
  return consolePage(
    pageContext,
    { title: 'Integration requests', section: 'requests' },
    <>
      <Card title="Pending" hint="With your decision, you can send the requester an e-mail.">
        {pending.length === 0 && isLater ? (
          <p class="hint">No more pending requests.</p>
        ) : pending.length === 0 ? (
          <Empty title="No pending requests">
            <p>Integrators request access with this API call, which needs no credentials:</p>
            <Snippet title="Request access" text={requestLine(origin)} />
          </Empty>
        ) : (
          <ul class="waiting">
            {pending.map((request) => (
              <li key={request.id} class="waits">
                <Pending request={request} />
              </li>
            ))}
          </ul>
        )}
      </Card>
      {decided.length > 0 && (
        <Card title="Decided">
          <Table
            caption="Approved and rejected requests, latest first"
            columns={['Company', 'Brand', 'Decision', 'Result', 'Decided by', 'Decided']}
            rows={decided.map((request) => [
              <a href={pathOf(request)}>
                <bdi>{request.companyName}</bdi>
              </a>,
              <bdi>{request.brandName}</bdi>,
              <DecisionBadge status={request.status} />,
              <Outcome request={request} />,
              request.decidedBy ?? '–',
              request.decidedAt === null ? '–' : <Time at={request.decidedAt} />,
            ])}
            empty="No request has been decided."
          />
        </Card>
      )}
      <Pager
        first={isLater ? '/admin/requests' : null}
        next={next === null ? null : `/admin/requests?page=${next}`}
      />
    </>,
  )
}

export function requestPage(pageContext: PageContext, model: RequestModel): string {
  const { request } = model
  return consolePage(
    pageContext,
    {
      title: request.companyName,
      section: 'requests',
      parent: { title: 'Integration requests', href: '/admin/requests' },
    },
    <div class={request.status === 'pending' ? 'columns loose' : 'columns wide-first loose'}>
      <Card title="Details" hint="Entered by the requester and not verified.">
        <Facts
          entries={{
            Status: <DecisionBadge status={request.status} />,
            Company: <bdi>{request.companyName}</bdi>,
            Brand: <bdi>{request.brandName}</bdi>,
            Contact: <bdi>{request.contactName}</bdi>,
            'E-mail': <MailLink address={request.contactEmail} />,
            Channels: request.channels.map((channel) => channelNames[channel]).join(', ') || 'not stated',
            Website: request.website === null ? 'not stated' : <WebLink url={request.website} />,
            Received: <Time at={request.createdAt} />,
            'Request ID': <code>{request.id}</code>,
          }}
        />
        <h3 class="over">Use case</h3>
        {request.useCase === null ? (
          <p class="hint">Not stated.</p>
        ) : (
          <p class="prose" dir="auto">
            {request.useCase}
          </p>
        )}
      </Card>
      {request.status === 'pending' ? (
        <Deciding model={model} />
      ) : (
        <div class="stack">
          <Card title="Decision">
            <Facts
              entries={{
                Decision: <DecisionBadge status={request.status} />,
                Result: <Outcome request={request} />,
                'Decided by': request.decidedBy ?? '–',
                Decided: request.decidedAt === null ? '–' : <Time at={request.decidedAt} />,
              }}
            />
          </Card>
          {model.mail && <RequestMailCard model={model.mail} />}
        </div>
      )}
    </div>,
  )
}

function Deciding({ model }: { model: RequestModel }) {
  const { request, currency } = model
  const sendTo = (
    <>
      Send this e-mail to <bdi class="breaks">{request.contactEmail}</bdi>
    </>
  )
  return (
    <div class="stack">
      {model.mailerName === 'outbox' && <Notice tone="warn">{rich(noMailServer)}</Notice>}
      {model.resemblances.length > 0 && (
        <Notice tone="warn">
          <div>
            {model.resemblances.map((sentence) => (
              <p key={sentence}>{sentence}</p>
            ))}
            <p>Make sure that {request.companyName} may use this name.</p>
          </div>
        </Notice>
      )}
      <Card
        title="Approve"
        hint="Creates the app, its API key and an active brand. The app can use only this brand. An existing brand with this slug does not change."
      >
        <ActionForm
          of={requestApprove}
          start={{ ...model.start, ...model.mails.approved }}
          hidden={{ id: request.id }}
          labels={{ budget: `Budget in ${currency}`, mail: sendTo }}
          id="approve"
          submit="Approve and create API key"
        >
          <p class="hint">
            The next page shows the API key once. Send the key to the integrator over a secure channel.
          </p>
        </ActionForm>
      </Card>
      <Card title="Reject" hint="The reason is for your records. The e-mail has only the text below.">
        <ActionForm
          of={requestReject}
          start={model.mails.rejected}
          hidden={{ id: request.id }}
          labels={{ mail: sendTo }}
          id="reject"
          confirm={`Reject the request from ${request.companyName}? You cannot undo this.`}
          submit="Reject"
          kind="danger"
        />
      </Card>
    </div>
  )
}

const noMailServer =
  'No mail server is configured (`SMTP_URL`). An e-mail goes to the outbox and does not reach the requester.'

/** On the page of a decided request, and after an e-mail that was not sent. */
export function RequestMailCard({
  model,
  children,
}: {
  model: RequestMailModel
  children?: ComponentChildren
}) {
  const { request, last, problem, mailerName } = model
  const { rejected } = useContext(FormContext)
  const form = (
    <ActionForm
      of={requestMail}
      start={rejected?.action === requestMail.name ? rejected.values : model.mail}
      hidden={{ id: request.id, after: String(last?.id ?? 0) }}
      id="mail"
      submit={last?.action === 'request.mailed' ? 'Send another e-mail' : 'Send e-mail'}
    />
  )
  const isDone = last?.action === 'request.mailed' && problem === null
  return (
    <Card title="E-mail to the requester">
      <Problem text={problem} />
      {mailerName === 'outbox' && <Notice tone="bad">{rich(noMailServer)}</Notice>}
      {problem === null && (
        <p>
          <MailResult last={last} />
        </p>
      )}
      <p class="hint">
        To <MailLink address={request.contactEmail} />
      </p>
      {children}
      {isDone ? (
        <details>
          <summary>Send another e-mail</summary>
          {form}
        </details>
      ) : (
        form
      )}
    </Card>
  )
}

function MailResult({ last }: Pick<RequestMailModel, 'last'>) {
  if (last === null) return <>No e-mail was sent.</>
  const { action, details, actor, at } = last
  const result =
    action === 'request.mail'
      ? 'Started, result unknown'
      : action === 'request.mail-failed'
        ? `Failed (${details.reason})`
        : details.provider === 'outbox'
          ? 'Stored in the outbox'
          : 'Sent'
  return (
    <>
      {result} <Time at={at} /> by {actorWords(actor)}
    </>
  )
}

function Pending({ request }: { request: IntegrationRequestRecord }) {
  const channels = request.channels.map((channel) => channelNames[channel]).join(' and ')
  return (
    <article class="asks">
      <div>
        <h3>
          <a href={pathOf(request)}>
            <bdi>{request.companyName}</bdi>
          </a>
        </h3>
        <p class="hint">
          Brand <bdi>{request.brandName}</bdi>
          {channels === '' ? '' : ` · ${channels}`}
        </p>
        {request.useCase !== null && (
          <p class="clip" dir="auto">
            {request.useCase}
          </p>
        )}
        <p class="hint">
          <bdi>{request.contactName}</bdi> · <bdi>{request.contactEmail}</bdi> ·{' '}
          <Time at={request.createdAt} />
        </p>
      </div>
      <LinkButton href={pathOf(request)} kind="primary">
        Review
      </LinkButton>
    </article>
  )
}

function DecisionBadge({ status }: Pick<IntegrationRequestRecord, 'status'>) {
  const tone = status === 'approved' ? 'good' : status === 'rejected' ? 'bad' : 'warn'
  return <Badge tone={tone}>{status}</Badge>
}

function Outcome({ request }: { request: IntegrationRequestRecord }) {
  const { status, appId, brandSlug, reason } = request
  if (status === 'rejected') {
    return reason === null || reason === '' ? <>no reason given</> : <bdi class="breaks">{reason}</bdi>
  }
  if (appId === null && brandSlug === null) return <>–</>
  return (
    <span class="breaks">
      {brandSlug !== null && (
        <>
          brand <a href={`/admin/brands/${encodeURIComponent(brandSlug)}`}>{brandSlug}</a>
        </>
      )}
      {brandSlug !== null && appId !== null ? ', ' : ''}
      {appId !== null && (
        <>
          app <a href="/admin/apps">{appId}</a>
        </>
      )}
    </span>
  )
}

function pathOf({ id }: IntegrationRequestRecord): string {
  return `/admin/requests/${encodeURIComponent(id)}`
}

function requestLine(origin: string): string {
  return curl(`${origin}/integrations/requests`, {
    companyName: 'Acme Ltd',
    contactName: 'Ada',
    contactEmail: 'ada@example.com',
    brandName: 'Acme',
    useCase: 'Sign-in codes',
  })
}

/** A URL from a caller. Only http(s) becomes a link. */
function WebLink({ url }: { url: string }) {
  if (!/^https?:\/\//i.test(url)) return <bdi>{url}</bdi>
  return (
    <a href={url} rel="noopener noreferrer nofollow">
      <bdi>{url}</bdi>
    </a>
  )
}

/** Escapes `?` and `&`, which mail programs read as header fields. */
function MailLink({ address }: { address: string }) {
  const href = `mailto:${encodeURIComponent(address).replace('%40', '@')}`
  return (
    <a href={href}>
      <bdi>{address}</bdi>
    </a>
  )
}
