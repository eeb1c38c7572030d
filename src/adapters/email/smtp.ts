import type { Readable } from 'node:stream'
import { domainToASCII } from 'node:url'
import { createTransport } from 'nodemailer'
import { email } from '../../domain/contact.ts'
import type { Mail, Mailer, Outcome } from '../../domain/messages/providers.ts'

export interface SmtpSettings {
  readonly server: SmtpServer
  readonly from: MailAddress
  /** Undefined: mails are not signed here. */
  readonly dkim?: DkimSettings
}

export interface MailAddress {
  readonly name: string | null
  readonly address: string
}

export interface SmtpServer {
  readonly host: string
  readonly port: number
  /**
   * `implicit`: from the first byte. `required`: by STARTTLS, or the mail is not sent. `offered`: by STARTTLS where the
   * server offers it. `never`: in the clear. Wherever there is TLS, the certificate is checked.
   */
  readonly tls: 'implicit' | 'required' | 'offered' | 'never'
  /** The certificates, in PEM, of who may vouch for the server; undefined: whom the runtime trusts. */
  readonly ca?: string
  /** The name in the server's certificate where it is not the host. */
  readonly certificateName?: string
  readonly login?: { readonly user: string; readonly password: string }
  /** How we introduce ourselves (EHLO); undefined: as nodemailer does, by the name of this machine. */
  readonly clientName?: string
  /** How many mails are handed over at the same time, each over a connection that is kept for the next. */
  readonly maxConnections: number
  /** How many go over one connection before it is replaced. */
  readonly maxMessages: number
}

export interface DkimSettings {
  readonly domain: string
  readonly selector: string
  /** An RSA key, in PEM. */
  readonly privateKey: string
}

export interface SmtpMailer extends Mailer {
  /** Connects and logs in as for a mail, without one; never throws. Resolves to why that failed, if it did. */
  verify(timeoutMs: number): Promise<string | undefined>
  close(): void
}

/**
 * Sends mail through an SMTP server, over a pool of connections. A mail whose time is up is withdrawn with its
 * connection: it is not sent when the server recovers, and is in nobody's way.
 *
 * @param stallMs after which a server that says nothing is hung up on
 */
export function createSmtpMailer({ server, from, dkim }: SmtpSettings, stallMs: number): SmtpMailer {
  const transport = createTransport({
    pool: true,
    host: server.host,
    port: server.port,
    secure: server.tls === 'implicit',
    requireTLS: server.tls === 'required',
    ignoreTLS: server.tls === 'never',
    tls: {
      // Said aloud, so that no variable of the environment (NODE_TLS_REJECT_UNAUTHORIZED) says otherwise.
      rejectUnauthorized: true,
      minVersion: 'TLSv1.2',
      ...(server.ca === undefined ? {} : { ca: server.ca }),
      ...(server.certificateName === undefined ? {} : { servername: server.certificateName }),
    },
    ...(server.login ? { auth: { user: server.login.user, pass: server.login.password } } : {}),
    ...(server.clientName === undefined ? {} : { name: server.clientName }),
    maxConnections: server.maxConnections,
    maxMessages: server.maxMessages,
    // What may go out again, and what must not, is decided here.
    maxRequeues: 0,
    connectionTimeout: stallMs,
    greetingTimeout: stallMs,
    socketTimeout: stallMs,
    dnsTimeout: stallMs,
    // Before the socket's, so that a connection that is not needed ends with QUIT.
    idleTimeout: stallMs / 2,
    socketCloseTimeout: 1000,
    // Mail content comes from callers: it must never make this process read files or fetch addresses.
    disableFileAccess: true,
    disableUrlAccess: true,
    ...(dkim
      ? { dkim: { domainName: dkim.domain, keySelector: dkim.selector, privateKey: dkim.privateKey } }
      : {}),
  })
  /** What is left to read of each mail that a connection was found for, by the signal that withdraws it. */
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
  const written = from.address.slice(from.address.lastIndexOf('@') + 1)
  const domain = domainToASCII(written) || written

  /** Asynchronous as a whole, so that whatever is thrown on the way is caught. */
  async function handOver(mail: Mail, messageId: string, signal: AbortSignal): Promise<Handover> {
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
      return 'accepted'
    } catch (error) {
      const content = contents.get(signal)
      // nodemailer reads it when the server has agreed to take it (DATA), and not before.
      const phase = !content ? 'connecting' : content.readableDidRead === false ? 'envelope' : 'content'
      return { phase, error: Object(error) }
    }
  }

  return {
    name: 'smtp',
    async send(mail, attempt, timeoutMs) {
      // nodemailer reads even the addresses of an explicit envelope as lists.
      if (email(mail.to)?.address !== mail.to) {
        return { kind: 'rejected', scope: 'recipient', reason: 'not one address' }
      }
      const providerMessageId = `${mail.requestId}.${attempt}@${domain}`
      const time = new AbortController()
      const timer = setTimeout(() => time.abort(), timeoutMs)
      let handover: Handover
      do handover = await handOver(mail, providerMessageId, time.signal)
      while (hadEnded(handover))
      clearTimeout(timer)
      if (handover === 'accepted') return { kind: 'accepted', providerMessageId }
      const outcome = outcomeOf(handover)
      // The server knows the mail by our id, also where its answer was lost.
      return outcome.kind === 'unknown' ? { ...outcome, providerMessageId } : outcome
    },
    async verify(timeoutMs) {
      const { promise: timeUp, resolve } = Promise.withResolvers<'time-out'>()
      const timer = setTimeout(() => resolve('time-out'), timeoutMs)
      const trying = transport.verify().then(
        () => undefined,
        (error: unknown) => reasonOf(outcomeOf({ phase: 'connecting', error: Object(error) })),
      )
      const reason = await Promise.race([trying, timeUp])
      clearTimeout(timer)
      return reason
    },
    close: () => transport.close(),
  }
}

/** How a mail was handed over: how far it came before it failed, and with what. */
type Handover = 'accepted' | Failed

interface Failed {
  /** In `connecting` and `envelope` nothing of the mail itself was sent, so that it can't have been taken. */
  readonly phase: 'connecting' | 'envelope' | 'content'
  readonly error: SmtpError
}

/** As much as is told of what nodemailer throws. */
interface SmtpError {
  readonly code?: unknown
  readonly originalCode?: unknown
  /** The step that failed; `CONN` where it was none, such as a lost connection. */
  readonly command?: unknown
  /** What the server replied. */
  readonly responseCode?: unknown
}

/**
 * Whether a kept connection turned out to have been ended by the server: by its limit of mails over one connection, or
 * of its patience. Another will do, and of those that have ended there is one less now.
 */
function hadEnded(handover: Handover): boolean {
  if (handover === 'accepted' || handover.phase !== 'envelope') return false
  // nodemailer's way of saying that it would try another, if it were allowed to.
  const { code, command, responseCode } = handover.error
  return code === 'ECONNECTION' && command === undefined && responseCode === undefined
}

function reasonOf(outcome: Outcome): string | undefined {
  return outcome.kind === 'accepted' ? undefined : outcome.reason
}

/** What a failure means. Only its code is told, since a server's words repeat addresses. */
function outcomeOf({ phase, error }: Failed): Outcome {
  const { code, originalCode, command, responseCode } = error
  if (typeof responseCode === 'number' && responseCode >= 400 && responseCode < 600) {
    return repliedWith(responseCode, code, command)
  }
  const word = [originalCode, code].find((each) => typeof each === 'string') ?? 'connection lost'
  // Ours (EABORT) or nodemailer's own, which runs as long: whichever comes first.
  const reason = word === 'EABORT' || word === 'ETIMEDOUT' ? 'time-out' : word
  // A time-out counts as unknown wherever it strikes (design D26).
  if (phase === 'content' || reason === 'time-out') return { kind: 'unknown', reason }
  // A login that was not even tried, since the server offers none that we know; or a server that we must not trust.
  return code === 'EAUTH' || untrusted.test(reason)
    ? { kind: 'rejected', scope: 'account', reason }
    : { kind: 'retryable', reason }
}

/** The codes of a certificate that was not accepted, such as SELF_SIGNED_CERT_IN_CHAIN, and of TLS itself. */
const untrusted = /CERT|LEAF_SIGNATURE|^ERR_TLS|^ERR_SSL|^EPROTO$/

/** Replies that concern who we are, not what we send (RFC 4954 section 6). */
const loginCodes: ReadonlySet<number> = new Set([530, 534, 535, 538])

/** What the server's reply to a step means. With any of these it says itself that it has not taken the mail. */
function repliedWith(status: number, code: unknown, command: unknown): Outcome {
  const reason = `SMTP ${status}`
  // 503 says that the session was in the wrong state for the step, which another may not be.
  if (status < 500 || (status === 503 && code !== 'EAUTH')) return { kind: 'retryable', reason }
  if (code === 'EAUTH' || loginCodes.has(status)) return { kind: 'rejected', scope: 'account', reason }
  switch (command) {
    case 'RCPT TO':
      return { kind: 'rejected', scope: 'recipient', reason }
    case 'MAIL FROM':
    case 'DATA':
      return { kind: 'rejected', scope: 'content', reason }
    default:
      // Greeting, EHLO, STARTTLS: it does not want to talk to us, or not in the way we ask for.
      return { kind: 'rejected', scope: 'account', reason }
  }
}
