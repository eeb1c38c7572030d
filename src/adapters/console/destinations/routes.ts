import { dayMs } from '../../../domain/ground/time.ts'
import { authoredRules, checkDestination, providerNames } from '../../../domain/operator/destinations.ts'
import { checkPrice } from '../../../domain/operator/money.ts'
import { mostRead, readRoutes } from '../../../domain/operator/routes.ts'
import { html } from '../answers.ts'
import { field } from '../form-fields.ts'
import type { PageContext } from '../page-context.ts'
import type { PageHandler } from '../page-handler.ts'
import { type DestinationsModel, destinationsPage } from './page.tsx'
import { routesPage } from './routes-page.tsx'

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
    const checked = await checkDestination({ ...ports, ...numbers }, settings, digits, brand || null)
    const price = checkPrice(await ports.priceList(), digits, checked.kind, providerNames(routes))
    const result = { ...checked, formatted: numbers.formatPhone(digits), price }
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
      providers: providerNames(routes),
      hasTemplateRoute: routes.smsMode !== 'plain',
      countryCodes: numbers.countries,
      check: { number: '', brand: '', result: null, problem: null },
      ...part,
    }
    return html(destinationsPage(pageContext, model), status)
  }
}
