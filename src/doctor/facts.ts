import { countryOfPrefix } from '../adapters/phone/destination.ts'
import { developmentOnly } from '../adapters/sms/index.ts'
import type { Stores } from '../adapters/store/stores.ts'
import type { Config } from '../config/config.ts'
import type { DestinationConfig } from '../config/destinations.ts'
import { readHealth } from '../domain/health/facts.ts'
import { providerHealth } from '../domain/log/provider-health.ts'

/** What the findings about stored records need. */
export type StoredFacts = Awaited<ReturnType<typeof readStored>>

/** Undefined: the settings are wrong. */
export type ReadStored = (stores: Stores) => Promise<StoredFacts | undefined>

export async function readStored(stores: Stores, config: Config, { routes }: DestinationConfig) {
  const { statistics, guard, policy, sessions } = stores
  const now = Date.now()
  const named = (names: readonly string[]) => names.map((name) => ({ name }))
  const phoneRoutes = { plain: named(routes.plain), template: named(routes.template) }
  const mailer = { name: config.smtp ? 'smtp' : 'outbox' }
  const ports = {
    ...stores,
    eventLog: statistics,
    guard: { ...guard, countries: statistics.countries, guardCounts: statistics.guardCounts },
    countryOfPrefix,
    // The circuits are in the memory of the servers.
    providerStates: () => providerHealth({ phoneRoutes, mailer, breakers: { states: () => [] } }),
  }
  const [health, rows, apps, brands, accounts, invited] = await Promise.all([
    readHealth(ports, { ...config, routes, developmentOnly }, 'day', now),
    policy.rows(),
    stores.keys.list(),
    stores.brands.list(),
    sessions.accounts(),
    sessions.invited(now),
  ])
  const { scopes, rules, guardMode, relays } = rows
  const configuration = { brands, rows, prices: await stores.prices.rows() }
  return { health, configuration, scopes, rules, guardMode, relays, apps, brands, accounts, invited }
}
