import type { Breakers } from '../delivery/breaker.ts'
import { type Mailer, type PhoneRoutes, phoneRouteNames, type SmsProvider } from '../ground/providers.ts'
import type { ProviderCircuit } from './statistics.ts'

export function providerHealth({
  phoneRoutes,
  mailer,
  breakers,
}: {
  readonly phoneRoutes: PhoneRoutes<Pick<SmsProvider, 'name'>>
  readonly mailer: Pick<Mailer, 'name'>
  readonly breakers: Pick<Breakers, 'states'>
}): ProviderCircuit[] {
  const known = new Map(breakers.states().map((state) => [state.provider, state]))
  const circuitOf = (name: string) => {
    const { state, failuresInARow, openMs } = known.get(name) ?? closed
    return { name, state, failuresInARow, openMs }
  }
  const routesOf = (name: string) =>
    phoneRouteNames.filter((route) => phoneRoutes[route]?.some((each) => each.name === name))
  const names = new Set(
    Object.values(phoneRoutes)
      .flat()
      .map(({ name }) => name),
  )
  return [
    ...Array.from(names, (name) => ({ ...circuitOf(name), channel: 'SMS' as const, routes: routesOf(name) })),
    // There is one e-mail provider, so it has no breaker.
    { name: mailer.name, ...closed, channel: 'EMAIL', routes: [] },
  ]
}

const closed = { state: 'closed', failuresInARow: 0, openMs: 0 } as const
