import type { ProviderFile } from '../src/adapters/sms/file/format.ts'
import { placeholdersOf } from '../src/adapters/sms/file/placeholders.ts'
import { generated, page } from './pages.ts'

// The pages of the provider files that the binary has.

/** Notes on what most documentations lack. The index says it once for all. */
const onIndex = /^(?:The documentation that was read|A wrong number counts as|The facts are from)/

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
    'For operators who choose an SMS gateway. otpost contains a [provider file](files.md) for each of these gateways. To use one, name it in `SMS_PLAIN` or `SMS_TEMPLATE`, set the settings of its page, and [try it](README.md#try-a-provider). **None of them was ever called:** each file follows the documentation of its gateway. Where that names no code for a wrong number, a rate limit or a fault of the server, the HTTP status decides. A wrong number can then count as an error of the account. [Delivery reports](README.md#delivery-reports) need `PUBLIC_URL`.',
    files
      .map(
        ({ name, provider, reports }) =>
          `- [${name}](${provider}.md): \`${provider}\`${reports ? '' : ', without delivery reports'}`,
      )
      .join('\n'),
  )
}

function providerPage(file: ProviderFile): string {
  const { provider, name, docs, settings, notes = [] } = file
  const remarks = [...reportRemark(file), ...notes.filter((note) => !onIndex.test(note))]
  return page(
    `# ${name}`,
    generated,
    `[Connect](shipped.md) with \`SMS_PLAIN=${provider}\` and:`,
    Object.entries(settings)
      .map(([setting, { secret, default: usual, meaning = '' }]) => {
        const facts = [
          ...(secret ? ['secret'] : []),
          ...(usual ? [`default \`${usual}\``] : []),
          ...(usual === '' ? ['optional'] : []),
        ]
        return `- \`${setting}\`${facts.length === 0 ? '' : ` (${facts.join(', ')})`}: ${meaning}`.trim()
      })
      .join('\n'),
    ...(remarks.length === 0 ? [] : [remarks.map((remark) => `- ${remark}`).join('\n')]),
    `[Documentation](${docs}).`,
  )
}

/** Where to enter the status callback URL, unless a request has it or a note says so. */
function reportRemark(file: ProviderFile): readonly string[] {
  const { reports, notes = [] } = file
  const isExplained = notes.some((note) => note.includes('`otpost callbacks`'))
  if (!reports || isExplained || placeholdersOf(file).has('reportUrl')) return []
  return ['Enter the URL of `otpost callbacks` for delivery reports.']
}
