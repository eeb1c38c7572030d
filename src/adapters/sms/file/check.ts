import { Value as Schema } from '@sinclair/typebox/value'
import type { Outcome } from '../../../domain/ground/providers.ts'
import { answerOf } from './answer.ts'
import { type FileRequest, requestOf, type Value, type Values } from './encode.ts'
import { type FileOutcome, fileSchema, type ProviderFile, type Vector } from './format.ts'
import { jsonFault } from './json-faults.ts'
import { loginSecrets, placeholderFaults } from './placeholders.ts'

export type Checked = { readonly file: ProviderFile } | { readonly faults: readonly string[] }

const maxLevels = 32

/** The names of built-in providers, and of otpost's own settings. */
export interface TakenNames {
  readonly providers: ReadonlySet<string>
  readonly settings: ReadonlySet<string>
}

/**
 * Every fault of a provider file, also those of its vectors.
 * @param name the file's, without `.json`
 */
export function checkFile(name: string, text: string, taken: TakenNames): Checked {
  let fault = jsonFault(text, maxLevels)
  let file: unknown
  try {
    file = JSON.parse(text)
  } catch (error) {
    fault ??= `the file is not JSON: ${error instanceof Error ? error.message : error}`
  }
  if (fault !== undefined) return { faults: [printable(fault)] }
  const misformed = schemaFaults(file)
  const checked = file as ProviderFile
  const faults = [
    ...misformed,
    ...(isShaped(file) ? [...nameFaults(checked, name, taken), ...placeholderFaults(checked)] : []),
    ...conditionFaults(checked),
    ...(Array.isArray(checked?.vectors) ? exampleFaults(checked, misformed.length === 0) : []),
  ]
  if (faults.length > 0) return { faults: faults.map(printable) }
  for (const name of loginSecrets(checked))
    checked.settings[name] = { ...checked.settings[name], secret: true }
  return { file: checked }
}

/** One line, with no command to a terminal. */
const printable = (fault: string) => fault.replace(/\p{C}/gu, '?')

/** Whether the parts are there that names and placeholders are in, so that a wrong value elsewhere hides no other fault. */
function isShaped(file: unknown): boolean {
  const { send, settings, from } = Object(file)
  const isName = from === undefined || typeof from === 'string'
  return typeof send?.url === 'string' && typeof settings === 'object' && settings !== null && isName
}

function nameFaults(
  { provider, settings }: ProviderFile,
  name: string,
  taken: TakenNames,
): readonly string[] {
  return [
    ...(provider === name || typeof provider !== 'string'
      ? []
      : [`provider is ${provider}, but the file is ${name}.json`]),
    ...(taken.providers.has(provider) ? [`provider: ${provider} is a built-in provider`] : []),
    ...Object.keys(settings)
      .filter((setting) => taken.settings.has(setting))
      .map((setting) => `settings.${setting} is a setting of otpost itself`),
  ]
}

function conditionFaults(file: ProviderFile): readonly string[] {
  const errors = Array.isArray(file?.errors) ? file.errors : []
  const conditions = [
    ['accepted', file?.accepted] as const,
    ...errors.map((each, at) => [`errors[${at}]`, each] as const),
  ]
  return conditions
    .filter(([, condition]) => condition?.equals !== undefined && condition.json === undefined)
    .map(([place]) => `${place}.equals needs ${place}.json, the path of the value`)
}

/** @param runs whether the form of the file is right, so that its examples can run */
function exampleFaults(file: ProviderFile, runs: boolean): readonly string[] {
  const { vectors } = file
  return [
    ...(vectors.some((vector) => vector?.outcome === 'accepted')
      ? []
      : ['vectors: none has an accepted answer']),
    ...(vectors.some((vector) => vector?.outcome !== 'accepted') ? [] : ['vectors: none has an error']),
    ...(runs ? vectors : []).flatMap((vector, index) =>
      vectorFaults(file, vector).map((fault) => `vectors[${index}]: ${fault}`),
    ),
  ]
}

/** One fault for each place, in words. */
function schemaFaults(file: unknown): readonly string[] {
  const faults = new Map<string, string>()
  for (const { path, message, schema } of Schema.Errors(fileSchema, file)) {
    const place = path.slice(1).replaceAll('/', '.') || 'the file'
    if (!faults.has(place)) faults.set(place, `${place} ${wordsOf(message, schema.description)}`)
  }
  return [...faults.values()]
}

function wordsOf(message: string, expected?: string): string {
  if (message === 'Unexpected property') return 'is no key of the format'
  if (message === 'Expected required property') return 'is missing'
  if (expected !== undefined) return `must be ${expected}`
  return message.replace(/^Expected( \w+)$/, 'must be of the type$1').replace(/^Expected/, 'must be')
}

/** The values that a vector gives to placeholders. */
export function valuesOf(
  file: ProviderFile,
  { settings = {}, message, template }: Pick<Vector, 'settings' | 'message' | 'template'>,
): Values {
  const flat = new Map<string, Value>()
  const add = (prefix: string, values: object) => {
    for (const [name, value] of Object.entries(values)) {
      if (typeof value === 'object' && value !== null) add(`${prefix}${name}.`, value)
      else if (typeof value === 'string' || typeof value === 'number') flat.set(prefix + name, value)
    }
  }
  for (const [name, { default: usual }] of Object.entries(file.settings)) {
    if (usual !== undefined) flat.set(name, usual)
  }
  add('', settings)
  // As when a server reads them.
  for (const name of Object.keys(file.settings)) if (flat.get(name) === '') flat.delete(name)
  add('', { from: file.from && flat.get(file.from), ...message })
  if (typeof template === 'object') add('template.', template)
  const to = String(flat.get('to') ?? '').replace(/^\+/, '')
  return flat.set('to', file.to === 'digits' ? to : `+${to}`)
}

function vectorFaults(file: ProviderFile, vector: Vector): readonly string[] {
  const { answer, outcome, id, message, template = message.template } = vector
  const made = requestOf(file, template !== undefined && template !== false, valuesOf(file, vector))
  const got =
    answer === 'timeout'
      ? { kind: 'unknown' as const, reason: 'time-out' }
      : answerOf(file, answer.status, answer.body ?? JSON.stringify(answer.json ?? null))
  const gotId = got.kind === 'accepted' ? got.providerMessageId : undefined
  return [
    ...requestFaults(vector.request, made),
    ...(outcomeName(got) === outcome ? [] : [`the outcome is ${outcomeName(got)}, expected ${outcome}`]),
    ...(id === undefined || gotId === id ? [] : [`the id is ${gotId ?? 'missing'}, expected ${id}`]),
  ]
}

export function outcomeName(outcome: Outcome): FileOutcome {
  if (outcome.kind !== 'rejected') return outcome.kind
  return outcome.scope === 'recipient' ? 'recipient' : 'account'
}

/** How the request that a file makes differs from the expected one. An absent part is not compared. */
function requestFaults(expected: Vector['request'], made: FileRequest): readonly string[] {
  const [url = '', query = ''] = made.url.split('?')
  const pairs: [string, unknown, unknown][] = [
    ['method', made.method, expected.method],
    ['url', url, expected.url],
    ['query', fieldsIn(query), texts(expected.query ?? {})],
    ['json', made.isForm || made.body === undefined ? undefined : JSON.parse(made.body), expected.json],
    ['form', made.isForm ? fieldsIn(made.body ?? '') : undefined, expected.form && texts(expected.form)],
    ...Object.entries(expected.headers ?? {}).map(([name, value]): [string, unknown, unknown] => [
      `header ${name}`,
      made.headers[name.toLowerCase()],
      value,
    ]),
  ]
  return pairs.flatMap((each) => differences(...each))
}

function differences(part: string, is: unknown, should: unknown): readonly string[] {
  if (Bun.deepEquals(is, should)) return []
  const [one, other] = [Object(is), Object(should)]
  const inner =
    one === is && other === should
      ? Object.keys({ ...one, ...other }).flatMap((key) =>
          differences(`${part}.${key}`, one[key], other[key]),
        )
      : []
  return inner.length > 0 ? inner : [`${part} is ${shown(is)}, expected ${shown(should)}`]
}

function fieldsIn(text: string): Readonly<Record<string, string>> {
  return Object.fromEntries(new URLSearchParams(text))
}

function texts(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, String(value)]))
}

function shown(part: unknown): string {
  return part === undefined ? 'missing' : JSON.stringify(part)
}
