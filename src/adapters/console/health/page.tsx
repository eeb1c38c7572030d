/** @jsxImportSource preact */

import type { AuditRecord } from '../../../domain/ground/audit.ts'
import { bytesWords, counted } from '../../../domain/ground/format.ts'
import type { Finding } from '../../../domain/health/problem.ts'
import { Badge, ExactTime, Facts, rich, Time } from '../../pages/components.tsx'
import { auditUrl, Card, consolePage, end, Form, Table } from '../components.tsx'
import { linksOf } from '../overview/links.tsx'
import type { PageContext } from '../page-context.ts'

export interface HealthModel {
  /** Null: not since the server started. */
  readonly checks: { readonly at: number; readonly findings: readonly Finding[] } | null
  readonly canCheck: boolean
  readonly databaseName: string
  /** Such as `SQLite 3.51.3`. */
  readonly database: string
  readonly bun: string
  /** In bytes. Undefined: unknown. */
  readonly size: number | undefined
  readonly freeBytes: number | undefined
  /** The latest of `otpost backup`. Null: none is known. Undefined: other programs make them. */
  readonly backup: AuditRecord | null | undefined
  /** By provider. */
  readonly reports: ReadonlyMap<string, number | null>
  /** With connections to PostgreSQL. Null: on its machine. */
  readonly nodes: readonly {
    readonly address: string | null
    readonly connections: number
    readonly since: number
  }[]
}

export function healthPage(pageContext: PageContext, model: HealthModel): string {
  const { databaseName, database, bun, size, freeBytes, reports, nodes } = model
  return consolePage(
    pageContext,
    { title: 'Health', section: 'health' },
    <>
      <Checks {...model} />
      <Card title="Server">
        <Facts
          entries={{
            Version: pageContext.version,
            Bun: bun,
            Clock: <ExactTime at={pageContext.now} />,
            Database: (
              <>
                {database}, <code>{databaseName}</code>
              </>
            ),
            Size: size === undefined ? 'unknown' : bytesWords(size),
            'Free disk space': freeBytes === undefined ? null : bytesWords(freeBytes),
            'Latest backup': <Backup {...model} />,
          }}
        />
      </Card>
      <Card
        title="Delivery reports"
        hint="The latest final report of each provider, of the last 30 days. Times are exact to the minute for 2 hours, to the hour for 2 days, then to the day."
      >
        <Table
          caption="The latest delivery reports"
          columns={['Provider', end('Latest report')]}
          rows={Array.from(reports, ([provider, at]) => [
            <a href={`/admin/deliveries?${new URLSearchParams({ provider })}`}>{provider}</a>,
            at === null ? <span class="hint">none</span> : <Time at={at} />,
          ])}
          empty="No provider."
          figures
        />
      </Card>
      {nodes.length > 0 && (
        <Card
          title="Nodes"
          hint="Processes of otpost with connections to the database, by IP address. Behind a pooler it is that of the pooler."
        >
          <Table
            caption="Nodes"
            columns={['IP address', end('Connections'), end('Since')]}
            rows={nodes.map(({ address, connections, since }) => [
              address ?? 'machine of the database',
              connections,
              <Time at={since} />,
            ])}
            empty=""
            figures
          />
        </Card>
      )}
    </>,
  )
}

function Checks({ checks, canCheck }: Pick<HealthModel, 'checks' | 'canCheck'>) {
  const found = checks?.findings ?? []
  const ofLevel = (...levels: readonly Finding['level'][]) =>
    found.filter(({ level }) => levels.includes(level))
  const [problems, fine] = [[...ofLevel('fail'), ...ofLevel('bad'), ...ofLevel('warn')], ofLevel('ok')]
  const hint =
    'The checks of `otpost doctor`, with the settings of this server. They call providers, the mail server and other hosts of the settings, send no message, and take at most 15 seconds.'
  return (
    <Card
      id="checks"
      title="Checks"
      hint={hint}
      actions={canCheck && <Form action="/admin/health" anchor="checks" submit="Run now" />}
    >
      {checks === null ? (
        <p class="none">Not run since this server started.</p>
      ) : (
        <p role="status">
          {problems.length === 0 ? 'No problems' : counted(problems.length, 'problem')},{' '}
          {counted(fine.length, 'check')} passed, <Time at={checks.at} />.
        </p>
      )}
      <Findings list={problems} />
      {fine.length > 0 && (
        <details class="fold" open={problems.length === 0}>
          <summary>{counted(fine.length, 'check')} passed</summary>
          <Findings list={fine} />
        </details>
      )}
    </Card>
  )
}

const tones = { ok: 'good', warn: 'warn', bad: 'bad', fail: 'bad' } as const
const words = { ok: 'passed', warn: 'warning', bad: 'problem', fail: 'failure' } as const

function Findings({ list }: { list: readonly Finding[] }) {
  if (list.length === 0) return null
  return (
    <ul class="findings">
      {list.map((finding) => (
        <li key={finding.text}>
          <p>
            <strong class="breaks">{finding.what}</strong>{' '}
            <Badge tone={tones[finding.level]}>{words[finding.level]}</Badge>
          </p>
          <p class="breaks">{rich(finding.text)}</p>
          {finding.level !== 'ok' && (
            <p class="hint breaks">
              {rich(finding.remedy)}{' '}
              {linksOf(finding.see).map(({ title, href }) => (
                <a key={href} href={href}>
                  {title}
                </a>
              ))}
            </p>
          )}
        </li>
      ))}
    </ul>
  )
}

function Backup({ backup }: Pick<HealthModel, 'backup'>) {
  if (backup === undefined) return <>made by the tools of PostgreSQL</>
  if (backup === null)
    return (
      <>
        none by <code>otpost backup</code> is known. Litestream and copies of the disk are not noted.
      </>
    )
  return (
    <>
      <Time at={backup.at} />, <code class="breaks">{backup.target}</code>{' '}
      <a href={auditUrl({ group: 'data' })}>All</a>
    </>
  )
}
