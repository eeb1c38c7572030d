import { noteFile } from '../config/setting-source.ts'
import { examine } from './examine.ts'
import type { Examination } from './thread.ts'

declare const self: Worker

self.onmessage = async ({ data: { env, files } }: MessageEvent<Examination>) => {
  for (const [name, file] of files) noteFile(env, name, file)
  self.postMessage(await examine(env, 'none'))
}
