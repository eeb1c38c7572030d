import { closeSync, fdatasyncSync, openSync } from 'node:fs'

// The thread of `steadily` in `backup.ts`: sees to it that what is written into a file reaches the disk as it comes.

declare const self: Worker

/** How long the file is left alone between. */
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
