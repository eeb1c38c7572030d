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

/** What it means, without the key. */
export function findingWords({ isPartial, keys }: KeyFinding): string {
  if (keys.length > 1) return 'Several keys end in these four characters.'
  const [found] = keys
  if (!found) {
    return isPartial
      ? 'No key of this server ends in these four characters.'
      : 'This is not a key of this server.'
  }
  const { appId, key } = found
  if (!key)
    return `This is the key of app ${appId} in the setting APP_CREDENTIALS. Replace it there, and restart the server.`
  const which = isPartial ? `The key …${key.lastFour}` : `This is the key …${key.lastFour}`
  const verb = isPartial ? 'is of' : 'of'
  const state = key.revokedAt === null ? 'It is valid.' : 'It is revoked: calls with it are rejected.'
  return `${which} ${verb} app ${appId}. ${state}`
}
