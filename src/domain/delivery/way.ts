import type { Recipient } from '../ground/contact.ts'
import { Failure } from '../ground/failures.ts'
import {
  otherWays,
  type PhoneRoute,
  type PhoneRoutes,
  type PhoneWay,
  phoneWays,
  type Segments,
  type SmsProvider,
  type SmsRoute,
  smsRoutes,
} from '../ground/providers.ts'
import type { Clock, EpochMs } from '../ground/time.ts'
import { noteFlag, type RequestContext } from '../request/request-context.ts'
import {
  countryWords,
  type DestinationOf,
  type DestinationRule,
  type DestinationRules,
  destinationProblem,
  type NumberKind,
} from './destination.ts'

/** Which route registered templates take (design D14). */
export type SmsMode = 'plain' | 'template' | 'hybrid'

export interface WayPorts {
  readonly destinationOf: DestinationOf
  readonly smsMode: SmsMode
  readonly phoneRoutes: PhoneRoutes
  /** VOICE_COUNTRIES, else SMS_COUNTRIES. ISO 3166-1; empty: all. */
  readonly voiceCountries: readonly string[]
  readonly now: Clock
}

/** What operators have set about destinations and providers. */
export interface WayPolicy {
  readonly destinations: DestinationRules
  isPaused(provider: string, now: EpochMs): boolean
}

/** Where an SMS goes, and which providers may send it. */
export interface SmsWay {
  /** ISO 3166-1. Null: a number of no country. */
  readonly country: string | null
  readonly kind: NumberKind
  /** Whether a rule allows the country. */
  readonly isAllowed: boolean
  /** Null: no rule matches. */
  readonly rule: DestinationRule | null
  /** In the order of the settings. */
  readonly providers: readonly RoutedProvider[]
  /** Those that operators have paused. They are not called. */
  readonly paused: readonly RoutedProvider[]
}

export interface RoutedProvider {
  readonly route: PhoneRoute
  readonly provider: SmsProvider
}

/** Design D14 and D40. @throws validation_error if the destination is blocked; `field` names it in the message */
export function smsWay(
  ports: WayPorts,
  context: RequestContext,
  { to }: Recipient,
  {
    field,
    brand: { slug, dltEnabled },
    policy,
    isTemplate,
    way,
  }: {
    readonly field: string
    /** Of a code. Absent: a notification, which WhatsApp's templates may carry. */
    readonly way?: PhoneWay | undefined
    readonly brand: { readonly slug: string; readonly dltEnabled: boolean }
    readonly policy: WayPolicy
    readonly isTemplate: boolean
  },
): SmsWay {
  const destination = ports.destinationOf(to)
  const { country, kind } = destination
  const decision = policy.destinations.decide(to, destination, slug)
  const { action, rule } = decision
  if (country !== null) context.country = country
  if (action !== 'allow') noteFlag(context, 'destination')
  if (action === 'block') {
    const message = destinationProblem(field, destination, decision)
    throw new Failure('validation_error', message, { reason: 'destination' })
  }
  if (way === 'voice' && !mayCall(ports.voiceCountries, country)) {
    noteFlag(context, 'destination')
    const message = `\`${field}\` is a number of ${countryWords(country)}, which this server does not call.`
    throw new Failure('validation_error', message, { reason: 'destination' })
  }
  const { route = null, providers = [] } = rule ?? {}
  // Only India has registered texts, so that other countries get the plain route.
  const routes =
    way && way !== 'sms'
      ? [way]
      : !isTemplate || ports.smsMode === 'plain'
        ? (['plain'] as const)
        : route
          ? [route]
          : routesOf(ports.smsMode, dltEnabled && to.startsWith('91'))
  const inUse: RoutedProvider[] = []
  const paused: RoutedProvider[] = []
  const ofRoutes = providersOf(ports, routes, providers)
  for (const each of way === 'sms' ? bySms(ports, ofRoutes, providers) : ofRoutes)
    (policy.isPaused(each.provider.name, ports.now()) ? paused : inUse).push(each)
  return {
    country,
    kind,
    isAllowed: country !== null && policy.destinations.allowsCountry(country, slug),
    rule,
    providers: inUse,
    paused,
  }
}

/** A template route of another way alone leaves codes to the plain route. */
function bySms(
  ports: Pick<WayPorts, 'phoneRoutes'>,
  found: readonly RoutedProvider[],
  names: readonly string[],
): readonly RoutedProvider[] {
  const isSms = (each: RoutedProvider) => wayOf(each) === 'sms'
  const own = found.filter(isSms)
  return own.length > 0 ? own : providersOf(ports, ['plain'], names).filter(isSms)
}

/** Whether codes are spoken to numbers of the country (design D54). */
export function mayCall(voiceCountries: readonly string[], country: string | null): boolean {
  return voiceCountries.length === 0 || (country !== null && voiceCountries.includes(country))
}

/** Those of a server, in the order of `phoneWays`. */
export function waysOf(phoneRoutes: PhoneRoutes<unknown>): readonly PhoneWay[] {
  return phoneWays.filter((way) => way === 'sms' || phoneRoutes[way] !== undefined)
}

/** The ways of a code to an ordinary number of a country now (design D54), in this order. */
export function waysTo(
  ports: Omit<WayPorts, 'destinationOf'>,
  policy: WayPolicy,
  country: string,
  order: readonly PhoneWay[],
): readonly PhoneWay[] {
  const { action, rule } = policy.destinations.decide('', { country, kind: 'ordinary' }, null)
  if (action === 'block') return []
  return order.filter((way) => {
    const routes = way === 'sms' ? smsRoutes : [way]
    const isOpen = way !== 'voice' || mayCall(ports.voiceCountries, country)
    return (
      isOpen &&
      providersOf(ports, routes, rule?.providers).some(
        (each) => wayOf(each) === way && !policy.isPaused(each.provider.name, ports.now()),
      )
    )
  })
}

/** The routes of a registered template, in order. */
export function routesOf(mode: SmsMode, dltEnabled: boolean): readonly SmsRoute[] {
  if (mode === 'plain' || !dltEnabled) return ['plain']
  return mode === 'template' ? ['template'] : ['template', 'plain']
}

/** @param names in which order they are tried. Empty: all of each route */
export function providersOf(
  { phoneRoutes }: Pick<WayPorts, 'phoneRoutes'>,
  routes: readonly PhoneRoute[],
  names: readonly string[] = [],
): readonly RoutedProvider[] {
  return routes.flatMap((route) => {
    const all = phoneRoutes[route] ?? []
    const own = names.flatMap((name) => all.filter((provider) => provider.name === name))
    return (names.length > 0 ? own : all).map((provider) => ({ route, provider }))
  })
}

/** Whether carriers compare the message with a registered text (India's DLT). */
export function isScrubbed(
  { country, providers }: Pick<SmsWay, 'country' | 'providers'>,
  { dltEnabled }: { readonly dltEnabled: boolean },
): boolean {
  return dltEnabled && country === 'IN' && providers.some(({ route }) => route === 'template')
}

/** A way to send a message. */
export interface RouteStep extends RoutedProvider {
  readonly segments: Segments
}

/** WhatsApp has the registered-template route too. */
export function wayOf({ route, provider }: Named): PhoneWay {
  return otherWays.find((way) => way === route || way === provider.name) ?? 'sms'
}

interface Named {
  readonly route: PhoneRoute
  readonly provider: { readonly name: string }
}

/** Of a message or call that has no segments. */
const oneUnit: Segments = { count: 1, encoding: 'GSM-7' }

export function smsSteps(
  segmentsOf: (text: string) => Segments,
  { text, template }: { readonly text: string; readonly template: { readonly text: string } | null },
  providers: readonly RoutedProvider[],
): readonly RouteStep[] {
  let last: RouteStep | undefined
  return providers.map(({ route, provider }) => {
    const textOfRoute = route === 'template' && template ? template.text : text
    const isSms = wayOf({ route, provider }) === 'sms'
    const sameText = last?.route === route && last.segments !== oneUnit ? last.segments : undefined
    const segments = isSms ? (sameText ?? segmentsOf(textOfRoute)) : oneUnit
    last = { route, provider, segments }
    return last
  })
}

/** Why a message has no steps, for the log. */
export function withoutProvider(rule: DestinationRule | null): Error {
  if (!rule) return new Error('No SMS provider is configured.')
  const { rule: destination, brandSlug, providers } = rule
  const name = brandSlug === null ? destination : `${destination} for brand ${brandSlug}`
  return new Error(
    `The destination rule ${name} names only providers that its route does not have: ${providers.join(', ')}. Change the rule, or add the providers to SMS_PLAIN or SMS_TEMPLATE.`,
  )
}
