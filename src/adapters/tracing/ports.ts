import type { EventLogReader } from '../../domain/events/event-log.ts'
import type { IntegrationRequests } from '../../domain/integration/integration.ts'
import type { DeliveryReportStore } from '../../domain/messages/delivery-reports.ts'
import type { Mailer, Outcome, SmsProvider, SmsRoute } from '../../domain/messages/providers.ts'
import type { OtpStore } from '../../domain/otp/store.ts'

/** What a step of a request is called, and what is known of it beforehand. */
export interface Step {
  readonly name: string
  /** A call to someone else's service, rather than work of our own. */
  readonly isCall?: boolean
  readonly attributes?: Attributes
}

type Attributes = Readonly<Record<string, string>>

/** Does a step within a span; `tell` says what its result adds to what is known, and whether it was a failure. */
export type DoStep = <T>(step: Step, work: () => Promise<T>, tell?: (result: T) => Told) => Promise<T>

export interface Told {
  readonly attributes: Attributes
  /** In a word; undefined: it was none. */
  readonly failure?: string
}

/** The ports whose use is a step of a request. */
export interface TracedPorts {
  readonly store: OtpStore
  readonly requests: IntegrationRequests
  readonly deliveryReports: DeliveryReportStore
  readonly lastProviderOf: EventLogReader['lastProviderOf']
  readonly checkDatabase: () => Promise<void>
  readonly smsRoutes: Readonly<Record<SmsRoute, readonly SmsProvider[]>>
  readonly mailer: Mailer
}

/** The same ports, each use of which is a span among the children of its request. */
export function traced<Ports extends TracedPorts>(step: DoStep, ports: Ports): Ports {
  const { store, requests, deliveryReports, smsRoutes, mailer } = ports
  function stored<Args extends readonly unknown[], T>(name: string, work: (...args: Args) => Promise<T>) {
    const named: Step = { name: `store ${name}` }
    return (...args: Args) => step(named, () => work(...args))
  }
  function handingOver<Args extends readonly unknown[]>(
    provider: string,
    route: Attributes,
    send: (...args: Args) => Promise<Outcome>,
  ) {
    const named: Step = {
      name: `send ${provider}`,
      isCall: true,
      attributes: { 'otpost.provider': provider, ...route },
    }
    return (...args: Args) => step(named, () => send(...args), told)
  }
  const sending = (route: SmsRoute) =>
    smsRoutes[route].map((provider) => ({
      ...provider,
      send: handingOver(provider.name, { 'otpost.route': route }, provider.send.bind(provider)),
    }))
  return {
    ...ports,
    store: {
      ...store,
      admit: stored('admit', store.admit),
      check: stored('check', store.check),
      beginSend: stored('beginSend', store.beginSend),
      reschedule: stored('reschedule', store.reschedule),
      abandonSend: stored('abandonSend', store.abandonSend),
      guess: stored('guess', store.guess),
      rekey: stored('rekey', store.rekey),
    } satisfies OtpStore,
    requests: { ...requests, add: stored('saveRequest', requests.add) },
    deliveryReports: { ...deliveryReports, saveReports: stored('saveReports', deliveryReports.saveReports) },
    lastProviderOf: stored('lastProviderOf', ports.lastProviderOf),
    checkDatabase: stored('checkDatabase', ports.checkDatabase),
    smsRoutes: { plain: sending('plain'), template: sending('template') },
    mailer: {
      ...mailer,
      send: handingOver(mailer.name, {}, mailer.send.bind(mailer)),
    },
  }
}

/** An outcome as a span tells it; a reason is a vendor's code or an error's, with nothing of the message. */
function told(outcome: Outcome): Told {
  const { kind } = outcome
  if (kind === 'accepted') return { attributes: { 'otpost.outcome': kind } }
  const scope = kind === 'rejected' ? { 'otpost.scope': outcome.scope } : {}
  return {
    attributes: { 'otpost.outcome': kind, 'otpost.reason': outcome.reason, ...scope },
    failure: kind,
  }
}
