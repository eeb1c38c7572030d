import { Elysia } from 'elysia'
import type { Exchanges } from '../exchange.ts'
import { staticRoutes } from '../static.ts'
import { consoleFiles } from './assets.ts'
import { type ConsoleRoutePorts, type ConsoleSettings, createFrame } from './frame.ts'
import { appRoutes } from './routes/apps.ts'
import { brandRoutes } from './routes/brands.ts'
import { deliveryRoutes } from './routes/deliveries.ts'
import { overviewRoutes } from './routes/overview.ts'
import { requestRoutes } from './routes/requests.ts'
import { serverRoutes } from './routes/server.ts'
import { sessionRoutes } from './routes/sessions.ts'

/** Whether a request is for the console, whose forms are no JSON. */
export function isConsole(path: string): boolean {
  return path === '/admin' || path.startsWith('/admin/')
}

/**
 * The operator's console: pages made here, and forms. It is there for whoever knows the password, once there is one, or
 * holds a link of `otpost admin link`; others are told that it is off (404).
 */
export function consoleRoutes(ports: ConsoleRoutePorts, settings: ConsoleSettings, exchanges: Exchanges) {
  const routes = new Elysia({ strictPath: true, normalize: false }).use(staticRoutes(consoleFiles))
  const frame = createFrame(ports, settings, exchanges)
  sessionRoutes(routes, ports, settings, frame, exchanges)
  overviewRoutes(routes, ports, frame)
  requestRoutes(routes, ports, frame)
  brandRoutes(routes, ports, settings, frame)
  appRoutes(routes, ports, frame)
  deliveryRoutes(routes, ports, settings, frame)
  serverRoutes(routes, ports, settings, frame)
  routes.get(
    '/admin/*',
    frame.page((_, shell) => frame.missing(shell, 'There is no such page')),
  )

  return routes
}
