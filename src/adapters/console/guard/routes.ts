import { utc } from '../../../domain/ground/format.ts'
import { OperatorError } from '../../../domain/ground/operator-error.ts'
import { latestChanges } from '../../../domain/operator/destinations.ts'
import {
  defaultDurations,
  readGuardStatus,
  removeGuardPrefix,
  setGuardPrefix,
} from '../../../domain/operator/guard.ts'
import { done, html } from '../answers.ts'
import { field } from '../form-fields.ts'
import type { PageContext } from '../page-context.ts'
import { orAgain, type PageHandler } from '../page-handler.ts'
import { type GuardForm, guardPage } from './page.tsx'

const mostRequests = 20

export function guardRoutes({ get, post, ports, settings }: PageHandler): void {
  get('/admin/guard', (_, pageContext) => shown(pageContext))
  post('/admin/guard', async ({ visit, form, by }, pageContext) => {
    const entered = {
      prefix: field(form, 'prefix'),
      action: field(form, 'action'),
      duration: field(form, 'duration'),
    }
    return orAgain(
      async () => {
        const { action, prefix, duration } = entered
        if (action !== 'allow' && action !== 'block') throw new OperatorError('Choose allow or block.')
        const entry = await setGuardPrefix(by, action, prefix, duration || defaultDurations[action])
        const what = action === 'allow' ? 'allowed' : 'blocked'
        const off = settings.guard === 'off' ? ' It has no effect, because GUARD is off.' : ''
        return done(visit, '/admin/guard', `+${entry.prefix} is ${what} until ${utc(entry.expiresAt)}.${off}`)
      },
      (problem) => shown(pageContext, entered, problem),
    )
  })
  post('/admin/guard/remove', async ({ visit, form, by }) => {
    const [removed] = await removeGuardPrefix(by, field(form, 'prefix'))
    return done(visit, '/admin/guard', `Ended the ${removed?.action} of +${removed?.prefix}.`)
  })

  async function shown(
    pageContext: PageContext,
    form: GuardForm = { prefix: '', action: 'block', duration: '' },
    problem: string | null = null,
  ): Promise<Response> {
    const { guard: mode, smsCountries } = settings
    const { countryOfPrefix, formatPrefix } = settings.numbers
    const [status, requests, changes] = await Promise.all([
      readGuardStatus({ ...ports, countryOfPrefix }, { mode, smsCountries }),
      ports.eventLog.guarded(mostRequests),
      ports.audit.list({ actions: ['guard.set'], limit: latestChanges }),
    ])
    const model = { status, requests, changes, form, formatPrefix, problem }
    return html(guardPage(pageContext, model), problem === null ? 200 : 409)
  }
}
