import { testResult } from '../../../domain/operator/test-send.ts'
import { ownTemplateKeys } from '../../../domain/texts/brand.ts'
import { templateKeys } from '../../../domain/texts/templates.ts'
import { html, seeOther } from '../answers.ts'
import { field } from '../form-fields.ts'
import type { PageContext } from '../page-context.ts'
import { orAgain, type PageHandler } from '../page-handler.ts'
import { type TestModel, testPage } from './page.tsx'

const path = '/admin/test'

export function testRoutes({ get, post, ports }: PageHandler): void {
  // A recipient in the URL would be in logs of proxies.
  get(path, ({ url: { searchParams } }, pageContext) =>
    shown(pageContext, { ...formIn(searchParams), to: '' }),
  )
  post(path, ({ form: fields, visit, actor }, pageContext) => {
    const form = formIn(fields)
    return orAgain(
      async () => {
        const { to, provider, brand, template, lang, draft } = form
        const sent = await ports.sendTest(actor, {
          to,
          provider: provider || undefined,
          brand: brand || undefined,
          key: template || undefined,
          lang: lang || undefined,
          isDraft: draft !== '',
        })
        const tone = sent.outcome.kind === 'accepted' ? 'good' : 'bad'
        return seeOther(`/admin/deliveries/${sent.requestId}`, [
          visit.flashCookie({ tone, text: testResult(sent) }),
        ])
      },
      (problem) => shown(pageContext, form, problem),
    )
  })

  async function shown(
    pageContext: PageContext,
    form: TestModel['form'],
    problem: string | null = null,
  ): Promise<Response> {
    const brands = await ports.brands.list()
    const templates = [...new Set([...templateKeys, ...brands.flatMap(ownTemplateKeys)])]
    const providers = ports.providerStates()
    return html(
      testPage(pageContext, { form, providers, brands, templates, problem }),
      problem === null ? 200 : 409,
    )
  }
}

function formIn(fields: URLSearchParams): TestModel['form'] {
  const of = (name: string) => field(fields, name)
  return {
    to: of('to'),
    provider: of('provider'),
    brand: of('brand'),
    template: of('template'),
    lang: of('lang'),
    draft: of('draft'),
  }
}
