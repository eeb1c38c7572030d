import type { ContextOf } from '../../domain/request/request-context.ts'
import { accountRoutes } from './account/routes.ts'
import { appRoutes } from './apps/routes.ts'
import { auditRoutes } from './audit/routes.ts'
import { brandRoutes } from './brands/routes.ts'
import { deliveryRoutes } from './deliveries/routes.ts'
import { destinationRoutes } from './destinations/routes.ts'
import { guardRoutes } from './guard/routes.ts'
import { healthRoutes } from './health/routes.ts'
import { moneyRoutes } from './money/routes.ts'
import { operatorRoutes } from './operators/routes.ts'
import { overviewRoutes } from './overview/routes.ts'
import { type ConsoleRoutePorts, type ConsoleSettings, createPageHandler } from './page-handler.ts'
import { providerRoutes } from './providers/routes.ts'
import { queueRoutes } from './queue/routes.ts'
import { relayRoutes } from './relays/routes.tsx'
import { requestRoutes } from './requests/routes.ts'
import { reviewNumberRoutes } from './review-numbers/routes.ts'
import { searchRoutes } from './search/routes.ts'
import { sessionRoutes } from './sessions/routes.ts'
import { settingsRoutes } from './settings/routes.ts'
import { testRoutes } from './test-send/routes.ts'
import { textRoutes } from './texts/routes.ts'
import { webhookRoutes } from './webhooks/routes.ts'
import { whatIfRoutes } from './what-if/routes.tsx'

/** Without a password, an account and a session, every page except `/admin/link` answers 404. */
export function consoleRoutes(ports: ConsoleRoutePorts, settings: ConsoleSettings, contextOf: ContextOf) {
  const pageHandler = createPageHandler(ports, settings, contextOf)
  sessionRoutes(pageHandler)
  accountRoutes(pageHandler)
  operatorRoutes(pageHandler)
  requestRoutes(pageHandler)
  brandRoutes(pageHandler)
  textRoutes(pageHandler)
  testRoutes(pageHandler)
  appRoutes(pageHandler)
  webhookRoutes(pageHandler)
  deliveryRoutes(pageHandler)
  queueRoutes(pageHandler)
  moneyRoutes(pageHandler)
  destinationRoutes(pageHandler)
  guardRoutes(pageHandler)
  whatIfRoutes(pageHandler)
  reviewNumberRoutes(pageHandler)
  relayRoutes(pageHandler)
  healthRoutes(pageHandler)
  searchRoutes(pageHandler)
  overviewRoutes(pageHandler)
  auditRoutes(pageHandler)
  settingsRoutes(pageHandler)
  providerRoutes(pageHandler)
  pageHandler.postActions()
  pageHandler.get('/admin/*', (_, pageContext) => pageHandler.missing(pageContext, 'Page not found'))
  return pageHandler.routes
}
