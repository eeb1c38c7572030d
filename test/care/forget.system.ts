import { expect, test } from 'bun:test'
import { existsSync, rmSync } from 'node:fs'
import { createSecrets } from '../../src/adapters/crypto/secrets.ts'
import { mask, type Recipient } from '../../src/domain/ground/contact.ts'
import { type Answer, createTestApp, type TestApp } from '../support/app.ts'
import { openTestDatabase, sqliteOnly, store } from '../support/database.ts'
import { startReceiver } from '../support/receiver.ts'
import { otpost, startServer } from '../support/server.ts'

const secretKey = 'the-secret-of-32-bytes-or-more-for-it'
const [ann, bob] = ['4915123456789', '12025550144']
const annsMail = 'Ann.Example@Example.com'

const recipients: readonly Recipient[] = [
  { channel: 'SMS', to: ann },
  { channel: 'EMAIL', to: annsMail.toLowerCase() },
]

/** Every form of a person's data in the files: phone number, e-mail address, masks and hashes. */
function tracesOf({ channel, to }: Recipient, key = secretKey): readonly string[] {
  const [subject] = createSecrets(key).subjects(channel, to)
  return [to, mask({ channel, to }), subject, subject.slice(0, 22)]
}

const anything = [...new Set(recipients.flatMap((recipient) => tracesOf(recipient)))]

/** A database for one test. */
async function scene() {
  const database = await openTestDatabase()
  return {
    env: database.env,
    query: database.query,
    get file() {
      return database.file
    },
    /** Which of these texts any of its files contain. */
    async found(texts: readonly string[]): Promise<readonly string[]> {
      const contents = await database.contents()
      return texts.filter((text) => contents.includes(text))
    },
    /** The first column of the statement's result. */
    async column(text: string): Promise<readonly string[]> {
      return (await database.query(text)).map((row) => String(Object.values(row)[0]))
    },
    [Symbol.asyncDispose]: () => database.remove(),
  }
}

/** The output of a command that must succeed. */
async function ok(env: Readonly<Record<string, string>>, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await otpost(args, env)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return stdout
}

/** Every kind of record of Ann, and some of Bob. */
async function populated(
  service: TestApp,
): Promise<Readonly<Record<'anns' | 'bobs' | 'both', readonly Answer[]>>> {
  const { post } = service
  const notify = { channel: 'SMS', brandId: 'acme', message: 'Your parcel is on its way.' }
  const anns = [
    await post('/otp/send', { phone: '+49 1512 3456789' }),
    await post('/otp/verify', { phone: ann, otp: '000000' }),
    await post('/otp/send', { phone: ann }),
    await post('/otp/send', { channel: 'EMAIL', email: annsMail }),
    await post('/otp/resend', { channel: 'EMAIL', email: annsMail.toUpperCase() }),
    await post('/notify', { ...notify, to: [ann] }),
    await post('/notify', { channel: 'EMAIL', to: [annsMail], subject: 'Parcel', html: '<p>Soon</p>' }),
  ]
  const bobs = [await post('/otp/send', { phone: bob }), await post('/notify', { ...notify, to: [bob] })]
  const both = [await post('/notify', { ...notify, to: [ann, bob] })]
  const asked = await service.postRaw('/integrations/requests', {
    companyName: 'Example Ltd',
    contactName: 'A. N. Other',
    contactEmail: annsMail,
    brandName: 'Example',
  })
  expect(asked.status).toBe(201)
  for (const answer of [...anns, ...bobs, ...both]) await service.eventsOf(answer)
  return { anns, bobs, both }
}

test('no data of the person remain in the files, and all data of other people do', async () => {
  await using here = await scene()
  const env = { ...here.env, SECRET_KEY: secretKey }
  const service = await createTestApp(env)
  const { anns, bobs, both } = await populated(service)
  await service.close()
  expect(await here.found(anything)).toEqual(anything)

  const phone = '+49 (1512) 3456789'
  const rows =
    '4 requests, 3 deliveries, 0 delivery reports, 0 asynchronous messages, 5 records of limits and codes, 0 ladders of codes, 0 verified numbers, 0 review numbers, 0 integration requests, 3 outbox messages.\n'
  expect(await ok(env, 'forget', phone, '--dry-run')).toContain(`Would erase: ${rows}`)
  expect(await here.found(anything)).toEqual(anything)
  const phones = await ok(env, 'forget', phone)
  expect(phones).toContain(`Erased: ${rows}`)
  expect(phones).toContain(
    store === 'sqlite' ? 'It contains no remains of the erased rows.\n' : 'The rows are deleted.',
  )
  expect(phones).toContain('Not erased by this command: the server log')
  const wouldErase = await ok(env, 'forget', annsMail, '--dry-run')
  const mails = await ok(env, 'forget', annsMail)
  expect(mails).toStartWith(wouldErase.split('\n')[0]?.replace('Would erase', 'Erased') ?? '')
  expect(mails).toContain('1 integration request, 3 outbox messages.\n')
  expect(await here.found(anything)).toEqual([])

  const requestOf = ({ body }: Answer) => body.requestId
  const left = {
    requests: await here.column('SELECT request_id FROM requests'),
    deliveries: await here.column(
      'SELECT request_id FROM requests WHERE outcome IS NOT NULL UNION ALL SELECT request_id FROM attempts',
    ),
    audit: await here.column(
      "SELECT CAST(details AS text) FROM audit WHERE action = 'data.forgotten' ORDER BY id",
    ),
  }
  expect(left.requests.toSorted()).toEqual([...bobs, ...both].map(requestOf).sort())
  expect(left.deliveries.toSorted()).toEqual([...bobs, ...both].map(requestOf).sort())
  expect(anns.map(requestOf).filter((id) => left.requests.includes(id))).toEqual([])
  expect(left.audit.map((details) => JSON.parse(details))).toMatchObject([
    { requests: '4', deliveries: '3', codesAndLimits: '5', outbox: '3' },
    { requests: '3', deliveries: '3', codesAndLimits: '2', outbox: '3', integrationRequests: '1' },
  ])
  // Bob's counters continue.
  const again = await createTestApp(env)
  again.clock.now = service.clock.now
  expect((await again.post('/otp/send', { phone: bob })).status).toBe(429)
  expect((await again.post('/otp/send', { phone: ann })).status).toBe(200)
  await again.close()
})

test('an e-mail address with a tag also erases the counter of its mailbox, and nothing else of the mailbox', async () => {
  await using here = await scene()
  const env = { ...here.env, SECRET_KEY: secretKey, EMAIL_LIMIT_PER_HOUR: '2' }
  const [tagged, plain] = ['ann+shop@example.com', 'ann@example.com']
  const before = await createTestApp(env)
  for (const email of [plain, tagged]) await before.post('/otp/send', { channel: 'EMAIL', email })
  const refused = await before.post('/otp/send', { channel: 'EMAIL', email: tagged })
  expect(refused.status).toBe(429)
  const otp = await before.lastCode(plain)
  await before.eventsOf(refused)
  await before.close()
  const erased =
    '2 requests, 1 delivery, 0 delivery reports, 0 asynchronous messages, 2 records of limits and codes, 0 ladders of codes, 0 verified numbers, 0 review numbers, 0 integration requests, 1 outbox message'
  expect(await ok(env, 'forget', tagged)).toContain(erased)
  const after = await createTestApp(env)
  after.clock.now = before.clock.now
  expect((await after.post('/otp/verify', { email: plain, otp })).status).toBe(200)
  expect((await after.post('/otp/send', { channel: 'EMAIL', email: tagged })).status).toBe(200)
  await after.close()
})

test('the account of an operator stays, and the output says so', async () => {
  await using here = await scene()
  const env = { ...here.env, SECRET_KEY: secretKey }
  await ok(env, 'migrate')
  const invite = ['admin', 'operator', 'invite', annsMail, '--role', 'viewer']
  expect((await otpost(invite, env)).code).toBe(0)
  expect(await ok(env, 'forget', annsMail)).toContain(
    `\`otpost admin operator remove ${annsMail.toLowerCase()}\``,
  )
  expect(await ok(env, 'forget', 'someone@example.com')).not.toContain('operator remove')
  expect(await ok(env, 'admin', 'operator', 'list')).toContain(annsMail.toLowerCase())
})

test('a second run finds nothing to erase', async () => {
  await using here = await scene()
  const env = { ...here.env, SECRET_KEY: secretKey }
  const service = await createTestApp(env)
  await populated(service)
  await service.close()
  await ok(env, 'forget', ann)
  expect(await ok(env, 'forget', ann)).toContain(
    'Erased: 0 requests, 0 deliveries, 0 delivery reports, 0 asynchronous messages, 0 records of limits and codes, 0 ladders of codes, 0 verified numbers, 0 review numbers, 0 integration requests, 0 outbox messages.\n',
  )
})

test('delivery reports are erased with their deliveries', async () => {
  await using here = await scene()
  const receiver = startReceiver()
  const env = {
    ...here.env,
    SECRET_KEY: secretKey,
    SMS_PLAIN: 'webhook',
    ...receiver.env,
    PUBLIC_URL: 'https://otp.example.com',
  }
  const service = await createTestApp(env)
  for (const phone of [ann, bob]) await service.eventsOf(await service.post('/otp/send', { phone }))
  const ids = receiver.received.map(({ body }) => body.id)
  await receiver.stop()
  await service.close()
  expect(await here.column('SELECT report_key FROM requests')).toHaveLength(ids.length)
  await here.query("INSERT INTO delivery_reports SELECT report_key, 'delivered', NULL, 1 FROM requests")
  expect(await ok(env, 'forget', ann)).toContain('1 delivery, 1 delivery report, ')
  expect(await here.column('SELECT count(*) FROM delivery_reports')).toEqual(['1'])
})

test('beside a running server: no records are found afterwards, and the output reports what remains', async () => {
  await using here = await scene()
  const env = { ...here.env, SECRET_KEY: secretKey }
  const prepared = await createTestApp(env)
  await prepared.close()
  const server = await startServer(env)
  try {
    const sent = await server.post('/otp/send', { phone: ann })
    expect(sent.status).toBe(200)
    expect((await server.post('/otp/send', { phone: ann })).status).toBe(429)
    // The event log is written a moment after the answer; a later request is answered after that.
    await ok(env, 'brand', 'list')
    expect(await ok(env, 'forget', ann)).toMatch(
      /^Erased: 2 requests, 1 delivery, .*\n(?:The erased rows are overwritten|The rows are deleted)/,
    )
    expect(await ok(env, 'deliveries', '--to', ann, '--json')).toBe('[]\n')
    expect((await server.get('/outbox/messages')).body.messages).toEqual([])
    expect((await server.post('/otp/send', { phone: ann })).status).toBe(200)
  } finally {
    await server.stop()
  }
  await ok(env, 'forget', ann)
  expect(await here.found(tracesOf({ channel: 'SMS', to: ann }))).toEqual([])
})

sqliteOnly(
  'requests from before their recipients were kept are found by the delivery log; others are counted',
  async () => {
    await using here = await scene()
    const env = { ...here.env, SECRET_KEY: secretKey }
    const service = await createTestApp(env)
    const sent = await service.post('/otp/send', { phone: ann })
    const verified = await service.post('/otp/verify', { phone: ann, otp: '000000' })
    const likeness = await service.post('/otp/send', { phone: `49${'0'.repeat(9)}89` })
    for (const answer of [sent, verified, likeness]) await service.eventsOf(answer)
    await service.close()
    await here.query('UPDATE requests SET recipient_hash = NULL WHERE outcome IS NULL')
    const text = await ok(env, 'forget', ann)
    expect(text).toStartWith('Erased: 1 request, 1 delivery, ')
    expect(text).toContain('Not erased: 1 request with the same masked recipient')
    const left = await here.column('SELECT request_id FROM requests')
    expect(left.toSorted()).toEqual([verified.body.requestId, likeness.body.requestId].sort())
  },
)

test('records under a previous secret key are found while the settings name that key', async () => {
  await using here = await scene()
  const former = 'the-former-secret-of-32-bytes-or-more'
  const before = await createTestApp({ ...here.env, SECRET_KEY: former })
  await before.eventsOf(await before.post('/otp/send', { phone: ann }))
  await before.close()
  const env = { ...here.env, SECRET_KEY: `${secretKey},${former}` }
  const after = await createTestApp(env)
  after.clock.now = before.clock.now + 61_000
  await after.eventsOf(await after.post('/otp/send', { phone: ann }))
  await after.close()
  expect(await ok(env, 'forget', ann)).toStartWith('Erased: 2 requests, 2 deliveries, ')
  const traces = [former, secretKey].flatMap((key) => tracesOf({ channel: 'SMS', to: ann }, key))
  expect(await here.found(traces)).toEqual([])
})

sqliteOnly('is refused without the secret, without a database, and for what is no recipient', async () => {
  await using here = await scene()
  const refused = async (...args: string[]) => {
    const { code, stdout, stderr } = await otpost(args, here.env)
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    return stderr
  }
  expect(await refused('forget', ann)).toContain('There is no database at')
  const service = await createTestApp(here.env)
  await service.close()
  const somebody = await otpost(['forget', 'somebody'], here.env)
  expect(somebody.code).toBe(2)
  expect(somebody.stderr).toContain('must be a phone number or an e-mail address')
  rmSync(`${here.file}.key`)
  expect(await refused('forget', ann)).toContain(`${here.file}.key is missing`)
  expect(existsSync(`${here.file}.key`)).toBe(false)
})
