import type { Breakers } from '../delivery/breaker.ts'
import type { Mailer, SmsProvider, SmsRoute } from '../ground/providers.ts'
import type { ProviderCircuit } from './statistics.ts'

export function providerHealth({
  smsRoutes,
  mailer,
  breakers,
}: {
  readonly smsRoutes: Readonly<Record<SmsRoute, readonly Pick<SmsProvider, 'name'>[]>>
  readonly mailer: Pick<Mailer, 'name'>
  readonly breakers: Pick<Breakers, 'states'>
}): ProviderCircuit[] {
  const known = new Map(breakers.states().map((state) => [state.provider, state]))
  const circuitOf = (name: string) => {
    const { state, failuresInARow, openMs } = known.get(name) ?? closed
    return { name, state, failuresInARow, openMs }
  }
  const routesOf = (name: string) =>
    (['plain', 'template'] as const).filter((route) => smsRoutes[route].some((each) => each.name === name))
  const names = new Set([...smsRoutes.plain, ...smsRoutes.template].map(({ name }) => name))
  return [
    ...Array.from(names, (name) => ({ ...circuitOf(name), channel: 'SMS' as const, routes: routesOf(name) })),
    // There is one e-mail provider, so it has no breaker.
    { name: mailer.name, ...closed, channel: 'EMAIL', routes: [] },
  ]
}

const closed = { state: 'closed', failuresInARow: 0, openMs: 0 } as const
