import type { ContextOf } from '../../domain/events/request-context.ts'
import { type ConsoleRoutePorts, type ConsoleSettings, createPageHandler } from './page-handler.ts'
import { accountRoutes } from './routes/account.ts'
import { appRoutes } from './routes/apps.ts'
import { brandRoutes } from './routes/brands.ts'
import { deliveryRoutes } from './routes/deliveries.ts'
import { destinationRoutes } from './routes/destinations.ts'
import { guardRoutes } from './routes/guard.ts'
import { liveRoutes } from './routes/live.ts'
import { moneyRoutes } from './routes/money.ts'
import { operatorRoutes } from './routes/operators.ts'
import { queueRoutes } from './routes/queue.ts'
import { requestRoutes } from './routes/requests.ts'
import { reviewNumberRoutes } from './routes/review-numbers.ts'
import { searchRoutes } from './routes/search.ts'
import { serverRoutes } from './routes/server.ts'
import { sessionRoutes } from './routes/sessions.ts'
import { testRoutes } from './routes/test-send.ts'
import { textRoutes } from './routes/texts.ts'
import { webhookRoutes } from './routes/webhooks.ts'

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
  reviewNumberRoutes(pageHandler)
  searchRoutes(pageHandler)
  serverRoutes(pageHandler)
  liveRoutes(pageHandler)
  pageHandler.get('/admin/*', (_, pageContext) => pageHandler.missing(pageContext, 'Page not found'))
  return pageHandler.routes
}
