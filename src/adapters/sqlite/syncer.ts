import { closeSync, fdatasyncSync, openSync } from 'node:fs'

// Syncs a file at short intervals while `withFsync` of `backup.ts` writes it.

declare const self: Worker

const openMs = 15

let file: number | undefined
let syncing: ReturnType<typeof setInterval> | undefined

self.onmessage = ({ data: path }: MessageEvent<string | null>) => {
  if (path === null) {
    clearInterval(syncing)
    if (file !== undefined) closeSync(file)
  } else {
    const opened = openSync(path, 'r')
    file = opened
    syncing = setInterval(() => fdatasyncSync(opened), openMs)
  }
  self.postMessage('done')
}
