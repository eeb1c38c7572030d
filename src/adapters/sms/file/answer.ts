import type { Outcome } from '../../../domain/ground/providers.ts'
import { exactJson } from '../reading.ts'
import type { FileOutcome, ProviderFile } from './format.ts'

type Condition = Pick<ProviderFile['accepted'], 'status' | 'json' | 'equals'>

/** What a file says of an answer: of its errors the first that matches, else whether it is accepted, else the status. */
export function answerOf({ errors = [], accepted }: ProviderFile, status: number, text: string): Outcome {
  const json = jsonOf(text)
  for (const error of errors) {
    if (!holds(error, status, json)) continue
    const value = error.json === undefined ? undefined : textAt(json, error.json)
    // A value that the file names is no text of the message.
    return outcomeOf(error.outcome, error.equals && value ? value : `HTTP ${status}`)
  }
  const isSuccess = status >= 200 && status < 300
  if (holds(accepted, status, json) && (accepted.status !== undefined || isSuccess)) {
    const id = accepted.id === undefined ? undefined : textAt(json, accepted.id)
    return id === undefined || !/^[!-~]{1,200}$/.test(id)
      ? { kind: 'accepted' }
      : { kind: 'accepted', providerMessageId: id }
  }
  return outcomeOf(outcomeOfStatus(status), isSuccess ? 'unreadable answer' : `HTTP ${status}`)
}

function outcomeOfStatus(status: number): Exclude<FileOutcome, 'accepted'> {
  if (status === 429 || status === 503) return 'retryable'
  return status < 300 || status >= 500 ? 'unknown' : 'account'
}

function outcomeOf(outcome: Exclude<FileOutcome, 'accepted'>, reason: string): Outcome {
  return outcome === 'retryable' || outcome === 'unknown'
    ? { kind: outcome, reason }
    : { kind: 'rejected', scope: outcome, reason }
}

function holds({ status, json: path, equals }: Condition, given: number, json: unknown): boolean {
  const isStatus =
    status === undefined ||
    [status].flat().some((each) => String(each) === String(given) || each === `${Math.floor(given / 100)}xx`)
  if (!isStatus || path === undefined) return isStatus
  const value = textAt(json, path)
  return value !== undefined && (!equals || equals.some((each) => String(each) === value))
}

/** Of an answer that is not JSON, the text. */
function jsonOf(text: string): unknown {
  try {
    return exactJson(text)
  } catch {
    return text.trim() || undefined
  }
}

/** The text, number or flag at `$`, `.name`, `['name']` and `[n]`, as text; `[n]` of a text is a word of it. Undefined: there is none. */
export function textAt(json: unknown, path: string): string | undefined {
  let at = json
  for (const [, name, quoted, index] of path.matchAll(/\.([A-Za-z_][\w-]*)|\['([^']+)'\]|\[(\d+)\]/g)) {
    if (at === undefined || at === null) return undefined
    const within = typeof at === 'object' ? at : wordsOf(String(at))
    const key = name ?? quoted ?? index ?? ''
    at = Object.hasOwn(within, key) ? (within as Readonly<Record<string, unknown>>)[key] : undefined
  }
  return typeof at === 'string' || typeof at === 'number' || typeof at === 'boolean' ? String(at) : undefined
}

function wordsOf(text: string): readonly string[] {
  return text.split(/[\s:;,|=<>"]+/).filter((word) => word !== '')
}
