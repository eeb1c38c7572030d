import type { ProviderFile } from '../format.ts'
import kannelGet from './kannel-get.json'
import plivo from './plivo.json'

/** The provider files of the binary, which the tests check. */
export const shippedFiles: readonly ProviderFile[] = [
  kannelGet,
  plivo,
] as readonly unknown[] as readonly ProviderFile[]
