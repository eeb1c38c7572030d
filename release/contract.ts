import { join } from 'node:path'
import packageJson from '../package.json'
import { endpoints } from '../src/adapters/http/endpoints/index.ts'
import { manageApi, type manageOperation, managePath } from '../src/adapters/http/manage/description.ts'
import { openApi } from '../src/adapters/http/openapi.ts'
import { capitalized } from '../src/domain/ground/format.ts'

// Writes client/contract.ts, the types of `otpost/client`, from the API description. Rejects forms of schema
// that it does not support. openapi-typescript 7.13.0 is not used: it lacks the error codes of each operation, and the
// fields that the client adds would be required.

const root = join(import.meta.dir, '..')

/** Fields that the client adds to each request. */
const addedByClient = ['appId', 'apiKey', 'brandId']

interface Schema {
  readonly title?: string
  readonly description?: string
  readonly type?: string | readonly string[]
  readonly const?: string | boolean
  readonly enum?: readonly string[]
  readonly items?: Schema
  readonly minLength?: number
  readonly maxLength?: number
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly allOf?: readonly Schema[]
  readonly anyOf?: readonly Schema[]
  readonly additionalProperties?: unknown
}

/** Keywords that types can't express, and those that are read below. Others are rejected. */
const keywords = new Set(
  'title description type const enum items minLength maxLength properties required allOf anyOf format pattern minimum minItems maxItems uniqueItems additionalProperties maximum'.split(
    ' ',
  ),
)

interface Response {
  readonly description: string
  readonly content: { readonly 'application/json': { readonly schema: Schema } }
}

interface Operation {
  /** Of POST. */
  readonly requestBody?: Pick<Response, 'content'>
  readonly responses: Readonly<Record<string, Response>>
}

export interface Description {
  readonly paths: Readonly<Record<string, { readonly get?: Operation; readonly post?: Operation }>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

export function currentDescription(): Description {
  return JSON.parse(JSON.stringify(openApi('', false)))
}

/** The text of client/contract.ts. Throws for an unsupported form of schema. */
export async function contract(description: Description = currentDescription()): Promise<string> {
  const { paths, components } = description
  const types = new Map<string, string>()
  const declare = (schema: Schema, rivals: readonly Schema[] = [], isAnswer = false) => {
    const name = nameOf(schema)
    const { anyOf, description } = schema
    if (anyOf) {
      const names = anyOf.map((member, _, members) => declare(member, members))
      types.set(name, `${comment(description ?? '')}export type ${name} = ${names.join(' | ')}`)
    } else types.set(name, declaration(name, schema, rivals.flatMap(shapesOf), isAnswer))
    return name
  }
  const reasons = valuesOf(components.schemas.Error?.properties?.reason ?? {}).map(literal)
  types.set(
    'reasons',
    `${comment('Why a request was rate-limited or is invalid. A newer service may have others.')}export type FailureReason = ${reasons.join(' | ')}`,
  )
  const table: string[] = []
  for (const { path, client: method } of endpoints) {
    if (method === undefined) continue
    const { get, post } = paths[path] ?? {}
    const operation = post ?? get
    if (operation === undefined) throw new Error(`the description has no ${path}`)
    if (operation.requestBody) declare(operation.requestBody.content['application/json'].schema)
    const { 200: ok, 201: success = ok, 202: accepted, 431: _, ...failures } = operation.responses
    if (success === undefined) throw new Error(`${path} has no answer 200 or 201`)
    const answer = success.content['application/json'].schema
    declare(answer, [], true)
    if (accepted) declare(accepted.content['application/json'].schema, [], true)
    const errors = errorsOf(failures)
    types.set(`${method} errors`, errorsDeclaration(method, errors))
    table.push(
      `${method}: { verb: '${post ? 'POST' : 'GET'}', path: '${path}', fields: ${fieldsOf(answer)}, errors: ${JSON.stringify([...errors.keys()])} }`,
    )
  }
  const text = [
    '// Written by `bun run contract` from the declarations in src/adapters/http/endpoints. Edit those.',
    ...types.values(),
    `/** Of this package. */\nexport const version = '${packageJson.version}'`,
    `${comment('What the client knows of each operation as it runs: its HTTP method and path, the fields that its success has, and its codes.')}export const operations = { ${table.join(', ')} } as const`,
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
  /** Those of this code alone. */
  readonly fields: Readonly<Record<string, Schema>>
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
    for (const { code, fields } of codesOf(response.content['application/json'].schema)) {
      const condition = conditions.get(code)
      if (!condition) throw new Error(`status ${status} does not say when ${code} comes`)
      const error = errors.get(code) ?? { conditions: [], fields }
      error.conditions.push(`${status}: ${condition}`)
      errors.set(code, error)
    }
  }
  return errors
}

function codesOf(schema: Schema): { code: string; fields: Readonly<Record<string, Schema>> }[] {
  const {
    anyOf,
    allOf,
    properties: { error, success, message, requestId, reason, field, ...fields } = {},
  } = resolved(schema)
  if (anyOf) return anyOf.flatMap(codesOf)
  // The last one has the codes of this answer.
  const last = allOf?.at(-1)
  if (last) return codesOf(last)
  if (!error) throw new Error(`no codes in ${JSON.stringify(schema)}`)
  return valuesOf(error).map((code) => ({ code: String(code), fields }))
}

function errorsDeclaration(method: string, errors: ReadonlyMap<string, ErrorCode>): string {
  const members = [...errors].map(([code, { conditions, fields }]) => {
    const own = { properties: fields, required: Object.keys(fields), isOpen: false }
    const type = own.required.length === 0 ? 'object' : bodyOf(own, [], [], true)
    return `${comment(conditions.join(' '))}readonly ${code}: ${type}`
  })
  const about = `Why ${method} fails: each code of the service with the fields that come with it alone.`
  return `${comment(about)}export interface ${capitalized(method)}Errors {\n${members.join('\n')}\n}`
}

function fieldsOf(schema: Schema | undefined): string {
  const fields = (schema?.required ?? []).flatMap((name) => {
    const field = schema?.properties?.[name]
    if (!field || name === 'success') return []
    const [type] = [resolved(field).type].flat()
    const kind = type === 'integer' ? 'number' : type === 'array' || type === 'object' ? 'object' : 'string'
    return [`${name}: '${kind}'`]
  })
  return `{ ${fields.join(', ')} }`
}

/** An object without alternatives. */
interface Shape {
  readonly properties: Readonly<Record<string, Schema>>
  readonly required: readonly string[]
  /** Accepts other properties of any type. */
  readonly isOpen: boolean
}

function shapesOf(schema: Schema): readonly Shape[] {
  const { properties = {}, required = [], anyOf, allOf, additionalProperties } = resolved(schema)
  const isOpen = additionalProperties === true
  if (anyOf) {
    const shapes = anyOf.flatMap(shapesOf)
    // The client adds what one of the alternatives requires.
    const isMet = shapes.some(({ required }) => required.every((name) => addedByClient.includes(name)))
    return isMet ? [{ properties: {}, required: [], isOpen: false }] : shapes
  }
  const parts = (allOf ?? []).map(shapesOf)
  return parts.reduce(
    (all, shapes) => all.flatMap((one) => shapes.map((other) => both(one, other))),
    [{ properties, required, isOpen }],
  )
}

function both(one: Shape, other: Shape): Shape {
  return {
    properties: { ...one.properties, ...other.properties },
    required: [...new Set([...one.required, ...other.required])],
    isOpen: one.isOpen || other.isOpen,
  }
}

/** @param rivals the other modes of the same operation. The service ignores or rejects the fields that only they have. */
function declaration(name: string, schema: Schema, rivals: readonly Shape[], isAnswer: boolean): string {
  const doc = comment(schema.description ?? '')
  const shapes = shapesOf(schema)
  const [only, ...more] = shapes.map((shape) => bodyOf(shape, shapes, rivals, isAnswer))
  return more.length === 0
    ? `${doc}export interface ${name} ${only}`
    : `${doc}export type ${name} = ${[only, ...more].join(' | ')}`
}

function bodyOf(
  { properties, required, isOpen }: Shape,
  siblings: readonly Shape[],
  rivals: readonly Shape[] = [],
  isAnswer = false,
): string {
  const unknown = required.filter((name) => properties[name] === undefined)
  if (unknown.length > 0) throw new Error(`a required field has no schema: ${unknown}`)
  const isAbsent = (name: string) => properties[name] === undefined || properties[name].type === 'null'
  const fields = Object.entries(properties).flatMap(([name, property]) => {
    if (isAbsent(name) || name === 'appId' || name === 'apiKey') return []
    const isAdded = name === 'brandId' && !isAnswer
    // A field with one value needs no description.
    const doc =
      valuesOf(property).length === 1
        ? ''
        : `${property.description ?? ''}${sizeOf(property)}${isAdded ? ' Without it, that of the client.' : ''}`
    const isRequired = required.includes(name) && !isAdded
    const own = siblings.flatMap(({ properties: { [name]: rival } }) => (rival ? shapesOf(rival) : []))
    return [`${comment(doc)}readonly ${name}${isRequired ? '' : '?'}: ${typeOf(property, own, isAnswer)}`]
  })
  const others = isOpen ? [] : [...siblings, ...rivals]
  const names = new Set(others.flatMap((rival) => Object.keys(rival.properties)))
  if (isOpen) fields.push('readonly [name: string]: unknown')
  const absent = [...names, ...Object.keys(properties)].filter(isAbsent)
  return `{\n${[...fields, ...[...new Set(absent)].map((name) => `readonly ${name}?: never`)].join('\n')}\n}`
}

/** Null counts as absent in a request; an answer has it. */
function typeOf(schema: Schema, siblings: readonly Shape[], isAnswer: boolean): string {
  const type = typeWithoutNull(resolved(schema), siblings, isAnswer)
  return isAnswer && [schema.type].flat().includes('null') ? `${type} | null` : type
}

function typeWithoutNull(declared: Schema, siblings: readonly Shape[], isAnswer: boolean): string {
  const values = valuesOf(declared)
  if (values.length > 0) return values.map(literal).join(' | ')
  const { type, items } = declared
  const [only] = [type].flat().filter((name) => name !== 'null')
  switch (only) {
    case 'string':
      return 'string'
    case 'integer':
      return 'number'
    case 'boolean':
      return 'boolean'
    case 'array':
      if (items) return `readonly ${inParentheses(typeOf(items, [], isAnswer))}[]`
      break
    case 'object': {
      const shapes = shapesOf(declared)
      if (shapes.every(({ properties }) => Object.keys(properties).length === 0))
        return 'Readonly<Record<string, unknown>>'
      return shapes.map((shape) => bodyOf(shape, [...siblings, ...shapes], [], isAnswer)).join(' | ')
    }
  }
  throw new Error(`this form of schema is not known: ${JSON.stringify(declared)}`)
}

function valuesOf(schema: Schema): readonly (string | boolean)[] {
  const { const: only, enum: listed = [] } = resolved(schema)
  return only === undefined ? listed : [only]
}

/** Without an alternative of null, and without one of any value, which is accepted and ignored. */
function resolved(schema: Schema): Schema {
  refuseUnknown(schema)
  const { anyOf, description } = schema
  const isNamed = ({ description: _, ...rules }: Schema) =>
    rules.type !== 'null' && Object.keys(rules).length > 0
  const [only, ...more] = anyOf?.filter(isNamed) ?? []
  return only && more.length === 0 ? { ...resolved(only), ...(description ? { description } : {}) } : schema
}

function refuseUnknown(schema: Schema): void {
  const unknown = Object.keys(schema).filter((keyword) => !keywords.has(keyword))
  if (unknown.length > 0) throw new Error(`no schema of the description had this before: ${unknown}`)
}

/** `|` binds less than `[]`. */
function inParentheses(type: string): string {
  return type.startsWith('{') || !type.includes(' | ') ? type : `(${type})`
}

function literal(value: string | boolean): string {
  return typeof value === 'string' ? `'${value}'` : String(value)
}

function nameOf({ title }: Schema): string {
  if (title === undefined) throw new Error('a request or an answer has no name')
  return title
}

/** Empty if the description has the length already. */
function sizeOf({ description = '', type, minLength = 0, maxLength }: Schema): string {
  if (![type].flat().includes('string') || maxLength === undefined || description.includes(`to ${maxLength}`))
    return ''
  return ` ${minLength} to ${maxLength} characters.`
}

function comment(text: string): string {
  if (text === '') return ''
  const lines = ['']
  for (const word of text.trim().replaceAll('*/', '* /').split(/\s+/)) {
    const line = lines.at(-1) ?? ''
    if (line.length + word.length < 100) lines[lines.length - 1] = `${line} ${word}`
    else lines.push(` ${word}`)
  }
  return lines.length === 1
    ? `/**${lines[0]} */\n`
    : `/**\n${lines.map((line) => ` *${line}`).join('\n')}\n */\n`
}

/** The text of client/manage-contract.ts: the fields of each action and read of the management API. */
export async function manageContract(): Promise<string> {
  const paths: Readonly<Record<string, { readonly post: ReturnType<typeof manageOperation> }>> =
    manageApi('').paths
  const actions = Object.entries(paths).map(([path, { post }]) => {
    const { properties, required } = post.requestBody.content['application/json'].schema
    const fields = Object.entries(properties).map(([name, field]) => {
      const isRequired = required.includes(name)
      return `${comment(field.description ?? '')}readonly ${name}${isRequired ? '' : '?'}: ${manageType(field)}${isRequired ? '' : ' | null'}`
    })
    const body = fields.length === 0 ? 'Readonly<Record<string, never>>' : `{\n${fields.join('\n')}\n}`
    return `${comment(post.summary)}readonly '${path.replace(`${managePath}/`, '')}': ${body}`
  })
  return await formatted(
    [
      '// Written by `bun run contract` from the declarations in src/domain/operator. Edit those.',
      `${comment('The fields of each action of the management API.')}export interface ManageActions { ${actions.join('\n')} }`,
    ].join('\n\n'),
  )
}

function manageType(field: Schema): string {
  const values = field.enum ?? field.items?.enum
  const one = values ? values.map(literal).join(' | ') : 'string'
  if (field.type === 'boolean') return 'boolean'
  return field.type === 'array' ? `readonly (${one})[]` : Array.isArray(field.type) ? 'string | number' : one
}

if (import.meta.main) {
  await Bun.write(join(root, 'client/contract.ts'), await contract())
  await Bun.write(join(root, 'client/manage-contract.ts'), await manageContract())
}
