import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { backUp } from '../../src/adapters/sqlite/backup.ts'
import { certificateEnd, certificateFinding, tlsFindings } from '../../src/doctor/certificate.ts'
import { clockProblems } from '../../src/domain/health/clock.ts'
import { createTestApp, type TestApp } from '../support/app.ts'
import { signedIn, type Visitor } from '../support/console.ts'
import { sqliteOnly, store } from '../support/database.ts'
import { temporaryFolder } from '../support/folder.ts'
import { tester } from '../support/operator.ts'
import { selfSigned } from '../support/smtp.ts'

describe('the page', () => {
  let app: TestApp
  let visitor: Visitor

  beforeEach(async () => {
    app = await createTestApp({ PORT: '0' })
    visitor = await signedIn(app)
  })

  afterEach(() => app.close())

  const text = (html: string) => html.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ')

  test('has versions, size, providers and nodes, and the checks of doctor when they are run', async () => {
    const before = text((await visitor.get('/admin/health')).html)
    expect(before).toContain('Not run since this server started.')
    expect(before).toMatch(store === 'sqlite' ? /SQLite 3\.\d+/ : /PostgreSQL \d+/)
    expect(before).toMatch(/Size \d+\.\d MiB/)
    expect(before).toContain('outbox none')
    expect(before.includes('Nodes')).toBe(store === 'postgres')
    let turns = 0
    const counting = setInterval(() => turns++, 1)
    const { status, html } = await visitor.post('/admin/health')
    clearInterval(counting)
    expect(status).toBe(200)
    expect(turns, 'turns of the event loop meanwhile').toBeGreaterThan(20)
    const after = text(html)
    expect(after).toContain('SMTP_URL delivers nothing')
    expect(after).toContain('All settings are valid.')
    expect(text((await visitor.get('/admin/health')).html)).toContain('All settings are valid.')
  })

  sqliteOnly('has the latest backup, by its audit entry', async () => {
    expect(text((await visitor.get('/admin/health')).html)).toContain('none by otpost backup is known')
    const folder = temporaryFolder()
    const owner = { pid: process.pid, isRoot: false, isRunning: () => true }
    const file = `${folder.path}/copy.db`
    await backUp(app.database.file, file, { replace: false, owner, now: app.clock.now, actor: tester })
    app.advance(7200)
    const { html } = await (await signedIn(app, visitor)).get('/admin/health')
    expect(text(html)).toMatch(/Latest backup 2 h ago *, \S+copy\.db/)
    expect(text((await visitor.get('/admin/audit')).html)).toContain('Backup written')
    folder.remove()
  })

  test('a clock that was 8 h ahead is a problem of the overview, and a time in the future is shown as such', async () => {
    app.advance(8 * 3600)
    await app.post('/otp/send', { phone: '12025550143' })
    app.advance(-8 * 3600)
    const { html } = await visitor.get('/admin')
    expect(text(html)).toContain('The latest request in the database is 8 h in the future.')
  })
})

const now = Date.UTC(2026, 2, 1)

test.each([
  [{ lastRequestAt: null, databaseAheadMs: undefined }, []],
  [{ lastRequestAt: now + 30_000, databaseAheadMs: 30_000 }, []],
  [{ lastRequestAt: now + 31_000, databaseAheadMs: 0 }, ['clock: 31 s in the future']],
  [{ lastRequestAt: null, databaseAheadMs: -60_000 }, ['database clock: 1 min behind']],
  [{ lastRequestAt: null, databaseAheadMs: 60_000 }, ['database clock: 1 min ahead of']],
  [{ lastRequestAt: null, databaseAheadMs: 8 * 3_600_000 - 3 }, ['database clock: 8 h ahead of']],
])('%j: %j', (facts, expected) => {
  const found = clockProblems(facts, now).map(
    ({ what, text }) => `${what}: ${/\d+ \w+ (in the future|behind|ahead of)/.exec(text)?.[0]}`,
  )
  expect(found).toEqual(expected)
})

test.each([
  [undefined, []],
  [now - 1, ['fail: The certificate of h expired 2026-02-28 23:59:59 UTC.']],
  [now + 13 * 86_400_000, ['warn: The certificate of h is valid until 2026-03-14 00:00:00 UTC (13 days).']],
  [now + 14 * 86_400_000, ['ok: The certificate of h is valid until 2026-03-15 00:00:00 UTC (14 days).']],
])('a certificate that ends at %p: %j', (end, expected) => {
  expect(certificateFinding('h', end, now).map(({ level, text }) => `${level}: ${text}`)).toEqual(expected)
})

test('the files of TLS_CERT_FILE and of --domain are a line of doctor: port, end, and what is wrong', () => {
  const folder = temporaryFolder()
  const [certFile, keyFile] = [join(folder.path, 'certificate.pem'), join(folder.path, 'key.pem')]
  const acme = {
    domain: 'otp.example',
    folder: folder.path,
    directoryUrl: 'https://acme.example',
    httpPort: 80,
  }
  const found = (own?: typeof acme, at = now) =>
    tlsFindings({ host: '::', port: 8443, certFile, keyFile, acme: own }, at).map(
      ({ what, level, text }) => `${what} ${level}: ${text}`,
    )
  expect(tlsFindings(undefined, now)).toEqual([])
  expect(found(acme)).toEqual(['TLS warn: There is no certificate for otp.example on port 8443 yet.'])
  expect(found()).toEqual([
    `TLS fail: TLS_CERT_FILE (${certFile}) cannot be read (ENOENT): correct the path, or let this user read it.`,
  ])
  writeFileSync(certFile, selfSigned.cert)
  writeFileSync(keyFile, selfSigned.key)
  const line = `The certificate of port 8443 (${certFile}, with its key)`
  for (const own of [undefined, acme]) {
    expect(found(own)).toEqual([
      expect.stringMatching(
        /^TLS ok: The certificate of port 8443 \(.*, with its key\) is valid until 2120-01-01/,
      ),
    ])
    expect(found(own, Date.UTC(2119, 11, 31))).toEqual([
      `TLS warn: ${line} is valid until 2120-01-01 00:00:00 UTC (1 days).`,
    ])
  }
  writeFileSync(
    keyFile,
    generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'pem', type: 'pkcs8' }),
  )
  expect(found()).toEqual([
    `TLS fail: TLS_KEY_FILE (${keyFile}) does not belong to the certificate in ${certFile}.`,
  ])
  folder.remove()
})

test('reads the end of a certificate, also of one that is not trusted, and of no host that gives none', async () => {
  await using server = Bun.serve({ port: 0, tls: selfSigned, fetch: () => new Response() })
  await using plain = Bun.serve({ port: 0, fetch: () => new Response() })
  for (const host of ['127.0.0.1', 'localhost'])
    expect(await certificateEnd(new URL(`https://${host}:${server.port}`), 4000)).toBe(Date.UTC(2120, 0, 1))
  expect(await certificateEnd(new URL(`https://127.0.0.1:${plain.port}`), 4000)).toBeUndefined()
})
