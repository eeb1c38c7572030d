import {
  authoredRules,
  checkDestination,
  listedRules,
  removeDestination,
  ruleName,
  setDestination,
} from '../../../domain/operator/destinations.ts'
import { guardEntryOf, guardWords } from '../../../domain/operator/guard.ts'
import { done, html } from '../answers.ts'
import { field } from '../form-fields.ts'
import type { PageContext } from '../page-context.ts'
import { orAgain, type PageHandler, withoutCommands } from '../page-handler.ts'
import { type DestinationForm, type DestinationsModel, destinationsPage } from './page.tsx'

export function destinationRoutes({ get, post, ports, settings }: PageHandler): void {
  const { numbers, routes, smsCountries } = settings
  const { isCountry } = numbers
  const { brands } = ports

  get('/admin/destinations', async (_, pageContext) => shown(pageContext))
  post('/admin/destinations', async ({ visit, form, by }, pageContext) => {
    const asked = ruleAsked(form)
    const { brand, sender, route, ...rest } = asked
    const requested = { ...rest, brand: brand || null, sender: sender || null, route: route || null }
    return orAgain(
      async () => {
        const { rules, warnings } = await setDestination({ ...by, brands, isCountry }, requested, {
          routes,
          smsCountries,
        })
        const saved = `Saved ${rules.map(ruleName).join(', ')}. Takes effect immediately.`
        return done(visit, '/admin/destinations', [saved, ...warnings.map(withoutCommands)].join(' '))
      },
      (text) => shown(pageContext, { form: asked, problems: text.split('\n') }, 409),
    )
  })
  // A rule can be a whole phone number, so it is not in a URL.
  post('/admin/destinations/edit', ({ form }, pageContext) => shown(pageContext, { form: ruleAsked(form) }))
  post('/admin/destinations/remove', async ({ visit, form, by }) => {
    const requested = { rule: field(form, 'rule'), brand: field(form, 'brand') || null, isGroup: false }
    const [removed] = await removeDestination({ ...by, brands, isCountry }, requested)
    return done(visit, '/admin/destinations', `Removed the rule ${removed ? ruleName(removed) : ''}.`)
  })
  post('/admin/destinations/check', async ({ form }, pageContext) => {
    const [number, brand] = [field(form, 'number'), field(form, 'brand')]
    const digits = settings.contacts.phone(number)?.identity
    if (digits === undefined) {
      const problem = `The number ${settings.contacts.faultOf(number, 'SMS')}`
      return shown(pageContext, { check: { number, brand, result: null, problem } }, 400)
    }
    const [{ rules }, prefixes] = await Promise.all([ports.policy.rows(), ports.guard.prefixes()])
    const listed = listedRules(smsCountries, rules)
    const checked = checkDestination(numbers.destinationOf, digits, brand || null, listed)
    const entry = guardEntryOf(digits, prefixes, pageContext.now)
    const guard = entry ? guardWords(entry, settings.guard) : null
    const result = { ...checked, formatted: numbers.formatPhone(digits), guard }
    return shown(pageContext, { check: { number, brand, result, problem: null } })
  })

  async function shown(
    pageContext: PageContext,
    part: Partial<Pick<DestinationsModel, 'form' | 'problems' | 'check'>> = {},
    status = 200,
  ): Promise<Response> {
    const [rules, all, countries] = await Promise.all([
      authoredRules(ports, smsCountries),
      ports.brands.list(),
      ports.eventLog.countries(pageContext.now),
    ])
    const model: DestinationsModel = {
      rules,
      countries,
      brands: all.map(({ slug }) => slug),
      providers: [...new Set([...routes.plain, ...routes.template])],
      hasTemplateRoute: routes.smsMode !== 'plain',
      form: noRule,
      problems: [],
      check: { number: '', brand: '', result: null, problem: null },
      ...part,
    }
    return html(destinationsPage(pageContext, model), status)
  }
}

const noRule: DestinationForm = {
  rule: '',
  action: 'allow',
  brand: '',
  providers: [],
  sender: '',
  route: '',
  isGroup: false,
}

function ruleAsked(form: URLSearchParams): DestinationForm {
  return {
    rule: field(form, 'rule'),
    action: field(form, 'action'),
    brand: field(form, 'brand'),
    providers: form.getAll('providers'),
    sender: field(form, 'sender'),
    route: field(form, 'route'),
    isGroup: form.has('isGroup'),
  }
}
