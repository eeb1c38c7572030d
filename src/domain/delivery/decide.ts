import type { Recipient } from '../ground/contact.ts'
import { Failure } from '../ground/failures.ts'
import { noteFlag, type RequestContext } from '../request/request-context.ts'
import {
  type DestinationOf,
  type DestinationRule,
  type DestinationRules,
  destinationProblem,
} from './destination.ts'

export interface DestinationPorts {
  readonly destinationOf: DestinationOf
}

/** Where an SMS goes, and how. */
export interface DecidedDestination {
  readonly country: string | null
  /** Whether a rule allows the country. */
  readonly isAllowed: boolean
  /** Null: no rule matches. */
  readonly rule: DestinationRule | null
}

/** Design D40. @throws validation_error if the destination is blocked; `field` names it in the message */
export function decideDestination(
  { destinationOf }: DestinationPorts,
  context: RequestContext,
  { identity }: Recipient,
  {
    field,
    brand,
    policy,
  }: { field: string; brand: { readonly slug: string }; policy: { readonly destinations: DestinationRules } },
): DecidedDestination {
  const destination = destinationOf(identity)
  const { country } = destination
  const { destinations } = policy
  const decision = destinations.decide(identity, destination, brand.slug)
  const { action, rule } = decision
  if (country !== null) context.country = country
  if (action !== 'allow') noteFlag(context, 'destination')
  if (action === 'block') {
    const message = destinationProblem(field, destination, decision)
    throw new Failure('validation_error', message, { reason: 'destination' })
  }
  return { country, isAllowed: country !== null && destinations.allowsCountry(country, brand.slug), rule }
}
