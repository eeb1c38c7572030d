import type { ConsoleRoutePorts, ConsoleSettings } from '../adapters/console/page-handler.ts'
import type { Actor } from '../domain/ground/audit.ts'
import { OperatorError } from '../domain/ground/operator-error.ts'
import { readServerHealth } from '../domain/health/facts.ts'
import { incidentNames } from '../domain/health/incidents.ts'
import type { ActionPorts } from '../domain/operator/actions.ts'

/** What declared actions need in a server, for the console and the management API. */
export function actionPortsOf(ports: Omit<ConsoleRoutePorts, 'actionPorts'>, settings: ConsoleSettings) {
  const { now, eventLog } = ports
  return (actor: Actor, requestId: string) => ({
    ...settings,
    ...settings.numbers,
    ...ports,
    actor,
    guardMode: async () => settings.guard,
    countriesOfCodes: () => eventLog.countries(now()),
    smsOfWeek: () => eventLog.smsOfWeek(now()),
    routing: async () => settings,
    providerNames: async () => settings.providerNames,
    incidents: async () =>
      incidentNames(await readServerHealth({ ...ports, ...settings.numbers }, settings, 'hour', now())),
    mailUrl: async () => settings.ownUrl(),
    mailRequester: (...mail: Parameters<ActionPorts['mailRequester']>) =>
      ports.mailRequester(...mail).catch((error: unknown) => {
        if (error instanceof OperatorError) throw error
        settings.log.error({ err: error, requestId }, 'an e-mail to a requester failed')
        throw new OperatorError(
          `The e-mail failed. The server log has the cause under the request ID ${requestId}.`,
        )
      }),
  })
}
