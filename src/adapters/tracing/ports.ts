import type { DeliveryReportStore } from '../../domain/delivery/delivery-reports.ts'
import {
  type Mailer,
  mapRoutes,
  type Outcome,
  type PhoneRoutes,
  type SmsProvider,
} from '../../domain/ground/providers.ts'
import type { IntegrationRequests } from '../../domain/integration/integration.ts'
import type { IdempotencyKeys } from '../../domain/limits/idempotency-store.ts'
import type { OtpStore } from '../../domain/otp/store.ts'

export interface TracedStep {
  readonly name: string
  readonly isCall?: boolean
  readonly attributes?: Attributes
}

type Attributes = Readonly<Record<string, string>>

type DoStep = <T>(
  step: TracedStep,
  work: () => Promise<T>,
  resultOf?: (result: T) => StepResult,
) => Promise<T>

export interface StepResult {
  readonly attributes: Attributes
  /** In one word. Undefined: success. */
  readonly failure?: string
}

export interface TracedPorts {
  readonly store: OtpStore
  readonly requests: IntegrationRequests
  readonly deliveryReports: DeliveryReportStore
  readonly idempotencyKeys: IdempotencyKeys
  readonly checkDatabase: () => Promise<void>
  readonly phoneRoutes: PhoneRoutes
  readonly mailer: Mailer
}

export function traced<Ports extends TracedPorts>(step: DoStep, ports: Ports): Ports {
  const { store, requests, deliveryReports, idempotencyKeys, checkDatabase, phoneRoutes, mailer } = ports
  const stored = <T>(name: string, work: () => Promise<T>) => step({ name: `store ${name}` }, work)
  const sending = <P extends SmsProvider | Mailer>(provider: P, route: Attributes): P => {
    const attributes = { 'otpost.provider': provider.name, ...route }
    const send = { name: `send ${provider.name}`, isCall: true, attributes }
    return withMethods(provider, (name, work) => (name === 'send' ? step(send, work, resultOf) : work()))
  }
  return {
    ...ports,
    store: withMethods(store, stored),
    requests: withMethods(requests, (name, work) => stored(name === 'add' ? 'saveRequest' : name, work)),
    deliveryReports: withMethods(deliveryReports, stored),
    idempotencyKeys: withMethods(idempotencyKeys, (name, work) => stored(`${name}Key`, work)),
    checkDatabase: () => stored('checkDatabase', checkDatabase),
    phoneRoutes: mapRoutes(phoneRoutes, (providers, route) =>
      providers.map((provider) => sending(provider, { 'otpost.route': route })),
    ),
    mailer: sending(mailer, {}),
  }
}

function withMethods<T extends object>(
  target: T,
  around: (name: string, work: () => Promise<Outcome>) => unknown,
): T {
  return new Proxy(target, {
    get(_, key) {
      const method: unknown = Reflect.get(target, key)
      if (typeof method !== 'function' || typeof key !== 'string') return method
      return (...args: unknown[]) => around(key, () => Reflect.apply(method, target, args))
    },
  })
}

/** Reasons are codes and contain nothing of the message. */
function resultOf(outcome: Outcome): StepResult {
  const { kind } = outcome
  if (kind === 'accepted') return { attributes: { 'otpost.outcome': kind } }
  const scope = kind === 'rejected' ? { 'otpost.scope': outcome.scope } : {}
  return {
    attributes: { 'otpost.outcome': kind, 'otpost.reason': outcome.reason, ...scope },
    failure: kind,
  }
}
