import { createTransport } from 'nodemailer'
import { email } from '../../domain/contact.ts'
import type { Mail, Mailer, Outcome } from '../../domain/ports.ts'
import { isLoopback } from '../../settings.ts'

export interface SmtpSettings {
  /** nodemailer's connection URL, `smtp://` or `smtps://`, with its options as query parameters. */
  readonly url: string
  readonly from: MailAddress
}

export interface MailAddress {
  readonly name: string | null
  readonly address: string
}

/** How many mails are handed over at the same time, each over a connection that is kept open. */
const connections = 8

/**
 * Sends mail through an SMTP server, over a pool of connections.
 *
 * @param stallMs after which a server that says nothing is hung up on: a mail that was given up must not be sent when the
 * server recovers, nor keep its connection from the next
 */
export function createSmtpMailer({ url, from }: SmtpSettings, stallMs: number): Mailer & { close(): void } {
  const { hostname, searchParams } = new URL(url)
  const transport = createTransport({
    url,
    pool: true,
    maxConnections: connections,
    maxMessages: Number.POSITIVE_INFINITY,
    // Without it a server, or who stands in between, decides whether the mail crosses the network in the clear.
    ...(isLoopback(hostname) || searchParams.has('requireTLS') || searchParams.has('ignoreTLS')
      ? {}
      : { requireTLS: true }),
    connectionTimeout: stallMs,
    greetingTimeout: stallMs,
    socketTimeout: stallMs,
    dnsTimeout: stallMs,
    // Mail content comes from callers: it must never make this process read files or fetch addresses.
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  const slots = new Slots(connections)
  const domain = from.address.slice(from.address.lastIndexOf('@') + 1)

  /** Asynchronous as a whole, so that whatever is thrown on the way rejects, and gives the place back. */
  async function handOver(mail: Mail): Promise<void> {
    await transport.sendMail({
      from: { name: mail.brandName ?? from.name ?? '', address: from.address },
      to: { name: '', address: mail.to },
      envelope: { from: from.address, to: [mail.to] },
      messageId: `<${mail.id}@${domain}>`,
      headers: { 'X-Request-Id': mail.requestId },
      subject: mail.subject,
      text: mail.text,
      html: mail.html,
    })
  }

  return {
    name: 'smtp',
    async send(mail, timeoutMs) {
      // nodemailer reads even the addresses of an explicit envelope as lists.
      if (email(mail.to)?.address !== mail.to) {
        return { kind: 'rejected', scope: 'recipient', reason: 'not one address' }
      }
      const deadline = performance.now() + timeoutMs
      // Waiting here and not in nodemailer's queue: a mail whose time is up must not be sent when a server recovers.
      if (!(await slots.take(timeoutMs))) return { kind: 'unavailable', reason: 'no connection free in time' }
      const sent = handOver(mail)
        .then((): Outcome => ({ kind: 'accepted' }), outcomeOf)
        .finally(() => slots.free())
      return inTime(sent, deadline - performance.now(), { kind: 'unknown', reason: 'time-out' })
    },
    close: () => transport.close(),
  }
}

/** A number of places, waited for in order. */
class Slots {
  private readonly waiting = new Set<() => void>()

  constructor(private left: number) {}

  /** Resolves to whether a place was had within the time. */
  take(timeoutMs: number): Promise<boolean> {
    if (this.left > 0) {
      this.left--
      return Promise.resolve(true)
    }
    return new Promise((resolve) => {
      const had = () => {
        clearTimeout(timer)
        resolve(true)
      }
      // Whoever gives up leaves the line at once: a place handed to nobody would be lost.
      const timer = setTimeout(() => {
        this.waiting.delete(had)
        resolve(false)
      }, timeoutMs)
      this.waiting.add(had)
    })
  }

  free(): void {
    const [next] = this.waiting
    if (next === undefined) {
      this.left++
      return
    }
    this.waiting.delete(next)
    next()
  }
}

/** What a promise resolves to, or `late` when its time is up before. */
async function inTime<T>(promise: Promise<T>, timeoutMs: number, late: T): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const timeUp = new Promise<T>((resolve) => {
    timer = setTimeout(() => resolve(late), timeoutMs)
  })
  try {
    return await Promise.race([promise, timeUp])
  } finally {
    clearTimeout(timer)
  }
}

/** Replies that concern who we are, not what we send (RFC 4954 section 6). */
const loginCodes: ReadonlySet<number> = new Set([530, 534, 535, 538])

/** What an SMTP failure means; only its code is told, since a server's text repeats addresses. */
function outcomeOf(error: unknown): Outcome {
  const { responseCode, code, command } = error as {
    responseCode?: unknown
    code?: unknown
    command?: unknown
  }
  if (typeof responseCode === 'number' && responseCode >= 400) {
    const reason = `SMTP ${responseCode}`
    if (responseCode < 500) return { kind: 'unavailable', reason }
    if (code === 'EAUTH' || loginCodes.has(responseCode))
      return { kind: 'rejected', scope: 'account', reason }
    return { kind: 'rejected', scope: command === 'RCPT TO' ? 'recipient' : 'message', reason }
  }
  const reason = typeof code === 'string' ? code : 'connection lost'
  const unsent = command === 'CONN' || ['ECONNECTION', 'EDNS', 'ETLS', 'EAUTH'].includes(reason)
  return { kind: unsent ? 'unavailable' : 'unknown', reason }
}
