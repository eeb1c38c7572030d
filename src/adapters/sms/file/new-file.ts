import type { ProviderFile } from './format.ts'

/** What `otpost provider new` asks, in this order. */
export interface Question {
  readonly name: string
  readonly text: string
  readonly usual?: string
  readonly valid: RegExp
  /** Whether an earlier answer makes it necessary. */
  readonly isAsked?: (answers: FileAnswers) => boolean
}

/** By the name of the question. */
export type FileAnswers = Readonly<Record<string, string>>

const field = /^\S{1,100}$/

export const questions: readonly Question[] = [
  { name: 'docs', text: 'The page that describes the gateway (URL)', valid: /^https?:\/\/\S+$/ },
  { name: 'url', text: 'The URL that sends an SMS, without a query', valid: /^https?:\/\/[^\s?#]+$/ },
  { name: 'method', text: 'The method: POST, GET or PUT', usual: 'POST', valid: /^(POST|GET|PUT)$/ },
  {
    name: 'body',
    text: 'The body: json or form',
    usual: 'json',
    valid: /^(json|form)$/,
    isAsked: ({ method }) => method !== 'GET',
  },
  { name: 'toField', text: 'The field of the number', usual: 'to', valid: field },
  {
    name: 'to',
    text: 'The number: plus (+4479…) or digits (4479…)',
    usual: 'plus',
    valid: /^(plus|digits)$/,
  },
  { name: 'textField', text: 'The field of the text', usual: 'text', valid: field },
  { name: 'fromField', text: 'The field of the sender', usual: 'from', valid: field },
  {
    name: 'login',
    text: 'The login: basic, bearer, header or field',
    usual: 'bearer',
    valid: /^(basic|bearer|header|field)$/,
  },
  {
    name: 'loginName',
    text: 'The name of that header or field',
    usual: 'api-key',
    valid: field,
    isAsked: ({ login }) => login === 'header' || login === 'field',
  },
  {
    name: 'id',
    text: "The path of the message's ID in the answer, such as $.messages[0].id (empty: none)",
    usual: '',
    valid: /^(\$\S*)?$/,
  },
]

/** A file that is complete but for its examples, which only the documentation of the gateway has. */
export function newFile(provider: string, answers: FileAnswers): ProviderFile {
  const { docs = '', url = '', method = '', body = 'json', to, login, loginName = '', id } = answers
  const { toField = '', textField = '', fromField = '' } = answers
  const prefix = provider.toUpperCase().replaceAll('-', '_')
  const [key, user, from] = [`${prefix}_KEY`, `${prefix}_USER`, `${prefix}_FROM`]
  const secret = `{{${key}}}`
  const fields = {
    [toField]: '{{to}}',
    [textField]: '{{text}}',
    [fromField]: '{{from}}',
    ...(login === 'field' && { [loginName]: secret }),
  }
  return {
    provider,
    docs,
    settings: { [key]: { secret: true }, ...(login === 'basic' && { [user]: {} }), [from]: {} },
    from,
    to: to === 'digits' ? 'digits' : 'plus',
    send: {
      method: method === 'GET' || method === 'PUT' ? method : 'POST',
      url,
      ...(login === 'header' && { headers: { [loginName]: secret } }),
      ...(login === 'basic' && { basic: [`{{${user}}}`, secret] }),
      ...(login === 'bearer' && { bearer: secret }),
      ...{ [method === 'GET' ? 'query' : body]: fields },
    },
    accepted: { status: '2xx', ...(id && { id }) },
    errors: [{ status: [401, 403], outcome: 'account' }],
    vectors: [],
  }
}
