import { usualBatchSize } from '../adapters/postgres/target.ts'
import { declare } from './setting.ts'

// Do not import the service here: `otpost health` reads this file and must start fast.

const count = 1_000_000_000
const port = { min: 0, max: 65_535 } as const

export const serverSettings = declare('Server', {
  HOST: {
    default: '127.0.0.1',
    format: 'IP address or host name',
    meaning:
      'The IP address or host name that the server listens on. `/admin` and `/outbox` answer only if the `Host` header names it, the host of `PUBLIC_URL` or this machine.',
  },
  PORT: {
    default: 3000,
    ...port,
    meaning: 'The TCP port that the server listens on. `0` selects a free port.',
  },
  PUBLIC_URL: {
    unset: 'unset: no status callbacks',
    format: 'URL without `%`, `?` and `#`',
    meaning:
      'The URL at which providers and browsers reach the server, such as `https://otp.example.com`. Passkeys of the console belong to its host name.',
  },
  TRUSTED_PROXIES: {
    unset: 'unset: `X-Forwarded-For` is ignored',
    format: 'IP addresses and networks, separated by commas',
    meaning: 'The reverse proxies whose `X-Forwarded-For` header otpost trusts, such as `10.0.0.0/8`.',
  },
  NODE_ENV: {
    unset: '`production` in the binary, otherwise unset',
    format: 'text',
    meaning:
      '`production` rejects `outbox` and `discard` as providers and requires `SMTP_URL`, unless `OUTBOX_IN_PRODUCTION=1`.',
  },
  REUSE_PORT: {
    default: false,
    meaning: '`1` lets two servers listen on the same port during a zero-downtime restart.',
  },
  SHUTDOWN_DELAY_SECONDS: {
    default: 0,
    min: 0,
    max: 300,
    meaning: 'How long the server keeps serving after SIGTERM while `GET /health/ready` answers 503.',
  },
  OTPOST_ENV_FILE: {
    unset: '`/etc/otpost/otpost.env`, if the user can read it',
    format: 'path',
    meaning:
      'The settings file without `--env-file`. `demo` and `sandbox` read only a file that `--env-file` names.',
  },
  LOG_LEVEL: {
    default: 'info',
    choices: ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
    meaning: 'The least severe level that the server writes to its log.',
  },
})

export const tlsSettings = declare('TLS without a proxy', {
  TLS_DOMAIN: {
    unset: 'unset: no certificate by ACME',
    format: 'host name',
    meaning:
      'The host name under which clients reach this server. otpost gets a certificate for it by ACME, renews it, and serves https on `TLS_PORT`. `otpost serve --domain` sets it. It is the default of `PUBLIC_URL`. The certificate, its key and the ACME account are in the folder `….db.tls` beside the SQLite file, with mode 0600.',
  },
  TLS_CERT_FILE: {
    unset: 'unset: no certificate of your own',
    format: 'path',
    meaning: 'A certificate chain (PEM) instead of ACME. otpost reads a changed file at once.',
  },
  TLS_KEY_FILE: { unset: 'unset', format: 'path', meaning: 'The private key (PEM) of the certificate.' },
  TLS_PORT: { default: 443, ...port, meaning: 'The TCP port of https. `PORT` serves plain HTTP as before.' },
  ACME_DIRECTORY_URL: {
    default: 'https://acme-v02.api.letsencrypt.org/directory',
    format: 'URL',
    meaning: 'The ACME server. With `TLS_DOMAIN` you accept its terms of service.',
  },
  ACME_HTTP_PORT: {
    default: 80,
    ...port,
    meaning: 'The TCP port for HTTP-01: the ACME server calls port 80 of `TLS_DOMAIN`. Other calls get 403.',
  },
})

export const databaseSettings = declare('Database', {
  DATABASE_URL: {
    default: 'file:data/otpost.db',
    format: '`file:PATH` or `postgres://…`',
    secret: true,
    meaning:
      'An SQLite file, or a PostgreSQL database, such as `postgres://user:password@host/database?sslmode=verify-full`. `file::memory:` keeps nothing after the process ends.',
  },
  DATABASE_POOL_SIZE: {
    default: 10,
    min: 1,
    max: 500,
    meaning: 'PostgreSQL: the maximum number of connections of one node.',
  },
  DATABASE_CONNECT_TIMEOUT_MS: {
    default: 2000,
    min: 100,
    max: 60_000,
    meaning: 'PostgreSQL: how long a request waits for a connection, in milliseconds.',
  },
  DATABASE_STATEMENT_TIMEOUT_MS: {
    default: 5000,
    min: 100,
    max: 60_000,
    meaning: 'PostgreSQL: how long a statement may take, in milliseconds.',
  },
  DATABASE_BATCH_SIZE: {
    default: usualBatchSize,
    min: 1,
    max: 256,
    meaning:
      'PostgreSQL: how many steps of concurrent requests share a transaction. Use `1` if the database distributes rows over machines.',
  },
  DATABASE_PGBOUNCER: {
    default: false,
    meaning: 'PostgreSQL: `1` if the connections go through PgBouncer in transaction mode.',
  },
})

export const credentialSettings = declare('Secret key and API keys', {
  SECRET_KEY: {
    unset: 'SQLite: generated in a file of mode 0600 beside the database (`….db.key`). PostgreSQL: required',
    format: 'at least 32 bytes, without commas; several keys separated by commas',
    secret: true,
    meaning:
      'The key of the hashes of codes and recipients, the same on all nodes. Change it to `NEW,PREVIOUS`, or otpost no longer finds live codes, counters and recipients.',
  },
  APP_CREDENTIALS: {
    unset: 'unset',
    format: 'JSON object of `appId` and API key',
    secret: true,
    meaning: 'Apps in addition to those of `otpost app issue`. A key has 1 to 512 characters.',
  },
})

export const codeSettings = declare('Codes and limits', {
  GLOBAL_LIMIT_PER_MINUTE: {
    default: 10,
    min: 1,
    max: count,
    meaning:
      'Requests per minute of one app, all calls together. `otpost app set APPID --per-minute N` replaces it for one app.',
  },
  PHONE_LIMIT_PER_MINUTE: {
    default: 3,
    min: 1,
    max: count,
    meaning: 'SMS codes per minute to one phone number, over all brands.',
  },
  PHONE_LIMIT_PER_HOUR: {
    default: 10,
    min: 1,
    max: count,
    meaning: 'SMS codes per hour to one phone number, over all brands.',
  },
  SMS_COOLDOWN_SECONDS: {
    default: 30,
    min: 0,
    max: 86_400,
    meaning: 'The pause after an SMS code before the next one of the same brand to the same phone number.',
  },
  EMAIL_LIMIT_PER_HOUR: {
    default: 30,
    min: 0,
    max: count,
    meaning: 'E-mail codes per hour to one mailbox, over all brands. `0` turns the limit off.',
  },
  FAILURE_BUDGET_PER_DAY: {
    default: 100,
    min: 0,
    max: count,
    meaning: 'Wrong codes in 24 hours for one recipient, over all brands. `0` turns the limit off.',
  },
  OTP_TTL_SECONDS: {
    default: 300,
    min: 1,
    max: 600,
    meaning: 'How long a code is valid, in seconds from just before its delivery.',
  },
  PHONE_DEFAULT_REGION: {
    unset: 'unset',
    format: 'country code of two letters',
    meaning:
      'The country whose national phone numbers are accepted without a country code, such as `IN`. A number that could be of another country too needs `+` and the country code.',
  },
})

export const smsSpendSettings = declare('SMS spend', {
  SMS_COUNTRIES: {
    unset: 'unset: every country',
    format: 'country codes of two letters, separated by commas',
    meaning:
      'The countries that SMS may go to, such as `IN,GB`. Rules of `otpost destination set` take precedence.',
  },
  VOICE_COUNTRIES: {
    unset: 'unset: the countries of `SMS_COUNTRIES`',
    format: 'country codes of two letters, separated by commas',
    meaning: 'The countries that otpost calls to speak a code, among those that SMS may go to.',
  },
  GUARD: {
    default: 'record',
    choices: ['off', 'record', 'deny'],
    meaning:
      'The mode of the SMS pumping guard at the first start on a database. Later, only `otpost guard mode` changes it.',
  },
})

export const messageSettings = declare('Messages', {
  OTP_SMS_MODE: {
    default: 'plain',
    choices: ['plain', 'template', 'hybrid'],
    meaning:
      'Which route SMS codes take. `plain`: the direct route. `template`: the registered-template route to Indian numbers, for brands with `--dlt`. `hybrid`: as `template`, then the direct route if that fails, unless the number was rejected.',
  },
  SMS_PLAIN: {
    default: 'outbox',
    format: 'provider names, separated by commas',
    meaning:
      'The providers of the direct route, in this order. `outbox` keeps messages for developers, `discard` drops them.',
  },
  SMS_TEMPLATE: {
    default: 'outbox',
    format: 'provider names, separated by commas',
    meaning: 'The providers of the registered-template (DLT) route, in this order.',
  },
  LADDER: {
    unset: 'unset: `sms` alone',
    format: '`sms`, `whatsapp`, `telegram` and `voice`, separated by commas',
    meaning: 'The ways of a code to a phone, in order. `voice` cannot be first.',
  },
  LADDER_WAIT_SECONDS: {
    default: 20,
    min: 0,
    max: 600,
    meaning:
      'How long a code waits for a delivery report before the next way of `LADDER`, at most `OTP_TTL_SECONDS`. `0`: it does not wait.',
  },
  VOICE_PROVIDER: {
    unset: 'unset: this server makes no calls',
    format: '`twilio-voice` or `vonage-voice`',
    valid: [/^\s*(twilio|vonage)-voice\s*$/, 'must be twilio-voice or vonage-voice'],
    meaning: 'The provider that speaks codes in calls. It turns on the way `voice`.',
  },
  CONFIG_FILE: {
    unset: 'unset: the database alone has the configuration',
    format: 'file',
    meaning:
      'A YAML or JSON file of brands, apps, texts, destinations, prices, budgets, webhooks and relays, which `otpost serve` applies at its start as `otpost apply` does. What the file leaves out stays.',
  },
  PROVIDER_FILES: {
    unset: 'unset: no files of your own',
    format: 'folder',
    meaning: 'The folder of your provider files, each `NAME.json`.',
  },
  PROVIDER_TIMEOUT_MS: {
    default: 4000,
    min: 1,
    max: 60_000,
    meaning:
      'How long one call of a provider may take, in milliseconds. All calls for one message together may take twice as long.',
  },
  CONVERSION_FEEDBACK: {
    default: false,
    meaning: '`1` reports each verified SMS code to the provider that sent it: Twilio or `aws-sms`.',
  },
  OUTBOX_IN_PRODUCTION: {
    default: false,
    meaning: '`1` allows `outbox` and `discard`, and an unset `SMTP_URL`, with `NODE_ENV=production`.',
  },
  OUTBOX_TOKEN: {
    unset: 'unset: `/outbox` is open on a loopback `HOST` only',
    format: 'visible ASCII characters without spaces',
    secret: true,
    meaning:
      'The token that `/outbox` requires: as `Authorization: Bearer TOKEN`, or once as `/outbox?token=TOKEN`.',
  },
})

export const alertSettings = declare('Alerts and events', {
  ALERT_EMAIL: {
    unset: 'unset: no alerts by e-mail',
    format: 'e-mail address',
    meaning: 'The e-mail address that gets all alerts, through the mail server of `SMTP_URL`.',
  },
  ALERT_WEBHOOK_URL: {
    unset: 'unset: no alerts by webhook',
    format: 'https URL',
    secret: true,
    meaning: 'The URL to which otpost posts each alert.',
  },
  ALERT_WEBHOOK_SECRET: {
    unset: 'unset; required with `ALERT_WEBHOOK_URL`',
    format: '`whsec_` and base64, or text',
    secret: true,
    meaning: 'The webhook secret, which signs alerts (Standard Webhooks).',
  },
  EVENTS_ALLOWED_NETWORKS: {
    unset: 'unset: none',
    format: 'IP addresses and networks, separated by commas',
    meaning:
      'The private networks that webhooks of apps may reach with `NODE_ENV=production`, such as `10.20.0.0/16`. The IP address of a metadata service is allowed only by itself, not by its network.',
  },
})

export const metricsSettings = declare('Metrics', {
  METRICS_TOKEN: {
    unset: 'unset',
    format: 'visible ASCII characters without spaces',
    secret: true,
    meaning:
      'Serves `GET /metrics` on `PORT` to requests with `Authorization: Bearer TOKEN`. `METRICS_PORT` requires it too.',
  },
  METRICS_PORT: {
    default: 0,
    ...port,
    unset: 'unset: no separate port',
    meaning: 'Serves `GET /metrics` on a port of its own. `0` selects a free port.',
  },
  METRICS_HOST: {
    default: '127.0.0.1',
    format: 'IP address or host name',
    meaning: 'The IP address or host name that the port `METRICS_PORT` listens on.',
  },
})

export const retentionSettings = declare('Retention', {
  DELIVERY_LOG_DAYS: {
    default: 30,
    min: 1,
    max: 3650,
    meaning: 'How many days otpost keeps the event log: requests, their traces and their deliveries.',
  },
  AUDIT_LOG_DAYS: {
    default: 365,
    min: 1,
    max: 3650,
    meaning: 'How many days otpost keeps the audit log.',
  },
  INTEGRATION_REQUEST_DAYS: {
    default: 365,
    min: 1,
    max: 3650,
    meaning: 'How many days otpost keeps an integration request after the decision, or after it arrived.',
  },
})
