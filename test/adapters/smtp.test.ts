import { describe, expect, test } from 'bun:test'
import { createSmtpMailer } from '../../src/adapters/email/smtp.ts'
import { email } from '../../src/domain/contact.ts'
import type { Mail, Mailer, Outcome } from '../../src/domain/ports.ts'
import { type Refusal, startSilentServer, startSmtp } from '../support/smtp.ts'

const mail: Mail = {
  id: '0b54a5a2-6a3c-4d8e-9a39-0f6a3f0d7c11',
  requestId: 'd2a0b3f6-70ff-4a9c-9c05-1d1f5c6c8e77',
  brandSlug: 'acme',
  brandName: 'Acme',
  to: 'jane@example.com',
  subject: 'Your order',
  html: '<p>It is on its way.</p>',
  text: 'It is on its way.',
}

// smtp-server waits 100 ms before it greets, so the tests, which share nothing, run side by side.

/** Longer than any answer on this machine takes; a test that waits so long has failed. */
const patienceMs = 10_000

type Server = Awaited<ReturnType<typeof startSmtp>>

/** A mailer that talks to one real server, and both closed at the end of the scope. */
async function scene(
  behaviour: Parameters<typeof startSmtp>[0] = {},
  urlOf: (server: Server) => string = ({ url }) => url,
) {
  const server = await startSmtp(behaviour)
  const mailer = mailerTo(urlOf(server))
  return {
    server,
    send: (fields: Partial<Mail> = {}) => mailer.send({ ...mail, ...fields }, patienceMs),
    async [Symbol.asyncDispose]() {
      mailer.close()
      await server.stop()
    },
  }
}

function mailerTo(url: string, stallMs = patienceMs): Mailer & { close(): void } {
  return createSmtpMailer({ url, from: { name: 'Codes', address: 'codes@shop.example' } }, stallMs)
}

describe.concurrent('a mail', () => {
  test('arrives once, from the sender in the name of the brand, to its one recipient', async () => {
    await using post = await scene()
    expect(await post.send()).toEqual({ kind: 'accepted' })
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

  test("comes in the name of MAIL_FROM where the mail is no brand's", async () => {
    await using post = await scene()
    await post.send({ brandName: null, brandSlug: null })
    expect(post.server.received[0]?.mail.from).toEqual({ name: 'Codes', address: 'codes@shop.example' })
  })

  test('has a Message-ID of the sender’s domain and the id of the request', async () => {
    await using post = await scene()
    await post.send()
    const received = post.server.received[0]?.mail
    expect(received?.messageId).toBe(`<${mail.id}@shop.example>`)
    const requestIds = received?.headers.filter(({ key }) => key === 'x-request-id')
    expect(requestIds?.map(({ value }) => value)).toEqual([mail.requestId])
  })

  test('keeps the text part that was given', async () => {
    await using post = await scene()
    await post.send({ text: 'Words of its own.' })
    expect(post.server.received[0]?.mail.text?.trim()).toBe('Words of its own.')
  })

  test('carries any script and any length through unchanged', async () => {
    await using post = await scene()
    const subject = 'Ihre Bestellung über 12 €, заказ, 注文 🎁'
    const html = `<p>${'注文ありがとう 🎁 '.repeat(2000)}</p>`
    await post.send({ subject, html, brandName: 'Müller & Söhne 🎁' })
    const received = post.server.received[0]?.mail
    expect(received?.subject).toBe(subject)
    expect(received?.html?.trim()).toBe(html)
    expect(received?.from?.name).toBe('Müller & Söhne 🎁')
  })

  test('that consists of lines with dots and of SMTP words ends where it ends', async () => {
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
    '=?utf-8?q?a=2Cb=40c?=@example.com',
    'first.last@sub.domain.example.com',
    'UPPER@example.com',
    'jürgen@example.com',
  ])('%s is the one address of RCPT TO', async (address) => {
    // Given as the domain gives it, which every address of a caller goes through.
    const to = email(address)?.address
    expect(to).toBe(address)
    await using post = await scene()
    expect(await post.send({ to: address })).toEqual({ kind: 'accepted' })
    expect(post.server.recipients).toEqual([address])
  })

  test('of an internationalized domain is reached', async () => {
    await using post = await scene()
    expect(await post.send({ to: 'jane@bücher.example' })).toEqual({ kind: 'accepted' })
    expect(post.server.recipients).toHaveLength(1)
    expect(['jane@bücher.example', 'jane@xn--bcher-kva.example']).toContain(post.server.recipients[0] ?? '')
  })

  // The domain refuses all of these; the mailer must not rely on it to keep one recipient one recipient.
  test.each([
    ['a list', 'jane@example.com, evil@evil.example'],
    ['a list with semicolons', 'jane@example.com; evil@evil.example'],
    ['a group', 'friends: jane@example.com, evil@evil.example;'],
    ['a name and an address', 'jane@example.com <evil@evil.example>'],
    ['an address in brackets before another', '<evil@evil.example>jane@example.com'],
    ['a quoted comma', '"jane, evil"@example.com'],
    ['a second command', 'jane@example.com>\r\nRCPT TO:<evil@evil.example'],
    ['a comment', 'jane@example.com (evil@evil.example)'],
  ])('is never another than the address as it is, even where that is %s', async (_, to) => {
    await using post = await scene()
    await post.send({ to })
    expect(post.server.recipients.filter((recipient) => recipient !== to)).toEqual([])
  })
})

describe.concurrent('what a caller chooses', () => {
  test.each<[string, Partial<Mail>]>([
    ['a brand name with line breaks', { brandName: 'Acme\r\nBcc: evil@evil.example' }],
    ['a brand name with a bare line feed', { brandName: 'Acme\nBcc: evil@evil.example' }],
    ['a brand name with quotes, commas and an address', { brandName: '"Acme", <evil@evil.example>,' }],
    ['a brand name that is an address', { brandName: 'evil@evil.example' }],
    ['a subject with line breaks', { subject: 'Hello\r\nBcc: evil@evil.example\r\n\r\n<b>body</b>' }],
    ['a subject with a bare carriage return', { subject: 'Hello\rBcc: evil@evil.example' }],
    ['a subject with other line separators', { subject: 'Hello\u0085\u2028Bcc: evil@evil.example' }],
    ['a subject of 255 characters without a space', { subject: 'ä'.repeat(255) }],
  ])('adds no header and no recipient: %s', async (_, fields) => {
    await using post = await scene()
    expect(await post.send(fields)).toEqual({ kind: 'accepted' })
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

describe.concurrent('a refusal', () => {
  const text = 'jane@example.com is unknown here'
  test.each<[string, Refusal, Outcome]>([
    [
      'for good at RCPT is of that recipient',
      { at: 'RCPT', code: 550, message: text },
      { kind: 'rejected', scope: 'recipient', reason: 'SMTP 550' },
    ],
    [
      'for now at RCPT is the server’s',
      { at: 'RCPT', code: 450, message: text },
      { kind: 'unavailable', reason: 'SMTP 450' },
    ],
    [
      'for good at DATA is of that message',
      { at: 'DATA', code: 554, message: text },
      { kind: 'rejected', scope: 'message', reason: 'SMTP 554' },
    ],
    [
      'for now at DATA is the server’s',
      { at: 'DATA', code: 451, message: text },
      { kind: 'unavailable', reason: 'SMTP 451' },
    ],
  ])('%s, and its text stays unsaid', async (_, refusal, outcome) => {
    await using post = await scene()
    post.server.refuse(refusal)
    expect(await post.send()).toEqual(outcome)
    expect(post.server.received).toHaveLength(0)
  })

  test('of one mail does not touch the next', async () => {
    await using post = await scene()
    post.server.refuse({ at: 'RCPT', code: 550, message: text })
    expect((await post.send()).kind).toBe('rejected')
    post.server.refuse(undefined)
    expect(await post.send()).toEqual({ kind: 'accepted' })
  })
})

describe.concurrent('logging in', () => {
  const users = { postman: 'p@ss word' }

  test('uses the user and the password of the URL', async () => {
    await using post = await scene({ users }, ({ port }) => `smtp://postman:p%40ss%20word@127.0.0.1:${port}`)
    expect(await post.send()).toEqual({ kind: 'accepted' })
    expect(post.server.received[0]?.user).toBe('postman')
  })

  test('with a wrong password is refused, as the account’s fault and without repeating it', async () => {
    await using post = await scene({ users }, ({ port }) => `smtp://postman:canary@127.0.0.1:${port}`)
    expect(await post.send()).toEqual({ kind: 'rejected', scope: 'account', reason: 'SMTP 535' })
    expect(post.server.recipients).toEqual([])
  })

  test('that fails for now is the server’s', async () => {
    await using post = await scene({ users }, ({ port }) => `smtp://postman:p%40ss%20word@127.0.0.1:${port}`)
    post.server.refuse({ at: 'AUTH', code: 454, message: 'later' })
    expect(await post.send()).toEqual({ kind: 'unavailable', reason: 'SMTP 454' })
  })
})

describe.concurrent('encryption', () => {
  test('is not asked for on this machine', async () => {
    await using post = await scene()
    expect(await post.send()).toEqual({ kind: 'accepted' })
    expect(post.server.received[0]?.secure).toBe(false)
  })

  test('with a certificate that nobody vouches for is refused before anything of the mail is told', async () => {
    await using post = await scene({ startTls: true })
    expect((await post.send()).kind).not.toBe('accepted')
    expect(post.server.recipients).toEqual([])
  })

  test('with such a certificate is used when the operator says so in the URL', async () => {
    await using post = await scene({ startTls: true }, ({ url }) => `${url}?tls.rejectUnauthorized=false`)
    expect(await post.send()).toEqual({ kind: 'accepted' })
    expect(post.server.received[0]?.secure).toBe(true)
  })

  // 0.0.0.0 reaches this machine, and is not one of the names that say so.
  test('is required of any other machine', async () => {
    await using post = await scene({}, ({ port }) => `smtp://0.0.0.0:${port}`)
    expect((await post.send()).kind).not.toBe('accepted')
    expect(post.server.recipients).toEqual([])
  })

  test('is not required of another machine when the operator says so in the URL', async () => {
    await using post = await scene({}, ({ port }) => `smtp://0.0.0.0:${port}?ignoreTLS=true`)
    expect(await post.send()).toEqual({ kind: 'accepted' })
  })
})

describe('a server that does not answer', () => {
  test('costs no more than the time-out, and the outcome is unknown', async () => {
    const silent = startSilentServer()
    const mailer = mailerTo(silent.url)
    const startedAt = performance.now()
    expect(await mailer.send(mail, 60)).toEqual({ kind: 'unknown', reason: 'time-out' })
    const tookMs = performance.now() - startedAt
    await silent.connected
    mailer.close()
    silent.stop()
    expect(tookMs).toBeGreaterThanOrEqual(55)
    expect(tookMs).toBeLessThan(2000)
  })

  test('holds up neither itself nor the others when several mails wait for it', async () => {
    const silent = startSilentServer()
    const mailer = mailerTo(silent.url)
    const startedAt = performance.now()
    const outcomes = await Promise.all(Array.from({ length: 30 }, () => mailer.send(mail, 60)))
    const tookMs = performance.now() - startedAt
    mailer.close()
    silent.stop()
    // Eight were being handed over; the others still waited for a connection and can't have been sent.
    const told = Map.groupBy(outcomes, ({ kind }) => kind)
    expect(told.get('unknown')?.length).toBe(8)
    expect(told.get('unavailable')?.length).toBe(22)
    expect(tookMs).toBeLessThan(2000)
  })

  test('gets none of the mails that were given up, and the next one at once, when it answers again', async () => {
    const server = await startSmtp()
    const release = server.hold()
    const mailer = mailerTo(server.url, 300)
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => mailer.send(mail, 300)))
    expect(outcomes.filter(({ kind }) => kind === 'accepted')).toEqual([])
    await server.hungUp(8)
    release()
    expect(await mailer.send({ ...mail, to: 'next@example.com' }, patienceMs)).toEqual({ kind: 'accepted' })
    mailer.close()
    await server.stop()
    expect(server.received.map(({ to }) => to.join())).toEqual(['next@example.com'])
  })

  test('because nothing listens is unavailable: no mail can have got through', async () => {
    const server = await startSmtp()
    await server.stop()
    const mailer = mailerTo(server.url)
    const outcome = await mailer.send(mail, patienceMs)
    mailer.close()
    expect(outcome.kind).toBe('unavailable')
  })
})

test('a hundred mails at once arrive once each, over at most eight connections', async () => {
  await using post = await scene()
  const recipients = Array.from({ length: 100 }, (_, index) => `reader${index}@example.com`)
  const outcomes = await Promise.all(recipients.map((to) => post.send({ to })))
  expect(outcomes.filter(({ kind }) => kind !== 'accepted')).toEqual([])
  expect(post.server.received.map(({ to }) => to.join()).sort()).toEqual([...recipients].sort())
  for (const { to, mail } of post.server.received) {
    expect(mail.to?.map(({ address }) => address)).toEqual([...to])
  }
  expect(new Set(post.server.received.map(({ sessionId }) => sessionId)).size).toBeLessThanOrEqual(8)
})
