import type { LimitSettings } from '../../src/domain/limits/limits.ts'
import { type BrandSlug, brands, type Person, type Profile, people } from './history.ts'
import type { Random } from './random.ts'

/** The numbers of the contract, and smaller ones that short histories reach. */
const limitSets: readonly LimitSettings[] = [
  limits({}),
  limits({ phonePerMinute: 1, failureBudgetPerDay: 4, emailPerHour: 3 }),
  limits({ phonePerMinute: 2, phonePerHour: 3, failureBudgetPerDay: 2, emailPerHour: 2 }),
  limits({ smsCooldownSeconds: 5, phonePerMinute: 2, emailPerHour: 0 }),
  limits({ globalPerMinute: 6, smsCooldownSeconds: 5, failureBudgetPerDay: 0 }),
]

function limits(others: Partial<LimitSettings>): LimitSettings {
  return {
    globalPerMinute: 1000,
    phonePerMinute: 3,
    phonePerHour: 10,
    smsCooldownSeconds: 30,
    failureBudgetPerDay: 100,
    emailPerHour: 30,
    ...others,
  }
}

/**
 * How one history differs from the next, on any store: few brands and recipients, so that requests collide;
 * faults rare or frequent.
 */
export function baseProfile(random: Random): Omit<Profile, 'storage' | 'servers' | 'isExact'> {
  const pickSome = <T>(list: readonly T[]): T[] => {
    const rest = [...list]
    const count = 1 + Math.min(random.below(list.length), random.below(list.length))
    return Array.from({ length: count }, () => rest.splice(random.below(rest.length), 1)).flat()
  }
  return {
    steps: 40 + random.below(41),
    clients: 5 + random.below(6),
    apps: random.pick([['shop'], ['shop', 'desk']]),
    brands: pickSome(Object.keys(brands) as BrandSlug[]),
    people: pickSome(Object.keys(people) as Person[]),
    limits: random.pick(limitSets),
    smsMode: random.pick(['plain', 'template', 'hybrid', 'hybrid']),
    plainProviders: random.pick([1, 2]),
    storeFaults: random.pick([0, 0.05, 0.2]),
    providerFaults: random.pick([0.1, 0.4, 0.7]),
    clockIsSet: random.chance(0.25),
    isSlow: random.chance(0.3),
    crashes: random.chance(0.5),
    wrongGuesses: random.pick([20, 35, 120]),
  }
}
