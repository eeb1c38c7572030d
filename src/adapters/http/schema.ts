import { type Static, type TSchema, Type } from '@sinclair/typebox'

// How schemas of the API description are written. The domain validates requests, since the order of its checks is part of
// the contract. A schema with a title is a component, to which the others refer.
// Generators ignore `if`, `not` and `patternProperties`, so alternatives are unions of complete objects.

export function oneOf<T extends readonly string[]>(values: T, options: object = {}) {
  return Type.Unsafe<T[number]>({ type: 'string', enum: [...values], ...options })
}

/** Generators do not support null in an enum, so null is then an alternative. */
export function orNull<T extends TSchema>({ description: own, ...schema }: T, description = own) {
  const { type, ...rules } = schema
  return Type.Unsafe<Static<T> | null>({
    ...(schema.enum ? { anyOf: [schema, Type.Null()] } : { type: [type, 'null'].flat(), ...rules }),
    ...(description ? { description } : {}),
  })
}

/** Null counts as absent (design D27). */
export function optional<T extends TSchema>(schema: T) {
  return Type.Optional(orNull(schema))
}

/** Fields of another channel or mode, which the endpoint rejects (design D37). */
export function without<Name extends string>(...names: readonly Name[]) {
  const absent = Type.Optional(Type.Null({ description: 'Must be absent or null.' }))
  return Object.fromEntries(names.map((name) => [name, absent])) as Record<Name, typeof absent>
}

/** With a character that is not a space. */
export const notBlank = { minLength: 1, pattern: '\\S' }

type Fields = Record<string, TSchema>

/** Open: a later version may add fields (design D20). */
export function answer<T extends Fields>(title: string, fields: T, description: string) {
  const requestId = Type.String({
    format: 'uuid',
    description: 'The id of this request, also in the header X-Request-Id and in the server log.',
  })
  return Type.Object({ ...fields, requestId }, { title, description })
}

export function succeeded<T extends Fields>(title: string, fields: T, description: string) {
  return answer(title, { success: Type.Literal(true), ...fields }, description)
}

export function confirmed<T extends Fields>(title: string, fields: T, description: string) {
  const message = Type.String({ description: 'Text for people. Its wording may change.' })
  return succeeded(title, { message, ...fields }, description)
}

/** The names of the fields at the top of a request, in all of its forms. */
export function fieldsOf({ properties = {}, anyOf = [], allOf = [] }: TSchema): readonly string[] {
  return [...Object.keys(properties), ...[...anyOf, ...allOf].flatMap(fieldsOf)]
}
