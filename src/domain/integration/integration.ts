import type { Numbers } from '../delivery/destination.ts'
import { type WayPorts, waysOf, waysTo } from '../delivery/way.ts'
import type { Alert, AlertChannel } from '../ground/alert.ts'
import { type Body, isGiven, optionalText, text } from '../ground/body.ts'
import { type Channel, type Contacts, parseChannel } from '../ground/contact.ts'
import { Failure, invalidField } from '../ground/failures.ts'
import type { Secrets } from '../ground/ports.ts'
import type { PhoneWay } from '../ground/providers.ts'
import type { Clock, EpochMs } from '../ground/time.ts'
import { scriptFault } from '../ground/words.ts'
import { claim } from '../limits/gates.ts'
import { byNetwork, integrationRequests, type LimitSettings } from '../limits/limits.ts'
import { notifySizes } from '../notify/order.ts'
import type { Ladder } from '../otp/ladder.ts'
import { maxAttempts, type OtpStore } from '../otp/store.ts'
import type { ReadPolicy } from '../policy/policy.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { BrandWithTexts } from '../texts/brand.ts'
import { enabledOwnTemplates } from '../texts/notify-texts.ts'
import { businessNameRule, notifyTemplates, type Template } from '../texts/templates.ts'

/** Design D18. */
export interface IntegrationRequest {
  readonly id: string
  readonly createdAt: EpochMs
  readonly companyName: string
  readonly contactName: string
  readonly contactEmail: string
  readonly brandName: string
  readonly channels: readonly Channel[]
  readonly website: string | null
  readonly useCase: string | null
}

export interface IntegrationRequestRecord extends IntegrationRequest {
  readonly status: 'pending' | 'approved' | 'rejected'
  readonly decidedAt: EpochMs | null
  readonly decidedBy: string | null
  /** Null: not rejected, or rejected without a reason. */
  readonly reason: string | null
  readonly appId: string | null
  readonly brandSlug: string | null
}

export interface IntegrationRequests {
  /**
   * Atomic and durable, with an alert unless one is already due later. Undefined: `maxPending` requests are pending.
   * @param alertChannels default: none
   */
  add(
    request: IntegrationRequest,
    maxPending: number,
    alertChannels?: readonly AlertChannel[],
  ): Promise<{ readonly alert: Alert | null } | undefined>
  pendingCount(): Promise<number>
}

/** Over all callers (design D18). */
const maxPendingRequests = 1000

export interface IntegrationPorts {
  readonly now: Clock
  readonly contacts: Contacts
  readonly requests: IntegrationRequests
  readonly alerts: {
    readonly channels: readonly AlertChannel[]
    requested(alert: Alert): void
  }
  readonly store: Pick<OtpStore, 'admit'>
  readonly secrets: Pick<Secrets, 'newId' | 'subjects'>
}

export const requestSizes = {
  companyName: 100,
  contactName: 100,
  brandName: 40,
  website: 255,
  useCase: 2000,
} as const

/** POST /integrations/requests (design D18). */
export async function requestIntegration(
  ports: IntegrationPorts,
  context: RequestContext,
  body: Body,
): Promise<string> {
  const fields = readRequest(ports.contacts, body)
  if ((await ports.requests.pendingCount()) >= maxPendingRequests) throw tooManyPending()
  await claim(ports, context, byNetwork(ports.secrets, context.clientIp, integrationRequests))
  const id = ports.secrets.newId()
  const request = { id, createdAt: ports.now(), ...fields }
  const saved = await ports.requests.add(request, maxPendingRequests, ports.alerts.channels)
  if (!saved) throw tooManyPending()
  if (saved.alert) ports.alerts.requested(saved.alert)
  return id
}

function tooManyPending(): Failure {
  return new Failure(
    'rate_limited',
    'Too many requests. Please try again later. This server has too many pending integration requests.',
    {
      retryAfterSeconds: 3600,
    },
  )
}

function readRequest(contacts: Contacts, body: Body): Omit<IntegrationRequest, 'id' | 'createdAt'> {
  const contactEmail = contacts.email(body.contactEmail)
  const names = {
    companyName: text('companyName', body.companyName, { max: requestSizes.companyName }),
    contactName: text('contactName', body.contactName, { max: requestSizes.contactName }),
    brandName: text('brandName', body.brandName, { max: requestSizes.brandName }),
  }
  const fault = scriptFault(names.brandName)
  if (fault !== undefined) throw invalidField('brandName', fault)
  if (!contactEmail) throw invalidField('contactEmail', contacts.faultOf(body.contactEmail, 'EMAIL'))
  return {
    ...names,
    contactEmail: contactEmail.to,
    channels: readChannels(body.channels),
    website: readWebsite(body.website),
    useCase: optionalText('useCase', body.useCase, { max: requestSizes.useCase, lines: 'many' }) ?? null,
  }
}

function readChannels(value: unknown): Channel[] {
  if (!isGiven(value)) return []
  const channels = Array.isArray(value) ? value.map(parseChannel) : [undefined]
  const known = channels.filter((channel) => channel !== undefined)
  if (known.length < channels.length) throw invalidField('channels', 'must be an array of SMS and EMAIL.')
  return [...new Set(known)]
}

function readWebsite(value: unknown): string | null {
  const website = optionalText('website', value, { max: requestSizes.website })
  if (website === undefined) return null
  if (!/^https?:\/\/[^\s/]+/i.test(website) || !URL.canParse(website)) {
    throw invalidField('website', 'must be an http or https URL.')
  }
  return website
}

export interface WaysPorts extends WayPorts {
  readonly ladder: Ladder
  readonly policy: ReadPolicy
  readonly countryOfPrefix: Numbers['countryOfPrefix']
  readonly isCountry: Numbers['isCountry']
}

/**
 * The ways by which a code may go to a country now, that of a send first (design D54).
 * @param given a country code, or the first digits of a phone number
 * @throws validation_error
 */
export async function waysInCountry(ports: WaysPorts, given: string): Promise<readonly PhoneWay[]> {
  const code = given.toUpperCase()
  const country = /^[0-9]{1,6}$/.test(given) ? ports.countryOfPrefix(given) : code
  if (country === null || !ports.isCountry(country))
    throw invalidField(
      'country',
      'must be a country code such as IN, or up to 6 first digits of a number, such as 9198.',
    )
  const ways = new Set([...ports.ladder.ways, ...waysOf(ports.phoneRoutes)])
  return waysTo(ports, await ports.policy(), country, [...ways])
}

/** GET /integrations/catalog (design D17). */
export function catalog(limits: LimitSettings, otpTtlSeconds: number, brands: readonly BrandWithTexts[]) {
  return {
    channels: ['SMS', 'EMAIL'] as const,
    templates: [
      ...notifyTemplates.map(catalogEntry),
      ...enabledOwnTemplates(brands).map(({ slug, template }) => ({
        ...catalogEntry(template),
        brandId: slug,
      })),
    ],
    limits: {
      globalPerMinute: limits.globalPerMinute,
      phonePerMinute: limits.phonePerMinute,
      phonePerHour: limits.phonePerHour,
      smsCooldownSeconds: limits.smsCooldownSeconds,
      emailPerHour: limits.emailPerHour,
      otpTtlSeconds,
      otpMaxAttempts: maxAttempts,
      otpLength: 6,
      notifyRecipients: notifySizes.to,
      messageCharacters: notifySizes.message,
      subjectCharacters: notifySizes.subject,
      htmlCharacters: notifySizes.html,
      templateCharacters: notifySizes.template,
    },
  }
}

function catalogEntry({ key, variables }: Template) {
  return {
    key,
    channel: 'SMS' as const,
    variables: [
      ...variables.map((rule) => ({ ...rule, required: true })),
      { ...businessNameRule, required: false },
    ],
  }
}
