import { type Stats, statSync } from 'node:fs'

/** Undefined: there is no such file, or this user cannot see it. */
export function fileAt(path: string): Stats | undefined {
  try {
    return statSync(path)
  } catch {
    return undefined
  }
}
