import { sha256 } from '../../src/adapters/crypto/secrets.ts'
import { createApps, type KeyStore } from '../../src/adapters/store/keys.ts'
import type { Storage } from '../../src/adapters/store/store.ts'
import { putBrand } from '../../src/domain/operator/operator.ts'
import type { SendOtpPorts } from '../../src/domain/otp/send.ts'
import { brands, type Profile } from './history.ts'
import type { Random } from './random.ts'

export const apiKeys = { shop: 'key-of-the-shop', desk: 'key-of-the-desk' } as const

/** A process of the service; a crash ends it and another takes its place. */
export interface Server {
  readonly store: SendOtpPorts['store']
  readonly brands: SendOtpPorts['brands']
  readonly apps: SendOtpPorts['apps']
  readonly sweep: Storage['sweep']
}

/** What histories run on, one after another. */
export interface Ground {
  /** How a history of this seed differs from others. */
  profileOf(seed: number): Profile
  /** When the next history begins, epoch milliseconds: so long after the last that all of it is over. */
  beginning(): number
  /** Starts the servers of a history. */
  open(profile: Profile): Promise<Site>
  close(): Promise<void>
}

/** What one history runs on. */
export interface Site {
  /** Those at work. */
  readonly servers: readonly Server[]
  /** What the driver says where the scheduler lets a call fail. */
  readonly problems: Readonly<Record<'busy' | 'full' | 'answer lost', () => Error>>
  /** How likely it is, as a weight, that the database itself fails. */
  readonly breakages: number
  /** Whether such a call, named by port and method, has to do with that: others go on meanwhile. */
  isConcerned(what: string): boolean
  /** One way in which it fails. */
  breakage(random: Random): Breakage
  /**
   * Ends a server in the middle of everything, and starts another in its place on what it has left.
   *
   * @param calls those that the server dies of, or rather with: they are under way at that moment
   */
  crash(index: number, calls: Calls): Promise<void>
  /** Whether calls can be under way when a server dies: they may be carried out when it is gone. */
  readonly outlivesCalls: boolean
  close(): Promise<void>
}

export interface Breakage {
  /** For the record. */
  readonly what: string
  /** Whether calls may fail by it; otherwise they wait, and succeed. */
  readonly fails: boolean
  run(calls: Calls): Promise<void>
}

/** The calls of one server that have waited for the scheduler, in the hands of whoever breaks its database. */
export interface Calls {
  readonly server: Server
  /** Lets them go on. */
  start(): void
  /** Whether one is still under way. */
  isUnderWay(): boolean
  /** Resolves when none is, and all that follows has come about. */
  settled(): Promise<void>
  /** Tells that something has come about. */
  note(what: string): void
}

export function appsOf(store: KeyStore): SendOtpPorts['apps'] {
  return createApps(store, sha256, new Map(Object.entries(apiKeys)))
}

/** Makes the brands of every history. */
export async function makeBrands(operator: Parameters<typeof putBrand>[0]): Promise<void> {
  for (const [slug, dltEnabled] of Object.entries(brands)) {
    await putBrand(operator, slug, { displayName: slug, dltEnabled })
  }
}

export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
