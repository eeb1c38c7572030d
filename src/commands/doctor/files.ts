import { accessSync, constants, statfsSync, statSync } from 'node:fs'
import type { PathFacts } from './checks.ts'

/** A path as this process sees it; undefined where there is nothing, or nothing that this user may look at. */
export function pathFacts(path: string): PathFacts | undefined {
  try {
    const found = statSync(path)
    return {
      path,
      kind: found.isFile() ? 'file' : found.isDirectory() ? 'folder' : 'other',
      mode: found.mode & 0o7777,
      ownerUid: found.uid,
      readable: may(path, constants.R_OK),
      writable: may(path, constants.W_OK),
    }
  } catch {
    return undefined
  }
}

/** How many bytes a file has; 0 where there is none. */
export function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}

/** How many bytes this user may still write to the disk of a folder. */
export function freeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}

function may(path: string, access: number): boolean {
  try {
    accessSync(path, access)
    return true
  } catch {
    return false
  }
}
