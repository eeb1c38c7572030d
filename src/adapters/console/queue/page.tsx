/** @jsxImportSource preact */

import { count } from '../../../domain/ground/format.ts'
import type { JobState } from '../../../domain/ground/notify-job.ts'
import type { ListedJob } from '../../../domain/notify/queue.ts'
import { mostListedJobs, queueCancel, queueRetry } from '../../../domain/operator/queue.ts'
import { Badge, Time, type Tone } from '../../pages/components.tsx'
import { ActionButton } from '../action-form.tsx'
import { actions, Card, consolePage, Table, withPlus } from '../components.tsx'
import type { PageContext } from '../page-context.ts'

interface QueueModel {
  readonly jobs: readonly ListedJob[]
  /** Only jobs of this app. */
  readonly appId: string | undefined
}

const tones: Readonly<Record<JobState, Tone>> = {
  queued: 'quiet',
  sending: 'quiet',
  accepted: 'good',
  failed: 'bad',
  unknown: 'warn',
  cancelled: 'quiet',
}

export function queuePage(pageContext: PageContext, { jobs, appId }: QueueModel): string {
  const requests = [...Map.groupBy(jobs, ({ requestId }) => requestId).values()]
  return consolePage(
    pageContext,
    { title: 'Queue', section: 'queue' },
    <Card
      title={appId === undefined ? 'Asynchronous notifications' : `Asynchronous notifications of ${appId}`}
      hint="Jobs that are queued, in flight, or can be retried. Oldest request first. The message of a failed job is kept for 24 hours."
    >
      <Table
        caption="Jobs by request"
        columns={['Request', 'Recipients', 'Next try', 'Expires', 'Reason', actions]}
        rows={requests.map(requestCells)}
        empty="No jobs."
      />
      {jobs.length === mostListedJobs && <p class="hint">The first {count(mostListedJobs)} jobs.</p>}
    </Card>,
  )
}

function requestCells(jobs: readonly ListedJob[]) {
  const [first] = jobs
  if (!first) return []
  const { requestId, appId, createdAt, expiresAt } = first
  const next = jobs.filter(({ state }) => state === 'queued').map(({ dueAt }) => dueAt)
  const reasons = new Set(jobs.flatMap(({ reason }) => reason ?? []))
  return [
    <span class="two-lines">
      <a href={`/admin/deliveries/${requestId}`}>
        <Time at={createdAt} />
      </a>
      <small>
        <a href={`/admin/queue?${new URLSearchParams({ app: appId })}`}>{appId}</a>
      </small>
    </span>,
    <span class="two-lines">
      <bdi class="masked">
        {withPlus(first.masked)}
        {jobs.length > 1 && ` and ${count(jobs.length - 1)} more`}
      </bdi>
      <small>
        {[...Map.groupBy(jobs, ({ state }) => state)].map(([state, some]) => (
          <Badge key={state} tone={tones[state]}>
            {state} {jobs.length > 1 && count(some.length)}
          </Badge>
        ))}
      </small>
    </span>,
    next.length === 0 ? '–' : <Time at={Math.min(...next)} />,
    <Time at={expiresAt} />,
    reasons.size === 0 ? '–' : [...reasons].join(', '),
    <Actions jobs={jobs} requestId={requestId} />,
  ]
}

function Actions({ jobs, requestId }: { jobs: readonly ListedJob[]; requestId: string }) {
  const has = (wanted: JobState) => jobs.some(({ state }) => state === wanted)
  const name = <span class="sr-only"> {requestId}</span>
  return (
    <div class="actions">
      {has('queued') && (
        <ActionButton
          of={queueCancel}
          with={{ requestId }}
          confirm="Cancel the queued jobs of this request? Their messages are not sent."
        >
          Cancel{name}
        </ActionButton>
      )}
      {has('failed') && (
        <ActionButton of={queueRetry} with={{ requestId }}>
          Retry{name}
        </ActionButton>
      )}
      {has('unknown') && (
        <ActionButton
          of={queueRetry}
          with={{ requestId, unknown: true }}
          confirm="Retry jobs with an unknown result too? Their recipients may get the message twice."
        >
          Retry unknown{name}
        </ActionButton>
      )}
    </div>
  )
}
