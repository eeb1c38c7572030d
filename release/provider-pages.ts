import type { ProviderFile } from '../src/adapters/sms/file/format.ts'
import { placeholdersOf } from '../src/adapters/sms/file/placeholders.ts'
import { alignedTable, generated, page } from './pages.ts'

// The pages of the provider files that the binary has.

const outcomes: Readonly<Record<string, string>> = {
  recipient: 'The number is rejected. No other provider is tried.',
  account: 'The gateway rejects the account or the request. The next provider is tried.',
  retryable: 'Not sent. The next provider is tried.',
  unknown: 'The message may have been sent.',
}

/** By path. */
export function providerPages(files: readonly ProviderFile[]): Readonly<Record<string, string>> {
  return Object.fromEntries([
    ['docs/providers/shipped.md', indexPage(files)],
    ...files.map((file) => [`docs/providers/${file.provider}.md`, providerPage(file)]),
  ])
}

function indexPage(files: readonly ProviderFile[]): string {
  return page(
    '# Gateways with a shipped file',
    generated,
    'For operators who choose an SMS gateway. otpost contains a [provider file](files.md) for each of these gateways. To use one, name it in `SMS_PLAIN` or `SMS_TEMPLATE` and set its settings. **None of them was ever called:** each file follows the documentation of its gateway.',
    alignedTable(
      ['gateway', 'setting value', 'settings', 'delivery reports'],
      files.map((file) => [
        `[${file.name}](${file.provider}.md)`,
        `\`${file.provider}\``,
        Object.keys(file.settings)
          .map((name) => `\`${name}\``)
          .join(', '),
        file.reports ? 'yes' : 'no',
      ]),
    ),
  )
}

function providerPage(file: ProviderFile): string {
  const { provider, name, docs, settings, send, notes = [], vectors } = file
  const required = Object.entries(settings).filter(([, { default: usual }]) => usual === undefined)
  return page(
    `# ${name}`,
    generated,
    `For operators who send SMS through ${name}. otpost contains this [provider file](files.md): \`otpost provider show ${provider}\` prints it. [Connect a provider](README.md) has what all providers share.`,
    `**Checked:** ${vectors.length} examples of requests and answers, without a network, by its [documentation](${docs}). **Never called.**`,
    '## Settings',
    ['```sh', `SMS_PLAIN=${provider}`, ...required.map(([setting]) => `${setting}=…`), '```'].join('\n'),
    alignedTable(
      ['setting', 'default', 'meaning'],
      Object.entries(settings).map(([setting, { secret, default: usual, meaning = '' }]) => [
        `\`${setting}\`${secret ? ' **secret**' : ''}`,
        usual === undefined ? 'required' : usual === '' ? 'empty' : `\`${usual}\``,
        meaning,
      ]),
    ),
    '## Requests and answers',
    `otpost sends \`${send.method} ${send.url}\`. The number has ${file.to === 'digits' ? 'no `+`' : 'a `+`'}.`,
    alignedTable(
      ['answer', 'result'],
      [
        ...(file.errors ?? []).map((error) => [conditionWords(error), outcomes[error.outcome] ?? '']),
        [conditionWords(file.accepted), 'Accepted.'],
      ],
    ),
    'The first line that applies decides. [Provider files](files.md#answers) has what other answers mean.',
    '## Delivery reports',
    reportWords(file),
    ...(notes.length === 0 ? [] : ['## Notes', notes.map((note) => `- ${note}`).join('\n')]),
  )
}

function conditionWords({
  status,
  json,
  equals,
}: Pick<ProviderFile['accepted'], 'status' | 'json' | 'equals'>): string {
  const ofStatus = status === undefined ? [] : [`status ${[status].flat().join(', ')}`]
  const value = equals?.map((each) => `\`${each}\``).join(', ')
  const ofJson = json === undefined ? [] : [`\`${json}\` ${value === undefined ? 'is there' : `is ${value}`}`]
  return [...ofStatus, ...ofJson].join('; ') || 'status 2xx'
}

function reportWords(file: ProviderFile): string {
  const { reports, name, provider } = file
  if (!reports) return 'The file reads no delivery reports.'
  const { status, delivered, failed } = reports
  const where = placeholdersOf(file).has('reportUrl')
    ? `otpost gives ${name} a URL with each message, so there is nothing to enter.`
    : `Enter the URL that \`otpost callbacks\` prints for \`${provider}\` at ${name}.`
  const are = (values: readonly unknown[]) => values.map((each) => `\`${each}\``).join(', ')
  return `Set \`PUBLIC_URL\`. ${where} \`${status}\` is delivered for ${are(delivered)}, and failed for ${are(failed)}.`
}
