import type { RejectionScope } from '../ground/providers.ts'
import { dltWords } from './dlt-codes.ts'

export type Meaning = RejectionScope | 'retryable' | 'unknown'

/** The error codes of a provider, as its adapter reads them. */
export interface ProviderCodes {
  readonly meanings: ReadonlyMap<string, Meaning>
  /** What precedes a code in the log, such as `status `. */
  readonly prefix?: string
  /** The page of the provider about a code. Undefined: none is known. */
  readonly page?: (code: string) => string
}

export interface ExplainedCode {
  readonly provider: string
  readonly code: string
  readonly meaning: string
  readonly remedy: string
  readonly page: string | undefined
}

const meanings: Readonly<Record<Meaning, readonly [meaning: string, remedy: string]>> = {
  recipient: ['The phone number cannot receive this SMS.', 'Ask the person for another number.'],
  content: [
    'The provider rejected the message.',
    'Check the sender id, the template id, the text, and whether the destination is allowed.',
  ],
  account: ['The provider rejects the account.', 'Check its credentials, credit and permissions.'],
  retryable: ['The provider could not accept the message at that time.', 'Check the status of the provider.'],
  unknown: ['The message may or may not have been sent.', 'Check the log of the provider for that time.'],
}

/** @param text as the log or the provider has it, also after the provider: `21610`, `status 9`, `err 633`, `twilio 30003` */
export function explainedCodes(
  text: string,
  providers: ReadonlyMap<string, ProviderCodes>,
): readonly ExplainedCode[] {
  const given = text.trim().toLowerCase()
  const codeOf = (provider: string) =>
    given.startsWith(`${provider} `) ? given.slice(provider.length + 1) : given
  const ofProviders = [...providers].flatMap(([provider, { meanings: known, prefix = '', page }]) =>
    [...known]
      .filter(([code]) => [code, prefix + code].some((each) => each.toLowerCase() === codeOf(provider)))
      .map(([code, kind]): ExplainedCode => {
        const [meaning, remedy] = meanings[kind]
        return { provider, code: prefix + code, meaning, remedy, page: page?.(code) }
      }),
  )
  const dlt = dltWords(given)
  if (dlt === undefined) return ofProviders
  const meaning = `Carriers in India did not deliver the message: ${dlt}.`
  const remedy = 'Compare the text, the header and the entity with their registration.'
  return [...ofProviders, { provider: 'DLT', code: given, meaning, remedy, page: undefined }]
}
