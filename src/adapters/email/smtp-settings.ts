import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { domainToASCII } from 'node:url'
import { parseConnectionUrl } from 'nodemailer/lib/shared'
import { declare, type TextSetting } from '../../config/setting.ts'
import { isLoopback, type Settings } from '../../config/settings.ts'
import { mailAddress } from './mail-address.ts'
import type { DkimSettings, MailAddress, SmtpServer, SmtpSettings } from './smtp.ts'

export const emailSettings = declare('E-mail', {
  SMTP_URL: {
    unset: 'unset: mail stays in the outbox',
    format: '`smtp://` or `smtps://` URL',
    secret: true,
    meaning:
      'The mail server, such as `smtp://user:password@mail.example.com:587`. STARTTLS is required unless the server is on this machine.',
  },
  MAIL_FROM: {
    unset: 'unset; required with `SMTP_URL`',
    format: '`address` or `Name <address>`',
    meaning: 'The sender of mails.',
  },
  SMTP_CA_FILE: {
    unset: 'unset',
    format: 'path of a PEM file',
    meaning: 'Certificates of your own certificate authority.',
  },
  DKIM_SELECTOR: {
    unset: 'unset: mails are not signed',
    format: 'name, such as `s1`',
    meaning: 'The DKIM selector. It requires `DKIM_KEY_FILE`.',
  },
  DKIM_KEY_FILE: {
    unset: 'unset',
    format: 'path of a PEM file',
    meaning: 'The RSA private key for DKIM: 1,024 to 4,096 bits, without a passphrase.',
  },
  DKIM_DOMAIN: {
    unset: 'the domain of `MAIL_FROM`',
    format: 'domain',
    meaning: 'The domain that signs mails (DKIM).',
  },
})

/** Reports all errors in SMTP_URL, SMTP_CA_FILE, MAIL_FROM and DKIM_*. Undefined without a valid SMTP_URL. */
export function smtpSettings(settings: Settings): SmtpSettings | undefined {
  const from = readSender(settings)
  const dkim = readDkim(settings, from)
  const server = readServer(settings)
  return server && from && { server, from, ...(dkim ? { dkim } : {}) }
}

function readSender(settings: Settings): MailAddress | undefined {
  const text = settings.optional(emailSettings.MAIL_FROM)
  const from = text === undefined ? undefined : mailAddress(text)
  if (text !== undefined && from === undefined) {
    settings.refuse(
      'MAIL_FROM',
      'must be an e-mail address such as codes@example.com, or Name <codes@example.com>',
    )
  } else if (text === undefined && settings.optional(emailSettings.SMTP_URL) !== undefined) {
    settings.refuse('MAIL_FROM', 'is not set, but SMTP_URL needs a sender')
  }
  return from
}

const form =
  'must be a URL such as smtp://user:password@mail.example.com:587, where characters such as @ : / ? # % of the user and the password are written %40 %3A %2F %3F %23 %25'

/** nodemailer reads the URL. It would also accept options that log mails or turn off certificate checks. */
function readServer(settings: Settings): SmtpServer | undefined {
  const ca = readCa(settings)
  const text = settings.optional(emailSettings.SMTP_URL)?.trim()
  if (text === undefined) return undefined
  const refuse = (problem: string) => settings.refuse('SMTP_URL', problem)
  const { host, secure = false, port = secure ? 465 : 587, auth, tls, ...given } = parsed(text)
  if (host === undefined) {
    refuse(form)
    return undefined
  }
  const {
    requireTLS = !isLoopback(host),
    ignoreTLS = false,
    name,
    maxConnections = 8,
    maxMessages = 100,
  } = given
  if (auth && (auth.user === '' || auth.pass === ''))
    refuse('must give both a user and a password, or neither')
  if (given.requireTLS && ignoreTLS) refuse('must not have both options requireTLS and ignoreTLS')
  if (Object.values({ ...given, ...tls }).some(Array.isArray)) refuse('has an option twice')
  for (const [option, value] of new URL(text).searchParams) {
    const problem = optionProblem(option, value)
    if (problem !== undefined) refuse(problem)
  }
  return {
    host,
    port,
    secure,
    ignoreTLS: !secure && Boolean(ignoreTLS),
    // Otherwise an attacker could disable STARTTLS.
    requireTLS: !secure && !ignoreTLS && Boolean(requireTLS),
    ...(auth ? { auth } : {}),
    tls: { ...tls, ...(ca === undefined ? {} : { ca }) },
    ...(name === undefined ? {} : { name: String(name) }),
    maxConnections: Number(maxConnections),
    maxMessages: Number(maxMessages),
  }
}

/** Empty for another form: a password that is not escaped may be in any part of the URL. */
function parsed(text: string): ReturnType<typeof parseConnectionUrl> {
  const isComplete = /^smtps?:\/\/[^/?#]+\/?(\?[^#]*)?$/.test(text) && !/%(?![\da-f]{2})/i.test(text)
  try {
    return isComplete && URL.canParse(text) ? parseConnectionUrl(text) : {}
  } catch {
    return {}
  }
}

const flag = [/^(true|false|1|0)$/, 'true or false'] as const
const name = [/^[\w.:[\]-]{1,253}$/, 'a host name, such as mail.example.com'] as const
const options: Readonly<Record<string, readonly [RegExp, kind: string]>> = {
  requireTLS: flag,
  ignoreTLS: flag,
  'tls.servername': name,
  name,
  pool: flag,
  maxConnections: [/^([1-9]\d?|100)$/, 'a whole number from 1 to 100'],
  maxMessages: [/^([1-9]\d{0,4}|100000)$/, 'a whole number from 1 to 100000'],
}

/** Without the name of an option that is not known, which may be a part of the password. */
function optionProblem(option: string, value: string): string | undefined {
  const known = Object.hasOwn(options, option) ? options[option] : undefined
  if (known) return known[0].test(value) ? undefined : `must give the option ${option} as ${known[1]}`
  if (['logger', 'debug', 'transactionLog'].includes(option)) {
    return 'must not have the options logger, debug and transactionLog, which would print mails and their codes'
  }
  return option.startsWith('tls.') || option === 'opportunisticTLS'
    ? 'has an option that would change how certificates are checked, which always are: name the certificate of an authority of your own in SMTP_CA_FILE, or the name in the certificate as tls.servername'
    : `has an option that is not known (there are ${Object.keys(options).join(', ')}), or ${form}`
}

function isHostName(text: string): boolean {
  return /^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*$/i.test(
    text,
  )
}

function readCa(settings: Settings): string | undefined {
  const pem = readFile(settings, emailSettings.SMTP_CA_FILE)
  if (pem === undefined) return undefined
  const certificates = pem.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? []
  if (certificates.length > 0 && certificates.every(isCertificate)) return certificates.join('\n')
  settings.refuse('SMTP_CA_FILE', 'must name a file with one or more certificates in PEM (BEGIN CERTIFICATE)')
  return undefined
}

function isCertificate(pem: string): boolean {
  try {
    new X509Certificate(pem)
    return true
  } catch {
    return false
  }
}

function readDkim(settings: Settings, from: MailAddress | undefined): DkimSettings | undefined {
  const { DKIM_SELECTOR, DKIM_KEY_FILE, DKIM_DOMAIN } = emailSettings
  const given = [DKIM_SELECTOR, DKIM_KEY_FILE, DKIM_DOMAIN].some(
    (setting) => settings.optional(setting) !== undefined,
  )
  if (!given) return undefined
  const why = 'mails are signed (DKIM) with DKIM_SELECTOR and DKIM_KEY_FILE together'
  const selector = settings.required(emailSettings.DKIM_SELECTOR, why).trim()
  if (selector !== '' && !isHostName(selector)) {
    settings.refuse('DKIM_SELECTOR', 'must be a name such as s1: the one before ._domainkey in the DNS')
  }
  settings.required(emailSettings.DKIM_KEY_FILE, why)
  const privateKey = readKey(settings)
  const ownDomain = settings.optional(emailSettings.DKIM_DOMAIN)?.trim()
  const domain = domainToASCII(ownDomain ?? from?.address.slice(from.address.lastIndexOf('@') + 1) ?? '')
  if (ownDomain !== undefined && !(isHostName(domain) && domain.includes('.'))) {
    settings.refuse('DKIM_DOMAIN', 'must be a domain such as example.com')
  }
  return privateKey === undefined ? undefined : { domain, selector, privateKey }
}

/** RFC 8301 section 3.2. */
const keyBits = { min: 1024, max: 4096 } as const

/** PEM, RSA. nodemailer supports no other key, and silently sends unsigned mail if it cannot sign. */
function readKey(settings: Settings): string | undefined {
  const refuse = (problem: string): undefined => {
    settings.refuse('DKIM_KEY_FILE', problem)
  }
  const pem = readFile(settings, emailSettings.DKIM_KEY_FILE)
  if (pem === undefined) return undefined
  const make = `such as openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 makes`
  let key: KeyObject
  try {
    key = createPrivateKey(pem)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ERR_MISSING_PASSPHRASE'
      ? refuse('must name a key without a passphrase; openssl pkey -in KEY -out NEW takes it off')
      : refuse(`must name a file with an RSA private key in PEM, ${make}`)
  }
  if (key.asymmetricKeyType !== 'rsa')
    return refuse(`must name an RSA key, ${make}: mails are not signed with others`)
  const bits = key.asymmetricKeyDetails?.modulusLength ?? 0
  if (bits < keyBits.min || bits > keyBits.max) {
    return refuse(
      `must name a key of ${keyBits.min} to ${keyBits.max} bits, ${make}: receivers ignore others`,
    )
  }
  return key.export({ type: 'pkcs8', format: 'pem' }).toString()
}

function readFile(settings: Settings, setting: TextSetting): string | undefined {
  const path = settings.optional(setting)?.trim()
  if (path === undefined) return undefined
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const { code = 'error' } = error as NodeJS.ErrnoException
    settings.refuse(
      setting.name,
      `names a file that can't be read (${code}): correct the path, or let this user read it`,
    )
    return undefined
  }
}
