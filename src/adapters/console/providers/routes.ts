import { html } from '../answers.ts'
import type { PageContext } from '../page-context.ts'
import type { PageHandler } from '../page-handler.ts'
import { longestValue, providerPage, providersPage } from './page.tsx'

export function providerRoutes({ get, post, settings: { providerFiles }, missing }: PageHandler): void {
  get('/admin/providers', (_, pageContext) => html(providersPage(pageContext, providerFiles.list())))
  get('/admin/providers/:name', ({ params }, pageContext) => shown(pageContext, params.name))
  post('/admin/providers/:name/try', ({ params, form }, pageContext) => {
    // Browsers send CRLF.
    const given = (field: string) => (form.get(field) ?? '').replaceAll('\r\n', '\n').slice(0, longestValue)
    return shown(pageContext, params.name, given, form.has('isTemplate'))
  })

  function shown(
    pageContext: PageContext,
    name = '',
    ...given: [((field: string) => string)?, boolean?]
  ): Response {
    const provider = providerFiles.list().find((each) => each.name === name)
    return provider
      ? html(providerPage(pageContext, provider, providerFiles.open(name, ...given)))
      : missing(pageContext, 'Provider not found')
  }
}
