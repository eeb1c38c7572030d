import { credentials, otherThan } from '../support/app.ts'
import {
  type Attack,
  anyOf,
  attack,
  behindProxy,
  noSendLimits,
  startTarget,
  type Target,
  unless,
  verdict,
} from './attack.ts'

/** Spellings of one handset each (design D5). */
const british = [
  '+44 7911 123456',
  '+44 (0)7911 123456',
  '00447911123456',
  '+00447911123456',
  '4407911123456',
]
const national = ['07911 123456', '0447911123456']
const handsets: Readonly<Record<string, readonly string[]>> = {
  DE: ['+49 1512 3456789', '+49 (0)1512 3456789', '0049 1512 3456789', '0049 0 1512 3456789'],
  FR: ['+33 6 12 34 56 78', '+33 (0)6 12 34 56 78'],
  IN: ['+91 98123 45678', '+91 (0)98123 45678', '0091 098123 45678'],
  RU: ['+7 912 345-67-89', '+7 8 912 345-67-89'],
  AR: ['+54 9 11 2345-6789', '+54 11 15 2345-6789', '+54 (0)11 15 2345-6789'],
  MX: ['+52 55 1234 5678', '+52 1 55 1234 5678'],
}

/** Sends to each of these, all one recipient; what is wrong unless only the first is sent. */
async function unlessOneSent(
  { post }: Target,
  spellings: readonly string[],
  channel: 'SMS' | 'EMAIL' = 'SMS',
): Promise<string | undefined> {
  const sent: string[] = []
  for (const to of spellings) {
    const recipient = channel === 'SMS' ? { phone: to } : { email: to }
    const answer = await post('/otp/send', { channel, ...recipient })
    if (answer.status === 200) sent.push(to)
  }
  return sent.length === 1 ? undefined : `sent to ${sent.length} of ${spellings.length}: ${sent.join(' | ')}`
}

/** Sends and guesses wrong in turn, as long as it can, at most this often; resolves to the number of wrong guesses. */
async function guesses(
  { post, messages }: Target,
  recipient: { readonly phone: string; readonly brandId?: string },
  most: number,
): Promise<number> {
  let wrong = 0
  while (wrong < most) {
    if ((await post('/otp/send', recipient)).status !== 200) break
    const code = /\d{6}/.exec((await messages(recipient.phone)).at(-1)?.text ?? '')?.[0] ?? ''
    const before = wrong
    for (const _ of [1, 2, 3]) {
      const answer = await post('/otp/verify', { ...recipient, otp: otherThan(code) })
      if (verdict(answer) === '401 mismatch') wrong++
    }
    if (wrong === before) break
  }
  return wrong
}

/** A gateway that gets each message and never answers. */
function stalledGateway() {
  const received: string[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      received.push(`${request.url} ${await request.text()}`)
      return new Promise<Response>(() => {})
    },
  })
  const url = `http://127.0.0.1:${server.port}`
  return { url, received, [Symbol.dispose]: () => void server.stop(true) }
}

/** Settings for providers that are not answered: of all of one name or of two. */
function stalledBy(url: string, names: string): Record<string, string> {
  return {
    SMS_PLAIN: names,
    SMS_WEBHOOK_URL: `${url}/webhook`,
    SMS_WEBHOOK_SECRET: `whsec_${Buffer.from('a secret of the test, 32 bytes..').toString('base64')}`,
    KANNEL_URL: `${url}/kannel`,
    KANNEL_USERNAME: 'otpost',
    KANNEL_PASSWORD: 'password of the gateway',
    KANNEL_FROM: 'Otpost',
    PROVIDER_TIMEOUT_MS: '150',
  }
}

const phone = '+44 7911 123456'

const identities: readonly Attack[] = [
  attack(
    'the spellings of one British number, PHONE_DEFAULT_REGION=GB, each with a cooldown of its own',
    { PHONE_DEFAULT_REGION: 'GB' },
    async (target) => {
      return unlessOneSent(target, [...british, ...national])
    },
  ),
  attack('the spellings of one British number, without PHONE_DEFAULT_REGION', {}, (target) =>
    unlessOneSent(target, british),
  ),
  attack('trunk prefixes of DE, FR, IN, RU and AR, and the old mobile prefix of MX', {}, async (target) => {
    const problems: (string | undefined)[] = []
    for (const [country, spellings] of Object.entries(handsets)) {
      const problem = await unlessOneSent(target, spellings)
      problems.push(problem && `${country} ${problem}`)
    }
    return anyOf(problems)
  }),
  attack(
    '700 guesses at one phone in 7 spellings',
    { ...noSendLimits, PHONE_DEFAULT_REGION: 'GB' },
    async (target) => {
      let wrong = 0
      for (const spelling of [...british, ...national])
        wrong += await guesses(target, { phone: spelling }, 100)
      return wrong <= 100 ? undefined : `${wrong} wrong codes were compared`
    },
  ),
  attack('100 fullwidth spellings of one mail domain', {}, async (target) => {
    const sent = Array.from({ length: 100 }, async (_, spelling) => {
      const domain = Array.from('example', (letter, index) =>
        (spelling >> index) & 1 ? String.fromCodePoint(letter.charCodeAt(0) + 0xfee0) : letter,
      )
      const email = `victim@${domain.join('')}.com`
      return (await target.post('/otp/send', { channel: 'EMAIL', email })).status
    })
    const count = (await Promise.all(sent)).filter((status) => status === 200).length
    return count === 30 ? undefined : `${count} mails to one mailbox in an hour`
  }),
  ...[
    ['an ideographic full stop in the domain', 'a@example.com', 'a@example。com'],
    ['a domain in Unicode and in punycode', 'b@bücher.example', 'b@xn--bcher-kva.example'],
    ['a trailing dot', 'c@example.com', 'c@example.com。'],
    ['+tag', 'd@example.com', 'd+tag@example.com', 'd+other+tag@example.com'],
  ].map(([what, ...spellings]) =>
    attack(`${what}, for more mails to one mailbox`, { EMAIL_LIMIT_PER_HOUR: '1' }, (target) =>
      unlessOneSent(target, spellings, 'EMAIL'),
    ),
  ),
  attack('mail addresses that no mail server takes', {}, async (target) => {
    const invalid = 'a..b@c.example a@b_c.d .a@c.example a.@c.example a@-c.example a@c..example'.split(' ')
    const tries = invalid.map(async (email) =>
      unless('400 validation_error', await target.post('/otp/send', { channel: 'EMAIL', email }), email),
    )
    return anyOf(await Promise.all(tries))
  }),
]

const stalls: readonly Attack[] = [
  {
    title: 'a provider that sends and then stalls: 14 sends to one phone',
    async play() {
      using gateway = stalledGateway()
      await using target = await startTarget(stalledBy(gateway.url, 'webhook'))
      for (let count = 0; count < 14; count++) await target.post('/otp/send', { phone })
      const { length } = gateway.received
      return length === 3 ? undefined : `${length} SMS in one minute`
    },
  },
  {
    title: 'two providers that send and then stall: each attempt counts',
    async play() {
      using gateway = stalledGateway()
      await using target = await startTarget(stalledBy(gateway.url, 'webhook,kannel'))
      for (let count = 0; count < 7; count++) await target.post('/otp/send', { phone })
      const { length } = gateway.received
      return length === 3 || length === 4 ? undefined : `${length} SMS in one minute`
    },
  },
]

const budgets: readonly Attack[] = [
  attack('300 guesses at one phone over 3 brands', noSendLimits, async (target) => {
    let wrong = 0
    for (const brandId of ['acme', 'second', 'third']) wrong += await guesses(target, { phone, brandId }, 100)
    return wrong <= 100 ? undefined : `${wrong} wrong codes were compared`
  }),
  attack(
    'sends after the failure budget is used up',
    { ...noSendLimits, FAILURE_BUDGET_PER_DAY: '3' },
    async (target) => {
      await guesses(target, { phone }, 3)
      const before = (await target.messages()).length
      const answers = [
        await target.post('/otp/send', { phone }),
        await target.post('/otp/resend', { phone, brandId: 'second' }),
      ]
      const problems = answers.map((answer) => unless('429 rate_limited', answer, 'send'))
      const waits = answers.every(({ headers }) => Number(headers.get('retry-after')) > 3600)
      const sent = (await target.messages()).length - before
      return anyOf([
        ...problems,
        waits ? undefined : 'no Retry-After of the budget',
        sent === 0 ? undefined : `${sent} SMS that no code can verify`,
      ])
    },
  ),
]

const floods: readonly Attack[] = [
  attack('400 wrong keys from one IP address, so that the right key is refused there', {}, async (target) => {
    const wrong = { phone, apiKey: 'not the key' }
    const answers = await Promise.all(Array.from({ length: 400 }, () => target.post('/otp/send', wrong)))
    const limited = answers.filter((answer) => verdict(answer) === '429 rate_limited').length
    return anyOf([
      limited === 100 ? undefined : `${400 - limited} of 400 wrong keys were not rate-limited`,
      unless('200', await target.post('/otp/send', { phone }), 'the right key'),
    ])
  }),
  attack('306 requests without a key, so that the right key is refused', {}, async (target) => {
    await Promise.all(Array.from({ length: 306 }, () => target.post('/otp/send', { phone, apiKey: '' })))
    return unless('200', await target.post('/otp/send', { phone }), 'the right key')
  }),
  attack('wrong keys from 400 IPv6 addresses of one /64', behindProxy, async (target) => {
    const tries = Array.from({ length: 400 }, (_, host) =>
      target.postFrom(`2001:db8:1:2::${host.toString(16)}`, '/otp/send', { ...credentials, apiKey: 'wrong' }),
    )
    const refused = (await Promise.all(tries)).filter((answer) => verdict(answer) === '403 forbidden').length
    return anyOf([
      refused === 300 ? undefined : `${refused} of 400 were not rate-limited`,
      unless(
        '200',
        await target.postFrom('2001:db8:1:2::1', '/otp/send', { ...credentials, brandId: 'acme', phone }),
        'the right key',
      ),
    ])
  }),
  attack('1,001 pending integration requests from as many IP addresses', behindProxy, async (target) => {
    const request = { companyName: 'C', contactName: 'N', contactEmail: 'c@example.com', brandName: 'B' }
    const statuses: string[] = []
    for (let count = 0; count < 1001; count++) {
      const answer = await target.postFrom(
        `10.1.${count >> 8}.${count & 255}`,
        '/integrations/requests',
        request,
      )
      statuses.push(verdict(answer))
    }
    const stored = statuses.filter((status) => status === '201').length
    return stored === 1000 && statuses.at(-1) === '429 rate_limited'
      ? undefined
      : `${stored} of 1,001 were stored`
  }),
]

export const recipientAttacks = [...identities, ...stalls, ...budgets, ...floods]
