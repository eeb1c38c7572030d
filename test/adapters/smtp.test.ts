import { afterAll, describe, expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { toAsciiDomain } from '../../src/adapters/email/domain.ts'
import { createSmtpMailer } from '../../src/adapters/email/smtp.ts'
import { smtpSettings } from '../../src/adapters/email/smtp-settings.ts'
import { Settings } from '../../src/config/settings.ts'
import { email } from '../../src/domain/ground/contact.ts'
import type { Mail, Mailer, Outcome } from '../../src/domain/ground/providers.ts'
import { temporaryFolder } from '../support/app.ts'
import {
  type Refusal,
  type Step,
  selfSigned,
  startBrittleServer,
  startSilentServer,
  startSmtp,
} from '../support/smtp.ts'

const folder = temporaryFolder()
afterAll(() => folder.remove())

const caFile = join(folder.path, 'ca.pem')
writeFileSync(caFile, selfSigned.cert)
const keyFile = join(folder.path, 'dkim.pem')
const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 1024 })
writeFileSync(keyFile, privateKey.export({ type: 'pkcs8', format: 'pem' }))
const signing = { DKIM_SELECTOR: 's1', DKIM_KEY_FILE: keyFile }

const mail: Mail = {
  requestId: 'd2a0b3f6-70ff-4a9c-9c05-1d1f5c6c8e77',
  brandSlug: 'acme',
  brandName: 'Acme',
  to: 'jane@example.com',
  position: null,
  recipientHash: 'subject-of-jane',
  template: null,
  subject: 'Your order',
  html: '<p>It is on its way.</p>',
  text: 'It is on its way.',
}

// smtp-server waits 100 ms before its greeting, so the independent tests run concurrently.

/** Longer than any response on this machine takes; reaching it is a test failure. */
const patienceMs = 10_000

/** A time-out that the test waits for, long enough for the steps before it on a busy machine. */
const passingMs = 3000

/** The mailer's message id of the first attempt. */
const providerMessageId = `${mail.requestId}.1@shop.example`
const accepted: Outcome = { kind: 'accepted', providerMessageId }

type Server = Awaited<ReturnType<typeof startSmtp>>

/** A mailer connected to a real server; both are closed at the end of the scope. */
async function scene(
  behaviour: Parameters<typeof startSmtp>[0] = {},
  urlOf: (server: Server) => string = ({ url }) => url,
  env: Readonly<Record<string, string>> = {},
) {
  const server = await startSmtp(behaviour)
  const mailer = mailerTo(urlOf(server), env)
  return {
    server,
    send: (fields: Partial<Mail> = {}, attempt = 1) =>
      mailer.send({ ...mail, ...fields }, attempt, patienceMs),
    async [Symbol.asyncDispose]() {
      mailer.close()
      await server.stop()
    },
  }
}

/** The mailer of an environment with this SMTP_URL. */
function mailerTo(
  url: string,
  env: Readonly<Record<string, string>> = {},
  stallMs = patienceMs,
): Mailer & { close(): void } {
  const settings = new Settings({ SMTP_URL: url, MAIL_FROM: 'Codes <codes@shop.example>', ...env })
  const smtp = settings.checked(smtpSettings(settings))
  if (!smtp) throw new Error('there is no SMTP_URL')
  return createSmtpMailer(smtp, stallMs)
}

describe.concurrent('a mail', () => {
  test("arrives once, with the brand's name and the configured sender, to its one recipient", async () => {
    await using post = await scene()
    expect(await post.send()).toEqual(accepted)
    expect(post.server.received).toHaveLength(1)
    const [received] = post.server.received
    expect(received?.from).toBe('codes@shop.example')
    expect(received?.to).toEqual(['jane@example.com'])
    expect(received?.mail.from).toEqual({ name: 'Acme', address: 'codes@shop.example' })
    expect(received?.mail.to).toEqual([{ name: '', address: 'jane@example.com' }])
    expect(received?.mail.cc).toBeUndefined()
    expect(received?.mail.bcc).toBeUndefined()
    expect(received?.mail.subject).toBe('Your order')
  })

  test('has the name of MAIL_FROM if it has no brand', async () => {
    await using post = await scene()
    await post.send({ brandName: null, brandSlug: null })
    expect(post.server.received[0]?.mail.from).toEqual({ name: 'Codes', address: 'codes@shop.example' })
  })

  test("has a Message-ID of the sender's domain, the request and the attempt, which is the provider message id", async () => {
    await using post = await scene()
    const providerMessageIds = [`${mail.requestId}.1@shop.example`, `${mail.requestId}.2@shop.example`]
    expect(await post.send({}, 1)).toEqual({
      kind: 'accepted',
      providerMessageId: providerMessageIds[0] ?? '',
    })
    expect(await post.send({}, 2)).toEqual({
      kind: 'accepted',
      providerMessageId: providerMessageIds[1] ?? '',
    })
    const received = post.server.received.map(({ mail }) => mail)
    expect(received.map(({ messageId }) => messageId)).toEqual(providerMessageIds.map((id) => `<${id}>`))
    const requestIds = received[0]?.headers.filter(({ key }) => key === 'x-request-id')
    expect(requestIds?.map(({ value }) => value)).toEqual([mail.requestId])
  })

  test("has an ASCII Message-ID even if the sender's domain is not ASCII", async () => {
    await using post = await scene({}, ({ url }) => url, { MAIL_FROM: 'codes@bücher.example' })
    const id = `${mail.requestId}.1@xn--bcher-kva.example`
    expect(await post.send()).toEqual({ kind: 'accepted', providerMessageId: id })
    expect(post.server.received[0]?.mail.messageId).toBe(`<${id}>`)
  })

  test('is not DKIM-signed by default', async () => {
    await using post = await scene()
    await post.send()
    expect(post.server.received[0]?.raw).not.toMatch(/^DKIM-Signature:/im)
  })

  test("is DKIM-signed for the sender's domain if a key is set", async () => {
    await using post = await scene({}, ({ url }) => url, signing)
    expect(await post.send()).toEqual(accepted)
    const [, signature = ''] =
      /^DKIM-Signature:((?:.*\r\n[ \t])*.*)\r\n/im.exec(post.server.received[0]?.raw ?? '') ?? []
    const tags = Object.fromEntries(signature.split(';').map((tag) => tag.replace(/\s/g, '').split(/=(.*)/s)))
    expect(tags).toMatchObject({ a: 'rsa-sha256', d: 'shop.example', s: 's1' })
    for (const field of ['from', 'to', 'subject', 'date', 'message-id']) {
      expect(tags.h.split(':')).toContain(field)
    }
  })

  test('keeps the given text part', async () => {
    await using post = await scene()
    await post.send({ text: 'Words of its own.' })
    expect(post.server.received[0]?.mail.text?.trim()).toBe('Words of its own.')
  })

  test('keeps text of any script and length unchanged', async () => {
    await using post = await scene()
    const subject = 'Ihre Bestellung über 12 €, заказ, 注文 🎁'
    const html = `<p>${'注文ありがとう 🎁 '.repeat(2000)}</p>`
    await post.send({ subject, html, brandName: 'Müller & Söhne 🎁' })
    const received = post.server.received[0]?.mail
    expect(received?.subject).toBe(subject)
    expect(received?.html?.trim()).toBe(html)
    expect(received?.from?.name).toBe('Müller & Söhne 🎁')
  })

  test('of lines with dots and SMTP commands is transferred completely', async () => {
    await using post = await scene()
    const text = 'one\n.\nQUIT\n..\nMAIL FROM:<evil@evil.example>\n.'
    await post.send({ text })
    expect(post.server.received).toHaveLength(1)
    expect(post.server.received[0]?.mail.text?.trim()).toBe(text)
  })
})

describe.concurrent('the recipient', () => {
  test.each([
    "o'brien+tag@example.com",
    "!#$%&'*/=?^_`{|}~-@example.com",
    '=?utf-8?q?a=2cb=40c?=@example.com',
    'first.last@sub.domain.example.com',
    'jürgen@example.com',
  ])('%s is the only e-mail address in RCPT TO', async (address) => {
    // In the domain's normalized form, as every recipient of a caller is.
    const to = email(address, toAsciiDomain)?.to
    expect(to).toBe(address)
    await using post = await scene()
    expect(await post.send({ to: address })).toEqual(accepted)
    expect(post.server.recipients).toEqual([address])
  })

  test('with an internationalized domain name gets the mail', async () => {
    await using post = await scene()
    const to = email('Jane@bücher.example', toAsciiDomain)?.to ?? ''
    expect(await post.send({ to })).toEqual(accepted)
    expect(post.server.recipients).toHaveLength(1)
    expect(['jane@bücher.example', 'jane@xn--bcher-kva.example']).toContain(post.server.recipients[0] ?? '')
  })

  // The domain rejects all of these; the mailer must also keep one recipient as one.
  test.each([
    ['a list', 'jane@example.com, evil@evil.example'],
    ['a list with semicolons', 'jane@example.com; evil@evil.example'],
    ['a group', 'friends: jane@example.com, evil@evil.example;'],
    ['a name and an e-mail address', 'jane@example.com <evil@evil.example>'],
    ['an e-mail address in brackets before another', '<evil@evil.example>jane@example.com'],
    ['a quoted comma', '"jane, evil"@example.com'],
    ['a second command', 'jane@example.com>\r\nRCPT TO:<evil@evil.example'],
    ['a comment', 'jane@example.com (evil@evil.example)'],
  ])('is sent unchanged as one recipient: %s', async (_, to) => {
    await using post = await scene()
    await post.send({ to })
    expect(post.server.recipients.filter((recipient) => recipient !== to)).toEqual([])
  })
})

describe.concurrent('input of a caller', () => {
  test.each<[string, Partial<Mail>]>([
    ['a brand name with line breaks', { brandName: 'Acme\r\nBcc: evil@evil.example' }],
    ['a brand name with a bare line feed', { brandName: 'Acme\nBcc: evil@evil.example' }],
    ['a brand name with quotes, commas and an e-mail address', { brandName: '"Acme", <evil@evil.example>,' }],
    ['a brand name that is an e-mail address', { brandName: 'evil@evil.example' }],
    ['a subject with line breaks', { subject: 'Hello\r\nBcc: evil@evil.example\r\n\r\n<b>body</b>' }],
    ['a subject with a bare carriage return', { subject: 'Hello\rBcc: evil@evil.example' }],
    ['a subject with other line separators', { subject: 'Hello\u0085\u2028Bcc: evil@evil.example' }],
    ['a subject of 255 characters without a space', { subject: 'ä'.repeat(255) }],
  ])('adds no header and no recipient: %s', async (_, fields) => {
    await using post = await scene()
    expect(await post.send(fields)).toEqual(accepted)
    const [received] = post.server.received
    expect(post.server.recipients).toEqual(['jane@example.com'])
    const headers = received?.mail.headers.map(({ key }) => key).sort()
    expect(headers).toEqual([
      'content-type',
      'date',
      'from',
      'message-id',
      'mime-version',
      'subject',
      'to',
      'x-request-id',
    ])
    expect(received?.mail.from?.address).toBe('codes@shop.example')
    expect(received?.mail.html?.trim()).toBe(mail.html)
  })
})

describe.concurrent('an SMTP error', () => {
  const text = 'jane@example.com is unknown here'
  test.each<[string, Refusal, Outcome]>([
    [
      'that is permanent at RCPT rejects the recipient',
      { at: 'RCPT', code: 550, message: text },
      { kind: 'rejected', scope: 'recipient', reason: 'SMTP 550' },
    ],
    [
      'that is temporary at RCPT is a temporary failure',
      { at: 'RCPT', code: 450, message: text },
      { kind: 'retryable', reason: 'SMTP 450' },
    ],
    [
      'that is permanent at DATA rejects the content',
      { at: 'DATA', code: 554, message: text },
      { kind: 'rejected', scope: 'content', reason: 'SMTP 554' },
    ],
    [
      'that is temporary at DATA is a temporary failure',
      { at: 'DATA', code: 451, message: text },
      { kind: 'retryable', reason: 'SMTP 451' },
    ],
  ])('%s, and its text is not repeated', async (_, refusal, outcome) => {
    await using post = await scene()
    post.server.refuse(refusal)
    expect(await post.send()).toEqual(outcome)
    expect(post.server.received).toHaveLength(0)
  })

  test('for one mail does not affect the next', async () => {
    await using post = await scene()
    post.server.refuse({ at: 'RCPT', code: 550, message: text })
    expect((await post.send()).kind).toBe('rejected')
    post.server.refuse(undefined)
    expect(await post.send()).toEqual(accepted)
  })
})

describe.concurrent('authentication', () => {
  const users = { postman: 'p@ss word' }

  test('uses the user and the password of the URL', async () => {
    await using post = await scene({ users }, ({ port }) => `smtp://postman:p%40ss%20word@127.0.0.1:${port}`)
    expect(await post.send()).toEqual(accepted)
    expect(post.server.received[0]?.user).toBe('postman')
  })

  test('with a wrong password is an account error, and the message does not repeat it', async () => {
    await using post = await scene({ users }, ({ port }) => `smtp://postman:canary@127.0.0.1:${port}`)
    expect(await post.send()).toEqual({ kind: 'rejected', scope: 'account', reason: 'SMTP 535' })
    expect(post.server.recipients).toEqual([])
  })

  test('with a temporary failure is a temporary failure of the server', async () => {
    await using post = await scene({ users }, ({ port }) => `smtp://postman:p%40ss%20word@127.0.0.1:${port}`)
    post.server.refuse({ at: 'AUTH', code: 454, message: 'later' })
    expect(await post.send()).toEqual({ kind: 'retryable', reason: 'SMTP 454' })
  })
})

describe.concurrent('encryption', () => {
  test('is not required on loopback', async () => {
    await using post = await scene()
    expect(await post.send()).toEqual(accepted)
    expect(post.server.received[0]?.secure).toBe(false)
  })

  test('with an untrusted certificate fails before any data of the mail is sent', async () => {
    await using post = await scene({ startTls: true })
    expect(await post.send()).toMatchObject({ kind: 'rejected', scope: 'account' })
    expect(post.server.recipients).toEqual([])
  })

  test('accepts that certificate if the operator trusts it', async () => {
    await using post = await scene({ startTls: true }, ({ url }) => url, { SMTP_CA_FILE: caFile })
    expect(await post.send()).toEqual(accepted)
    expect(post.server.received[0]?.secure).toBe(true)
  })

  test('with a certificate for another name fails', async () => {
    await using post = await scene({ startTls: true }, ({ url }) => `${url}?tls.servername=mail.example`, {
      SMTP_CA_FILE: caFile,
    })
    expect(await post.send()).toEqual({
      kind: 'rejected',
      scope: 'account',
      reason: 'ERR_TLS_CERT_ALTNAME_INVALID',
    })
    expect(post.server.recipients).toEqual([])
  })

  test('can be required on loopback', async () => {
    await using post = await scene({}, ({ url }) => `${url}?requireTLS=true`)
    expect(await post.send()).toMatchObject({ kind: 'rejected', scope: 'account' })
    expect(post.server.recipients).toEqual([])
  })

  // 0.0.0.0 reaches this machine, but is not a loopback name.
  test('is required for every other host', async () => {
    await using post = await scene({}, ({ port }) => `smtp://0.0.0.0:${port}`)
    expect(await post.send()).toMatchObject({ kind: 'rejected', scope: 'account' })
    expect(post.server.recipients).toEqual([])
  })

  test.each(['ignoreTLS=true', 'requireTLS=false'])(
    "is not required for another host if the operator's URL says so: %s",
    async (option) => {
      await using post = await scene({}, ({ port }) => `smtp://0.0.0.0:${port}?${option}`)
      expect(await post.send()).toEqual(accepted)
    },
  )
})

/** The outcomes of one mail, or of several in sequence, with a server that fails at a step. */
async function sendTo(
  breakage: Parameters<typeof startBrittleServer>[0],
  { mails = 1, timeoutMs = patienceMs, env = {} as Readonly<Record<string, string>> } = {},
) {
  const server = startBrittleServer(breakage)
  const mailer = mailerTo(breakage.at === 'STARTTLS' ? `${server.url}?requireTLS=true` : server.url, env)
  const outcomes: Outcome[] = []
  for (let sent = 0; sent < mails; sent++) outcomes.push(await mailer.send(mail, 1, timeoutMs))
  mailer.close()
  server.stop()
  return { outcomes, contents: server.contents, connections: server.connections }
}

const beforeContent = ['greeting', 'EHLO', 'STARTTLS', 'MAIL', 'RCPT'] as const satisfies readonly Step[]

describe.concurrent('a connection that breaks off', () => {
  describe.each([
    ['of an unsigned mail', {}],
    ['of a signed mail', signing],
  ])('%s', (_, env) => {
    test.each(beforeContent)('at %s sends no mail', async (at) => {
      const { outcomes, contents } = await sendTo({ at, by: 'drop' }, { env })
      expect(outcomes).toEqual([{ kind: 'retryable', reason: 'ECONNECTION' }])
      expect(contents).toEqual([])
    })

    test('after the final dot leaves the outcome unknown, and the mail is not sent again', async () => {
      const { outcomes, contents } = await sendTo({ at: 'content', by: 'drop' }, { env })
      expect(outcomes).toEqual([{ kind: 'unknown', reason: 'ECONNECTION', providerMessageId }])
      expect(contents).toHaveLength(1)
    })
  })

  test.each(['MAIL', 'RCPT', 'DATA'] as const)('at %s with pipelining sends no mail', async (at) => {
    const { outcomes, contents } = await sendTo({ at, by: 'drop', pipelining: true })
    expect(outcomes).toEqual([{ kind: 'retryable', reason: 'ECONNECTION' }])
    expect(contents).toEqual([])
  })

  test.each([false, true])(
    'while idle is replaced for the next mail (pipelining: %p)',
    async (pipelining) => {
      for (const by of ['drop', '421 too many mails']) {
        const sent = await sendTo({ at: 'MAIL', by, after: 1, pipelining }, { mails: 3 })
        expect(sent.outcomes).toEqual([accepted, accepted, accepted])
        expect(sent.contents).toHaveLength(3)
        expect(sent.connections).toBe(3)
      }
    },
  )

  test('while idle is replaced only once if the server accepts no more mail', async () => {
    const sent = await sendTo({ at: 'MAIL', by: 'drop', after: 1, only: 1 }, { mails: 2 })
    expect(sent.outcomes).toEqual([accepted, { kind: 'retryable', reason: 'ECONNECTION' }])
    expect(sent.connections).toBe(2)
  })

  test('by a reset has the same outcomes by step', async () => {
    const before = await sendTo({ at: 'RCPT', by: 'reset' })
    expect(before.outcomes).toMatchObject([{ kind: 'retryable' }])
    const after = await sendTo({ at: 'content', by: 'reset' })
    expect(after.outcomes).toMatchObject([{ kind: 'unknown', providerMessageId }])
    expect(after.contents).toHaveLength(1)
  })

  test('after the final dot of a later mail leaves that one unknown, and it is not sent again', async () => {
    const { outcomes, contents } = await sendTo({ at: 'content', by: 'drop', after: 1 }, { mails: 2 })
    expect(outcomes).toEqual([accepted, { kind: 'unknown', reason: 'ECONNECTION', providerMessageId }])
    expect(contents).toHaveLength(2)
  })
})

describe.concurrent('a reply', () => {
  const content = { kind: 'rejected', scope: 'content' } as const
  const account = { kind: 'rejected', scope: 'account' } as const
  const recipient = { kind: 'rejected', scope: 'recipient' } as const
  const retryable = { kind: 'retryable' } as const
  test.each<[number, Step, object]>([
    [421, 'greeting', retryable],
    [450, 'greeting', retryable],
    [554, 'greeting', account],
    [421, 'EHLO', retryable],
    [454, 'STARTTLS', retryable],
    [502, 'STARTTLS', account],
    [421, 'MAIL', retryable],
    [451, 'MAIL', retryable],
    [452, 'MAIL', retryable],
    [503, 'MAIL', retryable],
    [530, 'MAIL', account],
    [535, 'MAIL', account],
    [550, 'MAIL', content],
    [552, 'MAIL', content],
    [553, 'MAIL', content],
    [421, 'RCPT', retryable],
    [450, 'RCPT', retryable],
    [451, 'RCPT', retryable],
    [452, 'RCPT', retryable],
    [530, 'RCPT', account],
    [550, 'RCPT', recipient],
    [551, 'RCPT', recipient],
    [552, 'RCPT', recipient],
    [553, 'RCPT', recipient],
    [554, 'RCPT', recipient],
    [421, 'DATA', retryable],
    [451, 'DATA', retryable],
    [554, 'DATA', content],
    [421, 'content', retryable],
    [451, 'content', retryable],
    [452, 'content', retryable],
    [550, 'content', content],
    [552, 'content', content],
    [554, 'content', content],
  ])('of %d at %s', async (code, at, meaning) => {
    for (const by of [`${code} 5.7.1 jane@example.com: no`, `${code}-jane@example.com\r\n${code} no`]) {
      const { outcomes } = await sendTo({ at, by })
      expect(outcomes).toEqual([{ ...meaning, reason: `SMTP ${code}` } as Outcome])
    }
  })

  test.each(['gibberish', '', '999 what', '354 go on', '150 hm'])(
    'of %j after the final dot leaves the outcome unknown',
    async (by) => {
      const { outcomes } = await sendTo(
        { at: 'content', by },
        { timeoutMs: by === '' ? passingMs : patienceMs },
      )
      expect(outcomes).toMatchObject([{ kind: 'unknown', providerMessageId }])
    },
  )

  // Without EHLO, because gibberish there makes the client fall back to HELO.
  test.each(['greeting', 'MAIL', 'RCPT'] as const)('of gibberish at %s is not accepted', async (at) => {
    const { outcomes, contents } = await sendTo({ at, by: 'gibberish' })
    expect(outcomes[0]?.kind).not.toBe('accepted')
    expect(contents).toEqual([])
  })
})

describe.concurrent('a server that does not respond', () => {
  test('causes an unknown outcome after the time-out, and gets no mail', async () => {
    const silent = startSilentServer()
    const mailer = mailerTo(silent.url)
    const startedAt = performance.now()
    expect(await mailer.send(mail, 1, passingMs)).toEqual({
      kind: 'unknown',
      reason: 'time-out',
      providerMessageId,
    })
    const tookMs = performance.now() - startedAt
    await silent.connected
    mailer.close()
    silent.stop()
    expect(tookMs).toBeGreaterThanOrEqual(passingMs - 5)
    // The stall time-out, which would also end it.
    expect(tookMs).toBeLessThan(patienceMs)
  })

  test.each(beforeContent)('at %s gets no mail', async (at) => {
    const { outcomes, contents } = await sendTo({ at, by: 'hang' }, { timeoutMs: 100 })
    expect(outcomes).toEqual([{ kind: 'unknown', reason: 'time-out', providerMessageId }])
    expect(contents).toEqual([])
  })

  test('after the final dot leaves the outcome unknown, and the mail is not sent again', async () => {
    const { outcomes, contents } = await sendTo({ at: 'content', by: 'hang' }, { timeoutMs: passingMs })
    expect(outcomes).toEqual([{ kind: 'unknown', reason: 'time-out', providerMessageId }])
    expect(contents).toHaveLength(1)
  })

  test('delays neither itself nor other mails when several mails wait for it', async () => {
    const silent = startSilentServer()
    const mailer = mailerTo(silent.url)
    const startedAt = performance.now()
    const outcomes = await Promise.all(Array.from({ length: 30 }, () => mailer.send(mail, 1, 60)))
    const tookMs = performance.now() - startedAt
    mailer.close()
    silent.stop()
    expect(outcomes.filter(({ kind }) => kind !== 'unknown')).toEqual([])
    expect(tookMs).toBeLessThan(patienceMs)
  })

  test('gets none of the abandoned mails, and the next one immediately, when it responds again', async () => {
    const server = await startSmtp()
    const release = server.hold()
    const mailer = mailerTo(server.url)
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => mailer.send(mail, 1, passingMs)))
    expect(outcomes.filter(({ kind }) => kind !== 'unknown')).toEqual([])
    await server.hungUp(8)
    release()
    expect(await mailer.send({ ...mail, to: 'next@example.com' }, 1, patienceMs)).toEqual(accepted)
    mailer.close()
    await server.stop()
    expect(server.received.map(({ to }) => to.join())).toEqual(['next@example.com'])
  })

  test("for the stall time-out is disconnected before the mail's time-out", async () => {
    const silent = startSilentServer()
    const mailer = mailerTo(silent.url, {}, 60)
    expect(await mailer.send(mail, 1, patienceMs)).toEqual({
      kind: 'unknown',
      reason: 'time-out',
      providerMessageId,
    })
    mailer.close()
    silent.stop()
  })

  test('because its port is closed is a temporary failure', async () => {
    const server = await startSmtp()
    await server.stop()
    const mailer = mailerTo(server.url)
    const outcome = await mailer.send(mail, 1, patienceMs)
    mailer.close()
    expect(outcome).toEqual({ kind: 'retryable', reason: 'ECONNREFUSED' })
  })

  test('because its host name does not exist is a temporary failure', async () => {
    const mailer = mailerTo('smtp://no-such-host.invalid')
    const outcome = await mailer.send(mail, 1, patienceMs)
    mailer.close()
    expect(outcome.kind).toBe('retryable')
  })
})

test('a hundred simultaneous mails arrive once each, over at most eight connections', async () => {
  await using post = await scene()
  const recipients = Array.from({ length: 100 }, (_, index) => `reader${index}@example.com`)
  const outcomes = await Promise.all(recipients.map((to, index) => post.send({ to }, index + 1)))
  expect(outcomes.filter(({ kind }) => kind !== 'accepted')).toEqual([])
  expect(post.server.received.map(({ to }) => to.join()).sort()).toEqual([...recipients].sort())
  for (const { to, mail } of post.server.received) {
    expect(mail.to?.map(({ address }) => address)).toEqual([...to])
  }
  expect(new Set(post.server.received.map(({ sessionId }) => sessionId)).size).toBeLessThanOrEqual(8)
})

test('a pool of two uses two connections for all mails', async () => {
  await using post = await scene({}, ({ url }) => `${url}?pool=true&maxConnections=2&maxMessages=5`)
  const outcomes = await Promise.all(Array.from({ length: 20 }, () => post.send()))
  expect(outcomes.filter(({ kind }) => kind !== 'accepted')).toEqual([])
  const perConnection = Map.groupBy(post.server.received, ({ sessionId }) => sessionId)
  expect([...perConnection.values()].map(({ length }) => length)).toEqual([5, 5, 5, 5])
})
