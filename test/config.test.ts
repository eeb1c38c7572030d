import { describe, expect, test } from 'bun:test'
import { type Config, readConfig } from '../src/config/config.ts'
import { ConfigError } from '../src/config/settings.ts'

type Environment = Readonly<Record<string, string>>

/** The problems of an environment, one per line; empty if there are none. */
function problemsOf(env: Environment): readonly string[] {
  try {
    readConfig(env)
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
}

/** The variables named in an environment's problems. */
function namesOf(env: Environment): string[] {
  return problemsOf(env).map((problem) => problem.slice(0, problem.indexOf(' ')))
}

const webhook = {
  SMS_PLAIN: 'webhook',
  SMS_WEBHOOK_URL: 'https://sms.example/in',
  SMS_WEBHOOK_SECRET: `whsec_${Buffer.alloc(32, 7).toString('base64')}`,
} as const
const smtp = { SMTP_URL: 'smtps://mail.example', MAIL_FROM: 'Codes <codes@shop.example>' } as const

/**
 * Each number of design 7: the variable, its default, the configuration field, and values on both sides of
 * its bounds.
 */
type NumberSetting = readonly [
  name: string,
  fallback: number,
  of: (config: Config) => number,
  good: readonly number[],
  bad: readonly string[],
]
const numbers: readonly NumberSetting[] = [
  ['PORT', 3000, ({ port }) => port, [0, 1, 65_535], ['65536']],
  ['GLOBAL_LIMIT_PER_MINUTE', 10, ({ limits }) => limits.globalPerMinute, [1, 1_000_000], ['0']],
  ['PHONE_LIMIT_PER_MINUTE', 3, ({ limits }) => limits.phonePerMinute, [1, 1_000_000], ['0']],
  ['PHONE_LIMIT_PER_HOUR', 10, ({ limits }) => limits.phonePerHour, [1, 1_000_000], ['0']],
  ['SMS_COOLDOWN_SECONDS', 30, ({ limits }) => limits.smsCooldownSeconds, [1, 3600], []],
  ['OTP_TTL_SECONDS', 300, ({ otpTtlSeconds }) => otpTtlSeconds, [1, 600], ['0', '601', '86400']],
  ['LADDER_WAIT_SECONDS', 20, ({ ladder }) => ladder.waitSeconds, [0, 300], ['301', '601']],
  ['PROVIDER_TIMEOUT_MS', 4000, ({ providerTimeoutMs }) => providerTimeoutMs, [1, 30_000], ['0']],
  ['FAILURE_BUDGET_PER_DAY', 100, ({ limits }) => limits.failureBudgetPerDay, [0, 1, 1_000_000], []],
  ['EMAIL_LIMIT_PER_HOUR', 30, ({ limits }) => limits.emailPerHour, [0, 1, 1_000_000], []],
]

describe.each(numbers)('%s', (name, fallback, of, good, bad) => {
  test.each([
    ['unset', {}],
    ['empty', { [name]: '' }],
    ['white space', { [name]: ' \t' }],
  ])(`is ${fallback} when it is %s`, (_, env) => {
    expect(of(readConfig(env))).toBe(fallback)
  })

  test.each([...good])('may be %i', (value) => {
    expect(of(readConfig({ [name]: String(value) }))).toBe(value)
  })

  test.each([...bad, '-1', '1.5', '1e3', '0x10', 'ten', '10s', '1 0', '99999999999999999999', 'Infinity'])(
    'is rejected by name for the value %s',
    (value) => {
      expect(namesOf({ [name]: value })).toEqual([name])
    },
  )
})

describe('an empty value counts as unset', () => {
  const others = `HOST DATABASE_URL SECRET_KEY APP_CREDENTIALS OTP_SMS_MODE SMS_PLAIN SMS_TEMPLATE SMS_WEBHOOK_URL
    SMS_WEBHOOK_SECRET SMTP_URL MAIL_FROM OUTBOX_IN_PRODUCTION REUSE_PORT PHONE_DEFAULT_REGION TRUSTED_PROXIES
    METRICS_TOKEN OUTBOX_TOKEN METRICS_PORT METRICS_HOST LOG_LEVEL NODE_ENV SMS_COUNTRIES VOICE_COUNTRIES VOICE_PROVIDER GUARD LADDER`
  const everything = [...others.split(/\s+/), ...numbers.map(([name]) => name)]
  test.each(['', ' '])('%p', (nothing) => {
    const plain = (config: Config) => JSON.parse(JSON.stringify(config))
    const unset = readConfig({})
    const empty = readConfig(Object.fromEntries(everything.map((name) => [name, nothing])))
    expect(plain(empty)).toEqual(plain(unset))
    expect([...empty.appCredentials]).toEqual([])
  })
})

describe('the default:', () => {
  test.each<[string, (config: Config) => unknown, unknown]>([
    ['listens on loopback only', ({ host }) => host, '127.0.0.1'],
    ['does not share its port', ({ reusePort }) => reusePort, false],
    ['uses a database file in data/', ({ database }) => database.name, 'data/otpost.db'],
    ['creates the secret key', ({ secretKeys }) => secretKeys, undefined],
    ['has no apps in the settings', ({ appCredentials }) => appCredentials.size, 0],
    ['has the SMS mode plain', ({ smsMode }) => smsMode, 'plain'],
    ['keeps mail in the outbox', ({ smtp }) => smtp, undefined],
    ['uses the outbox', ({ outboxSettings }) => outboxSettings, ['SMS_PLAIN', 'SMTP_URL']],
    ['has one provider on the plain route', ({ phoneRoutes }) => phoneRoutes.plain.length, 1],
    ['assumes no region', ({ contacts }) => contacts.phone('098123 45678')?.to, '09812345678'],
    ['trusts no proxy', ({ trustedProxies }) => trustedProxies, []],
    ['has no metrics', ({ metrics }) => metrics, undefined],
    ['sends SMS to every country', ({ smsCountries }) => smsCountries, []],
    ['sends codes by SMS alone', ({ ladder }) => ladder, { ways: ['sms'], waitSeconds: 20 }],
    ['records what the guard would deny', ({ guard }) => guard, 'record'],
  ])('%s', (_, of, value) => {
    expect(of(readConfig({}))).toEqual(value)
  })
})

describe('configured values', () => {
  test.each<[Environment, (config: Config) => unknown, unknown]>([
    [{ HOST: '0.0.0.0' }, ({ host }) => host, '0.0.0.0'],
    [{ REUSE_PORT: '1' }, ({ reusePort }) => reusePort, true],
    [{ REUSE_PORT: '0' }, ({ reusePort }) => reusePort, false],
    [{ DATABASE_URL: 'file:/var/lib/o.db' }, ({ database }) => database.name, '/var/lib/o.db'],
    [{ DATABASE_URL: 'file:///var/lib/o.db' }, ({ database }) => database.name, '/var/lib/o.db'],
    [{ SECRET_KEY: 's'.repeat(32) }, ({ secretKeys }) => secretKeys, ['s'.repeat(32)]],
    [{ SECRET_KEY: 'ü'.repeat(16) }, ({ secretKeys }) => secretKeys, ['ü'.repeat(16)]],
    [
      { SECRET_KEY: `${'n'.repeat(32)},${'o'.repeat(32)}` },
      ({ secretKeys }) => secretKeys,
      ['n'.repeat(32), 'o'.repeat(32)],
    ],
    [
      { APP_CREDENTIALS: '{"shop":"one","till":"two"}' },
      ({ appCredentials }) => Object.fromEntries(appCredentials),
      { shop: 'one', till: 'two' },
    ],
    [{ APP_CREDENTIALS: '{}' }, ({ appCredentials }) => appCredentials.size, 0],
    [{ OTP_SMS_MODE: 'template' }, ({ smsMode }) => smsMode, 'template'],
    [{ OTP_SMS_MODE: 'hybrid' }, ({ smsMode }) => smsMode, 'hybrid'],
    [{ ...webhook, SMS_PLAIN: 'webhook, discard,outbox' }, ({ phoneRoutes }) => phoneRoutes.plain.length, 3],
    [{ ...webhook, ...smtp }, ({ outboxSettings }) => outboxSettings, []],
    [
      { ...webhook, ...smtp, SMS_PLAIN: 'webhook,outbox' },
      ({ outboxSettings }) => outboxSettings,
      ['SMS_PLAIN'],
    ],
    [
      { ...webhook, ...smtp, OTP_SMS_MODE: 'hybrid', SMS_TEMPLATE: 'webhook' },
      ({ outboxSettings, phoneRoutes }) => [outboxSettings.length, phoneRoutes.template.length],
      [0, 1],
    ],
    [
      { ...webhook, ...smtp, OTP_SMS_MODE: 'hybrid' },
      ({ outboxSettings }) => outboxSettings,
      ['SMS_TEMPLATE'],
    ],
    [
      smtp,
      ({ smtp }) => [smtp?.server.host, smtp?.server.port, smtp?.from.address],
      ['mail.example', 465, 'codes@shop.example'],
    ],
    [
      { ...smtp, MAIL_FROM: 'codes@shop.example' },
      ({ smtp }) => smtp?.from,
      { name: null, address: 'codes@shop.example' },
    ],
    [
      { ...smtp, MAIL_FROM: '"Shop, the" <codes@shop.example>' },
      ({ smtp }) => smtp?.from,
      { name: 'Shop, the', address: 'codes@shop.example' },
    ],
    [{ PHONE_DEFAULT_REGION: 'IN' }, ({ contacts }) => contacts.phone('098123 45678')?.to, '919812345678'],
    [
      { TRUSTED_PROXIES: '10.0.0.0/8, 192.0.2.7,2001:db8::/32' },
      ({ trustedProxies }) => trustedProxies.length,
      3,
    ],
    [{ SMS_COUNTRIES: 'gb, IN,GB' }, ({ smsCountries }) => smsCountries, ['GB', 'IN']],
    [{ SMS_COUNTRIES: 'GB', VOICE_COUNTRIES: 'in' }, ({ voiceCountries }) => voiceCountries, ['IN']],
    [{ SMS_COUNTRIES: 'GB' }, ({ voiceCountries }) => voiceCountries, ['GB']],
    [{ GUARD: 'deny' }, ({ guard }) => guard, 'deny'],
    [{ LOG_LEVEL: 'debug' }, ({ logLevel }) => logLevel, 'debug'],
    [
      { METRICS_TOKEN: ' 0123456789abcdef ' },
      ({ metrics }) => metrics,
      { token: '0123456789abcdef', listener: undefined },
    ],
    [
      { METRICS_PORT: '9464' },
      ({ metrics }) => metrics,
      { token: undefined, listener: { host: '127.0.0.1', port: 9464 } },
    ],
    [
      { METRICS_PORT: '0', PORT: '0', METRICS_HOST: '::1', METRICS_TOKEN: '!'.repeat(16) },
      ({ metrics }) => metrics,
      { token: '!'.repeat(16), listener: { host: '::1', port: 0 } },
    ],
    [{ METRICS_HOST: '0.0.0.0' }, ({ metrics }) => metrics, undefined],
  ])('are read from %j', (env, of, value) => {
    expect(of(readConfig(env))).toEqual(value)
  })
})

describe('an invalid setting is reported by name', () => {
  test.each<[string, Environment]>([
    ...['0.0.0.0/0', '::/0', '::ffff:0:0/96', '1.2.3.4/0', '127.0.0.1, 0.0.0.0/0'].map(
      (proxies): [string, Record<string, string>] => ['TRUSTED_PROXIES', { TRUSTED_PROXIES: proxies }],
    ),
    ['REUSE_PORT', { REUSE_PORT: 'canary' }],
    ['DATABASE_URL', { DATABASE_URL: 'mysql://canary@localhost/otpost' }],
    ['DATABASE_URL', { DATABASE_URL: 'canary.db' }],
    ['DATABASE_URL', { DATABASE_URL: 'file:' }],
    ['SECRET_KEY', { SECRET_KEY: `canary${'s'.repeat(25)}` }],
    ['APP_CREDENTIALS', { APP_CREDENTIALS: 'canary' }],
    ['APP_CREDENTIALS', { APP_CREDENTIALS: '["canary"]' }],
    ['APP_CREDENTIALS', { APP_CREDENTIALS: 'null' }],
    ['APP_CREDENTIALS', { APP_CREDENTIALS: '"canary"' }],
    ['APP_CREDENTIALS', { APP_CREDENTIALS: '{"shop":42}' }],
    ['APP_CREDENTIALS', { APP_CREDENTIALS: '{"shop":""}' }],
    ['APP_CREDENTIALS', { APP_CREDENTIALS: '{"":"canary"}' }],
    ['APP_CREDENTIALS', { APP_CREDENTIALS: '{"shop":"canary"' }],
    ['HOST', { HOST: 'canary of mine' }],
    ['HOST', { HOST: '300.1.1.1' }],
    ['OTP_SMS_MODE', { OTP_SMS_MODE: 'canary' }],
    ['OTP_SMS_MODE', { OTP_SMS_MODE: 'Plain ,' }],
    ['SMS_PLAIN', { SMS_PLAIN: 'canary' }],
    ['SMS_PLAIN', { SMS_PLAIN: 'outbox,canary' }],
    ['SMS_TEMPLATE', { SMS_TEMPLATE: 'canary' }],
    ['SMS_WEBHOOK_URL', { ...webhook, SMS_WEBHOOK_URL: '' }],
    ['SMS_WEBHOOK_URL', { ...webhook, SMS_WEBHOOK_URL: 'canary' }],
    ['SMS_WEBHOOK_SECRET', { ...webhook, SMS_WEBHOOK_SECRET: '' }],
    ['ALERT_EMAIL', { ALERT_EMAIL: 'ops' }],
    ['ALERT_EMAIL', { ALERT_EMAIL: 'Ops <ops@example.com>' }],
    ['ALERT_EMAIL', { ALERT_EMAIL: 'ops@example.com, dev@example.com' }],
    ['ALERT_WEBHOOK_URL', { ALERT_WEBHOOK_SECRET: 'whsec_AAAA' }],
    ['ALERT_WEBHOOK_URL', { ALERT_WEBHOOK_URL: 'http://example.com/a', ALERT_WEBHOOK_SECRET: 'whsec_AAAA' }],
    ['ALERT_WEBHOOK_SECRET', { ALERT_WEBHOOK_URL: 'https://example.com/alerts' }],
    [
      'ALERT_WEBHOOK_SECRET',
      { ALERT_WEBHOOK_URL: 'https://example.com/alerts', ALERT_WEBHOOK_SECRET: 'whsec_%' },
    ],
    ['SMTP_URL', { ...smtp, SMTP_URL: 'https://canary@mail.example' }],
    ['SMTP_URL', { ...smtp, SMTP_URL: 'canary' }],
    ['MAIL_FROM', { ...smtp, MAIL_FROM: '' }],
    ['MAIL_FROM', { ...smtp, MAIL_FROM: 'canary' }],
    ['MAIL_FROM', { ...smtp, MAIL_FROM: 'canary@one.example, canary@two.example' }],
    ['MAIL_FROM', { ...smtp, MAIL_FROM: 'Canary <canary@shop.example>\r\nBcc: canary@evil.example' }],
    ['PHONE_DEFAULT_REGION', { PHONE_DEFAULT_REGION: 'canary' }],
    ['PHONE_DEFAULT_REGION', { PHONE_DEFAULT_REGION: 'XX' }],
    ...['canary', 'GB,XX', ',', '+44', 'GB;IN'].map((countries): [string, Environment] => [
      'SMS_COUNTRIES',
      { SMS_COUNTRIES: countries },
    ]),
    ['VOICE_COUNTRIES', { VOICE_COUNTRIES: 'canary' }],
    ...['canary', 'twilio', 'twilio-voice,vonage-voice'].map((name): [string, Environment] => [
      'VOICE_PROVIDER',
      { VOICE_PROVIDER: name },
    ]),
    ['GUARD', { GUARD: 'canary' }],
    ['TRUSTED_PROXIES', { TRUSTED_PROXIES: 'canary' }],
    ['TRUSTED_PROXIES', { TRUSTED_PROXIES: '10.0.0.0/8,10.0.0.0/33' }],
    ['LOG_LEVEL', { LOG_LEVEL: 'canary' }],
    ['OUTBOX_IN_PRODUCTION', { OUTBOX_IN_PRODUCTION: 'canary' }],
    ['METRICS_TOKEN', { METRICS_TOKEN: 'canary with spaces' }],
    ['OUTBOX_TOKEN', { OUTBOX_TOKEN: 'canary with spaces' }],
    ['OUTBOX_TOKEN', { OUTBOX_TOKEN: 'canary-with-ümlaut' }],
    ['APP_CREDENTIALS', { APP_CREDENTIALS: JSON.stringify({ shop: 'canary'.repeat(100) }) }],
    ['METRICS_TOKEN', { METRICS_TOKEN: 'canary-with-ümlaut' }],
    ['METRICS_PORT', { METRICS_PORT: 'canary' }],
    ['METRICS_PORT', { METRICS_PORT: '65536' }],
    ['METRICS_PORT', { METRICS_PORT: '3000' }],
    ['METRICS_PORT', { METRICS_PORT: '4000', PORT: '04000' }],
    ['METRICS_HOST', { METRICS_PORT: '9464', METRICS_HOST: 'canary of mine' }],
  ])('%s in %j', (name, env) => {
    expect(namesOf(env)).toEqual([name])
    expect(problemsOf(env).join('\n').toLowerCase()).not.toContain('canary')
  })

  test('together with all others, each once, and without values', () => {
    const env = {
      PORT: 'canary-1',
      GLOBAL_LIMIT_PER_MINUTE: 'canary-2',
      SECRET_KEY: 'canary-3',
      APP_CREDENTIALS: '{"shop":"canary-4","till":7,"kiosk":8}',
      SMS_PLAIN: 'webhook',
      SMS_WEBHOOK_URL: 'ftp://canary-5',
      OTP_SMS_MODE: 'template',
      SMS_TEMPLATE: 'webhook',
      SMTP_URL: 'canary-6',
      MAIL_FROM: 'canary-7',
      LOG_LEVEL: 'canary-8',
    }
    expect(namesOf(env).sort()).toEqual([
      'APP_CREDENTIALS',
      'GLOBAL_LIMIT_PER_MINUTE',
      'LOG_LEVEL',
      'MAIL_FROM',
      'PORT',
      'SECRET_KEY',
      'SMS_WEBHOOK_SECRET',
      'SMS_WEBHOOK_URL',
      'SMTP_URL',
    ])
    expect(problemsOf(env).join('\n')).not.toContain('canary')
  })

  test('the error message contains all problems', () => {
    expect(() => readConfig({ PORT: 'x', LOG_LEVEL: 'y' })).toThrow(/PORT .*\nLOG_LEVEL /)
  })
})

describe('the settings of a provider', () => {
  test('are required if it is named, even if the mode does not use that route', () => {
    expect(namesOf({ SMS_TEMPLATE: 'webhook' })).toEqual(['SMS_WEBHOOK_URL', 'SMS_WEBHOOK_SECRET'])
  })

  test('are not required if it is not named', () => {
    expect(problemsOf({ SMS_WEBHOOK_URL: 'canary' })).toEqual([])
    expect(problemsOf({ MAIL_FROM: 'codes@shop.example' })).toEqual([])
  })

  test.each(['template', 'hybrid'])('are required on the template route in mode %s', (mode) => {
    expect(namesOf({ SMS_TEMPLATE: 'webhook', OTP_SMS_MODE: mode })).toEqual([
      'SMS_WEBHOOK_URL',
      'SMS_WEBHOOK_SECRET',
    ])
  })
})

describe('in production', () => {
  test.each<[Environment, string[]]>([
    [{}, ['SMS_PLAIN', 'SMTP_URL']],
    [{ OTP_SMS_MODE: 'template' }, ['SMS_PLAIN', 'SMS_TEMPLATE', 'SMTP_URL']],
    [{ OTP_SMS_MODE: 'hybrid', ...webhook }, ['SMS_TEMPLATE', 'SMTP_URL']],
    [{ ...webhook, ...smtp }, []],
    [{ ...webhook, ...smtp, SMS_PLAIN: 'webhook,outbox' }, ['SMS_PLAIN']],
    [{ ...smtp, SMS_PLAIN: 'discard' }, ['SMS_PLAIN']],
    [{ ...webhook }, ['SMTP_URL']],
    [{ ...smtp }, ['SMS_PLAIN']],
    [{ OUTBOX_IN_PRODUCTION: '0' }, ['SMS_PLAIN', 'SMTP_URL']],
    [{ OUTBOX_IN_PRODUCTION: '1' }, []],
    [{ OUTBOX_IN_PRODUCTION: '1', SMS_PLAIN: 'discard', OTP_SMS_MODE: 'hybrid' }, []],
  ])('%j rejects %j', (env, names) => {
    expect(namesOf({ NODE_ENV: 'production', ...env })).toEqual(names)
  })

  test('the error says how to allow it, and what SMTP_URL is', () => {
    expect(problemsOf({ NODE_ENV: 'production', ...webhook })).toEqual([
      expect.stringMatching(/no e-mail would be sent.* set it to your mail server, such as smtp:/),
    ])
    for (const problem of problemsOf({ NODE_ENV: 'production' })) {
      expect(problem).toContain('OUTBOX_IN_PRODUCTION=1')
    }
  })

  test.each(['development', 'test', ''])('it is not rejected if NODE_ENV is %p', (NODE_ENV) => {
    expect(problemsOf({ NODE_ENV })).toEqual([])
  })
})

describe('LADDER', () => {
  test('each fault has a remedy', () => {
    const ttl = 'LADDER_WAIT_SECONDS must be at most OTP_TTL_SECONDS: a code would expire before its next way'
    const names = 'LADDER must name ways of sms, whatsapp, telegram, voice, each once, separated by commas'
    const faults: Readonly<Record<string, readonly [Environment, string]>> = {
      'voice first': [{ LADDER: 'voice,sms' }, 'LADDER begins with voice. Name another way before it'],
      'not set up': [
        { LADDER: 'whatsapp,sms' },
        'LADDER names whatsapp, which is not set up. Set WHATSAPP_PHONE_NUMBER_ID',
      ],
      'not set up, later': [{ LADDER: 'sms,voice' }, 'Set VOICE_PROVIDER, or remove voice from LADDER'],
      twice: [{ LADDER: 'sms, sms' }, names],
      unknown: [{ LADDER: 'sms,fax' }, names],
      'an empty name': [{ LADDER: 'sms,' }, names],
      'a wait over the lifetime': [{ LADDER_WAIT_SECONDS: '61', OTP_TTL_SECONDS: '60' }, ttl],
      'the usual wait over the lifetime': [{ LADDER: 'sms', OTP_TTL_SECONDS: '19' }, ttl],
    }
    for (const [name, [env, problem]] of Object.entries(faults))
      expect([name, problemsOf(env).join('\n')]).toEqual([name, expect.stringContaining(problem)])
  })

  test('may be SMS alone; without it, a short lifetime needs no wait', () => {
    expect(readConfig({ LADDER: ' sms ' }).ladder.ways).toEqual(['sms'])
    expect(problemsOf({ OTP_TTL_SECONDS: '1' })).toEqual([])
    expect(problemsOf({ OTP_TTL_SECONDS: '60', LADDER_WAIT_SECONDS: '60' })).toEqual([])
  })
})
