import type { Readable } from 'node:stream'
import { createTransport } from 'nodemailer'
import { email } from '../../domain/ground/contact.ts'
import type { Mail, Mailer, Outcome } from '../../domain/ground/providers.ts'
import { toAsciiDomain } from './domain.ts'

export interface SmtpSettings {
  readonly server: SmtpServer
  readonly from: MailAddress
  readonly dkim?: DkimSettings
}

export interface MailAddress {
  readonly name: string | null
  readonly address: string
}

/** As nodemailer takes it. */
export interface SmtpServer {
  readonly host: string
  readonly port: number
  /** TLS from the first byte. */
  readonly secure: boolean
  /** STARTTLS or failure; with neither of these two, STARTTLS if the server offers it. */
  readonly requireTLS: boolean
  readonly ignoreTLS: boolean
  readonly auth?: { readonly user: string; readonly pass: string }
  /** `ca` in PEM; default: the runtime's authorities. */
  readonly tls: { readonly ca?: string; readonly servername?: string }
  /** For EHLO; default: this machine's name. */
  readonly name?: string
  readonly maxConnections: number
  readonly maxMessages: number
}

export interface DkimSettings {
  readonly domain: string
  readonly selector: string
  readonly privateKey: string
}

interface SmtpMailer extends Mailer {
  /** Connects and logs in; never throws. Resolves to the reason of a failure, or undefined. */
  verify(timeoutMs: number): Promise<string | undefined>
  close(): void
}

/** @param stallMs how long the server may be silent */
export function createSmtpMailer({ server, from, dkim }: SmtpSettings, stallMs: number): SmtpMailer {
  const transport = createTransport({
    pool: true,
    ...server,
    // Explicit, so that NODE_TLS_REJECT_UNAUTHORIZED cannot override it.
    tls: { ...server.tls, rejectUnauthorized: true, minVersion: 'TLSv1.2' },
    maxRequeues: 0,
    connectionTimeout: stallMs,
    greetingTimeout: stallMs,
    socketTimeout: stallMs,
    dnsTimeout: stallMs,
    // Before the socket's time-out, so that an idle connection ends with QUIT.
    idleTimeout: stallMs / 2,
    socketCloseTimeout: 1000,
    // Callers' content must never make this process read files or fetch URLs.
    disableFileAccess: true,
    disableUrlAccess: true,
    ...(dkim
      ? { dkim: { domainName: dkim.domain, keySelector: dkim.selector, privateKey: dkim.privateKey } }
      : {}),
  })
  const contents = new WeakMap<AbortSignal, Readable>()
  transport.use('stream', ({ data: { signal }, message }, done) => {
    const open = message.createReadStream.bind(message)
    message.createReadStream = (options) => {
      const content = open(options)
      if (signal) contents.set(signal, content)
      return content
    }
    done()
  })
  const domain = from.address.slice(from.address.lastIndexOf('@') + 1)

  async function submit(mail: Mail, messageId: string, signal: AbortSignal): Promise<Failed | undefined> {
    contents.delete(signal)
    try {
      await transport.sendMail({
        from: { name: mail.brandName ?? from.name ?? '', address: from.address },
        to: { name: '', address: mail.to },
        envelope: { from: from.address, to: [mail.to] },
        messageId: `<${messageId}>`,
        headers: { 'X-Request-Id': mail.requestId },
        subject: mail.subject,
        text: mail.text,
        html: mail.html,
        signal,
      })
      return undefined
    } catch (error) {
      const content = contents.get(signal)
      // nodemailer reads the content only after the server accepted DATA.
      const phase = !content ? 'connecting' : content.readableDidRead === false ? 'envelope' : 'content'
      return { phase, error: Object(error) }
    }
  }

  return {
    name: 'smtp',
    mostCalls: server.maxConnections,
    async send(mail, attempt, timeoutMs) {
      // nodemailer parses even the recipients of an explicit envelope as lists.
      if (email(mail.to, toAsciiDomain)?.to !== mail.to) {
        return { kind: 'rejected', scope: 'recipient', reason: 'not one e-mail address' }
      }
      const providerMessageId = `${mail.requestId}.${attempt}@${domain}`
      const time = new AbortController()
      const timer = setTimeout(() => time.abort(), timeoutMs)
      let failed: Failed | undefined
      do failed = await submit(mail, providerMessageId, time.signal)
      while (failed && hadEnded(failed))
      clearTimeout(timer)
      if (!failed) return { kind: 'accepted', providerMessageId }
      const outcome = outcomeOf(failed)
      return outcome.kind === 'unknown' ? { ...outcome, providerMessageId } : outcome
    },
    async verify(timeoutMs) {
      const { promise: timeUp, resolve } = Promise.withResolvers<'time-out'>()
      const timer = setTimeout(() => resolve('time-out'), timeoutMs)
      const trying = transport.verify().then(
        () => undefined,
        (error: unknown) => outcomeOf({ phase: 'connecting', error: Object(error) }).reason,
      )
      const reason = await Promise.race([trying, timeUp])
      clearTimeout(timer)
      return reason
    },
    close: () => transport.close(),
  }
}

type FailedOutcome = Exclude<Outcome, { kind: 'accepted' }>

interface Failed {
  /** Before `content` nothing of the content was sent, so the mail was not accepted. */
  readonly phase: 'connecting' | 'envelope' | 'content'
  readonly error: SmtpError
}

/** nodemailer's. `command` is the failed step; `CONN` for others, such as a lost connection. */
type SmtpError = Readonly<Partial<Record<'code' | 'originalCode' | 'command' | 'responseCode', unknown>>>

/** Whether the server had closed an idle connection. Each of these retries uses up one such connection. */
function hadEnded({ phase, error: { code, command, responseCode } }: Failed): boolean {
  // nodemailer's error for a connection that it would replace.
  const isClosed = code === 'ECONNECTION' && command === undefined && responseCode === undefined
  return phase === 'envelope' && isClosed
}

/** Only codes are reported, since a server's text repeats e-mail addresses. */
function outcomeOf({ phase, error }: Failed): FailedOutcome {
  const { code, originalCode, command, responseCode } = error
  if (typeof responseCode === 'number' && responseCode >= 400 && responseCode < 600) {
    return repliedWith(responseCode, code, command)
  }
  const word = [originalCode, code].find((each) => typeof each === 'string') ?? 'connection lost'
  const reason = word === 'EABORT' || word === 'ETIMEDOUT' ? 'time-out' : word
  // A time-out is always unknown (design D26).
  if (phase === 'content' || reason === 'time-out') return { kind: 'unknown', reason }
  // EAUTH without a reply: the server offers no supported login. Or an untrusted certificate.
  return code === 'EAUTH' || untrusted.test(reason)
    ? { kind: 'rejected', scope: 'account', reason }
    : { kind: 'retryable', reason }
}

const untrusted = /CERT|LEAF_SIGNATURE|^ERR_TLS|^ERR_SSL|^EPROTO$/

/** Replies about the login (RFC 4954 section 6). */
const loginCodes: ReadonlySet<number> = new Set([530, 534, 535, 538])

function repliedWith(status: number, code: unknown, command: unknown): FailedOutcome {
  const reason = `SMTP ${status}`
  // 503: wrong state of the session; another session may work.
  if (status < 500 || (status === 503 && code !== 'EAUTH')) return { kind: 'retryable', reason }
  if (code === 'EAUTH' || loginCodes.has(status)) return { kind: 'rejected', scope: 'account', reason }
  if (command === 'RCPT TO') return { kind: 'rejected', scope: 'recipient', reason }
  // In other steps (greeting, EHLO, STARTTLS) the server rejects this client.
  const isContent = command === 'MAIL FROM' || command === 'DATA'
  return { kind: 'rejected', scope: isContent ? 'content' : 'account', reason }
}
