import { dayMs } from '../../../domain/ground/time.ts'
import { modeInForce } from '../../../domain/guard/mode.ts'
import { authoredRules, checkDestination, listedRules } from '../../../domain/operator/destinations.ts'
import { guardEntryOf, guardWords } from '../../../domain/operator/guard.ts'
import { checkPrice } from '../../../domain/operator/money.ts'
import { readRoutes } from '../../../domain/operator/routes.ts'
import { html } from '../answers.ts'
import { field } from '../form-fields.ts'
import type { PageContext } from '../page-context.ts'
import type { PageHandler } from '../page-handler.ts'
import { type DestinationsModel, destinationsPage } from './page.tsx'
import { routesPage } from './routes-page.tsx'

/** About the requests of a second or two of reading. */
const mostRead = 100_000

export function destinationRoutes({ get, post, ports, settings }: PageHandler): void {
  const { numbers, routes, smsCountries } = settings

  get('/admin/destinations', async (_, pageContext) => shown(pageContext))
  get('/admin/routes', async (_, pageContext) => {
    const { now } = pageContext
    return html(routesPage(pageContext, await readRoutes(ports, settings, now, now - 7 * dayMs, mostRead)))
  })
  post('/admin/destinations/check', async ({ form }, pageContext) => {
    const [number, brand] = [field(form, 'number'), field(form, 'brand')]
    const digits = settings.contacts.phone(number)?.to
    if (digits === undefined) {
      const problem = `The number ${settings.contacts.faultOf(number, 'SMS')}`
      return shown(pageContext, { check: { number, brand, result: null, problem } }, 400)
    }
    const [{ rules, guardMode }, prefixes, prices] = await Promise.all([
      ports.policy.rows(),
      ports.guard.prefixes(),
      ports.priceList(),
    ])
    const listed = listedRules(smsCountries, rules)
    const checked = checkDestination(numbers.destinationOf, digits, brand || null, listed)
    const entry = guardEntryOf(digits, prefixes, pageContext.now)
    const guard = entry
      ? guardWords(entry, modeInForce(guardMode, settings.guard, pageContext.now).mode)
      : null
    const price = checkPrice(prices, digits, checked.kind, [...routes.plain, ...routes.template])
    const result = { ...checked, formatted: numbers.formatPhone(digits), guard, price }
    return shown(pageContext, { check: { number, brand, result, problem: null } })
  })

  async function shown(
    pageContext: PageContext,
    part: Partial<Pick<DestinationsModel, 'check'>> = {},
    status = 200,
  ): Promise<Response> {
    const [rules, all] = await Promise.all([authoredRules(ports, smsCountries), ports.brands.list()])
    const model: DestinationsModel = {
      rules,
      brands: all.map(({ slug }) => slug),
      providers: [...new Set([...routes.plain, ...routes.template])],
      hasTemplateRoute: routes.smsMode !== 'plain',
      countryCodes: numbers.countries,
      check: { number: '', brand: '', result: null, problem: null },
      ...part,
    }
    return html(destinationsPage(pageContext, model), status)
  }
}
