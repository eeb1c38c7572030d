import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { run } from '../release/run.ts'
import { createSmtpMailer } from '../src/adapters/email/smtp.ts'
import { smtpSettings } from '../src/adapters/email/smtp-settings.ts'
import { Settings } from '../src/config/settings.ts'
import type { Mail, Mailer, Outcome } from '../src/domain/ground/providers.ts'
import { temporaryFolder } from './support/app.ts'
import { missingForExim, startExim, verifyDkim } from './support/exim.ts'

const missing = missingForExim()
if (missing.length > 0) console.warn(`a real mail server: skipped, since it needs ${missing.join(', ')}`)

/** Longer than any answer on this machine takes. */
const patienceMs = 20_000

const password = 'p@ss word'
const login = `postman:${encodeURIComponent(password)}`

const folder = temporaryFolder()
let exim: Awaited<ReturnType<typeof startExim>>
const mailers: { close(): void }[] = []

beforeAll(async () => {
  if (missing.length === 0) exim = await startExim()
})

afterAll(async () => {
  for (const mailer of mailers) mailer.close()
  if (missing.length === 0) await exim[Symbol.asyncDispose]()
  folder.remove()
})

/** The mailer for an environment, which trusts the server by default. */
function mailerFor(env: Readonly<Record<string, string>>): Mailer {
  const settings = new Settings({
    MAIL_FROM: 'Codes <codes@shop.example>',
    SMTP_CA_FILE: exim.caFile,
    ...env,
  })
  const smtp = settings.checked(smtpSettings(settings))
  if (!smtp) throw new Error('there is no SMTP_URL')
  const mailer = createSmtpMailer(smtp, patienceMs)
  mailers.push(mailer)
  return mailer
}

function mailTo(to: string, fields: Partial<Mail> = {}): Mail {
  return {
    requestId: crypto.randomUUID(),
    brandSlug: 'acme',
    brandName: 'Acme',
    to,
    position: null,
    recipientHash: 'subject',
    template: null,
    subject: 'Your order',
    html: '<p>It is on its way.</p>',
    text: 'It is on its way.',
    ...fields,
  }
}

const idOf = ({ requestId }: Mail) => `${requestId}.1@shop.example`

/** Sends one mail that must be accepted. Resolves to its delivery. */
async function deliver(mailer: Mailer, mail: Mail) {
  expect(await mailer.send(mail, 1, patienceMs)).toEqual({ kind: 'accepted', providerMessageId: idOf(mail) })
  const delivered = await exim.delivered(idOf(mail))
  expect(delivered).toHaveLength(1)
  const [only] = delivered
  if (!only) throw new Error('nothing was delivered')
  const header = (name: string) =>
    only.mail.headers.filter(({ key }) => key === name).map(({ value }) => value.trim())
  return { ...only, header }
}

describe.skipIf(missing.length > 0).concurrent('a real mail server', () => {
  test('accepts a mail over STARTTLS, and delivers it to its recipient from its sender', async () => {
    const mail = mailTo('jane@example.test', { subject: 'Ваш заказ 🎁', text: 'one\n.\nQUIT' })
    const { mail: delivered, header } = await deliver(
      mailerFor({ SMTP_URL: `smtp://${exim.submission}` }),
      mail,
    )
    expect(header('return-path')).toEqual(['<codes@shop.example>'])
    expect(header('envelope-to')).toEqual(['jane@example.test'])
    expect(header('received').join()).toContain('with esmtps')
    expect(header('message-id')).toEqual([`<${idOf(mail)}>`])
    expect(header('x-request-id')).toEqual([mail.requestId])
    expect(delivered.from).toEqual({ name: 'Acme', address: 'codes@shop.example' })
    expect(delivered.to).toEqual([{ name: '', address: 'jane@example.test' }])
    expect(delivered.subject).toBe(mail.subject)
    expect(delivered.text?.trim()).toBe(mail.text)
    expect(delivered.html?.trim()).toBe(mail.html)
  })

  test('accepts a mail over implicit TLS after a login', async () => {
    const mailer = mailerFor({ SMTP_URL: `smtps://${login}@${exim.implicit}` })
    const { header } = await deliver(mailer, mailTo('jane@example.test'))
    expect(header('received').join()).toContain('with esmtpsa')
  })

  test('is reached by its host name, too', async () => {
    const mailer = mailerFor({
      SMTP_URL: `smtps://${login}@${exim.implicit.replace('127.0.0.1', 'localhost')}`,
    })
    await deliver(mailer, mailTo('jane@example.test'))
  })

  test.each<[string, () => Readonly<Record<string, string>>, string]>([
    [
      'over STARTTLS with an untrusted certificate',
      () => ({ SMTP_URL: `smtp://${exim.submission}`, SMTP_CA_FILE: '' }),
      'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    ],
    [
      'over implicit TLS with an untrusted certificate',
      () => ({ SMTP_URL: `smtps://${login}@${exim.implicit}`, SMTP_CA_FILE: '' }),
      'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    ],
    [
      'of another name',
      () => ({ SMTP_URL: `smtps://${login}@${exim.implicit}?tls.servername=mail.example` }),
      'ERR_TLS_CERT_ALTNAME_INVALID',
    ],
    [
      'that speaks no TLS where it should',
      () => ({ SMTP_URL: `smtps://${exim.submission}` }),
      'ERR_SSL_WRONG_VERSION_NUMBER',
    ],
    [
      'that knows no such password',
      () => ({ SMTP_URL: `smtps://postman:canary@${exim.implicit}` }),
      'SMTP 535',
    ],
    ['that wants a login', () => ({ SMTP_URL: `smtps://${exim.implicit}` }), 'SMTP 530'],
  ])('%s gets nothing, and the settings are to blame', async (_, env, reason) => {
    const mail = mailTo('jane@example.test')
    const outcome = await mailerFor(env()).send(mail, 1, patienceMs)
    expect(outcome).toEqual({ kind: 'rejected', scope: 'account', reason })
    expect(exim.count(idOf(mail))).toBe(0)
  })

  test('waits for TLS while the client waits for its greeting gets nothing', async () => {
    const mailer = mailerFor({ SMTP_URL: `smtp://${exim.implicit}` })
    const outcome = await mailer.send(mailTo('jane@example.test'), 1, 200)
    expect(outcome).toMatchObject({ kind: 'unknown', reason: 'time-out' })
  })

  const recipient = { kind: 'rejected', scope: 'recipient' } as const
  test.each<[string, string, Outcome]>([
    ['greylists', 'greylisted@example.test', { kind: 'retryable', reason: 'SMTP 451' }],
    ['is closing', 'closing@example.test', { kind: 'retryable', reason: 'SMTP 421' }],
    ['has no such mailbox', 'unknown@example.test', { ...recipient, reason: 'SMTP 550' }],
    ['blocks the recipient', 'blocked@example.test', { ...recipient, reason: 'SMTP 550' }],
    ['finds the mailbox full', 'full@example.test', { ...recipient, reason: 'SMTP 552' }],
    ['does not relay', 'jane@elsewhere.test', { ...recipient, reason: 'SMTP 550' }],
  ])('that %s says so, and takes the next mail', async (_, to, outcome) => {
    const mailer = mailerFor({ SMTP_URL: `smtp://${exim.submission}` })
    expect(await mailer.send(mailTo(to), 1, patienceMs)).toEqual(outcome)
    await deliver(mailer, mailTo('jane@example.test'))
  })

  test('rejects a mail that is too large', async () => {
    const mailer = mailerFor({ SMTP_URL: `smtp://${exim.submission}` })
    const mail = mailTo('jane@example.test', { html: `<p>${'All of it. '.repeat(10_000)}</p>` })
    expect(await mailer.send(mail, 1, patienceMs)).toEqual({
      kind: 'rejected',
      scope: 'content',
      reason: 'SMTP 552',
    })
    await deliver(mailer, mailTo('jane@example.test'))
  })

  test.each(['slow@example.test', 'late@example.test'])('may be slow: %s', async (to) => {
    await deliver(mailerFor({ SMTP_URL: `smtp://${exim.submission}` }), mailTo(to))
  })

  test('that is too slow at the recipient has not accepted the mail', async () => {
    const mailer = mailerFor({ SMTP_URL: `smtp://${exim.submission}` })
    const mail = mailTo('slow@example.test')
    expect(await mailer.send(mail, 1, 300)).toMatchObject({ kind: 'unknown', reason: 'time-out' })
    // The same mailer, and the same mail at a later attempt.
    expect(await mailer.send(mail, 2, patienceMs)).toMatchObject({ kind: 'accepted' })
    await exim.delivered(`${mail.requestId}.2@shop.example`)
    expect(exim.count(idOf(mail))).toBe(0)
  })

  test('that is too slow after the content may have the mail, which is not sent again', async () => {
    const mailer = mailerFor({ SMTP_URL: `smtp://${exim.submission}` })
    // Over an open connection, so that the time-out falls into the content.
    await deliver(mailer, mailTo('jane@example.test'))
    const mail = mailTo('later@example.test')
    expect(await mailer.send(mail, 1, 8000)).toEqual({
      kind: 'unknown',
      reason: 'time-out',
      providerMessageId: idOf(mail),
    })
    // Exim usually drops a mail that it could not confirm.
    await exim.logged(new RegExp(`connection lost after final dot|id=${idOf(mail)}`))
    await deliver(mailer, mailTo('jane@example.test'))
    expect(exim.count(idOf(mail))).toBeLessThanOrEqual(1)
  })

  test.each<[string, Partial<Mail>, string]>([
    [
      'a subject with line breaks',
      { subject: 'Hello\r\nBcc: evil@example.test\r\n\r\n<b>body</b>' },
      'Hello Bcc: evil@example.test  <b>body</b>',
    ],
    [
      'a subject with a bare line feed',
      { subject: 'Hello\nBcc: evil@example.test' },
      'Hello Bcc: evil@example.test',
    ],
    ['a brand name with line breaks', { brandName: 'Acme\r\nBcc: evil@example.test' }, 'Your order'],
  ])('sees one header in %s', async (_, fields, subject) => {
    const mailer = mailerFor({ SMTP_URL: `smtp://${exim.submission}` })
    const { mail, header } = await deliver(mailer, mailTo('jane@example.test', fields))
    expect(header('subject')).toHaveLength(1)
    expect(mail.subject).toBe(subject)
    expect(header('bcc')).toEqual([])
    expect(header('from').join()).toEndWith('<codes@shop.example>')
    expect(header('envelope-to')).toEqual(['jane@example.test'])
    expect(mail.html?.trim()).toBe('<p>It is on its way.</p>')
  })
})

test.skipIf(missing.length > 0)(
  'sixty mails at once each arrive once at a server that accepts five per connection',
  async () => {
    await using strict = await startExim(5)
    const mailer = mailerFor({ SMTP_URL: `smtp://${strict.submission}`, SMTP_CA_FILE: strict.caFile })
    const mails = Array.from({ length: 60 }, (_, index) => mailTo(`reader${index}@example.test`))
    const outcomes = await Promise.all(mails.map((mail) => mailer.send(mail, 1, patienceMs)))
    expect(outcomes.filter(({ kind }) => kind !== 'accepted')).toEqual([])
    const delivered = await Promise.all(mails.map((mail) => strict.delivered(idOf(mail))))
    expect(delivered.map((copies) => copies.map(({ mail }) => mail.to?.[0]?.address))).toEqual(
      mails.map(({ to }) => [to]),
    )
  },
)

describe.skipIf(missing.length > 0)('a signature', () => {
  test('with a key from the commands of docs/providers/smtp.md is valid on the delivered mail', async () => {
    const keyFile = join(folder.path, 'dkim.pem')
    run(['openssl', 'genpkey', '-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048', '-out', keyFile])
    const publicKey = run([
      'sh',
      '-c',
      `openssl pkey -in ${keyFile} -pubout -outform DER | openssl base64 -A`,
    ])
    const record = `v=DKIM1; k=rsa; p=${publicKey}`
    const mailer = mailerFor({
      SMTP_URL: `smtp://${exim.submission}`,
      DKIM_SELECTOR: 's1',
      DKIM_KEY_FILE: keyFile,
    })
    const mail = mailTo('jane@example.test', {
      subject: `Ihre Bestellung über 12 €, заказ, 注文 🎁 ${'und mehr '.repeat(15)}`,
      html: `<p>${'注文ありがとう 🎁 '.repeat(300)}</p>\n.\n`,
      text: ' lines with spaces at their end \n\n.\n..\nFrom me\n\n\n',
    })
    const { raw } = await deliver(mailer, mail)
    const name = 's1._domainkey.shop.example'
    expect(verifyDkim(raw, name, record)).toBe('valid')
    // An invalid signature is detected.
    expect(verifyDkim(raw.replace(/^From: /m, 'From: x'), name, record)).toBe('invalid')
    expect(verifyDkim(`${raw}more`, name, record)).toBe('invalid')
    expect(verifyDkim(raw, 's2._domainkey.shop.example', record)).not.toBe('valid')
  })

  test('of another domain is valid, too', async () => {
    const keyFile = join(folder.path, 'other.pem')
    run(['openssl', 'genpkey', '-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:1024', '-out', keyFile])
    const publicKey = run([
      'sh',
      '-c',
      `openssl pkey -in ${keyFile} -pubout -outform DER | openssl base64 -A`,
    ])
    const mailer = mailerFor({
      SMTP_URL: `smtp://${exim.submission}`,
      DKIM_SELECTOR: 'otp.2026',
      DKIM_KEY_FILE: keyFile,
      DKIM_DOMAIN: 'brand.example',
    })
    const { raw } = await deliver(mailer, mailTo('jane@example.test'))
    expect(verifyDkim(raw, 'otp.2026._domainkey.brand.example', `v=DKIM1; p=${publicKey}`)).toBe('valid')
  })
})
