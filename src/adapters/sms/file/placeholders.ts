import { placeholder, splitUrl } from './encode.ts'
import type { ProviderFile } from './format.ts'

const ofMessage =
  /^(to|text|from|id|reportUrl|validitySeconds|brand|lang|template\.(id|entityId|senderId)|var\.\w{1,64})$/

/** Of the parts that make a request. */
export function placeholdersOf({
  send,
  template,
}: Pick<ProviderFile, 'send' | 'template'>): ReadonlySet<string> {
  return new Set(leavesOf([send, template]).flatMap(namesIn))
}

function leavesOf(json: unknown): readonly string[] {
  if (typeof json === 'string') return [json]
  return typeof json === 'object' && json !== null ? Object.values(json).flatMap(leavesOf) : []
}

function namesIn(text: string): readonly string[] {
  return [...text.matchAll(placeholder)].map(([, name = '']) => name)
}

/** The settings that a login keeps secret, also where the file does not say so. */
export function loginSecrets({ send: { basic, bearer } }: Pick<ProviderFile, 'send'>): readonly string[] {
  return leavesOf([basic?.[1], bearer]).flatMap(namesIn)
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
  const ofLogin = leavesOf([send.basic, send.bearer]).flatMap(namesIn)
  const unclosed = leavesOf([send, file.template]).filter((leaf) =>
    leaf.replace(placeholder, '').includes('{{'),
  )
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
    ...unclosed.map((leaf) => `${JSON.stringify(leaf.slice(0, 60))} has {{ without a name and }}`),
    ...Object.keys(settings)
      .filter((name) => isSecret(name) && settings[name]?.default)
      .map((name) => `settings.${name} is a secret, so it has no default`),
    ...keys.map((key) => `the key ${key} has a placeholder; placeholders stand in values only`),
    ...(from === undefined || isSetting(from) ? [] : [`from: ${from} is no setting of the file`]),
    ...(used.has('from') && from === undefined ? ['{{from}} needs the key from, which names a setting'] : []),
    ...(https || local ? [] : ['send.url must begin with https://, or with http:// on this machine']),
    ...(/[?#]/.test(path) ? ['send.url must have no ? and no #; use send.query'] : []),
    ...(/[^!-~]|\\|\/(\.|%2e){1,2}(\/|$)/i.test(send.url) || !isUrl(send.url)
      ? ['send.url must be a URL of visible ASCII without \\ and without the segments . and ..']
      : []),
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
    ...headerFaults(file),
    ...(send.basic && send.bearer !== undefined ? ['send has basic and bearer; use one of them'] : []),
    ...(send.json && send.form ? ['send has json and form; use one of them'] : []),
    ...(file.template?.json && file.template.form ? ['template has json and form; use one of them'] : []),
    ...(send.method === 'GET' && [send, file.template].some((each) => each?.json ?? each?.form)
      ? ['a GET has no json and no form; use query']
      : []),
    ...(reports && !used.has('reportUrl')
      ? [
          ...(reports.id === undefined
            ? ['reports.id is missing: without {{reportUrl}}, it names the message']
            : []),
          ...(file.accepted?.id === undefined
            ? ['accepted.id is missing: without {{reportUrl}}, reports name a message by it']
            : []),
        ]
      : []),
  ]
}

/** With a value in each placeholder that is possible everywhere. */
function isUrl(url: string): boolean {
  const { origin, path } = splitUrl(url)
  const base = origin.startsWith('{{') ? 'https://localhost' : origin.replace(placeholder, '1')
  return URL.canParse(base + path.replace(placeholder, '1'))
}

/** Those that choose another host or another end of the request, or that HTTP cannot carry. */
function headerFaults({ send: { headers, basic, bearer } }: Pick<ProviderFile, 'send'>): readonly string[] {
  const names = Object.keys(Object(headers)).map((name) => name.toLowerCase())
  const isTaken = (name: string) =>
    /^(host|content-length|transfer-encoding|connection|expect|upgrade|te|trailer)$/.test(name) ||
    (name === 'authorization' && (basic ?? bearer) !== undefined)
  return Object.entries(Object(headers)).flatMap(([name, value], index) => [
    ...(/^[\w!#$%&'*+.^`|~-]+$/.test(name)
      ? []
      : [`send.headers: ${JSON.stringify(name)} is no name of a header`]),
    ...(isTaken(name.toLowerCase()) ? [`send.headers.${name} is set by otpost itself`] : []),
    ...(names.indexOf(name.toLowerCase()) < index ? [`send.headers.${name} is there twice`] : []),
    ...(typeof value === 'string' && /[^ -~]/.test(value)
      ? [`send.headers.${name} must be printable ASCII`]
      : []),
  ])
}

function keysOf(json: unknown): readonly string[] {
  if (typeof json !== 'object' || json === null) return []
  return Object.entries(json).flatMap(([key, each]) => [key, ...keysOf(each)])
}
