import type { ProviderFile } from '../format.ts'
import plivo from './plivo.json'

/** The provider files of the binary, which the tests check. */
export const shippedFiles: readonly ProviderFile[] = [plivo] as readonly unknown[] as readonly ProviderFile[]
