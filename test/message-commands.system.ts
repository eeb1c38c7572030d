import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { readConfig } from '../src/config/config.ts'
import { openContext } from '../src/context.ts'
import { freshBrand } from '../src/domain/operator/brands.ts'
import { type Answer, createTestApp, otherThan, type TestApp } from './support/app.ts'
import { signedIn } from './support/console.ts'
import { migratedTestDatabase, type TestDatabase } from './support/database.ts'
import { temporaryFolder } from './support/folder.ts'
import { storeBrand } from './support/operator.ts'
import { startReceiver } from './support/receiver.ts'
import { otpost, startServer } from './support/server.ts'
import { startSmtp } from './support/smtp.ts'

const databases: TestDatabase[] = []
const receiver = startReceiver()
const folder = temporaryFolder()
afterAll(async () => {
  folder.remove()
  await receiver.stop()
  await Promise.all(databases.map((database) => database.remove()))
})

const acme = { ...freshBrand('acme'), displayName: 'Acme' }

/** Settings for a database of their own. */
async function environment(): Promise<Readonly<Record<string, string>>> {
  const database = await migratedTestDatabase()
  databases.push(database)
  return database.env
}

/** The output of a command that must succeed. */
async function ok(env: Readonly<Record<string, string>>, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await otpost(args, env)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return stdout
}

/** The error of a command that must fail: on standard error alone, and without a stack. */
async function failed(
  code: number,
  env: Readonly<Record<string, string>>,
  ...args: string[]
): Promise<string> {
  const result = await otpost(args, env)
  expect({ code: result.code, stdout: result.stdout }).toEqual({ code, stdout: '' })
  expect(result.stderr).not.toMatch(/^\s+at |\.ts:\d/m)
  return result.stderr
}

describe.concurrent('brand', () => {
  test('template shows, changes and deletes the registration of a template', async () => {
    const env = await environment()
    const template = async (...args: string[]) => JSON.parse(await ok(env, 'brand', 'template', ...args))
    const made = JSON.parse(await ok(env, 'brand', 'put', 'acme', '--name', 'Acme', '--entity', '1101.4-5_6'))
    expect(made).toMatchObject({ entityId: '1101.4-5_6', registrations: {} })
    const registered = {
      brandId: 'acme',
      key: 'LOGIN_OTP',
      id: '1107457532145798767',
      ids: { msg91: '65a1b2', kannel: 'K-1' },
      senderId: 'ACMEIN',
      maxLength: 40,
      entityId: '1101.4-5_6',
    }
    const ids = ['--id', '1107457532145798767', '--id', 'msg91=65a1b2', '--id', 'kannel=K-1']
    expect(await template('ACME', 'LOGIN_OTP', ...ids, '--sender', 'ACMEIN', '--max-length', '40')).toEqual(
      registered,
    )
    const changed = { ...registered, ids: { msg91: '65a1b2', kannel: 'K-2' } }
    expect(await template('acme', 'LOGIN_OTP', '--id', 'kannel=K-2')).toEqual(changed)
    const hindi = { ...registered, key: 'LOGIN_OTP:hi', id: '1108', ids: {}, senderId: null, maxLength: null }
    expect(await template('acme', 'LOGIN_OTP', '--lang', 'HI', '--id', '1108')).toEqual(hindi)
    await template('acme', 'LOGIN_OTP', '--lang', 'hi', '--remove')
    expect(await template('acme', 'LOGIN_OTP', '--remove')).toMatchObject({
      id: null,
      ids: {},
      senderId: null,
    })
    const left = JSON.parse(await ok(env, 'brand', 'put', 'acme', '--no-entity'))
    expect(left).toMatchObject({ entityId: null, registrations: {} })
  })
})

describe.concurrent('brand put', () => {
  test('stores language, app hash, logo, color and DLT allow-list, and removes them', async () => {
    const env = await environment()
    const put = async (...args: string[]) => JSON.parse(await ok(env, 'brand', 'put', 'acme', ...args))
    const fresh = {
      lang: 'en',
      androidHash: null,
      logoUrl: null,
      linkUrl: null,
      color: null,
      dltAllowList: [],
    }
    expect(await put('--name', 'Acme')).toMatchObject(fresh)
    const look = [
      '--android-hash',
      'FA+9qCX9VSu',
      '--logo',
      'https://example.com/a.png',
      '--link',
      'https://example.com/code',
      '--color',
      '#0B57D0',
    ]
    const changed = {
      lang: 'pt-BR',
      androidHash: 'FA+9qCX9VSu',
      logoUrl: 'https://example.com/a.png',
      linkUrl: 'https://example.com/code',
      color: '#0b57d0',
      dltAllowList: ['https://acme.example', '18001234567'],
    }
    const allowed = ['--dlt-allow', 'https://acme.example, 1800 123 4567,18001234567']
    expect(await put('--lang', 'PT-br', ...look, ...allowed)).toMatchObject(changed)
    const [listed] = JSON.parse(await ok(env, 'brand', 'list', '--json'))
    expect(listed).toMatchObject({ brandId: 'acme', ...changed })
    expect(listed).not.toHaveProperty('texts')
    const removed = await put(
      '--lang',
      'en',
      '--no-android-hash',
      '--no-logo',
      '--no-link',
      '--no-color',
      '--dlt-allow',
      '',
    )
    expect(removed).toMatchObject(fresh)
  })
})

describe.concurrent('text', () => {
  /** A brand, and a file with each content. */
  async function scene(contents: Readonly<Record<string, string | Uint8Array>>) {
    const env = await environment()
    for (const [name, content] of Object.entries(contents)) await Bun.write(join(folder.path, name), content)
    await ok(env, 'brand', 'put', 'acme', '--name', 'Acme')
    const text = async (...args: string[]) => JSON.parse(await ok(env, 'text', ...args))
    return { env, text }
  }
  const file = (name: string) => ['--file', join(folder.path, name)]

  test('set stores a text as the file has it, list shows it, remove ends it', async () => {
    const { env, text } = await scene({
      code: '\ufeff{{otp}} is your\t{{businessName}} code.\r\n\r\n',
      'code-hi': 'आपका कोड {{otp}} है।',
      mail: '{{otp}}\n',
      'mail.html': '<b>{{otp}}</b>\n',
    })
    expect(await ok(env, 'text', 'list', 'acme', '--json')).toBe('[]\n')
    const english = await text('set', 'ACME', 'LOGIN_OTP', ...file('code'))
    expect(english).toEqual({
      brandId: 'acme',
      templateKey: 'LOGIN_OTP',
      channel: 'SMS',
      lang: 'en',
      version: 1,
      updatedAt: expect.stringMatching(/^20.*Z$/),
      subject: null,
      text: '{{otp}} is your\t{{businessName}} code.\n',
      html: null,
      variables: [],
    })
    const inHindi = ['acme', 'LOGIN_OTP', '--lang', 'HI']
    const hindi = await text('set', ...inHindi, ...file('code-hi'))
    expect(hindi).toMatchObject({ lang: 'hi', version: 1, text: 'आपका कोड {{otp}} है।' })
    const mailParts = [...file('mail'), '--subject', 'Your code', '--html', join(folder.path, 'mail.html')]
    const mail = await text('set', 'acme', 'LOGIN_OTP', '--email', ...mailParts)
    expect(mail).toMatchObject({ channel: 'EMAIL', subject: 'Your code', html: '<b>{{otp}}</b>' })
    expect(await text('list', 'acme', '--json')).toEqual([mail, english, hindi])
    expect(await ok(env, 'text', 'list', 'acme')).toMatch(
      /\nLOGIN_OTP +SMS +hi +1 +20\S+Z +आपका कोड \{\{otp}} है।\n$/,
    )

    // Without a change there is no version.
    expect(await text('set', ...inHindi, ...file('code-hi'))).toEqual(hindi)
    const piped = await otpost(['text', 'set', ...inHindi, '--file', '-'], env, Buffer.from('{{otp}}\n'))
    expect(JSON.parse(piped.stdout)).toMatchObject({ lang: 'hi', version: 2, text: '{{otp}}' })

    expect(await ok(env, 'text', 'remove', ...inHindi)).toBe('Removed the SMS text of LOGIN_OTP in hi.\n')
    expect(await failed(1, env, 'text', 'remove', ...inHindi)).toContain('has no text of LOGIN_OTP in hi')
    const audit = JSON.parse(await ok(env, 'audit', '--json'))
    const [, , ...changes] = audit.map((entry: { action: string; details: object }) => [
      entry.action,
      entry.details,
    ])
    const about = { template: 'LOGIN_OTP', lang: 'hi', channel: 'SMS' }
    expect(changes).toEqual([
      ['text.set', { ...about, version: '1', text: '- → आपका कोड {{otp}} है।' }],
      ['text.set', expect.objectContaining({ channel: 'EMAIL', html: '- → <b>{{otp}}</b>' })],
      ['text.set', { ...about, version: '2', text: 'आपका कोड {{otp}} है। → {{otp}}' }],
      ['text.removed', { ...about, version: '2', text: '{{otp}} → -' }],
    ])
  })

  test('a new template exists from its first text to its last', async () => {
    const { env, text } = await scene({ table: 'Hi {{guest}}\n', 'table-de': 'Hallo {{guest}}, {{at:raw}}' })
    const target = ['acme', 'TABLE_READY']
    const variables = ['--var', 'guest:text:30', '--var', 'at:datetime:40']
    await failed(2, env, 'brand', 'put', 'acme', '--notify', 'TABLE_READY')
    const declared = [
      { name: 'guest', type: 'text', max: 30 },
      { name: 'at', type: 'datetime', max: 40 },
    ]
    expect(await text('set', ...target, ...file('table'), ...variables)).toMatchObject({
      variables: declared,
    })
    const german = ['--lang', 'de', ...file('table-de')]
    expect(await text('set', ...target, ...german)).toMatchObject({ lang: 'de', variables: declared })
    const dropped = await failed(1, env, 'text', 'set', ...target, ...file('table'), '--var', 'guest:text:9')
    expect(dropped).toContain('The variables do not fit the text in de')
    await ok(env, 'brand', 'put', 'acme', '--notify', 'ORDER_PLACED,TABLE_READY')
    await ok(env, 'brand', 'template', 'acme', 'TABLE_READY', '--lang', 'de', '--id', '1107')
    await ok(env, 'text', 'remove', ...target, '--lang', 'de')
    expect(await failed(1, env, 'text', 'remove', ...target)).toContain(
      '`otpost brand put acme --notify ORDER_PLACED`',
    )
    await ok(env, 'brand', 'put', 'acme', '--notify', 'ORDER_PLACED')
    const registered = await failed(1, env, 'text', 'remove', ...target)
    expect(registered).toContain('`otpost brand template acme TABLE_READY --lang de --remove`')
    await ok(env, 'brand', 'template', 'acme', 'TABLE_READY', '--lang', 'de', '--remove')
    await ok(env, 'text', 'remove', ...target)
    expect((await otpost(['text', 'list', 'acme'], env)).stderr).toContain('only the built-in texts')
    // The brand can still be changed.
    await ok(env, 'brand', 'put', 'acme', '--name', 'Acme 2')
  })

  test('preview prints a message with samples, send sends it and is in the audit log', async () => {
    const { env, text } = await scene({
      'code-mr': '{{otp}} हा {{businessName}} कोड आहे.',
      table2: '{{guest}} {{at}}',
    })
    await text('set', 'acme', 'LOGIN_OTP', '--lang', 'mr', ...file('code-mr'))
    const preview = ['text', 'preview', 'acme']
    const code = '123456 हा Acme कोड आहे.'
    expect(await ok(env, ...preview, 'LOGIN_OTP', '--lang', 'mr-IN')).toBe(
      `${code}\n\n1 segment, UCS-2, 23 characters\n`,
    )
    const variables = ['--var', 'guest:text:30', '--var', 'at:datetime:40']
    await text('set', 'acme', 'TABLE_READY', ...file('table2'), ...variables)
    const guest = [...preview, 'TABLE_READY', '--value', 'guest=A=B']
    expect(await ok(env, ...guest)).toStartWith('A=B 21 November 2026, 14:30\n\n1 segment, GSM-7')
    expect(await ok(env, ...preview, 'LOGIN_OTP', '--email')).toMatch(
      /^Subject: Your Acme verification code\n\n[\s\S]*123456/,
    )
    expect(await failed(2, env, ...guest, '--value', 'at')).toContain('must be name=value')
    expect(await failed(1, env, ...guest, '--value', 'a=1')).toContain('It has guest, at.')

    const to = ['test-send', '+91 98765 43210', ...'--brand acme --template LOGIN_OTP --lang mr'.split(' ')]
    const [, requestId = ''] =
      /^Accepted by outbox: the test message to 91\*{8}10\. Request (\S+)\.\n$/.exec(await ok(env, ...to)) ??
      []
    const message = JSON.parse(await ok(env, 'outbox'))
    expect(message).toMatchObject({ to: '919876543210', text: code })
    expect(await ok(env, 'deliveries', '--request', requestId)).toMatch(/ otpost:test +acme +91\*{8}10 /)
    const audit = JSON.parse(await ok(env, 'audit', '--json')).at(-1)
    expect(audit).toMatchObject({
      action: 'message.tested',
      target: 'acme',
      details: { lang: 'mr', request: requestId },
    })
    expect(JSON.stringify(audit)).not.toContain('9876543210')
    await ok(env, 'destination', 'set', 'IN', 'block')
    expect(await failed(1, env, ...to)).toContain('`to`')
  })

  test('a draft is previewed, sent as a test, listed, and published; an earlier version is restored', async () => {
    const { env, text } = await scene({ first: '{{otp}} first', second: '{{otp}} second' })
    const of = ['acme', 'LOGIN_OTP']
    await text('set', ...of, ...file('first'))
    expect(await text('set', ...of, ...file('second'), '--draft')).toMatchObject({
      version: 1,
      variables: [],
    })
    expect(await text('list', 'acme', '--json')).toMatchObject([{ text: '{{otp}} first', version: 1 }])
    expect(await text('list', 'acme', '--drafts', '--json')).toMatchObject([{ text: '{{otp}} second' }])
    expect(await ok(env, 'text', 'preview', ...of)).toStartWith('123456 first')
    expect(await ok(env, 'text', 'preview', ...of, '--draft')).toStartWith('123456 second')
    const test = ['test-send', '+12025550143', ...'--brand acme --template LOGIN_OTP --draft'.split(' ')]
    await ok(env, ...test)
    expect(JSON.parse(await ok(env, 'outbox'))).toMatchObject({ text: '123456 second' })
    expect(await ok(env, 'text', 'publish', ...of)).toBe(
      'Published version 2 of LOGIN_OTP in en. Takes effect immediately.\n',
    )
    expect(await text('list', 'acme', '--drafts', '--json')).toEqual([])
    expect(await failed(1, env, ...test)).toContain('no draft')
    expect(await ok(env, 'text', 'restore', ...of, '1')).toContain(
      'Restored version 1 of LOGIN_OTP in en, as version 3.',
    )
    expect(await text('list', 'acme', '--json')).toMatchObject([{ text: '{{otp}} first', version: 3 }])
  })

  test('set rejects files and options, and stores nothing', async () => {
    const { env } = await scene({ fine: '{{otp}}', latin: Buffer.from([0xe9]), large: 'x'.repeat(100_001) })
    const set = ['text', 'set', 'acme', 'LOGIN_OTP']
    const refusals: readonly (readonly [code: number, word: string, ...args: string[]])[] = [
      [1, 'is not UTF-8', ...set, ...file('latin')],
      [1, 'more than 100000 bytes', ...set, ...file('large')],
      [1, 'cannot be read (ENOENT)', ...set, ...file('missing')],
      [1, 'cannot be read (EISDIR)', ...set, '--file', folder.path],
      [1, 'must not be empty', ...set, '--file', '-'],
      [2, 'Only one of --file and --html', ...set, '--file', '-', '--html', '-', '--email'],
      [1, 'Only an e-mail has', ...set, ...file('fine'), '--subject', 'Your code'],
      [1, 'subject is required', ...set, ...file('fine'), '--email'],
      [1, 'is built in', ...set, ...file('fine'), '--var', 'a:text:9'],
      [1, 'Brand other does not exist', 'text', 'list', 'other'],
      [2, '--file', ...set],
    ]
    for (const [code, word, ...args] of refusals) expect(await failed(code, env, ...args)).toContain(word)
    expect(await ok(env, 'text', 'list', 'acme', '--json')).toBe('[]\n')
  })
})

describe('test-send', () => {
  test('tests each provider that doctor names, through that provider alone', async () => {
    await using stack = new AsyncDisposableStack()
    const smtp = await startSmtp()
    stack.defer(smtp.stop)
    const own = startReceiver()
    stack.defer(own.stop)
    const database = await environment()
    const env = {
      ...database,
      ...own.env,
      SMS_PLAIN: 'discard,webhook',
      SMTP_URL: smtp.url,
      MAIL_FROM: 'Otpost <no-reply@example.com>',
    }
    await ok(env, 'brand', 'put', 'acme', '--name', 'Acme')
    const untested = async () => {
      const findings: readonly Readonly<Record<'message' | 'remedy', string>>[] = JSON.parse(
        (await otpost(['doctor', '--json'], env)).stdout,
      )
      return findings
        .filter(({ message }) => message.includes('never accepted'))
        .map((each) => `${each.message} ${each.remedy}`)
    }
    const send = (options: string) =>
      `has never accepted a message. Send a test message to yourself. Command: \`otpost test-send RECIPIENT ${options}\`.`
    const mailFinding = `Provider smtp ${send('--provider smtp')}`
    expect(await untested()).toEqual([`Provider webhook ${send('--provider webhook')}`, mailFinding])

    const sms = ['test-send', '+1 202 555 0143', '--provider', 'webhook']
    own.answer(() => new Response(null, { status: 403 }))
    const refused = await failed(1, env, ...sms)
    expect(refused).toMatch(
      /The test message to 12\*{7}43 was not accepted \(webhook: HTTP 403\)\. `otpost explain [0-9a-f-]{36}` has/,
    )
    expect(await untested()).toContain(mailFinding)
    own.answer(() => new Response(null, { status: 204 }))
    expect(await ok(env, ...sms)).toMatch(/^Accepted by webhook: the test message to 12\*{7}43\. Request /)
    const code = ['--brand', 'acme', '--template', 'LOGIN_OTP', '--lang', 'de']
    await ok(env, ...sms, ...code)
    // doctor calls without a body.
    const texts = own.received.flatMap(({ body }) => (body ? [[body.brandId, body.text]] : []))
    expect(texts).toEqual([
      ['otpost:test', expect.stringContaining('Test message from otpost.')],
      ['otpost:test', expect.stringContaining('Test message from otpost.')],
      ['acme', expect.stringMatching(/123456.*Acme/)],
    ])
    expect(await untested()).toEqual([mailFinding])

    const mail = ['test-send', 'jane@example.com', '--provider', 'smtp', '--brand', 'acme']
    const [, requestId = ''] =
      /^Accepted by smtp: the test message to j\*{3}@example\.com\. Request (\S+)\.\n$/.exec(
        await ok(env, ...mail),
      ) ?? []
    expect(smtp.received.map(({ mail }) => mail.subject)).toEqual(['Test message from Acme'])
    expect(await untested()).toEqual([])
    expect(await ok(env, 'explain', requestId)).toContain(
      'an operator sent a test message by e-mail to j***@',
    )
    expect(JSON.parse(await ok(env, 'audit', '--json')).at(-1)).toMatchObject({
      action: 'message.tested',
      target: 'smtp',
      details: { brand: 'acme', recipient: 'j***@example.com', request: requestId },
    })
    expect(await failed(2, env, 'test-send', '12', '--provider', 'webhook')).toContain('7 to 15 digits')
    expect(await failed(1, env, ...sms.slice(0, 2), '--provider', 'pigeon')).toContain(
      'has no provider pigeon',
    )
    expect(await failed(2, env, 'test-send')).toContain('recipient')
  })
})

describe.concurrent('the event log', () => {
  let env: Readonly<Record<string, string>>
  const hour = 3_600_000
  let service: TestApp
  let sent: Record<'old' | 'code' | 'mail' | 'several' | 'refused', Answer>

  beforeAll(async () => {
    env = { ...(await environment()), PHONE_DEFAULT_REGION: 'IN' }
    service = await createTestApp({ ...env, SMS_PLAIN: 'webhook,discard', ...receiver.env, PORT: '0' })
    receiver.answer(({ body }) => new Response(null, { status: body.to === '919876543211' ? 400 : 204 }))
    const now = Date.now()
    service.clock.now = now - 30 * hour
    const old = await service.post('/otp/send', { phone: '098765 43210' })
    service.clock.now = now
    const sms = { channel: 'SMS', brandId: 'acme', message: 'hello' }
    sent = {
      old,
      code: await service.post('/otp/send', { phone: '+91 98765 43210' }),
      mail: await service.post('/otp/send', { channel: 'EMAIL', email: 'Jane@Example.com' }),
      several: await service.post('/notify', { ...sms, to: ['9876543211', '9876543212'] }),
      refused: await service.post('/otp/send', { phone: '9876543210' }),
    }
    for (const answer of Object.values(sent)) await service.eventsOf(answer)
  })
  afterAll(() => service.close())

  const idOf = (name: keyof typeof sent): string => sent[name].body.requestId

  test('deliveries lists every attempt, oldest first, in columns', async () => {
    const text = await ok(env, 'deliveries')
    const [head, ...lines] = text.trimEnd().split('\n')
    expect(head).toMatch(
      /^TIME +REQUEST +APP +BRAND +TO +COUNTRY +PROVIDER +TEMPLATE +SEGMENTS +STATUS +WHY +MS$/,
    )
    const ids = ['old', 'code', 'mail', 'several', 'several', 'several'] as const
    expect(lines.map((line) => line.split(/ {2,}/)[1])).toEqual(ids.map(idOf))
    expect(lines[0]?.split(/ {2,}/)).toEqual([
      new Date(service.clock.now - 30 * hour).toISOString(),
      idOf('old'),
      'shop',
      'acme',
      '91********10',
      'IN',
      'webhook/plain',
      'LOGIN_OTP',
      '1 GSM-7',
      'accepted',
      '-',
      expect.stringMatching(/^\d+$/),
    ])
    expect(text).toMatch(/ 91\*{8}11 +IN +webhook\/plain +- +1 GSM-7 +rejected +content: HTTP 400 +\d/)
    expect(text).toMatch(/ j\*\*\*@example\.com +- +outbox +LOGIN_OTP +- +accepted +- +\d/)
  })

  test('deliveries selects by request, recipient or time, and limits the number', async () => {
    const since = new Date(service.clock.now - 1000).toISOString()
    const queries: readonly (readonly [readonly (keyof typeof sent)[], ...string[]])[] = [
      [['code'], '--request', ` ${idOf('code').toUpperCase()} `],
      [['old', 'code'], '--to', '098765 43210', '--since', '1830m'],
      [['mail'], '--to', 'jane@EXAMPLE.com', '--since', since],
      [['several', 'several', 'several'], '--limit', '3', '--since', '2d'],
      [['several'], '--status', 'rejected', 'not-delivered', '--error', 'content'],
      [['old', 'code'], '--template', 'LOGIN_OTP', '--country', 'in', '--channel', 'SMS', '--app', 'shop'],
      [['mail'], '--provider', 'outbox', '--brand', 'acme'],
      [['old'], '--until', '1d'],
      [['mail'], '--lang', 'EN', '--channel', 'EMAIL'],
      [[], '--lang', 'hi'],
    ]
    const answers = await Promise.all(queries.map(([, ...args]) => ok(env, 'deliveries', '--json', ...args)))
    const found = answers.map((text) => JSON.parse(text).map((row: { requestId: string }) => row.requestId))
    expect(found).toEqual(queries.map(([names]) => names.map(idOf)))
    expect(JSON.parse(answers[0] ?? '')).toEqual([
      {
        at: new Date(service.clock.now).toISOString(),
        requestId: idOf('code'),
        attempt: 1,
        app: 'shop',
        brand: 'acme',
        channel: 'SMS',
        country: 'IN',
        route: 'plain',
        provider: 'webhook',
        template: 'LOGIN_OTP',
        lang: 'en',
        recipient: '91********10',
        position: null,
        segments: 1,
        encoding: 'GSM-7',
        outcome: 'accepted',
        errorClass: null,
        reason: null,
        providerMessageId: expect.stringMatching(/^[0-9a-f-]{36}$/),
        durationMs: expect.any(Number),
        status: 'accepted',
        report: null,
      },
    ])
  })

  test('wrong values are rejected with the allowed ones', async () => {
    const refusals: readonly (readonly [code: number, word: string, ...args: string[]])[] = [
      [2, '--to', 'deliveries', '--to', 'nobody'],
      [2, '--since', 'deliveries', '--since', '5'],
      [2, '--limit', 'deliveries', '--limit', '0'],
      [2, '--until', 'deliveries', '--until', '5'],
      [2, '--country', 'deliveries', '--country', 'zz'],
      [2, '--country', 'requests', '--country', 'GBR'],
      [2, 'temporary-failure', 'deliveries', '--status', 'lost'],
      [1, 'DELIVERY_LOG_DAYS', 'explain', '019b796d-d600-7256-a391-52604e6fc76b'],
    ]
    const texts = await Promise.all(refusals.map(([code, , ...args]) => failed(code, env, ...args)))
    for (const [index, text] of texts.entries()) expect(text).toContain(refusals[index]?.[1] ?? '')
  })

  test('explain prints the trace of a request, with its real times and ids', async () => {
    const names = ['several', 'refused'] as const
    const texts = await Promise.all(names.map((name) => ok(env, 'explain', idOf(name))))
    const time = `${new Date(service.clock.now).toISOString().slice(0, 19).replace('T', ' ')} UTC`
    for (const [index, name] of names.entries()) {
      expect(texts[index]).toStartWith(`Request ${idOf(name)}\nOn ${time} app shop requested `)
    }
    const [several, refused] = texts
    expect(several).toContain('a notification by SMS to 2 recipients, brand acme (POST /notify).')
    expect(several).toMatch(/webhook on the plain route to 91\*{8}11 .*recipient 1\): rejected .*HTTP 400/)
    expect(several).toMatch(
      /webhook on the plain route to 91\*{8}12 .*recipient 2\): accepted .*, id [0-9a-f-]{36}/,
    )
    expect(refused).toContain('REJECTED  SMS cooldown of this brand and phone: active until ')
  })

  test('explain --json has the whole trace', async () => {
    const told = JSON.parse(await ok(env, 'explain', '--json', idOf('mail')))
    expect(told).toMatchObject({
      requestId: idOf('mail'),
      operation: 'send',
      channel: 'EMAIL',
      recipient: 'j***@example.com',
      limits: [{ limit: 'recipient-hour', used: 1 }, { limit: 'failures' }, { limit: 'app-minute' }],
      deliveries: [{ requestId: idOf('mail'), provider: 'outbox', status: 'accepted' }],
    })
  })

  test('callbacks prints the URLs that an operator enters at each provider, also under its earlier name', async () => {
    const providers = { SMS_PLAIN: 'webhook,kannel,outbox', ...receiver.env }
    const kannel = {
      KANNEL_URL: 'http://127.0.0.1:1',
      KANNEL_USERNAME: 'u',
      KANNEL_PASSWORD: 'p',
      KANNEL_FROM: 'ACME',
    }
    const at = { PUBLIC_URL: 'https://otp.example/' }
    const [text, byFormerName, complaint] = await Promise.all([
      ok({ ...env, ...providers, ...kannel, ...at }, 'callbacks'),
      ok({ ...env, ...providers, ...kannel, ...at }, 'receipts'),
      failed(1, { ...env, ...providers, ...kannel }, 'callbacks'),
    ])
    const lines = text.trimEnd().split('\n')
    expect(lines).toEqual([
      expect.stringMatching(/^webhook: https:\/\/otp\.example\/callbacks\/webhook\/[\w-]{16,}$/),
      expect.stringMatching(/^kannel: /),
      expect.stringMatching(/^outbox: /),
    ])
    expect(byFormerName).toBe(text)
    expect(complaint).toContain('PUBLIC_URL')
    const reached = await createTestApp({ ...env, ...providers, ...kannel, ...at })
    const path = new URL(lines[0]?.split(' ')[1] ?? '').pathname
    const answers = [await reached.request('POST', path), await reached.request('POST', `${path}A`)]
    expect(answers.map(({ status }) => status)).toEqual([403, 404])
    await reached.close()
  })
})

test('requests lists every call to a number with its result, as the console does', async () => {
  const env = { ...(await environment()), GUARD: 'deny', SMS_COUNTRIES: 'US,FR' }
  const service = await createTestApp({ ...env })
  const prices = join(folder.path, 'prices.csv')
  await Bun.write(prices, 'prefix,currency,price\n1,USD,0.01\n33,USD,0.01\n')
  await ok(env, 'price', 'import', prices)
  await ok(env, 'budget', 'set', 'country:FR', '--per', 'day', '--amount', '0.005')
  await ok(env, 'guard', 'block', '+1646555')
  service.clock.now = Date.now()
  const [phone, email] = ['12025550143', 'jane@example.com']
  const answers = [
    await service.post('/otp/send', { phone }),
    await service.post('/otp/verify', { phone, otp: otherThan(await service.lastCode(phone)) }),
    await service.post('/otp/resend', { phone }),
    await service.post('/otp/verify', { phone, otp: await service.lastCode(phone) }),
    await service.post('/otp/send', { phone: '33612345678' }),
    await service.post('/otp/send', { phone: '447400123456' }),
    await service.post('/otp/send', { phone: '16465550143' }),
    await service.post('/otp/send', { channel: 'EMAIL', email }),
    await service.post('/notify', { channel: 'SMS', brandId: 'acme', to: [phone], message: '' }),
    await service.post('/notify', {
      channel: 'SMS',
      brandId: 'acme',
      to: [phone],
      message: 'Hi',
      async: true,
    }),
  ]
  for (const answer of answers) await service.eventsOf(answer)
  interface Row {
    readonly requestId: string
    readonly recipientHash: string
    readonly result: string
    readonly why: string
  }
  const list = async (...args: string[]): Promise<Row[]> =>
    JSON.parse(await ok(env, 'requests', '--json', ...args))
  const all = await list()
  expect(all.map(({ requestId }) => requestId)).toEqual(answers.map(({ body }) => body.requestId))
  expect(all.map(({ result, why }) => [result, why])).toEqual([
    ['sent', ''],
    ['mismatch', 'the code was wrong'],
    ['rate-limited', 'SMS cooldown of this brand and phone'],
    ['verified', ''],
    ['budget exhausted', 'budget country:FR'],
    ['blocked destination', expect.stringContaining('United Kingdom')],
    ['guard denied', 'the number range is blocked'],
    ['sent', ''],
    ['validation_error', expect.stringContaining('`message`')],
    ['queued', ''],
  ])

  const visitor = await signedIn(service)
  const subject = all[0]?.recipientHash
  const queries: readonly (readonly [rows: number, query: string, ...args: string[]])[] = [
    [10, ''],
    [5, `recipient=${subject}`, '--to', '+1 202 555 0143'],
    [2, 'result=limited&country=US', '--result', 'limited', '--country', 'us'],
    [3, 'result=limited', '--result', 'limited'],
    [1, 'result=destination', '--result', 'destination'],
    [2, 'call=verify&app=shop', '--call', 'verify', '--app', 'shop'],
    [1, 'channel=EMAIL&provider=outbox', '--channel', 'EMAIL', '--provider', 'outbox'],
    [0, 'brand=other', '--brand', 'other'],
    [0, 'until=2020-01-01T00:00Z', '--until', '2020-01-01T00:00Z'],
  ]
  for (const [count, query, ...args] of queries) {
    const { html: csv } = await visitor.get(`/admin/calls.csv?${query}`)
    const rows = await list(...args)
    const ofConsole = csv.trimEnd().split('\r\n').slice(1).reverse()
    expect([query, rows.length, ofConsole.length]).toEqual([query, count, count])
    for (const [index, { requestId, result, why }] of rows.entries()) {
      expect(ofConsole[index]).toContain(`,${requestId},`)
      expect(ofConsole[index]?.replaceAll('"', '')).toContain(`,${result},${why},`)
    }
  }
  const limited = await otpost(['deliveries', '--to', '33612345678'], env)
  expect(limited.stderr).toContain('`otpost requests --to` lists all requests')
  expect(await ok(env, 'requests', '--to', '33612345678')).toMatch(
    / 33\*{7}78 +FR +send +429 +budget exhausted +budget country:FR +\d+\n$/,
  )
  expect(await failed(2, env, 'requests', '--result', 'lost')).toContain('wrong-code')
  await service.close()
})

test('doctor reports an exhausted budget, and a provider whose attempts all fail', async () => {
  const env = { ...(await environment()), SMS_PLAIN: 'webhook,outbox', ...receiver.env, PORT: '0' }
  const service = await createTestApp(env)
  receiver.answer(() => new Response(null, { status: 503 }))
  service.clock.now = Date.now()
  const findings = async (): Promise<string[]> =>
    JSON.parse((await otpost(['doctor', '--json'], env)).stdout)
      .filter(
        ({ what, level }: Record<string, string>) =>
          what === 'budgets' || (what === 'providers' && level === 'fail'),
      )
      .map(({ level, message }: Record<string, string>) => `${level}: ${message}`)
  for (let index = 0; index < 5; index++) {
    const to = [`1202555014${index}`]
    await service.eventsOf(
      await service.post('/notify', { channel: 'SMS', brandId: 'acme', to, message: 'Hi' }),
    )
  }
  await ok(env, 'budget', 'set', 'server', '--per', 'day', '--amount', '3')
  await ok(env, 'budget', 'set', 'country:FR', '--per', 'day', '--amount', '3')
  const dead =
    /^fail: Provider webhook fails: the latest 5 attempts failed or have an unknown result\. 5 of 5 /
  expect(await findings()).toEqual([expect.stringMatching(dead), 'ok: country:FR, server.'])
  // Latvia costs 2 units. Less than that is left, which only a rejected message shows.
  const answers = [
    await service.post('/otp/send', { phone: '37120000001' }),
    await service.post('/otp/send', { phone: '37120000002' }),
  ]
  expect(answers.map(({ status }) => status)).toEqual([200, 429])
  for (const answer of answers) await service.eventsOf(answer)
  await service.app.alerts.idle()
  service.advance(1)
  service.app.alerts.tick()
  await service.app.alerts.idle()
  expect(await findings()).toEqual([
    expect.stringMatching(/^fail: Provider webhook fails: the latest \d attempts/),
    'fail: Budget server is exhausted: 2 units of 3 units per day spent.',
    'ok: country:FR.',
  ])
  await ok(env, 'budget', 'set', 'server', '--per', 'day', '--amount', '30')
  expect((await findings()).at(-1)).toBe('ok: country:FR, server.')
  await service.close()
})

test('a server that is killed during a delivery leaves an unfinished request trace', async () => {
  const env = await environment()
  const context = await openContext(readConfig(env))
  const arrived = Promise.withResolvers<string>()
  const hanging = startReceiver()
  const server = await startServer({
    ...env,
    SMS_PLAIN: 'webhook',
    ...hanging.env,
    PROVIDER_TIMEOUT_MS: '60000',
  })
  await storeBrand(context, 'acme', () => acme)
  const answered = await server.post('/otp/send', { phone: '12025550144' })
  hanging.answer(({ body }) => {
    arrived.resolve(body.requestId)
    return new Promise<Response>(() => {})
  })
  const asked = server.post('/otp/send', { phone: '12025550143' }).catch(() => 'no answer')
  const requestId = await arrived.promise
  // Records of a delivery under way are on the disk a moment later, with all earlier records.
  while (!(await context.eventLog.trace(requestId))) await new Promise((resolve) => setImmediate(resolve))
  await server.stop('SIGKILL')
  expect(await asked).toBe('no answer')
  await hanging.stop()
  const before = await context.eventLog.trace(answered.body.requestId)
  expect(before?.end).toMatchObject({ status: 200, error: null })
  expect(await context.eventLog.deliveries({ limit: 9 })).toMatchObject([{ outcome: 'accepted' }])
  await context.close()
  const text = await ok(env, 'explain', requestId)
  expect(text).toStartWith(`Request ${requestId}\n`)
  expect(text).toContain('a code by SMS to 12*******43 (US), brand acme (POST /otp/send).')
  expect(text).toContain('It passed the checks and has no answer')
  expect(text).toContain('SMS codes per minute for this phone: 1 of 3')
})

test('whatif prints JSON with these keys, and rejects other settings', async () => {
  const env = await environment()
  const none = { amount: 0, currency: 'units' }
  const zero = { requests: 0, denied: 0, deniedVerified: 0, saved: none, byCountry: [], byApp: [] }
  expect(JSON.parse(await ok(env, 'whatif', '--guard', 'deny', '--countries', 'gb', '--json'))).toEqual(zero)
  expect(await ok(env, 'whatif', '--since', '1h')).toStartWith('The event log has no codes from ')
  expect(await failed(2, env, 'whatif', '--guard', 'maybe')).toContain(
    'Allowed choices are off, record, deny.',
  )
  expect(await failed(2, env, 'whatif', '--countries', 'GB,XX')).toContain(
    '--countries must be country codes',
  )
  expect(await failed(2, env, 'whatif', '--phone-hour', '0')).toContain('from 1 to 999999')
  expect(await failed(2, env, 'whatif', '--since', 'monday')).toContain('--since must be a duration')
  const file = join(folder.path, 'prices.csv')
  await Bun.write(file, 'prefix,currency,price\n371,INR,free\n')
  expect(await failed(1, env, 'whatif', '--prices', file)).toContain('Line 2: `price` must be a number')
})
