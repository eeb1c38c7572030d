import type { LiveStreams } from '../adapters/console/live.ts'
import type { ConsoleRoutePorts } from '../adapters/console/page-handler.ts'
import type { ProviderFiles } from '../adapters/console/providers/page.tsx'
import { consoleRoutes } from '../adapters/console/routes.ts'
import { createPasskeys, relyingParties } from '../adapters/crypto/passkeys.ts'
import { rawMail } from '../adapters/email/raw-mail.ts'
import { MetricsListener, metricsRoutes } from '../adapters/http/endpoints/metrics.ts'
import { rootRoutes } from '../adapters/http/endpoints/root.tsx'
import { knownHosts, scrapedHosts } from '../adapters/http/known-hosts.ts'
import { manageRoutes } from '../adapters/http/manage/routes.ts'
import type { AddedRoutes } from '../adapters/http/server.ts'
import type { Metrics } from '../adapters/metrics/ports.ts'
import type { Demo } from '../adapters/outbox/page.tsx'
import { outboxRoutes } from '../adapters/outbox/routes.ts'
import { numbers } from '../adapters/phone/numbers.ts'
import { parsePrices } from '../adapters/prices/csv.ts'
import { exampleMessage, shownRequest } from '../adapters/sms/file/shown.ts'
import { developmentOnly, providerCodes } from '../adapters/sms/index.ts'
import type { Config } from '../config/config.ts'
import { Settings } from '../config/settings.ts'
import type { Context } from '../context.ts'
import { isSetUp } from '../domain/accounts/accounts.ts'
import { type PhoneRoutes, phoneRouteNames } from '../domain/ground/providers.ts'
import { providerHealth } from '../domain/log/provider-health.ts'
import { routeSettings } from '../domain/operator/destinations.ts'
import type { ContextOf } from '../domain/request/request-context.ts'
import { actionPortsOf } from './action-ports.ts'
import { type Shared, texts } from './shared.ts'

interface PageParts
  extends Pick<ConsoleRoutePorts, 'sendTest' | 'mailRequester' | 'limited' | 'refused' | 'runChecks'> {
  readonly live: LiveStreams
  readonly contextOf: ContextOf
  readonly port: () => number
  readonly demo: Demo | undefined
  readonly stopping: AbortSignal
}

/** The pages of a server: the root, the console and the outbox. */
export function createPages(
  config: Config,
  context: Context,
  shared: Shared,
  parts: PageParts,
): AddedRoutes[] {
  const { contextOf, port, demo, stopping } = parts
  const { outboxAccess: access, publicUrl } = config
  const { eventLog, guardReader } = context
  const { countries, guardCounts } = eventLog.forPages
  const { now, policy, build, mailer, phoneRoutes, ownUrl, hasOutbox, log } = shared
  const consolePorts = {
    ...context,
    ...parts,
    eventLog: { ...eventLog, ...eventLog.forPages },
    guard: { ...guardReader, countries, guardCounts },
    priceList: async () => (await policy()).prices,
    activeReviewNumbers: async () => (await policy()).activeReviewNumbers(now()),
    providerStates: () => providerHealth(shared),
    parsePrices: (text: string) => parsePrices(text, config.catalog.names),
    passkeys: createPasskeys(() => relyingParties(publicUrl, port())),
  }
  const routes = routeSettings(config.smsMode, phoneRoutes)
  const settings = {
    ...config,
    ...build,
    ...texts,
    numbers,
    ownUrl,
    hasOutbox,
    log,
    databaseName: config.database.name,
    mailerName: mailer.name,
    providerNames: config.catalog.names,
    providerFiles: providerFiles(config, phoneRoutes),
    providerCodes,
    developmentOnly,
    routes,
  }
  const operating = { ...consolePorts, actionPorts: actionPortsOf(consolePorts, settings) }
  const root = {
    version: build.version,
    hasOutbox,
    hasConsole: async () => (await context.sessions.accounts()).some(isSetUp),
  }
  const outbox = { ...shared, rawMail, messages: context.outbox, demo, stopping, access }
  return [
    { routes: rootRoutes(root, contextOf) },
    {
      routes: manageRoutes(
        { ...shared, ...operating, ...build, policy, sha256: context.consoleSecrets.sha256 },
        contextOf,
      ),
    },
    { routes: consoleRoutes(operating, settings, contextOf), under: '/admin' },
    ...(config.outboxSettings.length > 0
      ? [{ routes: outboxRoutes(outbox, contextOf), under: '/outbox' as const }]
      : []),
  ]
}

function providerFiles({ catalog, settingsOfFile }: Config, phoneRoutes: PhoneRoutes): ProviderFiles {
  const usesOf = (name: string) =>
    phoneRouteNames.filter((route) => phoneRoutes[route]?.some((provider) => provider.name === name))
  return {
    list: () =>
      catalog
        .list()
        .map(({ name, source, file, faults = [] }) => {
          const { spec } = catalog.named(name)
          const unset = new Settings({})
          spec?.configure(unset, spec.routes[0] ?? 'plain')
          const variables = [...unset.missing]
          return { name, variables, source, docs: file?.docs, faults, uses: usesOf(name).join(' and ') }
        })
        .toSorted((one, other) => Number(one.uses === '') - Number(other.uses === '')),
    open: (name, given, isTemplate = false) => {
      const checked = catalog.fileOf(name)
      if (!checked || 'faults' in checked) return undefined
      const { file } = checked
      const { send, template, accepted, errors, reports, vectors } = file
      // Without the settings and requests, where someone may have left a secret.
      const examples = vectors.map(({ settings: _, request: __, ...example }) => example)
      const settings = settingsOfFile(file)
      const values = new Map(settings.map((setting) => [setting.name, setting.value ?? '']))
      const usual = Object.entries(exampleMessage(file))
      const message = Object.fromEntries(usual.map(([field, value]) => [field, given?.(field) ?? value]))
      return {
        settings,
        parts: { Sends: { send, template }, Answers: { accepted, errors, reports }, Examples: examples },
        message,
        isTemplate,
        request: given && shownRequest(file, values, message, isTemplate),
      }
    },
  }
}

/** Where metrics can be read: on the port of the API, on a port of its own, or both. */
export function createScraping(
  { metrics: settings, host, publicUrl }: Config,
  shared: Shared,
  metrics?: Metrics,
) {
  if (!settings || !metrics) return { routes: [], listener: undefined }
  const { token, listener: own } = settings
  const scrapes = { scrape: metrics.scrape, token }
  const hosts = own && scrapedHosts(knownHosts([host, own.host], publicUrl))
  return {
    routes: token === undefined ? [] : [{ routes: metricsRoutes(scrapes) }],
    listener: hosts && new MetricsListener(scrapes, own, hosts, shared.now, shared.log),
  }
}
