/** @jsxImportSource preact */

import type { ProviderHealth } from '../../../domain/log/statistics.ts'
import type { Brand } from '../../../domain/texts/brand.ts'
import { Choice, Field, Select } from '../../pages/components.tsx'
import { Card, consolePage, Form, Problem } from '../components.tsx'
import type { PageContext } from '../page-context.ts'

export interface TestModel {
  readonly form: Readonly<Record<'to' | 'provider' | 'brand' | 'template' | 'lang' | 'draft', string>>
  readonly providers: readonly Pick<ProviderHealth, 'name' | 'channel'>[]
  readonly brands: readonly Pick<Brand, 'slug' | 'displayName'>[]
  readonly templates: readonly string[]
  readonly problem: string | null
}

export function testPath(preset: Partial<Omit<TestModel['form'], 'to'>>): string {
  return `/admin/test?${new URLSearchParams(preset)}`
}

export function testPage(
  pageContext: PageContext,
  { form, providers, brands, templates, problem }: TestModel,
): string {
  return consolePage(
    pageContext,
    {
      title: 'Send a test',
      section: 'overview',
      parent: { title: 'Overview', href: '/admin' },
    },
    <>
      <Problem text={problem} />
      <Card hint="Destination rules, budgets and the default limit of calls per minute apply. The provider bills an SMS.">
        <Form action="/admin/test" submit="Send">
          <Field
            label="Phone number or e-mail address"
            name="to"
            value={form.to}
            required
            isCode
            maxLength={254}
            placeholder="+1 202 555 0143"
            hint="Your own. The audit log has it masked."
          />
          <Select
            label="Provider"
            name="provider"
            value={form.provider}
            options={{
              '': 'The route of a message of an app',
              ...Object.fromEntries(
                [...Map.groupBy(providers, ({ name }) => name)].map(([name, own]) => [
                  name,
                  `${name} (${own.map(({ channel }) => (channel === 'SMS' ? 'phone' : 'e-mail')).join(', ')})`,
                ]),
              ),
            }}
            hint="A chosen provider gets the message also while its circuit is open. No other provider is called."
          />
          <Select
            label="Brand"
            name="brand"
            value={form.brand}
            options={{
              '': 'None',
              ...Object.fromEntries(
                brands.map(({ slug, displayName }) => [slug, `${displayName} (${slug})`]),
              ),
            }}
          />
          <Select
            label="Template"
            name="template"
            value={form.template}
            options={{
              '': 'None: the text says that it is a test',
              ...Object.fromEntries(templates.map((key) => [key, key])),
            }}
            hint="Needs a brand. otpost sends its saved text with sample values. No request can verify the code 123456."
          />
          <Field
            label="Language of the template"
            name="lang"
            value={form.lang}
            isCode
            maxLength={64}
            placeholder="hi"
            hint="A BCP 47 tag. Default: the language of the brand."
          />
          <Choice label="Send the draft of the text" name="draft" checked={form.draft !== ''} />
        </Form>
      </Card>
    </>,
  )
}
