import { sha256 } from '../../src/adapters/crypto/secrets.ts'
import { createApps, type KeyStore } from '../../src/adapters/store/keys.ts'
import type { Storage } from '../../src/adapters/store/store.ts'
import { putBrand } from '../../src/domain/operator/brands.ts'
import type { SendOtpPorts } from '../../src/domain/otp/send.ts'
import { brands, type Profile } from './history.ts'
import type { Random } from './random.ts'

export const apiKeys = { shop: 'key-of-the-shop', desk: 'key-of-the-desk' } as const

/** One process of the service; a crash ends it and another replaces it. */
export interface Server {
  readonly store: SendOtpPorts['store']
  readonly brands: SendOtpPorts['brands']
  readonly apps: SendOtpPorts['apps']
  readonly sweep: Storage['sweep']
}

/** The database that histories run on, one after another. */
export interface Ground {
  /** Chooses the profile of the history of this seed. */
  profileOf(seed: number): Profile
  /**
   * Start of the next history in epoch milliseconds, late enough that all records of the last have expired.
   */
  beginning(): number
  /** Starts the servers of a history. */
  open(profile: Profile): Promise<Site>
  close(): Promise<void>
}

/** The environment of one history. */
export interface Site {
  /** The running servers. */
  readonly servers: readonly Server[]
  /** The driver's error when the scheduler fails a call. */
  readonly problems: Readonly<Record<'busy' | 'full' | 'answer lost', () => Error>>
  /** The probability of a database failure, as a weight. */
  readonly breakages: number
  /** Whether such a call, named by port and method, is affected; other calls continue. */
  isConcerned(what: string): boolean
  /** One kind of database failure. */
  breakage(random: Random): Breakage
  /**
   * Ends a server during its calls, and starts another on the remaining data.
   *
   * @param calls the calls in progress at the crash
   */
  crash(index: number, calls: Calls): Promise<void>
  /** Whether calls may be in progress at a crash, and be executed after it. */
  readonly outlivesCalls: boolean
  close(): Promise<void>
}

export interface Breakage {
  /** Name in the record. */
  readonly what: string
  /** Whether calls may fail; otherwise they wait, and then succeed. */
  readonly fails: boolean
  run(calls: Calls): Promise<void>
}

/** The waiting calls of one server, whose database fails. */
export interface Calls {
  readonly server: Server
  /** Lets them continue. */
  start(): void
  /** Whether one is still in progress. */
  isUnderWay(): boolean
  /** Resolves when none is, and all consequences have been processed. */
  settled(): Promise<void>
  /** Counts an event. */
  note(what: string): void
}

export function appsOf(store: KeyStore): SendOtpPorts['apps'] {
  return createApps(store, sha256, new Map(Object.entries(apiKeys)))
}

/** Creates the brands of every history. */
export async function makeBrands(operator: Parameters<typeof putBrand>[0]): Promise<void> {
  for (const [slug, dltEnabled] of Object.entries(brands)) {
    await putBrand(operator, slug, { displayName: slug, dltEnabled })
  }
}

export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
