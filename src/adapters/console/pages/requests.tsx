/** @jsxImportSource preact */
import type { IntegrationRequestRecord } from '../../../domain/integration/integration.ts'
import { Badge, curl, Empty, Facts, Field, LinkButton, Snippet, Time } from '../../pages/components.tsx'
import { Card, consolePage, Form, Notice, Pager, Table } from '../components.tsx'
import { channelNames } from '../concerns.ts'
import type { PageContext, RequestModel, RequestsModel } from '../models.ts'
import { MailLink, WebLink } from './parts.tsx'

export function requestsPage(
  pageContext: PageContext,
  { pending, decided, origin, isLater, next }: RequestsModel,
): string {
  return consolePage(
    pageContext,
    { title: 'Requests', section: 'requests' },
    <>
      <Card
        title="Waiting for a decision"
        hint="Who asks for access is told nothing until you write to them."
      >
        {pending.length === 0 && isLater ? (
          <p class="hint">Nobody else is waiting.</p>
        ) : pending.length === 0 ? (
          <Empty title="Nobody is waiting">
            <p>Integrators ask over the API. Send them this line, or try it yourself:</p>
            <Snippet title="Ask for access" text={askingLine(origin)} />
          </Empty>
        ) : (
          <ul class="waiting">
            {pending.map((request) => (
              <li key={request.id} class="waits">
                <Waiting request={request} />
              </li>
            ))}
          </ul>
        )}
      </Card>
      {decided.length > 0 && (
        <Card title="Decided">
          <Table
            caption="Requests that were approved or rejected, the latest first"
            columns={['Company', 'Brand', 'Decision', 'What came of it', 'By', 'When']}
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
            empty="Nothing was decided yet."
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

/** /admin/requests/:id */
export function requestPage(pageContext: PageContext, model: RequestModel): string {
  const { request } = model
  return consolePage(
    pageContext,
    {
      title: request.companyName,
      section: 'requests',
      parent: { title: 'Requests', href: '/admin/requests' },
    },
    <div class="columns wide-first loose">
      <Card title="What they ask for" hint="As they typed it. Nobody has checked it.">
        <Facts
          entries={{
            Status: <DecisionBadge status={request.status} />,
            Company: <bdi>{request.companyName}</bdi>,
            Brand: <bdi>{request.brandName}</bdi>,
            Contact: <bdi>{request.contactName}</bdi>,
            'E-mail': <MailLink address={request.contactEmail} />,
            Channels: request.channels.map((channel) => channelNames[channel]).join(', ') || 'not said',
            Website: request.website === null ? 'not said' : <WebLink url={request.website} />,
            Asked: <Time at={request.createdAt} />,
            Request: <code>{request.id}</code>,
          }}
        />
        <h3 class="over">Use case</h3>
        {request.useCase === null ? (
          <p class="hint">They did not say.</p>
        ) : (
          <p class="prose" dir="auto">
            {request.useCase}
          </p>
        )}
      </Card>
      {request.status === 'pending' ? (
        <Deciding model={model} />
      ) : (
        <Card title="Decision">
          {model.problem !== null && <Notice tone="bad">{model.problem}</Notice>}
          <Facts
            entries={{
              Decision: <DecisionBadge status={request.status} />,
              'What came of it': <Outcome request={request} />,
              By: request.decidedBy ?? '–',
              When: request.decidedAt === null ? '–' : <Time at={request.decidedAt} />,
            }}
          />
        </Card>
      )}
    </div>,
  )
}

function Deciding({ model }: { model: RequestModel }) {
  const { request, problem } = model
  const path = pathOf(request)
  return (
    <div class="stack">
      <Card
        title="Approve"
        hint="Makes the app with its key, and the brand, active at once; a brand of that slug that is there already stays as it is."
      >
        {problem !== null && <Notice tone="bad">{problem}</Notice>}
        <Form action={`${path}/approve`} submit="Approve and make the key">
          <Field
            label="App id"
            name="appId"
            required
            isCode
            value={model.appId}
            hint="What they send as appId."
          />
          <Field
            label="Brand slug"
            name="brandSlug"
            required
            isCode
            value={model.brandSlug}
            hint="What they send as brandId."
          />
          <p class="hint">The next page shows the API key, once. Have a safe way ready to hand it over.</p>
        </Form>
      </Card>
      <Card title="Reject" hint="The reason is for your records: nobody is sent anything.">
        <Form
          action={`${path}/reject`}
          confirm={`Reject the request of ${request.companyName}? A decision is not taken back.`}
          submit="Reject"
          kind="danger"
        >
          <Field label="Reason" name="reason" value={model.reason} rows={3} />
        </Form>
      </Card>
    </div>
  )
}

function Waiting({ request }: { request: IntegrationRequestRecord }) {
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
          for the brand <bdi>{request.brandName}</bdi>
          {channels === '' ? '' : `, by ${channels}`}
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
        Decide
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
    return reason === null || reason === '' ? <>no reason noted</> : <bdi class="breaks">{reason}</bdi>
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

function askingLine(origin: string): string {
  return curl(`${origin}/integrations/requests`, {
    companyName: 'Acme Ltd',
    contactName: 'Ada',
    contactEmail: 'ada@example.com',
    brandName: 'Acme',
    useCase: 'Codes for logging in',
  })
}
