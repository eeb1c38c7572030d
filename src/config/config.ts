import { isIP } from 'node:net'
import { mailAddress } from '../adapters/email/mail-address.ts'
import { emailSettings, smtpSettings } from '../adapters/email/smtp-settings.ts'
import { readTls } from '../adapters/http/tls-settings.ts'
import type { ProviderCatalog } from '../adapters/sms/catalog.ts'
import type { ProviderFile } from '../adapters/sms/file/format.ts'
import { tracingSettings } from '../adapters/tracing/settings.ts'
import { routesOf, waysOf } from '../domain/delivery/way.ts'
import {
  type OtherWay,
  type PhoneRoutes,
  type PhoneWay,
  phoneWays,
  type SmsRoute,
} from '../domain/ground/providers.ts'
import type { Ladder } from '../domain/otp/ladder.ts'
import { readCountries } from './destinations.ts'
import { readCatalog, settingsOfFile } from './providers.ts'
import {
  alertSettings,
  codeSettings,
  messageSettings,
  metricsSettings,
  retentionSettings,
  serverSettings,
  smsSpendSettings,
  tlsSettings,
} from './server-settings.ts'
import type { TextSetting } from './setting.ts'
import type { Env } from './setting-source.ts'
import { isLoopback, Settings } from './settings.ts'
import { readNetworks, readStoreSettings } from './store.ts'
import { chatWays, otherWaysIn } from './ways.ts'

export type Config = ReturnType<typeof readConfig>

/** @throws ConfigError with every problem */
export function readConfig(env: Env) {
  const settings = new Settings(env)
  const smsMode = settings.oneOf(messageSettings.OTP_SMS_MODE)
  const catalog = readCatalog(settings)
  const plain = readRoute(settings, catalog, 'plain', true)
  const template = readRoute(settings, catalog, 'template', routesOf(smsMode, true).includes('template'))
  const smtp = smtpSettings(settings)
  refuseOutboxInProduction(settings, { SMS_PLAIN: plain, SMS_TEMPLATE: template })
  const port = settings.integer(serverSettings.PORT)
  const host = readHost(settings, serverSettings.HOST)
  const publicUrl = readPublicUrl(settings)
  // `readUsualEnvFile` has read it already. This lists it with the other settings.
  settings.optional(serverSettings.OTPOST_ENV_FILE)
  const store = readStoreSettings(settings)
  const tls = readTls(settings, store.database.kind === 'sqlite' ? store.database.file : undefined)
  const phoneRoutes = readPhoneRoutes(settings, plain, template)
  const smsCountries = readCountries(settings, smsSpendSettings.SMS_COUNTRIES)
  const voiceCountries = readCountries(settings, smsSpendSettings.VOICE_COUNTRIES)
  const outboxToken = settings.token(messageSettings.OUTBOX_TOKEN)
  const config = {
    host,
    port,
    reusePort: settings.flag(serverSettings.REUSE_PORT),
    tls,
    ...store,
    /** Applied at the start of `serve`. */
    configFile: settings.optional(messageSettings.CONFIG_FILE)?.trim(),
    smsMode,
    catalog,
    settingsOfFile: (file: ProviderFile) => settingsOfFile(env, file),
    phoneRoutes,
    ladder: readLadder(settings, waysOf(phoneRoutes)),
    /** Undefined: mail stays in the outbox. */
    smtp,
    /** Empty: the server has no outbox. */
    outboxSettings: [
      ...(plain.usesOutbox ? ['SMS_PLAIN'] : []),
      ...(template.usesOutbox ? ['SMS_TEMPLATE'] : []),
      ...(smtp ? [] : ['SMTP_URL']),
    ],
    outboxAccess: {
      token: outboxToken,
      isOpen: outboxToken !== undefined || (isLoopback(host) && !tls),
      publicUrl,
    },
    limits: {
      globalPerMinute: settings.integer(codeSettings.GLOBAL_LIMIT_PER_MINUTE),
      phonePerMinute: settings.integer(codeSettings.PHONE_LIMIT_PER_MINUTE),
      phonePerHour: settings.integer(codeSettings.PHONE_LIMIT_PER_HOUR),
      smsCooldownSeconds: settings.integer(codeSettings.SMS_COOLDOWN_SECONDS),
      failureBudgetPerDay: settings.integer(codeSettings.FAILURE_BUDGET_PER_DAY),
      emailPerHour: settings.integer(codeSettings.EMAIL_LIMIT_PER_HOUR),
    },
    otpTtlSeconds: settings.integer(codeSettings.OTP_TTL_SECONDS),
    /** ISO 3166-1 alpha-2. Empty: SMS_COUNTRIES is not set (design D40). */
    smsCountries,
    /** VOICE_COUNTRIES, else SMS_COUNTRIES. Empty: all. */
    voiceCountries: voiceCountries.length > 0 ? voiceCountries : smsCountries,
    /** Design D41. */
    guard: settings.oneOf(smsSpendSettings.GUARD),
    providerTimeoutMs: settings.integer(messageSettings.PROVIDER_TIMEOUT_MS),
    usesConversionFeedback: settings.flag(messageSettings.CONVERSION_FEEDBACK),
    /** Without a trailing slash. */
    publicUrl,
    retentionDays: {
      eventLog: settings.integer(retentionSettings.DELIVERY_LOG_DAYS),
      audit: settings.integer(retentionSettings.AUDIT_LOG_DAYS),
      requests: settings.integer(retentionSettings.INTEGRATION_REQUEST_DAYS),
    },
    trustedProxies: readNetworks(
      settings,
      serverSettings.TRUSTED_PROXIES,
      'A network of /0 would let every caller choose its IP address',
    ),
    metrics: readMetrics(settings, port),
    alerts: readAlerts(settings),
    shortSecrets: settings.shortSecrets,
    logLevel: settings.oneOf(serverSettings.LOG_LEVEL),
    tracing: tracingSettings(settings),
    shutdownDelaySeconds: settings.integer(serverSettings.SHUTDOWN_DELAY_SECONDS),
  }
  return settings.checked({ ...config, inForce: settings.inForce() })
}

/** GUARD. Undefined: it is not set. */
export function guardSetting({ inForce, guard }: Pick<Config, 'inForce' | 'guard'>) {
  return inForce.some(({ name, source }) => name === 'GUARD' && source !== 'default') ? guard : undefined
}

export function readConsoleOrigins(env: Env) {
  const settings = new Settings(env)
  const publicUrl = readPublicUrl(settings)
  const host = readHost(settings, serverSettings.HOST)
  const port = settings.integer(serverSettings.PORT)
  return settings.checked({ publicUrl, local: localUrl(host, port), port })
}

/** For programs on the same machine. */
export function localUrl(host: string, port: number): string {
  const anywhere = host === '0.0.0.0' || host === '::'
  return `http://${anywhere ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host}:${port}`
}

function readRoute(settings: Settings, catalog: ProviderCatalog, route: SmsRoute, used: boolean) {
  const setting = route === 'plain' ? messageSettings.SMS_PLAIN : messageSettings.SMS_TEMPLATE
  const specs = [...new Set(settings.list(setting))].flatMap((name) => {
    const { spec, faults } = catalog.named(name)
    for (const fault of faults) settings.refuse(setting.name, fault)
    if (spec && !spec.routes.includes(route)) {
      settings.refuse(setting.name, `names ${name}, which has no ${route} route`)
    }
    return spec ?? []
  })
  // An unused route is checked too.
  const providers = specs.map((spec) => spec.configure(settings, route))
  const developmentOnly = specs.filter((spec) => spec.developmentOnly).map(({ name }) => name)
  return used
    ? { providers, developmentOnly, usesOutbox: developmentOnly.includes('outbox') }
    : { providers: [], developmentOnly: [], usesOutbox: false }
}

function readPhoneRoutes(
  settings: Settings,
  plain: ReadRoute,
  template: ReadRoute,
): PhoneRoutes<MakeProvider> {
  const others: Partial<Record<OtherWay, readonly MakeProvider[]>> = {}
  for (const { way, spec } of otherWaysIn(settings)) others[way] = [spec.configure(settings, way)]
  return { plain: plain.providers, template: template.providers, ...others }
}

/** Design D54. */
function readLadder(settings: Settings, setUp: readonly PhoneWay[]): Ladder {
  const { LADDER, LADDER_WAIT_SECONDS } = messageSettings
  const waitSeconds = settings.integer(LADDER_WAIT_SECONDS)
  const isWaitGiven = settings.optional(LADDER_WAIT_SECONDS) !== undefined
  const given = settings.optional(LADDER)?.split(',') ?? []
  const isLong = waitSeconds > settings.integer(codeSettings.OTP_TTL_SECONDS)
  if (isLong && (isWaitGiven || given.length > 0)) {
    const why = 'a code would expire before its next way'
    settings.refuse(LADDER_WAIT_SECONDS.name, `must be at most OTP_TTL_SECONDS: ${why}`)
  }
  const ways = new Set(given.flatMap((word) => phoneWays.find((way) => way === word.trim()) ?? []))
  const [first = 'sms', ...others] = ways
  const refuse = (problem: string) => settings.refuse(LADDER.name, problem)
  if (ways.size < given.length)
    refuse(`must name ways of ${phoneWays.join(', ')}, each once, separated by commas`)
  if (first === 'voice') refuse('begins with voice. Name another way before it, such as sms')
  for (const way of ways.difference(new Set(setUp))) {
    const setting = chatWays.find((each) => each.way === way)?.setting.name ?? 'VOICE_PROVIDER'
    refuse(`names ${way}, which is not set up. Set ${setting}, or remove ${way} from LADDER`)
  }
  return { ways: [first, ...others], waitSeconds }
}

type ReadRoute = ReturnType<typeof readRoute>
type MakeProvider = ReadRoute['providers'][number]
type Route = Pick<ReturnType<typeof readRoute>, 'developmentOnly'>

function refuseOutboxInProduction(
  settings: Settings,
  routes: { SMS_PLAIN: Route; SMS_TEMPLATE: Route },
): void {
  const allowed = settings.flag(messageSettings.OUTBOX_IN_PRODUCTION)
  if (settings.optional(serverSettings.NODE_ENV) !== 'production' || allowed) return
  const remedy =
    'set it to a provider that delivers, or set OUTBOX_IN_PRODUCTION=1 to allow this. To try otpost, run otpost demo'
  for (const name of ['SMS_PLAIN', 'SMS_TEMPLATE'] as const) {
    for (const provider of routes[name].developmentOnly) {
      settings.refuse(name, `is "${provider}", which delivers nothing, with NODE_ENV=production: ${remedy}`)
    }
  }
  if (settings.optional(emailSettings.SMTP_URL) === undefined) {
    settings.refuse(
      'SMTP_URL',
      'is not set, so no e-mail would be sent, with NODE_ENV=production: set it to your mail server, such as smtp://user:password@mail.example.com:587, or set OUTBOX_IN_PRODUCTION=1 to keep e-mails in the outbox',
    )
  }
}

function readHost(settings: Settings, setting: TextSetting): string {
  const host = settings.text(setting).trim()
  // Digits and dots must be an IPv4 address. Names are resolved when the server listens.
  const isName = /^(?=.{1,253}$)[a-z0-9-]+(\.[a-z0-9-]+)*\.?$/i.test(host) && !/^[0-9.]+$/.test(host)
  if (isIP(host) === 0 && !isName) {
    settings.refuse(
      setting.name,
      'must be an IP address or a host name of this machine, such as 127.0.0.1 or 0.0.0.0',
    )
  }
  return host
}

/** The token is required on both ports. Without it, only `listener` serves metrics. */
function readMetrics(settings: Settings, usualPort: number) {
  const token = settings.token(metricsSettings.METRICS_TOKEN)
  const host = readHost(settings, metricsSettings.METRICS_HOST)
  if (settings.optional(metricsSettings.METRICS_PORT) === undefined) {
    return token === undefined ? undefined : { token, listener: undefined }
  }
  const port = settings.integer(metricsSettings.METRICS_PORT)
  // With REUSE_PORT both could share one port.
  if (port !== 0 && port === usualPort) {
    settings.refuse(
      'METRICS_PORT',
      'must differ from PORT. To serve metrics on PORT, set METRICS_TOKEN instead',
    )
  }
  return { token, listener: { host, port } }
}

function readAlerts(settings: Settings) {
  const to = settings.optional(alertSettings.ALERT_EMAIL)
  const email = to === undefined ? undefined : mailAddress(to)
  if (to !== undefined && (!email || email.name !== null))
    settings.refuse('ALERT_EMAIL', 'must be an e-mail address, such as ops@example.com')
  const { ALERT_WEBHOOK_URL: url, ALERT_WEBHOOK_SECRET: secret } = alertSettings
  const hasWebhook = [url, secret].some((setting) => settings.optional(setting) !== undefined)
  return {
    email: email?.address,
    webhook: hasWebhook
      ? {
          url: settings.serviceUrl(url, 'ALERT_WEBHOOK_SECRET is set'),
          key: settings.webhookKey(secret, 'ALERT_WEBHOOK_URL is set'),
        }
      : undefined,
  }
}

function readPublicUrl(settings: Settings): string | undefined {
  if (settings.optional(serverSettings.PUBLIC_URL) === undefined) {
    const domain = settings.optional(tlsSettings.TLS_DOMAIN)
    return domain && `https://${domain.trim()}`
  }
  const url = settings.baseUrl(serverSettings.PUBLIC_URL)
  // Kannel replaces escapes that begin with %.
  if (url.includes('%')) settings.refuse('PUBLIC_URL', 'must not contain %')
  return url
}
