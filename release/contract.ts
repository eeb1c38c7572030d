import { join } from 'node:path'
import { openApi } from '../src/adapters/http/openapi.ts'

// Writes client/contract.ts, the types of `otpost/client`, from the API description. Rejects forms of schema
// that it does not support. openapi-typescript 7.13.0 is not used: it ignores if, then, else and not, so that
// a request without phone and email compiles. It also lacks the error codes of each operation.

const root = join(import.meta.dir, '..')

const methods = {
  send: '/otp/send',
  resend: '/otp/resend',
  verify: '/otp/verify',
  notify: '/notify',
} as const

/** Fields that the client adds to each request. */
const addedByClient = ['appId', 'apiKey', 'brandId']

interface Schema {
  readonly $ref?: string
  readonly title?: string
  readonly description?: string
  readonly type?: string
  readonly const?: string | boolean
  readonly enum?: readonly string[]
  readonly items?: Schema
  readonly minLength?: number
  readonly maxLength?: number
  readonly properties?: Readonly<Record<string, Schema | false>>
  readonly required?: readonly string[]
  readonly if?: Schema
  readonly then?: Schema
  readonly else?: Schema
  readonly allOf?: readonly Schema[]
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly not?: Schema
}

/** Keywords that types can't express, and those that are read below. Others are rejected. */
const keywords = new Set(
  '$ref title description type const enum items minLength maxLength properties required if then else allOf anyOf oneOf not default format pattern minimum minItems maxItems additionalProperties'.split(
    ' ',
  ),
)

interface Response {
  readonly description: string
  readonly content: { readonly 'application/json': { readonly schema: Schema } }
}

interface Operation {
  readonly requestBody: Pick<Response, 'content'>
  readonly responses: Readonly<Record<string, Response>>
}

export interface Description {
  readonly paths: Readonly<Record<string, { readonly post?: Operation }>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

export function currentDescription(): Description {
  return JSON.parse(JSON.stringify(openApi('', false)))
}

/** The text of client/contract.ts. Throws for an unsupported form of schema. */
export async function contract(description: Description = currentDescription()): Promise<string> {
  const { schemas } = description.components

  const types = new Map<string, string>()
  const declare = (schema: Schema) => {
    const name = nameOf(schema)
    const { [name]: declared } = schemas
    if (declared === undefined) throw new Error(`the description has no schema ${name}`)
    types.set(name, declaration(name, declared))
    return name
  }
  const table: string[] = []
  for (const [method, path] of Object.entries(methods)) {
    const operation = description.paths[path]?.post
    if (operation === undefined) throw new Error(`the description has no POST ${path}`)
    const request = operation.requestBody.content['application/json'].schema
    const names = (request.oneOf ?? [request]).map(declare)
    if (names.length > 1) {
      const doc = comment('A message to each of some recipients, in one of four modes.')
      types.set('', `${doc}export type ${capital(method)}Request = ${names.join(' | ')}`)
    }
    const { 200: success, ...failures } = operation.responses
    if (success === undefined) throw new Error(`${path} has no answer 200`)
    const answer = declare(success.content['application/json'].schema)
    const errors = errorsOf(failures)
    types.set(`${method} errors`, errorsDeclaration(method, errors))
    table.push(
      `${method}: { path: '${path}', fields: ${fieldsOf(schemas[answer])}, errors: ${JSON.stringify([...errors.keys()])} }`,
    )
  }
  const text = [
    '// Written by `bun run contract` from the description of the interface, src/adapters/http/openapi.ts. Edit that.',
    ...types.values(),
    `${comment('What the client knows of each operation as it runs: where it is, the fields that its success has, and its codes.')}export const operations = { ${table.join(', ')} } as const`,
  ].join('\n\n')
  return await formatted(text)
}

async function formatted(text: string): Promise<string> {
  const biome = join(root, 'node_modules/.bin/biome')
  const child = Bun.spawn([biome, 'format', '--stdin-file-path=client/contract.ts'], {
    cwd: root,
    stdin: new Blob([text]),
    stderr: 'pipe',
  })
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  if (code !== 0) throw new Error(`biome can not read the contract: ${err}\n${text}`)
  return out
}

interface ErrorCode {
  /** When each status is returned. */
  readonly conditions: string[]
  readonly channel: Schema | undefined
}

function errorsOf(failures: Readonly<Record<string, Response>>): Map<string, ErrorCode> {
  const errors = new Map<string, ErrorCode>()
  for (const [status, response] of Object.entries(failures)) {
    const conditions = new Map(
      response.description.split('\n\n').map((line) => {
        const [, code = '', condition = ''] = /^`(\w+)`: (.*)$/s.exec(line) ?? []
        return [code, condition]
      }),
    )
    for (const { code, channel } of codesOf(response.content['application/json'].schema)) {
      const condition = conditions.get(code)
      if (!condition) throw new Error(`status ${status} does not say when ${code} comes`)
      const error = errors.get(code) ?? { conditions: [], channel }
      error.conditions.push(`${status}: ${condition}`)
      errors.set(code, error)
    }
  }
  return errors
}

function codesOf(schema: Schema): { code: string; channel: Schema | undefined }[] {
  const { $ref, allOf, oneOf, properties, required } = schema
  if ($ref !== undefined) return []
  if (allOf || oneOf) return [...(allOf ?? []), ...(oneOf ?? [])].flatMap(codesOf)
  const error = properties?.error
  if (!error) throw new Error(`no codes in ${JSON.stringify(schema)}`)
  const codes = error.enum ?? [String(error.const)]
  const channel = required?.includes('channel') ? { enum: ['SMS', 'EMAIL'] } : undefined
  return codes.map((code) => ({ code, channel }))
}

function errorsDeclaration(method: string, errors: ReadonlyMap<string, ErrorCode>): string {
  const members = [...errors].map(([code, { conditions, channel }]) => {
    const fields = channel ? `{ readonly channel: ${typeOf(channel)} }` : 'object'
    return `${comment(conditions.join(' '))}readonly ${code}: ${fields}`
  })
  const about = `Why ${method} fails: each code of the service with the fields that come with it alone.`
  return `${comment(about)}export interface ${capital(method)}Errors {\n${members.join('\n')}\n}`
}

function fieldsOf(schema: Schema | undefined): string {
  const fields = (schema?.required ?? []).flatMap((name) => {
    const field = schema?.properties?.[name]
    if (!field || name === 'success') return []
    return [`${name}: '${typeOf(field) === 'number' ? 'number' : 'string'}'`]
  })
  return `{ ${fields.join(', ')} }`
}

/** What one alternative of a schema requires in addition. */
type Alternative = Pick<Schema, 'properties' | 'required'>

/** A schema without conditions, and the fields that must be absent. */
interface Shape {
  readonly schema: Schema
  readonly absent: readonly string[]
}

function shapesOf(schema: Schema): readonly Shape[] {
  const alternatives = alternativesOf(schema)
  return alternatives.map((alternative) =>
    narrowed(
      schema,
      alternative,
      alternatives.filter((other) => other !== alternative),
    ),
  )
}

function alternativesOf(schema: Schema): readonly Alternative[] {
  const { if: condition, then: consequence, else: otherwise, oneOf, anyOf, allOf } = schema
  // The client's fields meet the condition.
  const isMet = anyOf?.some(({ required = [], properties }) => {
    return !properties && required.every((name) => addedByClient.includes(name))
  })
  if (anyOf && !isMet) throw new Error(`anyOf is not known: ${JSON.stringify(anyOf)}`)
  if ([condition, oneOf, allOf].filter((form) => form !== undefined).length > 1) {
    throw new Error(`several conditions in one schema are not known: ${JSON.stringify(schema)}`)
  }
  if (condition) return [both(condition, consequence), both(opposite(schema, condition), otherwise)]
  if (allOf) {
    const cases = allOf.map((part) => both(part.if, part.then))
    const covered = cases.map(({ properties = {} }) => Object.entries(properties).find(isConst))
    const all = valuesOf(schema, covered[0]?.[0])
    const values = covered.map((found) => found?.[1].const)
    if (all.length === 0 || !all.every((value) => values.includes(value))) {
      throw new Error(`allOf does not cover every case: ${JSON.stringify(allOf)}`)
    }
    return cases
  }
  return oneOf ?? [{}]
}

function isConst(entry: [string, Schema | false]): entry is [string, Schema] {
  return entry[1] !== false && entry[1].const !== undefined
}

function both(one: Schema = {}, other: Schema = {}): Alternative {
  return {
    properties: { ...one.properties, ...other.properties },
    required: [...new Set([...(one.required ?? []), ...(other.required ?? [])])],
  }
}

/** Negates the condition that a field has a certain value: it has another, or is absent. */
function opposite(schema: Schema, condition: Schema): Alternative {
  const [found, ...others] = Object.entries(condition.properties ?? {}).filter(isConst)
  const [name = '', { const: value } = {}] = found ?? []
  const all = valuesOf(schema, name)
  if (!all.some((other) => other === value) || others.length > 0) {
    throw new Error(`if is not known: ${JSON.stringify(condition)}`)
  }
  return { properties: { [name]: { enum: all.filter((other) => other !== value) } } }
}

function valuesOf({ properties = {} }: Schema, name = ''): readonly string[] {
  const { [name]: property } = properties
  return property ? (property.enum ?? []) : []
}

/** A field that only other alternatives require is forbidden here: the service would ignore it. */
function narrowed(schema: Schema, own: Alternative, others: readonly Alternative[]): Shape {
  const properties = Object.fromEntries(
    Object.entries(schema.properties ?? {}).map(([name, property]) => {
      const narrower = own.properties?.[name]
      if (!property || !narrower) return [name, property]
      if (!narrower.required) return [name, { ...property, ...narrower }]
      const rivals = others.flatMap(({ properties: { [name]: rival } = {} }) => (rival ? [rival] : []))
      const shape = narrowed(property, narrower, rivals)
      const absent = [...shape.absent.map((field) => ({ required: [field] })), ...(property.not?.anyOf ?? [])]
      return [name, { ...shape.schema, not: { anyOf: absent } }]
    }),
  )
  const required = [...new Set([...(schema.required ?? []), ...(own.required ?? [])])]
  const { allOf, anyOf, oneOf, if: _, then, else: __, not, ...plain } = schema
  const foreign = others
    .flatMap((other) => other.required ?? [])
    .filter((name) => !required.includes(name) && !own.properties?.[name])
  return { schema: { ...plain, properties, required }, absent: [...new Set([...foreign, ...forbidden(not)])] }
}

function forbidden(not: Schema | undefined): readonly string[] {
  if (not === undefined) return []
  return (not.anyOf ?? []).map(({ required: [only, ...more] = [] }) => {
    if (only === undefined || more.length > 0) throw new Error(`not is not known: ${JSON.stringify(not)}`)
    return only
  })
}

function declaration(name: string, schema: Schema): string {
  refuseUnknown(schema)
  const doc = comment(schema.description ?? '')
  const [only, ...more] = shapesOf(schema).map(bodyOf)
  return more.length === 0
    ? `${doc}export interface ${name} ${only}`
    : `${doc}export type ${name} = ${[only, ...more].join(' | ')}`
}

function bodyOf({ schema: { properties = {}, required = [] }, absent }: Shape): string {
  const fields = Object.entries(properties).flatMap(([name, property]) => {
    if (!property || absent.includes(name) || name === 'appId' || name === 'apiKey') return []
    const isAdded = name === 'brandId'
    // A field with one value needs no description.
    const isFixed = property.const !== undefined || property.enum?.length === 1
    const doc = isFixed
      ? ''
      : `${property.description ?? ''}${sizeOf(property)}${isAdded ? ' Without it, that of the client.' : ''}`
    const isRequired = required.includes(name) && !isAdded
    return [`${comment(doc)}readonly ${name}${isRequired ? '' : '?'}: ${typeOf(property)}`]
  })
  return `{\n${[...fields, ...absent.map((name) => `readonly ${name}?: never`)].join('\n')}\n}`
}

function typeOf(schema: Schema): string {
  refuseUnknown(schema)
  if (schema.const !== undefined) return literal(schema.const)
  if (schema.enum) return schema.enum.map(literal).join(' | ')
  switch (schema.type) {
    case 'string':
      return 'string'
    case 'integer':
      return 'number'
    case 'array':
      if (schema.items) return `readonly ${typeOf(schema.items)}[]`
      break
    case 'object':
      if (Object.keys(schema.properties ?? {}).length === 0) return 'Readonly<Record<string, unknown>>'
      return shapesOf(schema).map(bodyOf).join(' | ')
  }
  throw new Error(`this form of schema is not known: ${JSON.stringify(schema)}`)
}

function refuseUnknown(schema: Schema): void {
  const unknown = Object.keys(schema).filter((keyword) => !keywords.has(keyword))
  if (unknown.length > 0) throw new Error(`no schema of the description had this before: ${unknown}`)
}

function literal(value: string | boolean): string {
  return typeof value === 'string' ? `'${value}'` : String(value)
}

function nameOf({ $ref = '' }: Schema): string {
  return $ref.slice($ref.lastIndexOf('/') + 1)
}

function capital(word: string): string {
  return `${word[0]?.toUpperCase()}${word.slice(1)}`
}

/** Empty if the description has the length already. */
function sizeOf({ description = '', type, minLength = 0, maxLength }: Schema): string {
  if (type !== 'string' || maxLength === undefined || description.includes(`to ${maxLength}`)) return ''
  return ` ${minLength} to ${maxLength} characters.`
}

function comment(text: string): string {
  if (text === '') return ''
  const lines = ['']
  for (const word of text.replaceAll('*/', '* /').split(/\s+/)) {
    const line = lines.at(-1) ?? ''
    if (line.length + word.length < 100) lines[lines.length - 1] = `${line} ${word}`
    else lines.push(` ${word}`)
  }
  return lines.length === 1
    ? `/**${lines[0]} */\n`
    : `/**\n${lines.map((line) => ` *${line}`).join('\n')}\n */\n`
}

if (import.meta.main) await Bun.write(join(root, 'client/contract.ts'), await contract())
