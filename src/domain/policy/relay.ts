import { instant, type Listing } from '../ground/listing.ts'
import type { EpochMs } from '../ground/time.ts'

/** The identity systems that call a relay (design D53), and what they are called. */
export const relayKinds = {
  supabase: 'Supabase Auth',
  zitadel: 'ZITADEL',
  logto: 'Logto',
  kratos: 'Ory Kratos',
  authgear: 'Authgear',
  authentik: 'authentik',
  keycloak: 'Keycloak',
  twilio: 'Clients of Twilio',
  camara: 'CAMARA',
} as const

export type RelayKindName = keyof typeof relayKinds

/** An endpoint that an identity system calls to have its own codes delivered (design D53). */
export interface Relay {
  readonly name: string
  readonly kind: RelayKindName
  readonly brandSlug: string
  /** Whose limit and scope apply. Null: the relay has a limit of its own. */
  readonly appId: string | null
  /** Encrypted under the secret key, with the name as its owner. */
  readonly sealedSecret: string
  /** The user of a Basic login. */
  readonly user: string
  /** How long the codes of the caller live, for the text. */
  readonly minutes: number
  /** Whether the caller has ever reported a verified code, so that the guard judges its unverified ones. */
  readonly reportsVerified: boolean
  readonly createdAt: EpochMs
}

/** Clients of Twilio can often be given a host name only; their account names the relay. */
export function relayUrl(relay: Pick<Relay, 'name' | 'kind' | 'user'>, ownUrl: string): string {
  if (relay.kind === 'twilio') return `${ownUrl}/2010-04-01/Accounts/${relay.user}/Messages.json`
  return `${ownUrl}/relay/${relay.name}`
}

export function relayListing(ownUrl: string) {
  return {
    name: { title: 'Name', value: ({ name }) => name },
    kind: { title: 'Kind', value: ({ kind }) => kind },
    brand: { title: 'Brand', value: ({ brandSlug }) => brandSlug },
    app: { title: 'App', value: ({ appId }) => appId },
    url: { title: 'URL', value: (relay) => relayUrl(relay, ownUrl) },
    minutes: { title: 'Minutes', value: ({ minutes }) => minutes },
    reportsVerified: { title: 'Reports verified codes', value: ({ reportsVerified }) => reportsVerified },
    createdAt: { title: 'Created', value: ({ createdAt }) => instant(createdAt) },
  } satisfies Listing<Relay>
}
