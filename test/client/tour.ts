import { createClient, EventError, verifyEvent } from 'otpost/client'

// A program that uses the client on any runtime, and prints the results as JSON.

interface Scene {
  readonly service: string
  /** Servers other than otpost, by their behaviour. */
  readonly others: Readonly<Record<string, string>>
  /** Two phone numbers of this tour alone. */
  readonly phones: readonly [string, string]
  readonly appId: string
  readonly apiKey: string
  /** The module of the README's example. */
  readonly example: string
  /** An event that was signed just now. */
  readonly event: {
    readonly secret: string
    readonly body: string
    readonly headers: Readonly<Record<string, string>>
  }
}

interface Example {
  askForCode(phone: string): Promise<string>
  checkCode(phone: string, otp: string): Promise<true | string>
}

const { service, others, phones, appId, apiKey, example, event }: Scene = JSON.parse(process.argv[2] ?? '')
const [phone, otherPhone] = phones
const told: Record<string, unknown> = {}

const otpost = createClient({ url: service, appId, apiKey, brandId: 'acme' })

async function lastCode(to: string): Promise<string> {
  const answer = await fetch(`${service}/outbox/messages?to=${encodeURIComponent(to)}`)
  const { messages }: { messages: readonly { text: string }[] } = JSON.parse(await answer.text())
  return /\d{6}/.exec(messages.at(-1)?.text ?? '')?.[0] ?? ''
}

told.sent = await otpost.send({ phone })
const otp = await lastCode(phone)
told.wrong = await otpost.verify({ phone, otp: otp === '111111' ? '222222' : '111111' })
told.verified = await otpost.verify({ phone, otp })
told.used = await otpost.verify({ phone, otp })
told.soon = await otpost.resend({ phone })
told.notified = await otpost.notify({
  channel: 'EMAIL',
  to: ['pat@example.com'],
  subject: 'Hello',
  html: '<p>Hello',
})
told.stranger = await createClient({ url: service, appId, apiKey: 'wrong' }).send({ phone })

const { askForCode, checkCode }: Example = await import(example)
told.asked = await askForCode(otherPhone)
told.checked = await checkCode(otherPhone, await lastCode(otherPhone))
told.askedForNobody = await askForCode('nobody')

for (const [what, url] of Object.entries(others)) {
  const client = createClient({
    url,
    appId,
    apiKey,
    retry: { maxAttempts: 2, maxWaitMs: 10, baseDelayMs: 1 },
  })
  const isSlow = what === 'silent' || what === 'half'
  told[what] = await client.send({ phone }, { timeoutMs: isSlow ? 100 : 10_000 })
}
told.nobody = await createClient({ url: 'http://127.0.0.1:1', appId, apiKey }).send({ phone })

told.event = await verifyEvent(event.body, event.headers, event.secret)
told.forgedEvent = await verifyEvent(`${event.body} `, new Headers(event.headers), event.secret).catch(
  (error: unknown) => (error instanceof EventError ? error.code : error),
)

/** The error of a call that is aborted through `begin`. */
async function abortOf(what: string, begin: (abort: () => void) => void): Promise<string> {
  const controller = new AbortController()
  const reason = new Error('aborted by the tour')
  const abort = () => controller.abort(reason)
  // The abort comes right before the pause begins.
  const random = () => {
    if (what === 'busy') queueMicrotask(abort)
    return 0
  }
  const client = createClient({ url: others[what] ?? '', appId, apiKey, random })
  const call = client.send({ phone }, { signal: controller.signal })
  begin(abort)
  return call.then(
    () => 'it did not reject',
    (error: unknown) => (error === reason ? 'its reason' : 'another reason'),
  )
}

told.abortedRequest = await abortOf('silent', (abort) => abort())
told.abortedPause = await abortOf('busy', () => {})

console.log(JSON.stringify(told))
