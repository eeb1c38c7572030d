import { valuesOf } from './check.ts'
import { requestOf, type Values } from './encode.ts'
import type { ProviderFile } from './format.ts'
import { placeholdersOf } from './placeholders.ts'

/** Placeholders of a message, with the values of the examples. An empty sender is that of the settings. */
export function exampleMessage(file: ProviderFile): Readonly<Record<string, string>> {
  const examples = file.vectors.map((vector) => valuesOf(file, vector))
  const names = [...placeholdersOf(file)].filter((name) => !Object.hasOwn(file.settings, name))
  const exampleOf = (name: string) =>
    name === 'from' ? '' : examples.find((each) => each.has(name))?.get(name)
  return Object.fromEntries(names.map((name) => [name, String(exampleOf(name) ?? '')]))
}

/** The request of a message, with asterisks for secrets. A setting without a value has that of an example. */
export function shownRequest(
  file: ProviderFile,
  settings: Values,
  message: Readonly<Record<string, string>>,
  isTemplate: boolean,
): string {
  const example = file.vectors[0]?.settings ?? {}
  const shown = Object.entries(file.settings).map(([name, { secret, default: usual }]) => [
    name,
    secret ? '********' : settings.get(name) || (example[name] ?? usual ?? name),
  ])
  const given = Object.entries(message)
    .filter(([, value]) => value !== '')
    .map(([name, value]) => [
      name,
      name === 'validitySeconds' && /^\d{1,9}$/.test(value) ? Number(value) : value,
    ])
  const to = (message.to ?? '').replace(/\D/g, '')
  const values = valuesOf(file, {
    settings: Object.fromEntries(shown),
    message: { ...Object.fromEntries(given), to },
  })
  const { method, url, headers, body = '' } = requestOf(file, isTemplate, values)
  // A setting that the server does not use may be no URL.
  const [, host = '', target = ''] = /^[a-z]+:\/\/([^/?]*)(.*)$/i.exec(url) ?? []
  return [
    `${method} ${target.startsWith('/') ? target : `/${target}`} HTTP/1.1`,
    `host: ${host}`,
    ...Object.entries(headers).map((header) => header.join(': ')),
    ...(method === 'GET' ? [] : [`content-length: ${Buffer.byteLength(body)}`]),
    '',
    body,
  ].join('\r\n')
}
