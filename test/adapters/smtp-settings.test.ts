import { afterAll, describe, expect, test } from 'bun:test'
import { createPrivateKey, generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { SmtpServer, SmtpSettings } from '../../src/adapters/email/smtp.ts'
import { smtpSettings } from '../../src/adapters/email/smtp-settings.ts'
import { Settings } from '../../src/config/settings.ts'
import { temporaryFolder } from '../support/app.ts'
import { selfSigned } from '../support/smtp.ts'

type Environment = Readonly<Record<string, string>>

const folder = temporaryFolder()
afterAll(() => folder.remove())

/** A file with this content; its path has a word that no message may repeat. */
function file(name: string, content: string): string {
  const path = join(folder.path, `canary-${name}`)
  writeFileSync(path, content)
  return path
}

function rsa(modulusLength: number, type: 'pkcs1' | 'pkcs8' = 'pkcs8'): string {
  return generateKeyPairSync('rsa', { modulusLength }).privateKey.export({ type, format: 'pem' }).toString()
}

const key = rsa(1024)
const keyFile = file('key.pem', key)

function read(env: Environment): { smtp: SmtpSettings | undefined; problems: readonly string[] } {
  const settings = new Settings(env)
  const smtp = smtpSettings(settings)
  return { smtp, problems: [...new Set(settings.problems)] }
}

const from = { MAIL_FROM: 'Codes <codes@shop.example>' } as const

describe('without SMTP_URL', () => {
  test('sends no mail', () => expect(read({})).toEqual({ smtp: undefined, problems: [] }))

  test('still checks the sender and the key', () => {
    const { smtp, problems } = read({ MAIL_FROM: 'canary', DKIM_SELECTOR: 's1', SMTP_CA_FILE: '/canary' })
    expect(smtp).toBeUndefined()
    expect(problems.map((problem) => problem.split(' ')[0])).toEqual([
      'MAIL_FROM',
      'DKIM_KEY_FILE',
      'SMTP_CA_FILE',
    ])
  })
})

describe('SMTP_URL', () => {
  const implicit = { secure: true, requireTLS: false } as const
  const usual: SmtpServer = {
    host: 'mail.example',
    port: 587,
    secure: false,
    requireTLS: true,
    ignoreTLS: false,
    tls: {},
    maxConnections: 8,
    maxMessages: 100,
  }

  test.each<[string, Partial<SmtpServer>]>([
    ['smtp://mail.example', {}],
    [' smtp://mail.example/ ', {}],
    ['smtp://MAIL.example:25', { port: 25 }],
    ['smtps://mail.example', { port: 465, ...implicit }],
    ['smtps://mail.example:2465', { port: 2465, ...implicit }],
    ['smtp://bücher.example', { host: 'xn--bcher-kva.example' }],
    ['smtp://[2001:db8::1]:25', { host: '2001:db8::1', port: 25 }],
    ['smtp://postman:p%40ss%20%2F%3A%25@mail.example', { auth: { user: 'postman', pass: 'p@ss /:%' } }],
    ['smtp://jane%40mail.example:x@mail.example', { auth: { user: 'jane@mail.example', pass: 'x' } }],
    ['smtp://mail.example?requireTLS=true', {}],
    ['smtp://mail.example?requireTLS=1', {}],
    ['smtp://mail.example?requireTLS=false', { requireTLS: false }],
    ['smtp://mail.example?requireTLS=0', { requireTLS: false }],
    ['smtp://mail.example?ignoreTLS=true', { requireTLS: false, ignoreTLS: true }],
    ['smtp://mail.example?ignoreTLS=false', {}],
    ['smtp://mail.example?requireTLS=false&ignoreTLS=true', { requireTLS: false, ignoreTLS: true }],
    ['smtps://mail.example?requireTLS=false&ignoreTLS=true', { port: 465, ...implicit }],
    ['smtp://localhost:25', { host: 'localhost', port: 25, requireTLS: false }],
    ['smtp://LOCALHOST', { host: 'localhost', requireTLS: false }],
    ['smtp://127.0.0.2', { host: '127.0.0.2', requireTLS: false }],
    ['smtp://[::1]', { host: '::1', requireTLS: false }],
    ['smtp://localhost?requireTLS=true', { host: 'localhost', requireTLS: true }],
    ['smtp://localhost.evil.example', { host: 'localhost.evil.example' }],
    ['smtp://mail.example?tls.servername=mx.example', { tls: { servername: 'mx.example' } }],
    ['smtp://mail.example?name=otp.shop.example', { name: 'otp.shop.example' }],
    ['smtp://mail.example?name=[192.0.2.1]', { name: '[192.0.2.1]' }],
    [
      'smtp://mail.example/?pool=true&maxConnections=2&maxMessages=10',
      { maxConnections: 2, maxMessages: 10 },
    ],
  ])('%s', (url, server) => {
    expect(read({ SMTP_URL: url, ...from })).toEqual({
      smtp: { server: { ...usual, ...server }, from: { name: 'Codes', address: 'codes@shop.example' } },
      problems: [],
    })
  })

  test.each([
    ['another protocol', 'https://canary@mail.example'],
    ['no protocol', 'canary.example:587'],
    ['no host', 'smtp:///canary'],
    ['an invalid host', 'smtp://mail%20canary'],
    ['a port out of range', 'smtp://mail.example:99999'],
    ['a path', 'smtp://mail.example/canary'],
    ['a / in the password', 'smtp://canary:12/canary@mail.example'],
    ['a # in the password', 'smtp://canary:12#canary@mail.example'],
    ['a ? in the password', 'smtp://canary:12?canary@mail.example'],
    ['a % in the password', 'smtp://canary:can%ary@mail.example'],
    ['a user without a password', 'smtp://canary@mail.example'],
    ['a password without a user', 'smtp://:canary@mail.example'],
    ['a logger', 'smtp://mail.example?logger=true'],
    ['the trace of all that is sent', 'smtp://mail.example?debug=true'],
    ['the trace of all commands', 'smtp://mail.example?transactionLog=true'],
    ['certificate checks turned off', 'smtp://mail.example?tls.rejectUnauthorized=false'],
    ['certificate checks turned off on loopback', 'smtp://localhost?tls.rejectUnauthorized=false'],
    ['an old version of TLS', 'smtp://mail.example?tls.minVersion=TLSv1'],
    ['other ciphers', 'smtp://mail.example?tls.ciphers=canary'],
    ['plain text where TLS fails', 'smtp://mail.example?opportunisticTLS=true'],
    ['another transport', 'smtp://mail.example?sendmail=true'],
    ['a proxy', 'smtp://mail.example?proxy=http://canary'],
    ['access to files', 'smtp://mail.example?disableFileAccess=false'],
    ['repetition', 'smtp://mail.example?maxRequeues=-1'],
    ['a longer time-out', 'smtp://mail.example?socketTimeout=600000'],
    ['an option in another case', 'smtp://mail.example?requiretls=false'],
    ['an option twice', 'smtp://mail.example?requireTLS=true&requireTLS=false'],
    ['options against each other', 'smtp://mail.example?requireTLS=true&ignoreTLS=true'],
    ['an option that is neither true nor false', 'smtp://mail.example?requireTLS=canary'],
    ['an option without a value', 'smtp://mail.example?requireTLS'],
    ['no connections', 'smtp://mail.example?maxConnections=0'],
    ['too many connections', 'smtp://mail.example?maxConnections=101'],
    ['connections that are no number', 'smtp://mail.example?maxConnections=canary'],
    ['a name with a second command', 'smtp://mail.example?name=a%0D%0ARCPT'],
    ['a name of a certificate that can not be one', 'smtp://mail.example?tls.servername=canary%20x'],
  ])('is rejected with %s, and the message does not repeat it', (_, url) => {
    const { problems } = read({ SMTP_URL: url, ...from })
    expect(problems).toHaveLength(1)
    expect(problems[0]).toStartWith('SMTP_URL ')
    expect(problems[0]?.toLowerCase()).not.toContain('canary')
  })

  test.each([
    ['debug=true', 'would print'],
    ['tls.rejectUnauthorized=false', 'SMTP_CA_FILE'],
    ['socketTimeout=1', 'requireTLS'],
  ])('is rejected with %s, and the message says what to do: %s', (option, words) => {
    expect(read({ SMTP_URL: `smtp://mail.example?${option}`, ...from }).problems[0]).toContain(words)
  })

  test('requires a sender', () => {
    const { problems } = read({ SMTP_URL: 'smtp://mail.example' })
    expect(problems).toEqual(['MAIL_FROM is not set, but SMTP_URL needs a sender'])
  })
})

describe('SMTP_CA_FILE', () => {
  const url = { SMTP_URL: 'smtp://mail.example', ...from } as const

  test('provides certificates, and other content of the file is ignored', () => {
    const path = file('ca.pem', `# Ours\n${selfSigned.cert}\n\nand\n${selfSigned.cert}\n`)
    const { smtp, problems } = read({ ...url, SMTP_CA_FILE: path })
    expect(problems).toEqual([])
    expect(smtp?.server.tls.ca).toBe(`${selfSigned.cert}\n${selfSigned.cert}`)
  })

  test.each([
    ['a file that is not there', join(folder.path, 'canary-none'), 'ENOENT'],
    ['a folder', folder.path, 'EISDIR'],
    ['an empty file', file('empty.pem', ''), 'BEGIN CERTIFICATE'],
    ['a key', file('ca-key.pem', selfSigned.key), 'BEGIN CERTIFICATE'],
    [
      'a certificate with a wrong letter',
      file('bad.pem', selfSigned.cert.replace('MII', 'MIJ')),
      'BEGIN CERTIFICATE',
    ],
    ['a certificate cut short', file('cut.pem', selfSigned.cert.slice(0, 200)), 'BEGIN CERTIFICATE'],
  ])('is rejected if it names %s', (_, path, words) => {
    const { problems } = read({ ...url, SMTP_CA_FILE: path })
    expect(problems).toHaveLength(1)
    expect(problems[0]).toStartWith('SMTP_CA_FILE ')
    expect(problems[0]).toContain(words)
    expect(problems[0]).not.toContain('canary')
  })
})

describe('DKIM', () => {
  const url = { SMTP_URL: 'smtp://mail.example', ...from } as const
  const signing = { ...url, DKIM_SELECTOR: 's1', DKIM_KEY_FILE: keyFile } as const

  test('is off by default', () => expect(read(url).smtp?.dkim).toBeUndefined())

  test.each<[string, Environment, string]>([
    ['for the domain of the sender', {}, 'shop.example'],
    ['for the domain that is set', { DKIM_DOMAIN: ' mail.shop.example ' }, 'mail.shop.example'],
    ['for a domain that is not in ASCII', { MAIL_FROM: 'codes@bücher.example' }, 'xn--bcher-kva.example'],
  ])('signs with %s', (_, env, domain) => {
    const { smtp, problems } = read({ ...signing, ...env })
    expect(problems).toEqual([])
    expect(smtp?.dkim).toEqual({ domain, selector: 's1', privateKey: expect.any(String) })
  })

  test.each<[string, string]>([
    ['PKCS #8', key],
    ['PKCS #1', rsa(2048, 'pkcs1')],
    ['lines as Windows ends them', key.replaceAll('\n', '\r\n')],
    ['words before it', `Our key\n${key}`],
  ])('accepts a key with %s', (name, pem) => {
    const { smtp, problems } = read({ ...signing, DKIM_KEY_FILE: file(`good ${name}`.replace('#', ''), pem) })
    expect(problems).toEqual([])
    expect(createPrivateKey(smtp?.dkim?.privateKey ?? '').asymmetricKeyType).toBe('rsa')
  })

  const { privateKey: edwards } = generateKeyPairSync('ed25519')
  const { privateKey: elliptic } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const { privateKey: locked, publicKey } = generateKeyPairSync('rsa', { modulusLength: 1024 })
  test.each<[string, string, string]>([
    ['is of 512 bits', rsa(512), '1024 to 4096'],
    [
      'is an Ed25519 key',
      edwards.export({ type: 'pkcs8', format: 'pem' }).toString(),
      'must name an RSA key',
    ],
    ['is a P-256 key', elliptic.export({ type: 'pkcs8', format: 'pem' }).toString(), 'must name an RSA key'],
    [
      'has a passphrase',
      locked.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-128-cbc', passphrase: 'canary' }).toString(),
      'passphrase',
    ],
    ['is the public one', publicKey.export({ type: 'spki', format: 'pem' }).toString(), 'openssl genpkey'],
    ['is a certificate', selfSigned.cert, 'openssl genpkey'],
    ['is cut short', key.slice(0, 300), 'openssl genpkey'],
    ['is empty', '', 'openssl genpkey'],
    ['is not PEM', 'MIICanary', 'openssl genpkey'],
  ])('rejects a key that %s, and the message does not repeat it', (name, pem, words) => {
    const { problems } = read({ ...signing, DKIM_KEY_FILE: file(`bad ${name}`, pem) })
    expect(problems).toHaveLength(1)
    expect(problems[0]).toStartWith('DKIM_KEY_FILE ')
    expect(problems[0]).toContain(words)
    expect(problems[0]?.toLowerCase()).not.toContain('canary')
    for (const line of pem.split('\n').filter((line) => line.length > 20 && !line.startsWith('-'))) {
      expect(problems[0]).not.toContain(line)
    }
  })

  test.each<[string, Environment, string]>([
    ['a key that is not there', { DKIM_KEY_FILE: '/canary/none' }, 'DKIM_KEY_FILE'],
    ['a key alone', { DKIM_SELECTOR: '' }, 'DKIM_SELECTOR'],
    ['a selector alone', { DKIM_KEY_FILE: '' }, 'DKIM_KEY_FILE'],
    ['a selector that is no name', { DKIM_SELECTOR: 'canary; d=evil.example' }, 'DKIM_SELECTOR'],
    ['a selector with its end', { DKIM_SELECTOR: 'canary.' }, 'DKIM_SELECTOR'],
    ['a domain that is none', { DKIM_DOMAIN: 'canary evil' }, 'DKIM_DOMAIN'],
    ['a domain without a dot', { DKIM_DOMAIN: 'canary' }, 'DKIM_DOMAIN'],
    ['an e-mail address for a domain', { DKIM_DOMAIN: 'codes@canary.example' }, 'DKIM_DOMAIN'],
  ])('rejects %s', (_, env, name) => {
    const { problems } = read({ ...signing, ...env })
    expect(problems).toHaveLength(1)
    expect(problems[0]).toStartWith(`${name} `)
    expect(problems[0]?.toLowerCase()).not.toContain('canary')
  })

  test('with only a domain reports the missing settings', () => {
    const { problems } = read({ ...url, DKIM_DOMAIN: 'shop.example' })
    expect(problems.map((problem) => problem.split(' ')[0])).toEqual(['DKIM_SELECTOR', 'DKIM_KEY_FILE'])
  })
})
