import { placeholder } from './encode.ts'
import type { ProviderFile } from './format.ts'

const ofMessage =
  /^(to|text|from|id|reportUrl|validitySeconds|brand|lang|template\.(id|entityId|senderId)|var\.\w{1,64})$/

/** Of the parts that make a request. */
export function placeholdersOf({
  send,
  template,
}: Pick<ProviderFile, 'send' | 'template'>): ReadonlySet<string> {
  return new Set(namesIn(JSON.stringify([send, template ?? {}])))
}

function namesIn(text: string): readonly string[] {
  return [...text.matchAll(placeholder)].map(([, name = '']) => name)
}

/** Scheme, host and port; a setting may be all of them, with a path too. */
export function splitUrl(url: string): { readonly origin: string; readonly path: string } {
  const [, origin = '', path = ''] = /^((?:[a-z]+:\/\/)?[^/?#]*)(.*)$/is.exec(url) ?? []
  return { origin, path }
}

/** The settings before the path: `base` is a whole URL, `part` a part of the host. */
export function hostSettings({ send }: Pick<ProviderFile, 'send'>): ReadonlyMap<string, 'base' | 'part'> {
  const { origin } = splitUrl(send.url)
  const isBase = origin.startsWith('{{')
  return new Map(namesIn(origin).map((name) => [name, isBase ? 'base' : 'part']))
}

/** What is wrong with the placeholders and the URL of a file, apart from its vectors. */
export function placeholderFaults(file: ProviderFile): readonly string[] {
  const { send, settings, from, reports } = file
  const { origin, path } = splitUrl(send.url)
  const used = placeholdersOf(file)
  const isSetting = (name: string) => Object.hasOwn(settings, name)
  const isSecret = (name: string) => isSetting(name) && settings[name]?.secret === true
  const ofLogin = namesIn(JSON.stringify([send.basic ?? [], send.bearer ?? '']))
  const keys = keysOf([send, file.template]).filter((key) => key.includes('{{'))
  const isUsed = (name: string) => used.has(name) || (name === from && used.has('from'))
  const https = /^https:\/\/[^/@\s]+$/i.test(origin) || /^\{\{[A-Z0-9_]+\}\}$/.test(origin)
  const local = /^http:\/\/(localhost|127(\.\d+){3}|\[::1\])(:\d+)?$/i.test(origin)
  return [
    ...[...used]
      .filter((name) => !isSetting(name) && !ofMessage.test(name))
      .map((name) => `{{${name}}} is no placeholder and no setting of the file`),
    ...Object.keys(settings)
      .filter((name) => !isUsed(name))
      .map((name) => `settings.${name} is used nowhere`),
    ...keys.map((key) => `the key ${key} has a placeholder; placeholders stand in values only`),
    ...(from === undefined || isSetting(from) ? [] : [`from: ${from} is no setting of the file`]),
    ...(used.has('from') && from === undefined ? ['{{from}} needs the key from, which names a setting'] : []),
    ...(https || local ? [] : ['send.url must begin with https://, or with http:// on this machine']),
    ...(/[?#]/.test(path) ? ['send.url must have no ? and no #; use send.query'] : []),
    ...namesIn(origin)
      .filter((name) => !isSetting(name) || isSecret(name))
      .map(
        (name) => `send.url: {{${name}}} cannot be a part of the host; only a setting that is not secret can`,
      ),
    ...namesIn(path)
      .filter(isSecret)
      .map((name) => `send.url: {{${name}}} is a secret, and proxies and logs record paths`),
    ...ofLogin
      .filter((name) => !isSetting(name))
      .map((name) => `{{${name}}} cannot be a part of a login; only settings can`),
    ...(send.basic && send.bearer !== undefined ? ['send has basic and bearer; use one of them'] : []),
    ...(send.json && send.form ? ['send has json and form; use one of them'] : []),
    ...(file.template?.json && file.template.form ? ['template has json and form; use one of them'] : []),
    ...(send.method === 'GET' && [send, file.template].some((each) => each?.json ?? each?.form)
      ? ['a GET has no json and no form; use query']
      : []),
    ...(reports && !used.has('reportUrl') && reports.id === undefined
      ? ['reports.id is missing: without {{reportUrl}}, it names the message']
      : []),
  ]
}

function keysOf(json: unknown): readonly string[] {
  if (typeof json !== 'object' || json === null) return []
  return Object.entries(json).flatMap(([key, each]) => [key, ...keysOf(each)])
}
