import type { Field, Fields } from './fields.ts'

/** Of a body or an entry with these fields. */
export function bodyOf(fields: Fields) {
  const own = Object.entries(fields).filter(([, { hasNoOption }]) => !hasNoOption)
  return {
    type: 'object',
    properties: Object.fromEntries(own.map(([name, field]) => [name, schemaOf(field)])),
    required: own.filter(([, { isRequired }]) => isRequired).map(([name]) => name),
    additionalProperties: false,
  }
}

function schemaOf({ kind, help, choices, isNumber, byDefault, max }: Field) {
  const values = choices && { enum: Object.keys(choices) }
  if (kind === 'flag') return { type: 'boolean', description: help }
  if (kind === 'list') return { type: 'array', items: { type: 'string', ...values }, description: help }
  const given = byDefault === undefined ? {} : { default: byDefault }
  return {
    type: isNumber ? ['string', 'number'] : 'string',
    description: help,
    ...values,
    ...given,
    ...(max && { maxLength: max }),
  }
}
