import { chmodSync, copyFileSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The state of a number: a live code, a wrong guess, locked, used; three codes in a minute; in its cooldown. */
export type Lived = 'live' | 'guessed' | 'locked' | 'used' | 'busy' | 'cooling'

/** The facts about a database of a version of otpost, as make.ts recorded them. */
export interface Facts {
  /** The newest migration of the version. */
  readonly schema: string
  readonly version: string
  readonly commit?: string
  /** When its last server had stopped, in epoch milliseconds. At that moment its codes and limits had not expired. */
  readonly madeAt: number
  readonly secretKey: string
  readonly app: { readonly appId: string; readonly apiKey: string; readonly secondApiKey?: string }
  readonly revokedApp: { readonly appId: string; readonly apiKey: string }
  readonly approvedApp?: { readonly appId: string; readonly apiKey: string; readonly brandId: string }
  readonly codes: Readonly<Record<Lived, { readonly phone: string; readonly otp: string }>>
  readonly mail: { readonly email: string; readonly otp: string }
  /** The output of that version's `otpost brand list --json`. */
  readonly brands: readonly { readonly brandId: string; readonly [property: string]: unknown }[]
  /** Whether it had a delivery log. */
  readonly hasEventLog: boolean
}

/** The stored databases, the oldest schema first. */
export const fixtures: readonly Facts[] = readdirSync(import.meta.dir)
  .filter((name) => name.endsWith('.json'))
  .sort()
  .map((name) => JSON.parse(readFileSync(join(import.meta.dir, name), 'utf8')))

/** Copies a stored database to a path. */
export function copyFixture({ schema }: Pick<Facts, 'schema'>, file: string): void {
  copyFileSync(join(import.meta.dir, `${schema}.db`), file)
  chmodSync(file, 0o600)
}
