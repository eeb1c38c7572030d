import type { PriceStore } from '../money/price-import.ts'
import type { PolicyStore } from '../policy/policy-store.ts'
import type { OperatorStore } from './changes.ts'

export interface StoredPorts {
  readonly operator: OperatorStore
  readonly policy: PolicyStore
  readonly prices?: PriceStore
}

/** Ports whose changes are decided as always, but not stored. */
export function dryRunOf<Ports extends StoredPorts>(ports: Ports): Ports {
  const { operator, policy, prices } = ports
  return {
    ...ports,
    operator: {
      ...operator,
      change: (about, by, decide) => decided(decide, (deciding) => operator.change(about, by, deciding)),
    } satisfies OperatorStore,
    policy: {
      ...policy,
      change: (by, decide) => decided(decide, (deciding) => policy.change(by, deciding)),
    } satisfies PolicyStore,
    ...(prices && {
      prices: {
        ...prices,
        change: (by, decide) =>
          decided(
            ([current, budgets]: Parameters<typeof decide>) => decide(current, budgets),
            (deciding) => prices.change(by, (current, budgets) => deciding([current, budgets])),
          ),
      } satisfies PriceStore,
    }),
  }
}

/** A store stores nothing if `decide` throws. */
async function decided<Current, Decision>(
  decide: (current: Current) => Decision,
  change: (deciding: (current: Current) => never) => Promise<unknown>,
): Promise<Decision> {
  let made: { readonly decision: Decision } | undefined
  try {
    await change((current) => {
      made = { decision: decide(current) }
      throw new Error('A dry run stores nothing.')
    })
  } catch (error) {
    if (!made) throw error
  }
  if (!made) throw new Error('The store did not ask for a decision.')
  return made.decision
}
