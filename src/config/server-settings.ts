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
      'The IP address or host name that the server listens on. `/admin` and `/outbox` answer 404 unless the `Host` header of the request is `HOST`, the host of `PUBLIC_URL`, `localhost`, `*.localhost`, `[::1]` or an IP address in `127.0.0.0/8`. Ports are not compared.',
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
      'The URL at which providers and browsers reach the server, such as `https://otp.example.com`. Providers send delivery reports to URLs below it. With https, the console sends its cookies over TLS only. Passkeys of the console belong to its host name.',
  },
  TRUSTED_PROXIES: {
    unset: 'unset: `X-Forwarded-For` is ignored',
    format: 'IP addresses and networks, separated by commas',
    meaning:
      'The reverse proxies whose `X-Forwarded-For` header otpost trusts, such as `10.0.0.0/8`. The client IP address is the last one in that header that is not a trusted proxy. A network of `/0` is rejected.',
  },
  NODE_ENV: {
    unset: '`production` in the binary, otherwise unset',
    format: 'text',
    meaning:
      '`production` rejects `outbox` and `discard` as providers and requires `SMTP_URL`, unless `OUTBOX_IN_PRODUCTION=1`.',
  },
  REUSE_PORT: {
    default: false,
    meaning:
      '`1` on two servers allows both to listen on the same port during a zero-downtime restart. Without it a second server does not start.',
  },
  SHUTDOWN_DELAY_SECONDS: {
    default: 0,
    min: 0,
    max: 300,
    meaning:
      'How long the server keeps serving after SIGTERM while `GET /health/ready` answers 503. A second signal ends the process immediately.',
  },
  OTPOST_ENV_FILE: {
    unset: '`/etc/otpost/otpost.env`, if the user can read it',
    format: 'path',
    meaning:
      'The settings file of the server and of every command, without `--env-file`. A file that cannot be read is an error. `/dev/null` reads no file. `demo` and `sandbox` read only a file that `--env-file` names.',
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
      'The database: `file:` and the path of an SQLite file, or the URL of a PostgreSQL database, such as `postgres://user:password@host/database?sslmode=verify-full`. otpost creates the directory of the SQLite file. `file::memory:` keeps nothing after the process ends.',
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
    meaning:
      'PostgreSQL: how long opening a connection may take, and how long a request waits for a free connection, in milliseconds.',
  },
  DATABASE_STATEMENT_TIMEOUT_MS: {
    default: 5000,
    min: 100,
    max: 60_000,
    meaning:
      'PostgreSQL: how long a statement may take, in milliseconds. Then the database server cancels the statement; the node closes the connection half a second later.',
  },
  DATABASE_BATCH_SIZE: {
    default: usualBatchSize,
    min: 1,
    max: 256,
    meaning:
      'PostgreSQL: how many steps of concurrent requests can share one transaction. Use `1` if the database distributes rows over several machines.',
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
      'The key of the hashes of codes and recipients. After a change, otpost does not find live codes, counters and logged recipients, unless the previous key follows: `NEW,PREVIOUS`. All nodes on a database need the same value.',
  },
  APP_CREDENTIALS: {
    unset: 'unset',
    format: 'JSON object of `appId` and API key',
    secret: true,
    meaning:
      'Apps in addition to those of `otpost app issue`. A key has 1 to 512 characters. An `appId` that is not 1 to 64 visible ASCII characters without a colon can send but not verify; `otpost doctor` warns about it.',
  },
})

export const codeSettings = declare('Codes and limits', {
  GLOBAL_LIMIT_PER_MINUTE: {
    default: 10,
    min: 1,
    max: count,
    meaning:
      'Requests per minute of one app: send, resend, verify and notify together. `otpost app set APPID --per-minute N` replaces it for one app. Raise it for production: ten logins need at least 20 requests.',
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
    meaning:
      'Wrong codes in 24 hours for one recipient, over all brands and codes. A correct code resets the count. `0` turns the limit off.',
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
      'The country whose national phone numbers are accepted without a country code, such as `IN`. They must have the trunk prefix where people write it, such as the 0 in Germany. otpost rejects national numbers that are numbers of another country too, until the caller adds `+` and the country code.',
  },
})

export const smsSpendSettings = declare('SMS spend', {
  SMS_COUNTRIES: {
    unset: 'unset: SMS go to every country unless a rule of `otpost destination` blocks it',
    format: 'country codes of two letters, separated by commas',
    meaning:
      'The countries that SMS may go to, such as `IN,GB`. It is short for rules that allow these countries and block all others. Rules of `otpost destination set` replace those of `SMS_COUNTRIES` for the same country or `*`.',
  },
  GUARD: {
    default: 'record',
    choices: ['off', 'record', 'deny'],
    meaning:
      'The mode of the SMS pumping guard at the first start on a database. Later, `otpost guard mode` changes it, and this setting has no effect. `off`: the guard counts nothing. `record`: it sends the SMS and records that it would have been denied. `deny`: the server answers 429 `rate_limited`.',
  },
})

export const messageSettings = declare('Messages', {
  OTP_SMS_MODE: {
    default: 'plain',
    choices: ['plain', 'template', 'hybrid'],
    meaning:
      'Which route SMS codes take. `plain`: the direct route. `template`: the registered-template route for Indian numbers (+91) of brands with `--dlt`, the direct route for all others. `hybrid`: as `template`, then the direct route with the same code if the registered-template route fails for any cause except a rejected number, also after a time-out.',
  },
  SMS_PLAIN: {
    default: 'outbox',
    format: 'provider names, separated by commas',
    meaning:
      'The providers of the direct route, in the order in which otpost tries them. `outbox` keeps messages for developers, `discard` accepts and drops them.',
  },
  SMS_TEMPLATE: {
    default: 'outbox',
    format: 'provider names, separated by commas',
    meaning: 'The providers of the registered-template (DLT) route, in the order in which otpost tries them.',
  },
  PROVIDER_FILES: {
    unset: 'unset: no files of your own',
    format: 'folder',
    meaning:
      'The folder of your provider files, each `NAME.json`. NAME can then be named in `SMS_PLAIN`, `SMS_TEMPLATE` and rules.',
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
    meaning:
      '`1` reports each verified SMS code to the provider that sent it, if the provider takes such feedback: Twilio (`ProvideFeedback`) and AWS End User Messaging SMS (`MessageFeedbackEnabled`). otpost calls the provider after the answer to the verify.',
  },
  OUTBOX_IN_PRODUCTION: {
    default: false,
    meaning: '`1` allows `outbox` and `discard`, and an unset `SMTP_URL`, with `NODE_ENV=production`.',
  },
  OUTBOX_TOKEN: {
    unset: 'unset: `/outbox` is open on a loopback `HOST` and answers 404 on any other',
    format: 'visible ASCII characters without spaces',
    secret: true,
    meaning:
      'The token that `/outbox` requires: as `Authorization: Bearer TOKEN`, or once in a browser as `/outbox?token=TOKEN`, which sets a cookie and redirects.',
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
    format: 'https URL, or http on this machine',
    secret: true,
    meaning: 'The URL to which otpost posts each alert as JSON, signed with `ALERT_WEBHOOK_SECRET`.',
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
      'The networks that webhooks of apps may reach with `NODE_ENV=production` although they are private, such as `10.20.0.0/16`. The URL must still use https. A network of `/0` is rejected. The IP address of a metadata service, such as `169.254.169.254`, is allowed only by this IP address itself, not by a network that contains it.',
  },
})

export const metricsSettings = declare('Metrics', {
  METRICS_TOKEN: {
    unset: 'unset',
    format: 'visible ASCII characters without spaces',
    secret: true,
    meaning:
      'Serves `GET /metrics` on `PORT` to requests with `Authorization: Bearer TOKEN`. The port `METRICS_PORT` requires the token too.',
  },
  METRICS_PORT: {
    default: 0,
    ...port,
    unset: 'unset: no separate port',
    meaning:
      'Serves `GET /metrics` on a port of its own, which must differ from `PORT`. `0` selects a free port. Without `METRICS_TOKEN`, it answers only if `Host` is an IP address or a name that a public web site cannot have.',
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
    meaning:
      'How many days otpost keeps an integration request after the decision. otpost deletes a request without a decision the same number of days after it arrived.',
  },
})
