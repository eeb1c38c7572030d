import type { AddressInfo } from 'node:net'
import PostalMime, { type Email } from 'postal-mime'
import { SMTPServer, type SMTPServerOptions, type SMTPServerSession } from 'smtp-server'

/** A mail that the server took over. */
export interface ReceivedMail {
  /** The e-mail address in MAIL FROM. */
  readonly from: string
  /** The e-mail address in each RCPT TO. */
  readonly to: readonly string[]
  /** The connection that it came over. */
  readonly sessionId: string
  readonly secure: boolean
  /** Who logged in. */
  readonly user: string | undefined
  /** The mail as it was on the wire. */
  readonly raw: string
  readonly mail: Email
}

/** A reply of the server in the place of its agreement, such as 550. */
export interface Refusal {
  readonly at: 'AUTH' | 'RCPT' | 'DATA'
  readonly code: number
  readonly message: string
}

interface Behaviour {
  /** The users that may log in, with their passwords; undefined: login is not required. */
  readonly users?: Readonly<Record<string, string>>
  /** Whether STARTTLS is offered, with a certificate that only its own maker vouches for. */
  readonly startTls?: boolean
}

/** Self-signed for localhost and 127.0.0.1 until 2120; the key is as public as this file and guards nothing. */
export const selfSigned = {
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQggsN5J+DLojQik6NM
6aqTNWm3RzO7E6IzH2invlkddXWhRANCAAQ0XIBTFR0n3o7n/BeyauEwctRSZu31
T7vK2LUGjhD9B4sko2rAnjJNq+8h4vaXSFdGuh30J1c7EJSQFV2ynPTs
-----END PRIVATE KEY-----`,
  cert: `-----BEGIN CERTIFICATE-----
MIIBVTCB/KADAgECAgEBMAoGCCqGSM49BAMCMBQxEjAQBgNVBAMMCWxvY2FsaG9z
dDAgFw0yMDAxMDEwMDAwMDBaGA8yMTIwMDEwMTAwMDAwMFowFDESMBAGA1UEAwwJ
bG9jYWxob3N0MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAENFyAUxUdJ96O5/wX
smrhMHLUUmbt9U+7yti1Bo4Q/QeLJKNqwJ4yTavvIeL2l0hXRrod9CdXOxCUkBVd
spz07KM9MDswGgYDVR0RBBMwEYIJbG9jYWxob3N0hwR/AAABMB0GA1UdDgQWBBRK
gKKsBimHLzm+koWX9bSfn/3HTDAKBggqhkjOPQQDAgNIADBFAiAMWoHHfkNGoxAh
108i3MbwR88FZOkSAj7k3JCTu897dAIhAK2g3MLBTzSMlo4jkLbU/QM25hzGd/wU
TKnLz9+tokop
-----END CERTIFICATE-----`,
} as const

/** A real SMTP server as an operator's mail server: keeps what it got, refuses what the test says. */
export async function startSmtp({ users, startTls = false }: Behaviour = {}) {
  const received: ReceivedMail[] = []
  const recipients: string[] = []
  const arrivals: { count: number; resolve: () => void }[] = []
  let refusal: Refusal | undefined
  let held: Promise<void> | undefined
  let closed = 0
  const closings: { count: number; resolve: () => void }[] = []

  const refusalAt = (at: Refusal['at']): Error | null => {
    if (refusal?.at !== at) return null
    return Object.assign(new Error(refusal.message), { responseCode: refusal.code })
  }
  const keep = async (session: SMTPServerSession, raw: string) => {
    const { mailFrom, rcptTo } = session.envelope
    received.push({
      from: mailFrom ? mailFrom.address : '',
      to: rcptTo.map(({ address }) => address),
      sessionId: session.id,
      secure: session.secure,
      user: session.user,
      raw,
      mail: await PostalMime.parse(raw),
    })
    for (const { count, resolve } of arrivals) if (received.length >= count) resolve()
  }
  const options: SMTPServerOptions = {
    ...(startTls ? selfSigned : {}),
    disabledCommands: [...(startTls ? [] : ['STARTTLS']), ...(users ? [] : ['AUTH'])],
    allowInsecureAuth: true,
    authOptional: users === undefined,
    disableReverseLookup: true,
    onAuth({ username = '', password }, _session, done) {
      const refused = refusalAt('AUTH')
      if (refused) done(refused)
      else if (users?.[username] === password) done(null, { user: username })
      else done(Object.assign(new Error('wrong user or password'), { responseCode: 535 }))
    },
    async onRcptTo({ address }, _session, done) {
      recipients.push(address)
      await held
      done(refusalAt('RCPT'))
    },
    onClose() {
      closed++
      for (const { count, resolve } of closings) if (closed >= count) resolve()
    },
    async onData(stream, session, done) {
      const chunks: Buffer[] = []
      for await (const chunk of stream) chunks.push(Buffer.from(chunk))
      const refused = refusalAt('DATA')
      if (!refused) await keep(session, Buffer.concat(chunks).toString())
      done(refused)
    },
  }
  const server = new SMTPServer(options)
  // Clients that disconnect or reject a certificate are part of the tests.
  server.on('error', () => undefined)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.server.address() as AddressInfo

  return {
    port,
    url: `smtp://127.0.0.1:${port}`,
    received,
    /** Every e-mail address in RCPT TO, accepted or not. */
    recipients,
    /** How the next mails are refused; undefined takes them. */
    refuse(next: Refusal | undefined): void {
      refusal = next
    },
    /** Sends no reply to RCPT TO until the returned function is called. */
    hold(): () => void {
      const { promise, resolve } = Promise.withResolvers<void>()
      held = promise
      return () => {
        held = undefined
        resolve()
      }
    },
    /** Resolves when this many connections have ended. */
    hungUp(count: number): Promise<void> {
      const { promise, resolve } = Promise.withResolvers<void>()
      if (closed >= count) resolve()
      else closings.push({ count, resolve })
      return promise
    },
    /** Resolves when this many mails have been accepted. */
    arrived(count: number): Promise<void> {
      const { promise, resolve } = Promise.withResolvers<void>()
      if (received.length >= count) resolve()
      else arrivals.push({ count, resolve })
      return promise
    },
    stop: () => new Promise<void>((resolve) => server.close(resolve)),
  }
}

/** A server that takes connections and never says a word. */
export function startSilentServer() {
  const connected = Promise.withResolvers<void>()
  const server = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: { open: () => connected.resolve(), data: () => undefined },
  })
  return {
    port: server.port,
    url: `smtp://127.0.0.1:${server.port}`,
    connected: connected.promise,
    stop: () => server.stop(true),
  }
}

/** The steps of a mail at which a server can break, in their order. `content` ends with the dot. */
export type Step = 'greeting' | 'EHLO' | 'STARTTLS' | 'MAIL' | 'RCPT' | 'DATA' | 'content'

interface Breakage {
  readonly at: Step
  /** `drop` hangs up, `reset` does so without leave, `hang` says nothing more; anything else is said instead of the usual reply. */
  readonly by: string
  /** How many mails it takes over each connection before that. */
  readonly after?: number
  /** How many connections it takes at all; the next are dropped without a greeting. */
  readonly only?: number
  /** Whether it lets the client send the steps before the content at once (RFC 2920). */
  readonly pipelining?: boolean
}

/** A mail server, in no more than the words it takes, that breaks at a step of a mail. */
export function startBrittleServer({ at, by, after = 0, only = Infinity, pipelining = false }: Breakage) {
  const usual: Readonly<Record<Step, string>> = {
    greeting: '220 brittle',
    EHLO: pipelining ? '250-brittle\r\n250 PIPELINING' : '250 brittle',
    STARTTLS: '220 go on',
    MAIL: '250 ok',
    RCPT: '250 ok',
    DATA: '354 go on',
    content: '250 taken',
  }
  const contents: string[] = []
  let connections = 0
  const server = Bun.listen<{ unread: string; inContent: boolean; taken: number }>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open(socket) {
        socket.data = { unread: '', inContent: false, taken: 0 }
        if (++connections > only) {
          socket.end()
          return
        }
        reply(socket, 'greeting')
      },
      data(socket, chunk) {
        const state = socket.data
        state.unread += chunk.toString()
        for (;;) {
          const end = state.inContent ? '\r\n.\r\n' : '\r\n'
          const length = state.unread.indexOf(end)
          if (length < 0) return
          const said = state.unread.slice(0, length)
          state.unread = state.unread.slice(length + end.length)
          if (state.inContent) {
            contents.push(said)
            state.inContent = false
            reply(socket, 'content')
            state.taken++
            continue
          }
          const step = (['EHLO', 'STARTTLS', 'MAIL', 'RCPT', 'DATA'] as const).find((word) =>
            said.startsWith(word),
          )
          if (step === undefined) socket.write('250 ok\r\n')
          else if (reply(socket, step) && step === 'DATA') state.inContent = true
        }
      },
    },
  })

  /** Whether the reply was the usual one. */
  function reply(socket: Bun.Socket<{ taken: number }>, step: Step): boolean {
    const breaks = step === at && socket.data.taken === after
    if (!breaks) socket.write(`${usual[step]}\r\n`)
    else if (by === 'drop') socket.end()
    else if (by === 'reset') socket.terminate()
    else if (by !== 'hang') socket.write(`${by}\r\n`)
    return !breaks
  }

  return {
    url: `smtp://127.0.0.1:${server.port}`,
    /** Each content that arrived whole. */
    contents,
    get connections() {
      return connections
    },
    stop: () => server.stop(true),
  }
}
