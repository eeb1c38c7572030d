import { html } from '../answers.ts'
import type { PageContext } from '../page-context.ts'
import type { PageHandler } from '../page-handler.ts'
import { type HealthModel, healthPage } from './page.tsx'

export function healthRoutes({ get, post, ports, settings }: PageHandler): void {
  const { audit, eventLog, stats, runChecks } = ports
  let checks: HealthModel['checks'] = null

  get('/admin/health', (_, pageContext) => page(pageContext))
  // No redirect, since another node would have other results.
  post('/admin/health', async (_, pageContext) => {
    if (runChecks) checks = { findings: await runChecks(), at: ports.now() }
    return page({ ...pageContext, now: ports.now() })
  })

  /** What the database does not answer is unknown, so that the rest is shown. */
  async function page(pageContext: PageContext): Promise<Response> {
    const [size, files, nodes, reports, backups] = await Promise.all([
      stats.size().catch(() => undefined),
      stats.files().catch(() => undefined),
      stats.nodes().catch(() => []),
      eventLog.lastReports(pageContext.now).catch(() => new Map<string, number>()),
      audit.list({ actions: ['data.backed-up'], limit: 1 }),
    ])
    const { databaseName, database, bun } = settings
    // A mail server sends none.
    const sms = ports.providerStates().filter(({ channel }) => channel === 'SMS')
    const providers = new Set([...sms.map(({ name }) => name), ...reports.keys()])
    const model = {
      checks,
      canCheck: runChecks !== undefined,
      databaseName,
      database,
      bun,
      size,
      nodes,
      freeBytes: files?.diskFree,
      backup: files ? (backups[0] ?? null) : undefined,
      reports: new Map([...providers].sort().map((name) => [name, reports.get(name) ?? null])),
    }
    return html(healthPage(pageContext, model))
  }
}
