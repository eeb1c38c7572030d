/** @jsxImportSource preact */
import { Fragment } from 'preact'
import { Brandmark, document, rich, Snippet } from '../../pages/components.tsx'
import type { ApiDescription, ApiOperation, Parameter, Response, Schema } from './description.ts'
import { type ApiCall, contentOf, Examples, errorFields, examplesOf, isError } from './examples.tsx'
import { Fields, type Mark, ShapeOf } from './fields.tsx'
import { docsFiles } from './files.ts'
import { samples } from './samples.ts'
import { type ApiField, fieldOf, shapeOf } from './shape.ts'

/** @param origin of the URLs in examples */
export function referencePage(api: ApiDescription, origin: string): string {
  const { schemas, headers, securitySchemes } = api.components
  const calls = callsOf(api)
  const groups = api.tags.map((tag) => ({
    ...tag,
    calls: calls.filter(({ operation: { tags } }) => tags.includes(tag.name)),
  }))
  return document(
    { title: 'API reference', files: docsFiles, styles: ['docs.css'], scripts: ['docs.js'] },
    <>
      <a class="skip" href="#content">
        Skip to content
      </a>
      <div class="reference">
        <header class="side">
          <a class="home" href="/">
            <Brandmark>API</Brandmark>
          </a>
          <button type="button" class="button menu-button" popovertarget="menu">
            Menu
          </button>
          <div class="menu" id="menu" popover="auto">
            <search hidden>
              <input
                type="search"
                aria-label="Search the reference"
                placeholder="Search: field, error…  ( / )"
                autocomplete="off"
                spellcheck={false}
              />
              <p class="hint" role="status" />
            </search>
            <nav aria-label="Operations and events">
              <ul class="contents">
                <li>
                  <a class="link" href="#start">
                    Start
                  </a>
                </li>
                {groups.map((group) => (
                  <li key={group.name}>
                    <a class="link" href={`#${group.name}`}>
                      {group.name}
                    </a>
                    <ul class="calls">
                      {group.calls.map(({ method, path, operation: { operationId } }) => (
                        <li key={operationId}>
                          <a class="link call" href={`#${operationId}`}>
                            {method && <Method name={method} />}
                            <code>{path}</code>
                          </a>
                        </li>
                      ))}
                    </ul>
                  </li>
                ))}
                <li>
                  <a class="link" href="#errors">
                    Errors
                  </a>
                </li>
              </ul>
            </nav>
          </div>
        </header>
        <main id="content" tabIndex={-1}>
          <section id="start" aria-labelledby="start-title">
            <header>
              <h1 id="start-title">API reference</h1>
              <p class="hint">
                otpost {api.info.version} · <a href="/openapi.json">OpenAPI 3.1</a>
              </p>
            </header>
            <Start
              call={calls.find(({ operation }) => operation.operationId === 'sendOtp')}
              origin={origin}
            />
            <div class="prose">
              <h2>Rules of all calls</h2>
              <Markdown text={api.info.description} />
            </div>
          </section>
          {groups.map((group) => (
            <section key={group.name} id={group.name} aria-labelledby={`${group.name}-title`}>
              <h2 id={`${group.name}-title`}>{group.name}</h2>
              <p>{rich(group.description)}</p>
              {group.calls.map(callSection)}
            </section>
          ))}
          <section class="common" id="errors" aria-labelledby="errors-title">
            <h2 id="errors-title">Errors</h2>
            <p>{rich(schemas.Error?.description)}</p>
            {body(schemas.Error, 'optional')}
          </section>
        </main>
      </div>
    </>,
  )

  function callSection(call: ApiCall) {
    const { method, path, operation } = call
    const { operationId: id, summary, description, parameters = [], security, requestBody } = operation
    const responses = Object.entries(operation.responses)
    return (
      <article key={id} id={id} aria-labelledby={`${id}-title`}>
        <div class="head">
          <h3 id={`${id}-title`}>
            <a class="permalink" href={`#${id}`}>
              {summary}
            </a>
          </h3>
          {method && (
            <p class="endpoint">
              <Method name={method} /> <code>{path}</code>
            </p>
          )}
          <p>{rich(description)}</p>
          {security && authorization(security)}
        </div>
        <Examples call={call} origin={origin} />
        <div class="details">
          {fieldList('Query', fieldsIn('query', parameters))}
          {fieldList('Headers', fieldsIn('header', parameters))}
          {requestBody && (
            <>
              <h4>Body</h4>
              {body(contentOf(requestBody)?.schema, method ? 'required' : 'optional')}
            </>
          )}
          {responses
            .filter(([, response]) => !isError(response))
            .map(([status, response]) => (
              <Fragment key={status}>
                <h4>Response {status}</h4>
                <p>{rich(response.description)}</p>
                {body(contentOf(response)?.schema, 'optional')}
              </Fragment>
            ))}
          {errorList(responses.filter(([, response]) => isError(response)))}
          {fieldList('Response headers', headersOf(responses))}
        </div>
      </article>
    )
  }

  function errorList(responses: readonly (readonly [string, Response])[]) {
    if (responses.length === 0) return null
    return (
      <>
        <h4>Errors</h4>
        <dl class="fields">
          {responses.flatMap(([status, response]) => {
            // One paragraph for each code, in the order of the examples.
            const causes = response.description.split('\n\n')
            return examplesOf(response).map(([code, { value }], index) => (
              <div key={code}>
                <dt>
                  <code>{code}</code> <span class="type">{status}</span>
                </dt>
                <dd>
                  <p>{rich(causes[index]?.replace(`\`${code}\`: `, ''))}</p>
                  {'message' in value && <p class="hint">{rich(String(value.message))}</p>}
                  <Fields mark="optional" fields={errorFieldsOf(response, code)} />
                </dd>
              </div>
            ))
          })}
        </dl>
      </>
    )
  }

  /** Those beside the fields of every error. */
  function errorFieldsOf(response: Response, code: string): readonly ApiField[] {
    const schema = contentOf(response)?.schema
    const shapes = (schema?.anyOf ?? [schema ?? {}]).flatMap((each) => shapeOf(each) ?? [])
    const isOfCode = ({ name, limits }: ApiField) => name === 'error' && limits.includes(`\`${code}\``)
    const fields = shapes.find((shape) => shape.fields.some(isOfCode))?.fields ?? []
    return fields.filter(({ name }) => !errorFields.includes(name))
  }

  function authorization(security: NonNullable<ApiOperation['security']>) {
    const schemes = security.flatMap((each) => Object.keys(each)).map((name) => securitySchemes[name])
    return schemes.map((each) => (
      <p key={each?.description}>
        <code>Authorization: {each?.scheme === 'basic' ? 'Basic' : 'Bearer'}</code>. {rich(each?.description)}
      </p>
    ))
  }

  function fieldsIn(place: string, parameters: readonly Parameter[]) {
    return parameters
      .filter((parameter) => parameter.in === place)
      .map(({ name, schema, description, required }) => fieldOf(name, { ...schema, description }, required))
  }

  /** Those of some responses only. The introduction has the others. */
  function headersOf(responses: readonly (readonly [string, Response])[]) {
    const withHeaders = responses.filter(([, response]) => response.headers)
    const uses = withHeaders.flatMap(([status, { headers = {} }]) =>
      Object.entries(headers).map(([name, { $ref }]) => ({
        name,
        status,
        component: $ref.split('/').at(-1) ?? '',
      })),
    )
    return [...Map.groupBy(uses, ({ component }) => component)].flatMap(([component, alike]) => {
      const header = headers[component]
      const [first] = alike
      if (!header || !first || alike.length === withHeaders.length) return []
      const field = fieldOf(first.name, { ...header.schema, description: header.description })
      return [{ ...field, type: `${field.type}, with ${alike.map(({ status }) => status).join(', ')}` }]
    })
  }

  function fieldList(title: string, fields: readonly ApiField[]) {
    if (fields.length === 0) return null
    return (
      <>
        <h4>{title}</h4>
        <Fields mark="required" fields={fields} />
      </>
    )
  }

  function body(schema: Schema | undefined, mark: Mark) {
    const shape = schema && shapeOf(schema)
    return shape ? <ShapeOf {...shape} mark={mark} /> : null
  }
}

function callsOf({ paths, webhooks }: ApiDescription): ApiCall[] {
  const calls = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      operation,
    })),
  )
  const events = Object.entries(webhooks).flatMap(([path, operations]) =>
    Object.values(operations).map((operation) => ({ method: undefined, path, operation })),
  )
  return [...calls, ...events]
}

/** A first call, and the whole exchange in each language. */
function Start({ call, origin }: { call: ApiCall | undefined; origin: string }) {
  return (
    <div class="start">
      <div>
        <h2>First call</h2>
        <p>
          Your operator gives you the URL, an <code>appId</code>, an API key and a <code>brandId</code>. This
          call sends a code:
        </p>
        {call && <Examples call={call} origin={origin} isBrief />}
      </div>
      <div>
        <h2>Send and verify</h2>
        <p>
          These programs send a code, read it from standard input and verify it. They read these variables:
        </p>
        <Snippet
          title="sh"
          text={[
            `export OTPOST_URL=${origin}`,
            'export OTPOST_API_KEY=otp_live_…',
            'export OTPOST_BRAND_ID=acme',
          ].join('\n')}
        />
        <fieldset class="samples">
          <legend class="sr-only">Language</legend>
          {samples.map(({ language, code }, index) => (
            <Fragment key={language}>
              <input type="radio" name="language" id={`in-${language}`} checked={index === 0} />
              <label for={`in-${language}`}>{language}</label>
              <div class="sample">
                <Snippet title={language} text={code} />
              </div>
            </Fragment>
          ))}
        </fieldset>
      </div>
    </div>
  )
}

function Method({ name }: { name: string }) {
  return <span class={`method ${name.toLowerCase()}`}>{name}</span>
}

/** Paragraphs and tables, with bold words and code. */
function Markdown({ text }: { text: string }) {
  return text
    .split('\n\n')
    .map((block) =>
      block.startsWith('|') ? (
        <Table key={block} rows={block.split('\n').map((line) => line.split('|').slice(1, -1))} />
      ) : (
        <p key={block}>
          {block
            .split('**')
            .map((part, index) => (index % 2 === 0 ? rich(part) : <strong key={part}>{part}</strong>))}
        </p>
      ),
    )
}

function Table({ rows: [head = [], , ...rows] }: { rows: readonly (readonly string[])[] }) {
  return (
    <table>
      <thead>
        <tr>
          {head.map((cell) => (
            <th key={cell} scope="col">
              {rich(cell)}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row}>
            {row.map((cell) => (
              <td key={cell}>{rich(cell)}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}
