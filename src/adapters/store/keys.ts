import { timingSafeEqual } from 'node:crypto'
import type { AppKey, AppStore, IssuedApp } from '../../domain/operator/operator.ts'
import type { Apps, Clock } from '../../domain/ports.ts'

/** Applications as a store keeps them. */
export interface KeyStore extends AppStore {
  /** The SHA-256, in base64url, of each key of an application that is not revoked. */
  liveKeys(appId: string): Promise<readonly string[]>
}

/** When keys were last used: the hash of each, and epoch milliseconds. */
export type KeyUses = readonly (readonly [keySha256: string, at: number])[]

/** How exactly it is kept when a key was last used. */
const useMs = 60_000

/** Keys that an app is compared with, so that one with fewer takes as long. */
const comparedKeys = 2

/**
 * What calls are let in by: the keys of the store, and beside them those of the setting APP_CREDENTIALS.
 *
 * @param sha256 how a key is hashed before it is stored or compared
 * @param credentials appId → API key
 * @param uses is told, at most once a minute for each, which keys of the store are used
 */
export function createApps(
  store: KeyStore,
  sha256: (apiKey: string) => string,
  credentials: ReadonlyMap<string, string>,
  uses: { readonly now: Clock; readonly keep: (uses: KeyUses) => void } | undefined = undefined,
): AppStore & Apps & { readonly configured: readonly string[] } {
  const configured = new Map([...credentials].map(([appId, apiKey]) => [appId, Buffer.from(sha256(apiKey))]))
  // No key hashes to it; an unknown app is compared with it, so that it takes as long as a known one.
  const nobody = Buffer.alloc(sha256('').length, 'A')
  /** When a use of each key was told. */
  const told = new Map<string, number>()

  function noteUse(keySha256: string): void {
    if (!uses) return
    const at = uses.now()
    const before = told.get(keySha256)
    // Also where the clock was set back.
    if (before !== undefined && Math.abs(at - before) < useMs) return
    told.set(keySha256, at)
    uses.keep([[keySha256, at]])
  }

  return {
    configured: [...configured.keys()],
    accepts: async (appId, apiKey) => {
      const hash = sha256(apiKey)
      const given = Buffer.from(hash)
      const keys = (await store.liveKeys(appId)).map((key) => Buffer.from(key))
      let issued = false
      for (let index = 0; index < Math.max(comparedKeys, keys.length); index++) {
        issued = timingSafeEqual(given, keys[index] ?? nobody) || issued
      }
      const set = timingSafeEqual(given, configured.get(appId) ?? nobody)
      if (issued) noteUse(hash)
      return issued || set
    },
    list: () => store.list(),
  }
}

/** A key as a store has it. */
export interface StoredKey extends AppKey {
  readonly appId: string
}

export function listedKey({ lastFour, createdAt, revokedAt, lastUsedAt }: AppKey): AppKey {
  return { lastFour, createdAt, revokedAt, lastUsedAt }
}

/** The applications of these keys, which come by appId and then in the order in which they were made. */
export function listedApps(rows: readonly StoredKey[]): readonly IssuedApp[] {
  return Array.from(
    Map.groupBy(rows, ({ appId }) => appId),
    ([appId, ofApp]): IssuedApp => {
      const keys = ofApp.map(listedKey)
      const revocations = keys.map(({ revokedAt }) => revokedAt).filter((at) => at !== null)
      return {
        appId,
        createdAt: Math.min(...keys.map(({ createdAt }) => createdAt)),
        revokedAt: revocations.length < keys.length ? null : Math.max(...revocations),
        keys,
      }
    },
  )
}
