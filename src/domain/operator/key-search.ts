import type { AppStore, KeyOwner, KeyOwners } from './changes.ts'
import { keysEnding, readSearchText } from './search-text.ts'

export interface KeyFinding {
  /** Only the last four characters were given. */
  readonly isPartial: boolean
  readonly keys: readonly KeyOwner[]
}

/** Whose key leaked: by the key, also within other text, or by its last four characters. */
export async function findKeys(apps: AppStore & KeyOwners, pasted: string): Promise<KeyFinding> {
  const text = pasted.trim()
  const owner = (await apps.ownerOf(/otp_live_\w+/.exec(text)?.[0] ?? text)) ?? (await apps.ownerOf(text))
  if (owner) return { isPartial: false, keys: [owner] }
  const { lastFour } = readSearchText(text)
  if (lastFour === undefined) return { isPartial: false, keys: [] }
  return { isPartial: true, keys: keysEnding(lastFour, await apps.list()) }
}
