import type { ProviderFile } from './format.ts'

/** The value of a placeholder. Undefined: it has none, as `template.id` on the direct route. */
export type Value = string | number | undefined

/** By the name between the braces, such as `to`, `ACME_KEY` or `var.otp`. */
export type Values = ReadonlyMap<string, Value>

export interface FileRequest {
  readonly method: 'POST' | 'GET' | 'PUT'
  /** With the query. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Undefined: the request has none. */
  readonly body: string | undefined
  readonly isForm: boolean
}

/** Scheme, host and port; a setting may be all of them, with a path too. */
export function splitUrl(url: string): { readonly origin: string; readonly path: string } {
  const [, origin = '', path = ''] = /^((?:[a-z]+:\/\/)?[^/?#]*)(.*)$/is.exec(url) ?? []
  return { origin, path }
}

export const placeholder = /\{\{([^{}]*)\}\}/g
const onePlaceholder = /^\{\{([^{}]*)\}\}$/

/**
 * Each value is encoded for its place, so that none adds a field, a header, a path segment or a host. On the template route a part of
 * `template` replaces the same part of `send`, and a body replaces the other kind too.
 */
export function requestOf({ send, ...file }: ProviderFile, isTemplate: boolean, values: Values): FileRequest {
  const { method, url, headers = {}, basic, bearer } = send
  const template = isTemplate ? file.template : undefined
  const query = template?.query ?? send.query
  const { json, form } = template && (template.json ?? template.form) ? template : send
  const authorization = basic
    ? `Basic ${Buffer.from(basic.map((each) => filled(each, values)).join(':')).toString('base64')}`
    : bearer === undefined
      ? undefined
      : `Bearer ${filled(bearer, values, headerValue)}`
  const type = json ? 'application/json' : form ? 'application/x-www-form-urlencoded' : undefined
  const own = Object.entries(headers).flatMap(([name, leaf]) => {
    const value = filledLeaf(leaf, values, headerValue)
    return value === undefined ? [] : [[name.toLowerCase(), String(value)]]
  })
  const search = query ? encodedFields(query, values) : ''
  return {
    method,
    url: urlOf(url, values) + (search === '' ? '' : `?${search}`),
    headers: {
      ...(type === undefined ? {} : { 'content-type': type }),
      ...(authorization === undefined ? {} : { authorization }),
      ...Object.fromEntries(own),
    },
    isForm: !json && form !== undefined,
    body: json ? JSON.stringify(filledJson(json, values) ?? {}) : form && encodedFields(form, values),
  }
}

/** A setting before the first slash of the path is a base URL or a part of the host, which `settingsOf` checks at start. */
export function urlOf(url: string, values: Values): string {
  const { origin, path } = splitUrl(url)
  const segments = path.split('/').map((segment) => {
    const value = filled(segment, values, (each) => encodeURIComponent(each.toWellFormed()))
    // A client of HTTP would remove it, with the segment before.
    return segment !== value && /^(\.|%2e){1,2}$/i.test(value) ? value.replaceAll('.', '%2E') : value
  })
  return filled(origin, values).replace(/\/+$/, '') + segments.join('/')
}

function encodedFields(fields: Readonly<Record<string, unknown>>, values: Values): string {
  const search = new URLSearchParams()
  for (const [name, leaf] of Object.entries(fields)) {
    const value = filledLeaf(leaf, values)
    if (value !== undefined) search.append(name, String(value))
  }
  return search.toString()
}

/** Without the leaves that have no value, and without an object or array that has only such leaves. */
function filledJson(json: unknown, values: Values): unknown {
  if (typeof json !== 'object' || json === null) return filledLeaf(json, values)
  const all = Object.entries(json)
  const filled = all
    .map(([name, each]) => [name, filledJson(each, values)] as const)
    .filter(([, each]) => each !== undefined)
  if (filled.length === 0 && all.length > 0) return undefined
  return Array.isArray(json) ? filled.map(([, each]) => each) : Object.fromEntries(filled)
}

/** A leaf that is one placeholder keeps the type of its value. Undefined: that has no value, or the URL in the leaf has none. */
function filledLeaf(leaf: unknown, values: Values, encode?: (value: string) => string): unknown {
  if (typeof leaf !== 'string') return leaf
  const [, only] = onePlaceholder.exec(leaf) ?? []
  if (only === undefined) {
    const lacksUrl = leaf.includes('{{reportUrl}}') && values.get('reportUrl') === undefined
    return lacksUrl ? undefined : filled(leaf, values, encode)
  }
  const value = values.get(only)
  return typeof value === 'string' && encode ? encode(value) : value
}

function filled(text: string, values: Values, encode = (value: string) => value): string {
  return text.replace(placeholder, (_, name: string) => encode(String(values.get(name) ?? '')))
}

/** Percent-encodes what is not visible ASCII. */
function headerValue(value: string): string {
  return value.toWellFormed().replace(/[^!-~]+/g, encodeURIComponent)
}
