import { chmodSync, copyFileSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** What a number has been through: its last code is live, guessed at once, locked, used; three codes in a minute; in its cooldown. */
export type Lived = 'live' | 'guessed' | 'locked' | 'used' | 'busy' | 'cooling'

/** What is true of a database that a version of otpost has left; make.ts writes it down. */
export interface Facts {
  /** The newest migration that the version knew. */
  readonly schema: string
  readonly version: string
  readonly commit?: string
  /** When its last server had stopped, epoch milliseconds: a moment after which the codes and limits were alive. */
  readonly madeAt: number
  readonly secretKey: string
  readonly app: { readonly appId: string; readonly apiKey: string; readonly secondApiKey?: string }
  readonly revokedApp: { readonly appId: string; readonly apiKey: string }
  readonly approvedApp?: { readonly appId: string; readonly apiKey: string; readonly brandId: string }
  readonly codes: Readonly<Record<Lived, { readonly phone: string; readonly otp: string }>>
  readonly mail: { readonly email: string; readonly otp: string }
  /** What that version's `otpost brand list --json` said. */
  readonly brands: readonly { readonly brandId: string; readonly [property: string]: unknown }[]
  /** Whether it kept a log of deliveries. */
  readonly hasEventLog: boolean
}

/** The databases that are kept, the oldest schema first. */
export const fixtures: readonly Facts[] = readdirSync(import.meta.dir)
  .filter((name) => name.endsWith('.json'))
  .sort()
  .map((name) => JSON.parse(readFileSync(join(import.meta.dir, name), 'utf8')))

/** Puts a copy of a kept database there. */
export function copyFixture({ schema }: Pick<Facts, 'schema'>, file: string): void {
  copyFileSync(join(import.meta.dir, `${schema}.db`), file)
  chmodSync(file, 0o600)
}
