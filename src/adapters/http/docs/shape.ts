import { counted } from '../../../domain/ground/format.ts'
import type { Schema } from './description.ts'

export interface ApiField {
  readonly name: string
  readonly isRequired: boolean
  /** Such as `array of string`. */
  readonly type: string
  /** Of an array: also of its elements. */
  readonly description: string
  /** Such as `1 to 64 characters`, with code between backticks. Of an array: also of its elements. */
  readonly limits: readonly string[]
  /** Of an object, or of the objects of an array. */
  readonly shape: Shape | undefined
}

/** Unions: one of the alternatives applies to the object. */
export interface Shape {
  readonly fields: readonly ApiField[]
  readonly unions: readonly (readonly Alternative[])[]
}

interface Alternative extends Shape {
  readonly title: string | undefined
  readonly description: string | undefined
}

/** In characters: the description of a field says what a longer pattern accepts. */
const longestPattern = 60

export function fieldOf(name: string, schema: Schema, isRequired = false): ApiField {
  const parts = schema.items ? [schema, schema.items] : [schema]
  return {
    name,
    isRequired,
    type: typeOf(schema),
    description: parts.flatMap(({ description }) => description ?? []).join(' '),
    limits: parts.flatMap((part) => limitsOf(withoutNull(part))),
    shape: shapeOf(schema),
  }
}

/** Undefined for a schema without fields. The fields that all alternatives of a union share are listed once. */
export function shapeOf(schema: Schema): Shape | undefined {
  const { properties = {}, required = [], items, allOf = [], anyOf = [] } = schema
  if (items) return shapeOf(items)
  const own = Object.entries(properties).map(([name, property]) =>
    fieldOf(name, property, required.includes(name)),
  )
  const parts = [{ fields: own, unions: [] }, ...allOf.flatMap((part) => shapeOf(part) ?? []), unionOf(anyOf)]
  const fields = parts.flatMap((part) => part.fields)
  const unions = parts.flatMap((part) => part.unions)
  return fields.length + unions.length > 0 ? { fields, unions } : undefined
}

function unionOf(anyOf: readonly Schema[]): Shape {
  const alternatives = anyOf.flatMap((schema) => {
    const { title, description } = schema
    const shape = shapeOf(schema)
    return shape ? [{ title, description, ...shape }] : []
  })
  const [first, ...others] = alternatives
  if (!first) return { fields: [], unions: [] }
  const shared = first.fields.filter((field) => others.every(({ fields }) => has(fields, field)))
  const different = alternatives.map((alternative) => ({
    ...alternative,
    fields: alternative.fields.filter((field) => !has(shared, field)),
  }))
  return { fields: shared, unions: [different] }
}

function typeOf({ type, properties, anyOf, items, format }: Schema): string {
  if (anyOf) return [...new Set(anyOf.map((each) => typeOf(each)))].join(' or ')
  if (type === undefined) return properties ? 'object' : 'any'
  const names = typeof type === 'string' ? [type] : type
  const words = names.map((name) => (name === 'array' && items ? `array of ${typeOf(items)}` : name))
  return words.join(' or ') + (format ? ` (${format})` : '')
}

/** The schema of the values that are not null. */
function withoutNull(schema: Schema): Schema {
  const [only, ...more] = schema.anyOf?.filter(({ type }) => type !== 'null') ?? []
  return only && more.length === 0 ? only : schema
}

function has(fields: readonly ApiField[], field: ApiField): boolean {
  return fields.some((each) => Bun.deepEquals(each, field))
}

function limitsOf(schema: Schema): string[] {
  const { minLength, maxLength, minimum, maximum, minItems, maxItems, pattern } = schema
  const values = schema.const === undefined ? (schema.enum ?? []) : [schema.const]
  return [
    values.map(code).join(', '),
    range(minLength, maxLength, 'character'),
    range(minItems, maxItems, 'element'),
    range(minimum, maximum),
    pattern === undefined || pattern.length > longestPattern ? '' : code(pattern),
    schema.default === undefined ? '' : `default ${code(schema.default)}`,
  ].filter((limit) => limit !== '')
}

function range(min: number | undefined, max: number | undefined, noun?: string): string {
  const amount = (value: number) => (noun === undefined ? String(value) : counted(value, noun))
  if (min === undefined) return max === undefined ? '' : `at most ${amount(max)}`
  if (max === undefined) return min === 1 && noun !== undefined ? 'not empty' : `at least ${amount(min)}`
  return min === max ? amount(max) : `${min} to ${amount(max)}`
}

export function code(value: unknown): string {
  return `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``
}
