import { describe, expect, test } from 'bun:test'
import { chmodSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { openDatabase } from '../../src/adapters/sqlite/database.ts'
import type { ServerDatabaseFacts } from '../../src/adapters/store/condition.ts'
import type { Printed } from '../../src/commands/finding.ts'
import { readConfig } from '../../src/config/config.ts'
import { settingWarnings } from '../../src/config/warnings.ts'
import { clockFindings } from '../../src/doctor/clock.ts'
import { secretFindings } from '../../src/doctor/database.ts'
import { diskFinding, newFolderProblem, type PathFacts, pathFinding } from '../../src/doctor/files.ts'
import {
  collectorFinding,
  providerFinding,
  publicUrlFinding,
  serverFinding,
} from '../../src/doctor/network.ts'
import { serverDatabaseFindings } from '../../src/doctor/postgres.ts'
import type { Reach } from '../../src/doctor/reach.ts'
import { databaseFindings } from '../../src/doctor/sqlite.ts'
import { clockStat } from '../../src/domain/log/stats.ts'
import { addAccount } from '../support/accounts.ts'
import { createTestApp } from '../support/app.ts'
import { operate } from '../support/operator.ts'
import { otpost, startServer } from '../support/server.ts'
import { selfSigned, startSmtp } from '../support/smtp.ts'
import { inDatabase, place } from './scene.ts'

/** The findings of the doctor with these settings. */
async function examined(env: Readonly<Record<string, string>>, ...args: string[]) {
  const { code, stdout, stderr } = await otpost(['doctor', '--json', ...args], { PORT: '0', ...env })
  expect(stderr).toBe('')
  const findings: readonly Printed[] = JSON.parse(stdout)
  for (const finding of findings) {
    expect(Object.keys(finding)).toEqual([
      'level',
      'what',
      'message',
      ...(finding.level === 'ok' ? [] : ['remedy']),
    ])
  }
  expect(code).toBe(findings.some(({ level }) => level === 'fail') ? 1 : 0)
  return {
    stdout,
    /** The findings about a subject, as `level: message → remedy`. */
    of: (what: string) =>
      findings
        .filter((finding) => finding.what === what)
        .map(
          (finding) =>
            `${finding.level}: ${finding.message}${finding.remedy === undefined ? '' : ` → ${finding.remedy}`}`,
        ),
    failures: findings.filter(({ level }) => level === 'fail').map(({ what }) => what),
  }
}

/** A database after a server has stopped. */
async function kept() {
  const here = place()
  const service = await createTestApp(here.env)
  await service.close()
  // otpost creates private files; the test process does not.
  chmodSync(here.file, 0o600)
  return here
}

/** A stand-in for a provider. */
function answering(init: ResponseInit & { tls?: { key: string; cert: string } } = {}) {
  const { tls, ...response } = init
  const calls: { method: string; path: string; headers: Headers }[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    ...(tls ? { tls } : {}),
    fetch(request) {
      calls.push({ method: request.method, path: new URL(request.url).pathname, headers: request.headers })
      return new Response('', response)
    },
  })
  return {
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${server.port}`,
    host: `127.0.0.1:${server.port}`,
    calls,
    [Symbol.asyncDispose]: async () => server.stop(true),
  }
}

const secret = 'whsec_YSBzZWNyZXQgb2YgdGhlIHRlc3QsIDMyIGJ5dGVzLi4='

function webhookAt(url: string) {
  return { SMS_PLAIN: 'webhook', SMS_WEBHOOK_URL: `${url}/sms?token=of-the-test`, SMS_WEBHOOK_SECRET: secret }
}

describe.concurrent('otpost doctor', () => {
  test('reports a served database as ok, a line per subject, and exits with status 0', async () => {
    using here = await kept()
    await using provider = answering({ status: 404 })
    const env = { ...here.env, ...webhookAt(provider.url) }
    const server = await startServer(env)
    const { code, stdout } = await otpost(['doctor'], { ...env, PORT: server.url.port })
    await server.stop()
    expect(code).toBe(0)
    for (const line of [
      /^ok {4}settings +All settings are valid\.$/m,
      /^ok {4}database +\S+otpost\.db has mode 0600\.$/m,
      /^ok {4}log +\S+otpost\.db-wal has mode 0600\.$/m,
      /^ok {4}secret +\S+otpost\.db\.key has mode 0600\.$/m,
      /^ok {4}folder +\S+data has mode 0700\.$/m,
      /^ok {4}integrity +Every page is intact\.$/m,
      /^ok {4}schema +Up to date\.$/m,
      /^ok {4}journal mode +WAL\.$/m,
      /^ok {4}SMS webhook +127\.0\.0\.1:\d+ answers, in \d+ ms/m,
      /^ok {4}server +The server answers at 127\.0\.0\.1:\d+\.$/m,
      /^ok {4}clock +Not compared/m,
      /^warn {2}SMTP_URL .*\n {6} +→ Set SMTP_URL/m,
    ]) {
      expect(stdout).toMatch(line)
    }
    expect(stdout).not.toMatch(/^FAIL/m)
    // The doctor sends only a probe.
    expect(provider.calls.map(({ method, path }) => `${method} ${path}`)).toEqual(['GET /'])
  })

  test('warns of an outbox that other machines can read, and of an appId that can not verify, like the server at its start', async () => {
    using here = await kept()
    const env = {
      ...here.env,
      HOST: '0.0.0.0',
      APP_CREDENTIALS: JSON.stringify({ 'a:b': 'k'.repeat(32), läden: 'k'.repeat(32), shop: 'k'.repeat(32) }),
    }
    const server = await startServer(env)
    await server.stop()
    const logged = server.lines
      .map((line) => JSON.parse(line))
      .filter(({ setting }) => setting !== undefined)
      .map(({ level, setting, msg, remedy }) => ({ level, what: setting, line: `warn: ${msg} → ${remedy}` }))
    const { of } = await examined(env)
    expect(of('APP_CREDENTIALS').join()).toMatch(/"a:b".*400 invalid_app_id.*"läden"/)
    expect(of('OUTBOX_TOKEN')).toEqual([
      expect.stringContaining('Messages stay in the outbox (SMS_PLAIN, SMTP_URL)'),
    ])
    for (const what of ['APP_CREDENTIALS', 'OUTBOX_TOKEN']) {
      expect(logged.filter((each) => each.what === what).map(({ line }) => line)).toEqual(of(what))
    }
    expect(new Set(logged.map(({ level }) => level))).toEqual(new Set([40]))
    const withToken = await examined({ ...env, OUTBOX_TOKEN: 'short' })
    expect(withToken.of('OUTBOX_TOKEN').join()).toMatch(/shorter than 16 bytes.*Clients with the token/)
    expect((await examined({ ...env, HOST: '127.0.0.1' })).of('OUTBOX_TOKEN')).toEqual([])
  })

  test('warns of X-Forwarded-For from outside TRUSTED_PROXIES, which the server has recorded', async () => {
    using here = await kept()
    const env = { ...here.env, TRUSTED_PROXIES: '10.0.0.0/8' }
    expect((await examined(env)).of('TRUSTED_PROXIES')).toEqual([])
    const server = await startServer(env)
    for (let count = 0; count < 3; count++) {
      await server.request('GET', '/health/live', { headers: { 'x-forwarded-for': '203.0.113.5' } })
    }
    await server.stop()
    const told = server.lines.map((line) => JSON.parse(line)).filter(({ network }) => network !== undefined)
    expect(told).toMatchObject([
      { level: 40, network: '127.0.0.0/24', msg: expect.stringContaining('TRUSTED_PROXIES') },
    ])
    expect((await examined(env)).of('TRUSTED_PROXIES')).toEqual([
      expect.stringMatching(
        /^warn: .*ignored.*hour from 20.*log.* → .*add its IP address to TRUSTED_PROXIES/,
      ),
    ])
    inDatabase(here.file, (driver) => {
      const rows = driver.prepare("SELECT DISTINCT detail FROM stats WHERE kind = 'forwarded-ignored'")
      expect(rows.pluck().all()).toEqual([''])
    })
  })

  test('names the apps that may use every brand, and those at the default limit of calls per minute', async () => {
    using here = await kept()
    const env = { ...here.env, APP_CREDENTIALS: JSON.stringify({ legacy: 'k'.repeat(32) }) }
    const command = async (...args: string[]) => expect((await otpost(args, env)).code).toBe(0)
    await command('app', 'issue', 'till')
    await command('app', 'issue', 'gone')
    await command('app', 'revoke', 'gone')
    const one = await examined(env)
    expect(one.of('app scopes')).toEqual(['ok: These apps may use every brand: legacy, till.'])
    expect(one.of('app limits')).toEqual([
      expect.stringMatching(/^warn: The default of 10 calls a minute, .*: legacy, till\. → .*app set/),
    ])
    const raised = await examined({ ...env, GLOBAL_LIMIT_PER_MINUTE: '300' })
    expect(raised.of('app limits')).toEqual([
      'ok: 300 calls a minute, by GLOBAL_LIMIT_PER_MINUTE: legacy, till.',
    ])
    await command('brand', 'put', 'globex', '--name', 'Globex')
    await command('app', 'set', 'till', '--brand', 'globex', '--per-minute', '60')
    const two = await examined(env)
    expect(two.of('app scopes')).toEqual([
      expect.stringMatching(/^warn: This app may use every brand: legacy\. → .*--brand SLUG/),
    ])
    expect(two.of('app limits')).toEqual([expect.stringContaining('GLOBAL_LIMIT_PER_MINUTE: legacy.')])
    await command('app', 'set', 'legacy', '--brand', 'acme', '--per-minute', '600')
    const none = await examined(env)
    expect(none.of('app scopes')).toEqual(['ok: Each app is limited to its brands.'])
    expect(none.of('app limits')).toEqual(['ok: Each app has its own calls per minute.'])
  })

  test('warns of a webhook that is switched off', async () => {
    using here = await kept()
    expect((await otpost(['app', 'issue', 'till'], here.env)).code).toBe(0)
    expect((await otpost(['app', 'webhook', 'till', '--url', 'https://till.example/'], here.env)).code).toBe(
      0,
    )
    expect((await examined(here.env)).of('webhooks')).toEqual([])
    inDatabase(here.file, (driver) => driver.exec('UPDATE webhooks SET disabled_at = created_at'))
    expect((await examined(here.env)).of('webhooks')).toEqual([
      expect.stringMatching(
        /^warn: The webhook of app till was switched off .* → .*Command: `otpost app webhook till --url URL`\. See docs\/webhooks\.md\.$/,
      ),
    ])
  })

  test('warns of a template that carriers began to reject, and of a provider that fails', async () => {
    using here = await kept()
    expect((await examined(here.env)).of('carriers')).toEqual([])
    const now = Date.now()
    inDatabase(here.file, (driver) => {
      const add = driver.prepare("INSERT INTO stats VALUES (?, ?, ?, 'SMS', 'acme', 'kannel', ?, '', ?)")
      const count = (at: number, kind: string, detail: string, times: number) => {
        for (const stepMs of [60_000, 3_600_000, 86_400_000])
          add.run(stepMs, at - (at % stepMs), kind, detail, times)
      }
      const hour = 3_600_000
      count(now - 20 * 24 * hour, 'rejected', 'LOGIN_OTP err 633', 500)
      count(now - 72 * hour, 'attempt', 'accepted LOGIN_OTP', 200)
      count(now - 72 * hour, 'rejected', 'LOGIN_OTP err 1', 4)
      count(now - hour, 'attempt', 'accepted LOGIN_OTP', 40)
      count(now - hour, 'rejected', 'LOGIN_OTP err 633', 12)
    })
    expect((await examined(here.env)).of('carriers')).toEqual([
      'warn: Carriers did not deliver 12 of 40 SMS (30%) of template LOGIN_OTP of brand acme in the last 24 hours; 2% in the 7 days before. Most frequent reason: err 633, the text differs from the registered template (kannel). → Compare the text with the registered one. Commands: `otpost deliveries --brand acme --status not-delivered --template LOGIN_OTP`, `otpost text lint acme LOGIN_OTP`. See docs/dlt.md.',
    ])
    expect((await examined(here.env)).of('providers')).toEqual([])
    inDatabase(here.file, (driver) => {
      const at = now - (now % 3_600_000)
      const add = driver.prepare(
        "INSERT INTO stats VALUES (3600000, ?, 'attempt', 'SMS', 'acme', 'twilio', ?, '', 2)",
      )
      for (const detail of ['retryable retryable', 'unknown', 'accepted LOGIN_OTP']) add.run(at, detail)
    })
    expect((await examined(here.env)).of('providers')).toEqual([
      expect.stringMatching(
        /^warn: Provider twilio: 4 of 6 attempts \(66\.7%\) failed .* → Command: `otpost deliveries --provider twilio .*--since 20/,
      ),
    ])
  })

  test('names providers that deliver codes too late, and delivery reports that were rejected', async () => {
    using here = await kept()
    for (const what of ['late codes', 'reports']) expect((await examined(here.env)).of(what)).toEqual([])
    const now = Date.now()
    inDatabase(here.file, (driver) => {
      const add = driver.prepare("INSERT INTO stats VALUES (?, ?, ?, 'SMS', ?, ?, ?, '', ?)")
      const count = (at: number, kind: string, brand: string, provider: string, detail: string) => {
        for (const stepMs of [60_000, 3_600_000, 86_400_000])
          add.run(stepMs, at - (at % stepMs), kind, brand, provider, detail, 2)
      }
      for (const brand of ['acme', 'other']) count(now, 'late', brand, 'twilio', 'time-out')
      count(now - 172_800_000, 'late', 'acme', 'old', 'time-out')
      count(now, 'report-rejected', '', 'webhook', 'signature')
      count(now, 'report-rejected', '', '', 'url')
    })
    const found = await examined({ ...here.env, PROVIDER_TIMEOUT_MS: '3000' })
    expect(found.of('late codes')).toEqual([
      expect.stringContaining(
        'warn: twilio delivered 4 codes after PROVIDER_TIMEOUT_MS (3000 ms) in the last 24 hours, according to delivery reports. Their sends were answered 502 sms_failed, so the codes do not verify. → Set PROVIDER_TIMEOUT_MS to more than the response time of twilio, or name a faster provider before it in SMS_PLAIN or SMS_TEMPLATE. Command: `otpost deliveries --provider twilio --since ',
      ),
    ])
    expect(found.of('reports').sort()).toEqual([
      'warn: otpost rejected 2 delivery reports of no provider of this server in the last 24 hours: their URL is not one of this server. → Enter the status callback URL of this server at the provider. It changes with the secret key. Command: `otpost callbacks`.',
      'warn: otpost rejected 2 delivery reports of webhook in the last 24 hours: their signature, key or time is wrong. → Compare the secret at the provider with the settings, and PUBLIC_URL with the URL that the provider calls. A third party may have sent them.',
    ])
  })

  test('does not change the database, even one of an older version', async () => {
    using here = await kept()
    inDatabase(here.file, (driver) => {
      driver.exec('DELETE FROM __drizzle_migrations WHERE id = (SELECT max(id) FROM __drizzle_migrations)')
    })
    const bytes = readFileSync(here.file)
    const { of } = await examined(here.env, '--full')
    expect(of('schema')).toEqual([expect.stringContaining('warn: The schema is of an older version')])
    expect(of('integrity')).toEqual(['ok: Every page and index is intact.'])
    expect(readFileSync(here.file)).toEqual(bytes)
    expect(here.names()).toEqual(['otpost.db', 'otpost.db.created', 'otpost.db.key'])
  })

  test('reports every wrong setting, and checks the database nevertheless', async () => {
    using here = await kept()
    const { of, failures } = await examined({
      ...here.env,
      SMS_PLAIN: 'pigeon',
      SMTP_URL: 'x',
      MAIL_FROM: '',
    })
    expect(failures.filter((what) => what === 'settings').length).toBeGreaterThan(1)
    expect(of('settings').join()).toContain('SMS_PLAIN names an unknown provider')
    expect(of('integrity')).toHaveLength(1)
  })

  test('reports files that other users can read, a damaged database, and a missing secret key', async () => {
    using here = await kept()
    chmodSync(here.file, 0o644)
    chmodSync(`${here.file}.key`, 0o640)
    chmodSync(here.data, 0o755)
    const open = await examined(here.env)
    expect(open.failures).toEqual(['database', 'secret'])
    expect(open.of('database')[0]).toEndWith(`→ Run \`chmod 0600 ${here.file}\`.`)
    expect(open.of('folder')[0]).toStartWith('warn: ')

    inDatabase(here.file, (driver) => {
      driver.exec('CREATE TABLE filler (text); CREATE INDEX filled ON filler (text)')
      const insert = driver.prepare('INSERT INTO filler VALUES (?)')
      for (let row = 0; row < 200; row++) insert.run(`${row} `.repeat(100))
    })
    const bytes = readFileSync(here.file)
    writeFileSync(here.file, bytes.fill(0xee, bytes.length - 20 * 4096, bytes.length - 10 * 4096))
    rmSync(`${here.file}.key`)
    const damaged = await examined(here.env)
    expect(damaged.failures).toEqual(['database', 'secret', 'integrity'])
    expect(damaged.of('secret')[0]).toContain('is missing')
    writeFileSync(here.file, 'no database. '.repeat(500))
    expect((await examined(here.env)).of('integrity')[0]).toContain('is not an SQLite database')
  })

  test('reports a truncated secret key, a missing table, and a host that is not this machine', async () => {
    using here = await kept()
    writeFileSync(`${here.file}.key`, 'cut off\n', { mode: 0o600 })
    inDatabase(here.file, (driver) => void driver.exec('DROP TABLE requests'))
    const { of, failures } = await examined({ ...here.env, HOST: '192.0.2.1' })
    expect(failures).toEqual(['HOST', 'secret', 'integrity'])
    expect(of('secret')[1]).toContain('at least 32 bytes')
    expect(of('integrity')[0]).toContain('it lacks requests.')
  })

  test('reports a missing or lost database as the first failure, and creates none', async () => {
    using here = place()
    const wrong = { ...here.env, SMS_PLAIN: 'pigeon' }
    const missing = await examined(wrong)
    expect(missing.failures).toEqual(['database', 'settings'])
    expect(missing.of('database')).toEqual([
      expect.stringMatching(
        new RegExp(
          `^fail: There is no database at ${here.file},.* DATABASE_URL: environment\\. → .*otpost migrate`,
        ),
      ),
    ])
    expect(await Bun.file(here.file).exists()).toBe(false)
    const below = await examined({ ...here.env, DATABASE_URL: 'file:/dev/null/data/otpost.db' })
    expect(below.failures).toEqual(['database', 'folder'])
    await openDatabase(here.file).close()
    rmSync(here.file)
    const lost = await examined(here.env)
    expect(lost.failures).toEqual(['database'])
    expect(lost.of('database')[0]).toMatch(/otpost\.db\.created says that it existed.*restore a backup/)
  })

  test('reports why a provider is unreachable: connection refused, unknown host, untrusted certificate, no answer', async () => {
    using here = await kept()
    await using untrusted = answering({ tls: selfSigned })
    // Accepts connections, and sends nothing.
    const silent = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data: () => {} } })
    const closed = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data: () => {} } })
    const closedPort = closed.port
    closed.stop(true)
    const [refusedOne, unknown, certificate, late] = await Promise.all(
      [
        `http://127.0.0.1:${closedPort}`,
        'https://unknown.invalid',
        untrusted.url,
        `http://127.0.0.1:${silent.port}`,
      ].map((url) => examined({ ...here.env, ...webhookAt(url) })),
    )
    silent.stop(true)
    expect(refusedOne?.of('SMS webhook')[0]).toMatch(
      /^fail: 127\.0\.0\.1:\d+ refuses connections .* → Start the service/,
    )
    expect(unknown?.of('SMS webhook')[0]).toMatch(
      /^fail: The host name of unknown\.invalid is not in the DNS/,
    )
    expect(certificate?.of('SMS webhook')[0]).toMatch(
      /^fail: The certificate of 127\.0\.0\.1:\d+ is not trusted \(\w+\)\. → Set NODE_EXTRA_CA_CERTS/,
    )
    expect(late?.of('SMS webhook')[0]).toMatch(/^fail: 127\.0\.0\.1:\d+ did not answer in time/)
    expect(late?.failures).toEqual(['SMS webhook'])
  })

  test('reports a proxy that rejects the connection', async () => {
    using here = await kept()
    await using proxy = answering({ status: 502 })
    const settings = { ...webhookAt('https://unknown.invalid'), HTTPS_PROXY: proxy.url }
    const { of } = await examined({ ...here.env, ...settings })
    expect(of('SMS webhook')[0]).toStartWith(
      'fail: The proxy in HTTPS_PROXY rejects connections to unknown.invalid',
    )
  })

  test('logs in to the mail server, and sends no mail', async () => {
    using here = await kept()
    const smtp = await startSmtp({ users: { otpost: 'right-password' } })
    const url = (password: string) => smtp.url.replace('://', `://otpost:${password}@`)
    const env = { ...here.env, MAIL_FROM: 'codes@shop.example' }
    const [right, wrong] = await Promise.all(
      ['right-password', 'wrong-password'].map((password) => examined({ ...env, SMTP_URL: url(password) })),
    )
    expect(smtp.received).toEqual([])
    await smtp.stop()
    expect(right?.of('SMTP')[0]).toStartWith('ok: ')
    expect(wrong?.of('SMTP')[0]).toMatch(
      /^fail: .*\(SMTP 535\)\. → Correct the user and password in SMTP_URL\.$/,
    )
    expect(wrong?.stdout).not.toContain('wrong-password')
    const gone = await examined({ ...env, SMTP_URL: url('right-password') })
    expect(gone.failures).toEqual(['SMTP'])
  })

  test('compares the clock with other machines and with the database', async () => {
    using here = await kept()
    await using ahead = answering({ headers: { date: new Date(Date.now() + 3_600_000).toUTCString() } })
    const service = await createTestApp(here.env)
    service.clock.now = Date.now() + 7_200_000
    await service.eventsOf(await service.post('/otp/send', { phone: '12025550143' }))
    service.app.context.eventLog.count(Date.now(), clockStat(-7_200_000), 7200)
    await service.close()
    const { of, failures } = await examined({ ...here.env, ...webhookAt(ahead.url) })
    expect(of('clock')).toEqual([
      expect.stringMatching(/^warn: The clock of a server was set back by 2 h in the hour from 2/),
      expect.stringMatching(
        /^fail: The clock of this machine is 3[56]\d\d s behind the clock of 127\.0\.0\.1:\d+\. Providers reject/,
      ),
      expect.stringMatching(/^warn: The latest request in the database is [12] h in the future/),
    ])
    expect(failures).toEqual(['clock'])
  })

  test('reports another program on the port of the server', async () => {
    using here = await kept()
    await using other = answering({ status: 200 })
    const { of } = await examined({ ...here.env, PORT: new URL(other.url).port })
    expect(of('server')[0]).toMatch(/^fail: Another program listens at/)
  })

  test('shows no secret, even when the settings are wrong', async () => {
    using here = await kept()
    const secrets = {
      SECRET_KEY: 'a-secret-key-of-more-than-32-bytes-in-all',
      APP_CREDENTIALS: '{"shop":"short-key-of-shop"}',
      KANNEL_URL: 'http://127.0.0.1:9/cgi-bin/sendsms',
      KANNEL_USERNAME: 'kannel-user',
      KANNEL_PASSWORD: 'kannel-password',
      KANNEL_FROM: '12345',
      ...webhookAt('http://127.0.0.1:9'),
      SMTP_URL: 'smtp://mailer:mail-password@127.0.0.1:9',
      MAIL_FROM: 'codes@shop.example',
    }
    const shown = await Promise.all([
      examined({ ...here.env, ...secrets, SMS_PLAIN: 'webhook,kannel' }),
      examined({
        ...here.env,
        ...secrets,
        SMS_PLAIN: 'webhook,kannel',
        TRUSTED_PROXIES: 'x',
        SECRET_KEY: 'too-short',
      }),
    ])
    const hidden = [
      'a-secret-key',
      'too-short',
      'short-key',
      'kannel-user',
      'kannel-password',
      'whsec_',
      secret,
      'of-the-test',
      'mail-password',
    ]
    for (const { stdout } of shown) expect(hidden.filter((word) => stdout.includes(word))).toEqual([])
    expect(shown[0]?.of('APP_CREDENTIALS')[0]).toContain(
      'The API key of shop in APP_CREDENTIALS is shorter than 32',
    )
  })

  test('works beside a server that writes', async () => {
    using here = await kept()
    const open = openDatabase(here.file)
    await open.writer.write(() => void open.driver.exec("UPDATE brands SET display_name = 'x'"))
    const { of } = await examined(here.env)
    await open.close()
    expect(of('integrity')).toEqual(['ok: Every page is intact.'])
  })
})

describe('findings', () => {
  const file: PathFacts = {
    path: '/d/f',
    kind: 'file',
    mode: 0o600,
    ownerUid: 7,
    readable: true,
    writable: true,
  }
  const folder: PathFacts = { ...file, path: '/d', kind: 'folder', mode: 0o700 }

  const databaseServer: ServerDatabaseFacts<unknown> = {
    kind: 'answered',
    version: '18.4',
    schema: 'current',
    isReadOnly: false,
    fsync: true,
    fullPageWrites: true,
    synchronousCommit: 'on',
    standbys: { awaited: 0, connected: 0, isHidden: false },
    keyFingerprints: [],
    hasTls: true,
    isLocal: true,
    mostConnections: 100,
    connections: 1,
    poolSize: 10,
    clock: { at: 0, localAt: 0 },
    lastRequestAt: null,
    read: undefined,
    cluster: undefined,
  }

  test.each([
    ['database', file, 7, 'ok'],
    ['database', { ...file, mode: 0o640 }, 7, 'warn'],
    ['database', { ...file, mode: 0o604 }, 7, 'fail'],
    ['database', { ...file, writable: false }, 8, 'fail'],
    ['database', { ...file, readable: false }, 8, 'fail'],
    ['database', { ...file, writable: false }, 7, 'fail'],
    ['database', { ...file, kind: 'folder' }, 7, 'fail'],
    ['database', file, 8, 'warn'],
    ['database', file, 0, 'ok'],
    ['secret', { ...file, writable: false, mode: 0o400 }, 7, 'ok'],
    ['secret', { ...file, mode: 0o640 }, 7, 'fail'],
    ['folder', folder, 7, 'ok'],
    ['folder', { ...folder, mode: 0o750 }, 7, 'warn'],
    ['folder', { ...folder, mode: 0o770 }, 7, 'fail'],
    ['folder', { ...folder, kind: 'file' }, 7, 'fail'],
    ['folder', { ...folder, mode: 0o1777 }, 7, 'warn'],
  ] as const)('of a path that is %s, %j, for user %d: %s', (use, facts, uid, level) => {
    expect(pathFinding(use, facts, uid).level).toBe(level)
  })

  test('about a folder that other users share do not advise to take it from them', () => {
    for (const mode of [0o755, 0o777, 0o1777]) {
      const found = pathFinding('folder', { ...folder, mode, isShared: true }, 7)
      expect(found).toMatchObject({ remedy: expect.stringContaining('a folder for the database') })
      expect(found).not.toMatchObject({ remedy: expect.stringContaining('chmod') })
    }
  })

  test.each([
    [{ ...file, mode: 0o400, writable: false }, 7, 'chmod 0600 /d/f'],
    [{ ...file, mode: 0o400, writable: false }, 8, 'chown 8 /d/f'],
    [{ ...file, writable: false }, 7, 'file system is read-only'],
    [{ ...file, writable: false }, 0, 'file system is read-only'],
  ])('about a read-only database %j, for user %d say what to do: %s', (facts, uid, remedy) => {
    expect(pathFinding('database', facts, uid)).toMatchObject({
      level: 'fail',
      remedy: expect.stringContaining(remedy),
    })
  })

  const standby = { awaited: 1, connected: 1, isHidden: false }
  test.each([
    [{}, 'ok', 'on the disk of this machine (synchronous_commit = on)'],
    [{ synchronousCommit: 'local' }, 'ok', 'on the disk of this machine (synchronous_commit = local)'],
    [{ synchronousCommit: 'off' }, 'fail', 'synchronous_commit = off'],
    [{ fsync: false, standbys: standby }, 'fail', 'fsync = off'],
    [{ standbys: standby }, 'ok', 'waits for 1 standby (synchronous_commit = on; 1 connected)'],
    [
      { standbys: { ...standby, isHidden: true } },
      'ok',
      'only members of pg_monitor can see which are connected',
    ],
    [{ standbys: standby, synchronousCommit: 'local' }, 'warn', 'does not wait for 1 standby'],
    [{ standbys: { ...standby, connected: 0 } }, 'fail', 'none of them is connected'],
    [{ standbys: { awaited: 2, connected: 1, isHidden: true } }, 'fail', 'waits for 2 standbys'],
    [{ standbys: { ...standby, connected: 0 }, isReadOnly: true }, 'ok', 'on the disk of this machine'],
  ] as const)('of a server of PostgreSQL on durability, %j: %s, %s', (facts, level, message) => {
    const found = serverDatabaseFindings('otpost', { ...databaseServer, ...facts })
    expect(found.find(({ what }) => what === 'durability')).toMatchObject({
      level,
      text: expect.stringContaining(message),
    })
  })

  test.each([
    ['/d', folder, 7, undefined],
    ['/d', { ...folder, writable: false }, 8, 'chown 8 /d'],
    ['/d/e/f', folder, 7, undefined],
    ['/d/e/f', { ...folder, mode: 0o755 }, 7, undefined],
    ['/d/e/f', { ...folder, writable: false }, 8, 'install -d -m 0700 -o 8 /d/e/f'],
    ['/d/e/f', { ...folder, kind: 'file' }, 7, 'DATABASE_URL'],
  ] as const)('of a new database in %s where %j is, for user %d: %s', (wanted, nearest, uid, remedy) => {
    const found = newFolderProblem(wanted, nearest, uid)
    if (remedy === undefined) expect(found).toBeUndefined()
    else expect(found).toMatchObject({ level: 'fail', remedy: expect.stringContaining(remedy) })
  })

  const mebibyte = 2 ** 20
  test.each([
    [10_000, 100, 'ok'],
    [10_000, 20_000, 'warn'],
    [400, 100, 'warn'],
    [63, 1, 'fail'],
  ] as const)('of a disk with %d MiB free and a database of %d: %s', (free, size, level) => {
    expect(diskFinding(free * mebibyte, size * mebibyte).level).toBe(level)
  })

  const whole = {
    journalMode: 'wal',
    damage: [],
    checked: 'quick',
    schema: 'current',
    logBytes: 0,
    keyFingerprints: [],
    lastRequestAt: null,
    read: undefined,
  } as const
  test.each([
    [whole, []],
    [{ ...whole, checked: 'part' }, ['warn integrity']],
    [{ ...whole, damage: ['row 1', 'row 2'] }, ['fail integrity']],
    [{ ...whole, schema: 'older' }, ['warn schema']],
    [{ ...whole, schema: 'newer' }, ['fail schema']],
    [{ ...whole, schema: 'unknown' }, ['fail schema']],
    [{ ...whole, journalMode: 'delete' }, ['warn journal mode']],
    [{ ...whole, logBytes: 65 * mebibyte }, ['warn log']],
  ] as const)('of a database %j: %j', (facts, expected) => {
    const found = databaseFindings(facts)
    expect(found).toHaveLength(4)
    expect(found.filter(({ level }) => level !== 'ok').map(({ level, what }) => `${level} ${what}`)).toEqual([
      ...expected,
    ])
  })

  test.each([
    [[], ['a'], undefined],
    [['a'], 'none', undefined],
    [[], 'unusable', 'fail'],
    [['a'], ['a'], 'ok'],
    [['a'], ['b', 'a'], 'ok'],
    [['a', 'b'], ['b'], 'warn'],
    [['a'], ['b'], 'fail'],
  ] as const)('of secrets %j noted and %j given: %s', (noted, own, level) => {
    expect(secretFindings(noted, own, 'SECRET_KEY').map((finding) => finding.level)).toEqual(
      level === undefined ? [] : [level],
    )
  })

  const sample = (aheadMs: number, isThisMachine = false) => ({ from: `p${aheadMs}`, aheadMs, isThisMachine })
  test.each([
    [[], null, ['ok: Not compared: no other machine gave its time.']],
    [[sample(29_000), sample(-29_000)], 999, ['ok: The same as p29000, p-29000.']],
    [[sample(1, true)], null, ['ok: Not compared: no other machine gave its time.']],
    [
      [sample(5), sample(-31_000)],
      null,
      ['warn: The clock of this machine is 31 s behind the clock of p-31000.'],
    ],
    [
      [sample(241_000)],
      null,
      [
        'fail: The clock of this machine is 241 s ahead of the clock of p241000. Providers reject requests signed with this time.',
      ],
    ],
    [
      [sample(1)],
      41_000,
      [
        'warn: The latest request in the database is 40 s in the future. This clock is behind, or was ahead then.',
      ],
    ],
  ])('of clocks %j and a database of %p: %j', (samples, last, expected) => {
    expect(clockFindings(samples, last, 1000).map(({ level, text }) => `${level}: ${text}`)).toEqual(expected)
  })

  const answered: Reach = {
    kind: 'answered',
    status: 200,
    date: null,
    text: '{"status":"ok","checks":{}}',
    tookMs: 3.4,
  }
  test.each([
    [collectorFinding('h', { ...answered, status: 404 }), 'ok'],
    [collectorFinding('h', { kind: 'refused', code: 'ECONNREFUSED' }), 'warn'],
    [serverFinding('h', answered), 'ok'],
    [serverFinding('h', { ...answered, status: 503 }), 'fail'],
    [serverFinding('h', { ...answered, text: 'hello' }), 'fail'],
    [serverFinding('h', { kind: 'refused', code: 'ECONNREFUSED' }), 'warn'],
    [publicUrlFinding('h', answered), 'ok'],
    [publicUrlFinding('h', { ...answered, status: 502 }), 'warn'],
    [publicUrlFinding('h', { kind: 'name', code: 'ENOTFOUND' }), 'warn'],
    [providerFinding('p', 'h', { ...answered, status: 500 }), 'ok'],
    [providerFinding('p', 'h', { kind: 'other', code: 'ECONNRESET' }), 'fail'],
  ] as const)('%j is %s', (finding, level) => {
    expect(finding.level).toBe(level)
  })

  test.each([
    ['CERT_HAS_EXPIRED', 'Renew it'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'another host name'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'NODE_EXTRA_CA_CERTS'],
  ])('of a certificate with %s say what to do: %s', (code, remedy) => {
    expect(providerFinding('p', 'h', { kind: 'certificate', code })).toMatchObject({
      level: 'fail',
      remedy: expect.stringContaining(remedy),
    })
  })

  test('about budgets name the scopes, and warn without a budget or a receiver of alerts', async () => {
    const here = await kept()
    const budgets = async (settings: Readonly<Record<string, string>>) => {
      const { of } = await examined({ ...here.env, ...settings })
      return [...of('budgets'), ...of('alerts')]
    }
    expect(await budgets({})).toEqual([
      expect.stringMatching(/^warn: The cost of SMS is not limited.* → Set a budget/),
    ])
    expect((await otpost(['budget', 'set', 'server', '--per', 'day', '--amount', '5'], here.env)).code).toBe(
      0,
    )
    expect(await budgets({})).toEqual([
      'ok: server.',
      expect.stringMatching(/^warn: Alerts are only in the log.* → Set ALERT_EMAIL/),
    ])
    expect(await budgets({ ALERT_EMAIL: 'ops@example.com' })).toEqual(['ok: server.'])
  })

  test('about the guard warn of a mode that sends, and of a GUARD that has no effect', async () => {
    const here = await kept()
    const found = async (settings: Readonly<Record<string, string>> = {}) => {
      const { of } = await examined({ ...here.env, ...settings })
      return [...of('guard'), ...of('GUARD')]
    }
    const sends =
      /^warn: The mode of the SMS pumping guard is record. It sends .* → Command: `otpost guard mode deny`/
    expect(await found()).toEqual([expect.stringMatching(sends)])
    expect((await otpost(['guard', 'mode', 'deny'], here.env)).stdout).toBe(
      'The mode of the guard is deny.\n',
    )
    expect(await found({ GUARD: 'deny' })).toEqual(['ok: The SMS pumping guard denies.'])
    expect(await found({ GUARD: 'record' })).toEqual([
      'ok: The SMS pumping guard denies.',
      expect.stringMatching(
        /^warn: GUARD is record, but has no effect: .* is deny\..*`otpost guard mode record`/,
      ),
    ])
    expect((await otpost(['guard', 'mode', 'off', '--for', '1h'], here.env)).stdout).toMatch(
      /^The mode of the guard is off until .* UTC, then deny\.\n$/,
    )
    expect(await found()).toEqual([expect.stringMatching(/^warn: The SMS pumping guard is off\./)])
    await otpost(['guard', 'mode', 'record'], here.env)
    await otpost(['guard', 'mode', 'deny', '--for', '1h'], here.env)
    expect(await found({ GUARD: 'deny' })).toEqual([
      expect.stringMatching(
        /^ok: The SMS pumping guard denies: its mode is deny until .* UTC, then record\.$/,
      ),
    ])
  })

  test('about destinations name rules that fail on this server', async () => {
    const here = await kept()
    expect((await examined(here.env)).of('destinations')).toEqual([
      expect.stringMatching(/^warn: SMS go to every country.* → Set SMS_COUNTRIES/),
    ])
    const settings = { ...here.env, ...webhookAt('https://sms.example') }
    const set = async (...args: string[]) =>
      expect((await otpost(['destination', 'set', ...args], settings)).code).toBe(0)
    await set('GB', 'allow', '--providers', 'webhook')
    await set('*', 'block')
    const ok = await examined({ ...settings, SMS_COUNTRIES: 'IN' })
    expect(ok.of('destinations')).toEqual(['ok: SMS_COUNTRIES=IN and 2 stored rules.'])
    const ways = await examined({ ...settings, SMS_COUNTRIES: 'IN', TELEGRAM_TOKEN: 'token' })
    expect(ways.of('destinations').slice(1)).toEqual([
      expect.stringMatching(
        /^warn: The rule names only webhook, so no code to GB uses telegram\. Add telegram/,
      ),
    ])
    expect((await examined({ ...here.env, SMS_COUNTRIES: 'EH' })).of('destinations')).toEqual([
      'ok: SMS_COUNTRIES=EH and 2 stored rules.',
      expect.stringMatching(/^fail: SMS of the rule GB fail\. webhook is not a provider of this server/),
      expect.stringMatching(/^warn: A rule names EH, but mobile numbers of EH have the country MA/),
    ])
  })

  test('about review numbers list them while they exist', async () => {
    const here = await kept()
    expect((await examined(here.env)).of('review')).toEqual([])
    expect((await otpost(['brand', 'put', 'reviewed', '--name', 'Reviewed'], here.env)).code).toBe(0)
    const until = new Date().toISOString().slice(0, 10)
    const add = ['review-number', 'add', '+12025550143', '--brand', 'reviewed', '--until', until]
    expect((await otpost(add, here.env)).code).toBe(0)
    expect((await examined(here.env)).of('review')).toEqual([
      expect.stringMatching(
        /^warn: .*12\*{7}43 \(reviewed, until .* → Remove each one .*`otpost review-number remove PHONE --brand SLUG`/,
      ),
    ])
  })

  test('about accounts name those without a way in, and what is no longer used', async () => {
    using here = place()
    const env = { ...here.env, SECRET_KEY: 'p'.repeat(32) }
    const service = await createTestApp(env)
    await addAccount(service, 'ana@example.com', 'owner')
    await service.close()
    chmodSync(here.file, 0o600)
    const invite = ['admin', 'operator', 'invite', 'bo@example.com', '--role', 'viewer']
    expect((await otpost(invite, env)).code).toBe(0)
    const about = async (settings: Readonly<Record<string, string>>) => {
      const { of } = await examined({ ...env, ...settings })
      return ['accounts', 'passkeys'].flatMap(of)
    }
    expect(await about({})).toEqual([])
    expect(await about({ PUBLIC_URL: 'https://127.0.0.1:1' })).toEqual([
      expect.stringMatching(/^ok: Passkeys need a host name/),
    ])
    expect(await about({ SECRET_KEY: `${'n'.repeat(32)},${'p'.repeat(32)}` })).toEqual([
      expect.stringMatching(/^warn: A previous secret key encrypts .* ana@example\.com\. → Keep that key/),
    ])
    expect(await about({ SECRET_KEY: 'n'.repeat(32) })).toEqual([
      expect.stringMatching(/^warn: No secret key decrypts .* ana@example\.com\. .*operator reset EMAIL/),
    ])
    inDatabase(here.file, (driver) => driver.exec('UPDATE console_links SET expires_at = 1'))
    expect(await about({})).toEqual([
      expect.stringMatching(/^warn: Not set up, and without a valid link: bo@example\.com\. → /),
    ])
  })

  test('about relays name those whose secret needs another secret key', async () => {
    const previous = 'p'.repeat(32)
    const here = place()
    const service = await createTestApp({ ...here.env, SECRET_KEY: previous })
    await operate(service, 'relay add', { name: 'auth', kind: 'supabase', brand: 'acme' })
    await service.close()
    const found = async (SECRET_KEY: string) => (await examined({ ...here.env, SECRET_KEY })).of('relays')
    expect(await found(previous)).toEqual([])
    expect(await found(`${'n'.repeat(32)},${previous}`)).toEqual([
      expect.stringMatching(/^warn: A previous secret key encrypts the secret of auth\. → Keep that key/),
    ])
    expect(await found('n'.repeat(32))).toEqual([
      expect.stringMatching(/^warn: No secret key decrypts the secret of auth\. .*add it again\.$/),
    ])
  })

  test('about DLT name the texts of a brand that carriers may drop', async () => {
    const { env, at } = await kept()
    const found = async () => (await examined(env)).of('DLT')
    const changed = async (...args: string[]) => expect((await otpost(args, env)).code).toBe(0)
    await changed('brand', 'put', 'scrubbed', '--name', 'Scrubbed', '--dlt')
    expect(await found()).toEqual([
      expect.stringContaining('LOGIN_OTP en (entity-id, template-id). → `otpost text'),
    ])
    await changed('brand', 'put', 'scrubbed', '--entity', '1101')
    await changed('brand', 'template', 'scrubbed', 'LOGIN_OTP', '--id', '1107')
    expect(await found()).toEqual([])
    const file = at('text')
    writeFileSync(file, 'Your code, {{otp}}, is short')
    await changed('text', 'set', 'scrubbed', 'LOGIN_OTP', '--file', file)
    expect(await found()).toEqual([
      expect.stringContaining('scrubbed on the registered route: LOGIN_OTP en (brand-name).'),
    ])
    await changed('brand', 'put', 'scrubbed', '--no-dlt')
    expect(await found()).toEqual([])
  })

  test('about settings warn of risky values', async () => {
    const real = {
      ...webhookAt('https://sms.example'),
      SMTP_URL: 'smtps://mail.example',
      MAIL_FROM: 'codes@shop.example',
    }
    const warned = (env: Readonly<Record<string, string>>, nodeEnv?: string) =>
      settingWarnings(readConfig({ ...real, ...env }), nodeEnv).map(({ setting }) => setting)
    for (const nodeEnv of ['production', 'development', 'test']) expect(warned({}, nodeEnv)).toEqual([])
    expect(warned({})).toEqual([])
    expect(warned({}, 'prod')).toEqual(['NODE_ENV'])
    expect(warned({ FAILURE_BUDGET_PER_DAY: '0' })).toEqual(['FAILURE_BUDGET_PER_DAY'])
    expect(warned({ FAILURE_BUDGET_PER_DAY: '101' })).toEqual(['FAILURE_BUDGET_PER_DAY'])
    expect(warned({ TRUSTED_PROXIES: '0.0.0.0/1,128.0.0.0/1' })).toEqual(['TRUSTED_PROXIES'])
    expect(warned({ TRUSTED_PROXIES: '2000::/3' })).toEqual(['TRUSTED_PROXIES'])
    expect(warned({ METRICS_TOKEN: 'short' })).toEqual(['METRICS_TOKEN'])
    expect(warned({ OUTBOX_TOKEN: 'x'.repeat(15) })).toEqual(['OUTBOX_TOKEN'])
    expect(warned({ OUTBOX_TOKEN: 'x'.repeat(16) })).toEqual([])
    const alerted = { ALERT_WEBHOOK_URL: 'https://alerts.example' }
    expect(warned({ ...alerted, ALERT_WEBHOOK_SECRET: 'x' })).toEqual(['ALERT_WEBHOOK_SECRET'])
    expect(warned({ SMS_WEBHOOK_SECRET: `whsec_${btoa('x'.repeat(23))}` })).toEqual(['SMS_WEBHOOK_SECRET'])
    expect(warned({ SMS_WEBHOOK_SECRET: `whsec_${btoa('x'.repeat(24))}` })).toEqual([])
    const voice = {
      VOICE_PROVIDER: 'twilio-voice',
      TWILIO_ACCOUNT_SID: `AC${'0'.repeat(32)}`,
      TWILIO_AUTH_TOKEN: 'token',
      TWILIO_VOICE_FROM: '+12025550123',
    }
    expect(warned(voice)).toEqual(['VOICE_COUNTRIES'])
    expect(warned({ ...voice, SMS_COUNTRIES: 'GB' })).toEqual([])
    expect(warned({ ...voice, VOICE_COUNTRIES: 'GB' })).toEqual([])
    const https = { PUBLIC_URL: 'https://otp.example.com' }
    expect(warned(https)).toEqual(['TRUSTED_PROXIES'])
    expect(warned({ ...https, TRUSTED_PROXIES: '10.0.0.1' })).toEqual([])
    const APP_CREDENTIALS = JSON.stringify({ a: 'short', b: 'short', c: 'k'.repeat(32) })
    expect(warned({ SMS_PLAIN: 'discard', APP_CREDENTIALS })).toEqual([
      'SMS_PLAIN',
      'APP_CREDENTIALS',
      'APP_CREDENTIALS',
    ])
  })
})
