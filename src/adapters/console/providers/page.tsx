/** @jsxImportSource preact */
import type { SettingInForce } from '../../../config/settings.ts'
import { Choice, Field, rich, Snippet } from '../../pages/components.tsx'
import { Card, consolePage, Form, FormLink, Problems, Table } from '../components.tsx'
import type { PageContext } from '../page-context.ts'
import { settingCells } from '../settings/page.tsx'
import { testPath } from '../test-send/page.tsx'

interface ProviderRow {
  readonly name: string
  readonly source: string
  /** Those that it needs. */
  readonly variables: readonly string[]
  /** Routes that it is in. */
  readonly uses: string
  readonly docs: string | undefined
  readonly faults: readonly string[]
}

/** A provider file without faults. */
interface OpenFile {
  readonly settings: readonly SettingInForce[]
  readonly parts: Readonly<Record<string, unknown>>
  /** Placeholders of a message, with their values. */
  readonly message: Readonly<Record<string, string>>
  readonly isTemplate: boolean
  /** Of that message. Nothing was sent. */
  readonly request: string | undefined
}

export interface ProviderFiles {
  readonly list: () => readonly ProviderRow[]
  /**
   * Undefined: a provider without a file, or with one that has faults.
   * @param given what was entered for a placeholder. Undefined: nothing yet
   */
  readonly open: (
    name: string,
    given?: (field: string) => string,
    isTemplate?: boolean,
  ) => OpenFile | undefined
}

export const longestValue = 2000

const pathOf = (name: string) => `/admin/providers/${encodeURIComponent(name)}`

export function providersPage(pageContext: PageContext, providers: readonly ProviderRow[]): string {
  return consolePage(
    pageContext,
    { title: 'Providers', section: 'settings', parent: { title: 'Settings', href: '/admin/settings' } },
    <Card hint="To connect a provider, set `SMS_PLAIN` to its name, set its variables, and restart the server. `SMS_TEMPLATE` is for registered templates. `PROVIDER_FILES` names the folder of your own provider files, which the server reads once.">
      <Table
        caption="Providers of SMS"
        columns={['Provider', 'Variables to set', 'Source', 'In use', 'Faults']}
        rows={providers.map(({ name, variables, source, uses, docs, faults }) => [
          docs || faults.length > 0 ? <a href={pathOf(name)}>{name}</a> : name,
          rich(variables.map((variable) => `\`${variable}\``).join(' ') || 'none'),
          <span class="nowrap">{source}</span>,
          uses || 'no',
          faults.length,
        ])}
        empty=""
      />
    </Card>,
  )
}

export function providerPage(
  pageContext: PageContext,
  { name, uses, docs = '', faults }: ProviderRow,
  file: OpenFile | undefined,
): string {
  const parent = { title: 'Providers', href: '/admin/providers' }
  const actions = uses && <FormLink href={testPath({ provider: name })}>Send a test</FormLink>
  const documentation = (
    <a href={docs} rel="noopener noreferrer nofollow">
      Documentation of the gateway
    </a>
  )
  return consolePage(
    pageContext,
    { title: `Provider ${name}`, section: 'settings', parent, actions },
    <>
      <Problems list={faults} />
      {file && (
        <>
          <Card title="Settings" hint={`Routes that use it: ${uses || 'none'}.`}>
            <Table
              caption="Settings of the file"
              columns={['Setting', 'Value', 'Meaning']}
              rows={file.settings.map(settingCells)}
              empty="The file has no settings."
            />
          </Card>
          <Card
            id="try"
            title="Try values"
            hint="Shows a request and sends nothing. Secrets are asterisks, also in a Basic login. A setting without a value has that of an example, and an empty field is left out. The HTTP client adds its usual headers."
          >
            {file.request !== undefined && <Snippet title="The request" text={file.request} />}
            <Form action={`${pathOf(name)}/try`} anchor="try" submit="Show the request">
              {Object.entries(file.message).map(([field, value]) => {
                const rows = field === 'text' ? { rows: 3 } : {}
                return (
                  <Field
                    key={field}
                    label={field}
                    name={field}
                    value={value}
                    maxLength={longestValue}
                    {...rows}
                  />
                )
              })}
              <Choice label="Registered-template route" name="isTemplate" checked={file.isTemplate} />
            </Form>
          </Card>
          <Card title="The file" hint={documentation}>
            {Object.entries(file.parts).map(([title, part]) => (
              <Snippet key={title} title={title} text={JSON.stringify(part, null, 2)} />
            ))}
          </Card>
        </>
      )}
    </>,
  )
}
