import type { IssuedApp, KeyOwner } from './changes.ts'

/** What a text in the search field may be, beside names. */
export interface SearchText {
  /** Looks like an API key, so it is shown and passed on nowhere. */
  readonly isKey: boolean
  /** Of an API key. Undefined: it is not four characters. */
  readonly lastFour: string | undefined
  /** Digits of phone numbers, without `+`. Undefined: it is no prefix. */
  readonly prefix: string | undefined
  /** Digits of a phone number as people write it in its country. */
  readonly national: string | undefined
}

export function readSearchText(text: string): SearchText {
  const isKey = /otp_live_\w{8}/.test(text)
  const compact = isKey ? '' : text.replace(/[\s().-]/g, '')
  return {
    isKey,
    lastFour: /^…?(\w{4})$/.exec(compact)?.[1],
    prefix: /^\+(\d{1,9})$/.exec(compact)?.[1],
    national: /^\d{5,14}$/.exec(compact)?.[0],
  }
}

/** The apps with a key that ends so. */
export function keysEnding(lastFour: string, apps: readonly IssuedApp[]): readonly KeyOwner[] {
  return apps.flatMap(({ appId, keys }) =>
    keys.filter((key) => key.lastFour === lastFour).map((key) => ({ appId, key })),
  )
}
