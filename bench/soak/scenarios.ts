import { credentials } from '../workloads.ts'
import type { Answer, Client } from './client.ts'
import type { Gateway } from './gateway.ts'
import type { Random } from './random.ts'

/** A sent code, and what the caller knows about its lifetime. */
interface Code {
  readonly phone: string
  readonly otp: string
  readonly since: number
}

/** The time between a send and its verify, so that restarts happen between them. */
const retentionMs = { least: 1000, most: 60_000 } as const

/**
 * The requests of callers, one scenario after another, each with its own recipient. They check what must be true after any
 * failure. After a lost answer the outcome is unknown; every answer stays true.
 */
export class Traces {
  /** How often each scenario ran. */
  readonly told = new Map<string, number>()

  /** Codes that no request has tried yet, and used codes, which must stay invalid. */
  private readonly fresh: Code[] = []
  private readonly used: Code[] = []

  constructor(
    private readonly client: Client,
    private readonly gateway: Gateway,
    private readonly random: Random,
  ) {}

  /** Runs one scenario to its end. */
  async tell(): Promise<void> {
    const trace = this.random.weighted([
      [30, 'verify'],
      [12, 'keepForLater'],
      [12, 'verifyKept'],
      [8, 'verifyUsed'],
      [10, 'guess'],
      [6, 'doubleTap'],
      [12, 'notify'],
      [6, 'badInput'],
      [4, 'health'],
    ] as const)
    this.told.set(trace, (this.told.get(trace) ?? 0) + 1)
    await this[trace]()
  }

  /** Some wrong codes, the right one several times at once, and once more. */
  private async verify(): Promise<void> {
    const code = await this.sendCode()
    if (!code) return
    const wrong = this.random.integer(0, 2)
    for (let count = 0; count < wrong; count += 1) {
      this.expect('a wrong code', await this.guessAt(code, otherThan(code.otp)), '401 mismatch')
    }
    const answers = await Promise.all(
      Array.from({ length: this.random.integer(1, 3) }, () => this.guessAt(code, code.otp)),
    )
    for (const answer of answers) this.expect('the right code', answer, '200', '404 not_found')
    const successes = answers.filter((answer) => answer?.status === 200).length
    const isKnown = answers.every((answer) => answer !== undefined)
    if (successes > 1 || (isKnown && successes === 0)) {
      this.violation(`a right code verified ${successes} times of ${answers.length}`, answers)
    }
    if (successes === 1) {
      this.expect('a used code', await this.guessAt(code, code.otp), '404 not_found')
      this.used.push(code)
      if (this.used.length > 1000) this.used.shift()
    }
  }

  private async keepForLater(): Promise<void> {
    const code = await this.sendCode()
    if (code) this.fresh.push(code)
  }

  /** An answered send is on the disk: its code verifies once, also after kills of the server. */
  private async verifyKept(): Promise<void> {
    const [code] = this.fresh
    if (!code || performance.now() - code.since < retentionMs.least) return
    this.fresh.shift()
    if (performance.now() - code.since > retentionMs.most) return
    const answer = await this.guessAt(code, code.otp)
    this.expect('a code sent a while ago', answer, '200')
    if (answer) this.used.push(code)
  }

  /** A used code is on the disk as well: it never verifies again. */
  private async verifyUsed(): Promise<void> {
    if (this.used.length === 0) return
    const code = this.random.of(this.used)
    this.expect('a code used a while ago', await this.guessAt(code, code.otp), '404 not_found')
  }

  /** At most three wrong codes count, also at once; after them the correct code is rejected too. */
  private async guess(): Promise<void> {
    const code = await this.sendCode()
    if (!code) return
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => this.guessAt(code, otherThan(code.otp))),
    )
    for (const answer of answers) this.expect('a guess', answer, '401 mismatch', '429 max_attempts')
    const compared = answers.filter((answer) => answer?.status === 401).length
    const isKnown = answers.every((answer) => answer !== undefined)
    if (compared > 3 || (isKnown && compared < 3)) {
      this.violation(`${compared} guesses of ${answers.length} were compared`, answers)
    }
    if (isKnown) this.expect('the right code', await this.guessAt(code, code.otp), '429 max_attempts')
  }

  /** Two simultaneous sends cause one SMS. */
  private async doubleTap(): Promise<void> {
    const phone = this.newPhone()
    const answers = await Promise.all([1, 2].map(() => this.client.post('/otp/send', { phone })))
    for (const answer of answers)
      this.expect('a double tap', answer, '200', '429 cooldown_active', '502 sms_failed')
    const sent = answers.filter((answer) => answer?.status === 200)
    if (sent.length > 1) this.violation('both of two sends at once went out', answers)
    for (const answer of sent) this.requireDelivered(answer, [phone])
  }

  private async notify(): Promise<void> {
    const to = Array.from({ length: this.random.integer(1, 3) }, () => this.newPhone())
    const answer = await this.client.post('/notify', { channel: 'SMS', to, message: 'Your parcel is here.' })
    this.expect('a notification', answer, '200', '500 notification_failed')
    if (answer?.status === 200) this.requireDelivered(answer, to)
  }

  private async badInput(): Promise<void> {
    const phone = this.newPhone()
    const caller = { ...credentials, brandId: 'acme' }
    const [path, body, ...expected] = this.random.of<readonly [string, string, ...string[]]>([
      ['/otp/send', '{', '400 validation_error'],
      ['/otp/send', '[]', '400 validation_error'],
      ['/otp/send', JSON.stringify({ ...caller, phone: 'nobody' }), '400 validation_error'],
      ['/otp/send', JSON.stringify({ ...credentials, phone }), '400 brand_id_required'],
      ['/otp/send', JSON.stringify({ ...caller, brandId: 'unknown', phone }), '403 brand_not_approved'],
      ['/otp/send', JSON.stringify({ ...caller, apiKey: '', phone }), '401 unauthorized'],
      [
        '/otp/send',
        JSON.stringify({ ...caller, phone, padding: 'x'.repeat(300_000) }),
        '413 validation_error',
      ],
      ['/otp/verify', JSON.stringify({ ...caller, phone, otp: '12345' }), '400 invalid_otp_format'],
      ['/otp/verify', JSON.stringify({ ...caller, phone, otp: 123456 }), '400 invalid_input'],
      ['/otp/verify', JSON.stringify({ ...caller, phone, otp: '123456' }), '404 not_found'],
      ['/notify', JSON.stringify({ ...caller, channel: 'FAX', to: [phone] }), '400 invalid_channel'],
      ['/notify', JSON.stringify({ ...caller, channel: 'SMS', to: [] }), '400 validation_error'],
      ['/nowhere', '{}', '404 not_found'],
    ])
    this.expect(`${path} with ${body.slice(0, 200)}`, await this.client.postRaw(path, body), ...expected)
  }

  private async health(): Promise<void> {
    this.expect('the health', await this.client.request('/health'), '200')
  }

  /** Sends a code to a new recipient. Returns the code if the send succeeded. */
  private async sendCode(): Promise<Code | undefined> {
    const phone = this.newPhone()
    const answer = await this.client.post('/otp/send', { phone })
    this.expect('a send', answer, '200', '502 sms_failed')
    if (answer?.status === 502) {
      this.expect('a code of a failed send', await this.guessAt({ phone }, '123456'), '404 not_found')
    }
    if (answer?.status !== 200) return undefined
    const [delivery] = this.requireDelivered(answer, [phone])
    const otp = /\d{6}/.exec(delivery?.text ?? '')?.[0]
    return otp === undefined ? undefined : { phone, otp, since: performance.now() }
  }

  private guessAt({ phone }: Pick<Code, 'phone'>, otp: string): Promise<Answer | undefined> {
    return this.client.post('/otp/verify', { phone, otp })
  }

  /** The gateway has each successful message, once for each recipient. */
  private requireDelivered(answer: Answer | undefined, to: readonly string[]) {
    const deliveries = this.gateway.taken(answer?.requestId ?? '')
    const reached = deliveries.map((delivery) => delivery.to).sort()
    if (reached.join() !== [...to].sort().join()) {
      this.violation(`a message to ${to.join(', ')} was delivered to ${reached.join(', ') || 'nobody'}`, [
        answer,
      ])
    }
    return deliveries
  }

  /** An answer must be one of these. Each is a status and, for an error, its code. */
  private expect(what: string, answer: Answer | undefined, ...expected: readonly string[]): void {
    if (!answer) return
    const got = `${answer.status} ${answer.error}`.trim()
    if (!expected.includes(got))
      this.violation(`${what} answered ${got} instead of ${expected.join(' or ')}`, [answer])
  }

  private violation(what: string, answers: readonly (Answer | undefined)[]): void {
    const requestIds = answers.map((answer) => answer?.requestId ?? 'lost').join(', ')
    this.client.violations.push(`${what} (${requestIds})`)
  }

  private newPhone(): string {
    return `91${String(this.random.integer(0, 9_999_999_999)).padStart(10, '0')}`
  }
}

function otherThan(otp: string): string {
  return otp === '111111' ? '222222' : '111111'
}
