import { credentials, otherThan, verdict } from '../support/app.ts'
import {
  type Attack,
  attack,
  behindProxy,
  type Check,
  noSendLimits,
  startTarget,
  type Target,
} from './attack.ts'

/** Spellings of one handset each (design D5). */
const british = [
  '+44 7911 123456',
  '+44 (0)7911 123456',
  '00447911123456',
  '+00447911123456',
  '4407911123456',
]
const withNational = [...british, '07911 123456', '0447911123456']
const handsets: Readonly<Record<string, readonly string[]>> = {
  DE: ['+49 1512 3456789', '+49 (0)1512 3456789', '0049 1512 3456789', '0049 0 1512 3456789'],
  FR: ['+33 6 12 34 56 78', '+33 (0)6 12 34 56 78'],
  IN: ['+91 98123 45678', '+91 (0)98123 45678', '0091 098123 45678'],
  RU: ['+7 912 345-67-89', '+7 8 912 345-67-89'],
  AR: ['+54 9 11 2345-6789', '+54 11 15 2345-6789', '+54 (0)11 15 2345-6789'],
  MX: ['+52 55 1234 5678', '+52 1 55 1234 5678'],
}

/** By region: its country code, and national numbers that are also numbers of Norway, Hungary, Denmark and others. */
const nationalNumbers: Readonly<Record<string, readonly [code: string, numbers: readonly string[]]>> = {
  US: ['1', ['(478) 513-2397', '(363) 363-8150']],
  MX: ['52', ['455 535 6886', '644 354 2811']],
  BR: ['55', ['(33) 91206-4094', '(51) 96740-6005']],
  IN: ['91', ['6565 558 125', '6620 497 479']],
}

/** Spellings of one mailbox each (design D6, D24). */
const mailboxes: Readonly<Record<string, readonly string[]>> = {
  'an ideographic full stop': ['a@example.com', 'a@example。com'],
  'a domain in Unicode and in punycode': ['b@bücher.example', 'b@xn--bcher-kva.example'],
  'a trailing dot': ['c@example.com', 'c@example.com。'],
  '+tag': ['d@example.com', 'd+tag@example.com', 'd+other+tag@example.com'],
}

const invalidAddresses = [
  'a..b@c.example',
  'a@b_c.d',
  '.a@c.example',
  'a.@c.example',
  'a@-c.example',
  'a@c..example',
]

const phone = '+44 7911 123456'
const request = { companyName: 'C', contactName: 'N', contactEmail: 'c@example.com', brandName: 'B' }

/** Sends to each of these, all one recipient: only the first may be sent. */
async function checkOneSent(
  { post }: Target,
  check: Check,
  field: 'phone' | 'email',
  spellings: readonly string[],
) {
  const channel = field === 'phone' ? 'SMS' : 'EMAIL'
  const sent: string[] = []
  for (const to of spellings) {
    if ((await post('/otp/send', { channel, [field]: to })).status === 200) sent.push(to)
  }
  check(sent.length === 1, `sent to ${sent.length} of ${spellings.length}: ${sent.join(' | ')}`)
}

/** Sends and guesses wrong in turn until a limit stops it, at most 100 times; resolves to the number of wrong guesses. */
async function guesses(
  { post, messages }: Target,
  recipient: { readonly phone: string; readonly brandId?: string },
) {
  let wrong = 0
  while (wrong < 100 && (await post('/otp/send', recipient)).status === 200) {
    const code = /\d{6}/.exec((await messages(recipient.phone)).at(-1)?.text ?? '')?.[0] ?? ''
    const before = wrong
    for (let attempt = 0; attempt < 3; attempt++) {
      const answer = await post('/otp/verify', { ...recipient, otp: otherThan(code) })
      if (verdict(answer) === '401 mismatch') wrong++
    }
    if (wrong === before) break
  }
  return wrong
}

/** Calls with wrong credentials: 300 may be refused as such, and the right ones must be accepted after them. */
function badCredentials(
  title: string,
  count: number,
  wrong: object,
  ipOf = (_: number) => '192.0.2.1',
): Attack {
  return attack(title, behindProxy, async ({ postFrom }, check) => {
    const body = { ...credentials, brandId: 'acme', phone }
    const tries = Array.from({ length: count }, (_, index) =>
      postFrom(ipOf(index), '/otp/send', { ...body, ...wrong }),
    )
    const limited = (await Promise.all(tries)).filter(
      (answer) => verdict(answer) === '429 rate_limited',
    ).length
    check(limited === count - 300, `${count - limited} of ${count} were not rate-limited`)
    const right = verdict(await postFrom(ipOf(0), '/otp/send', body))
    check(right === '200', `the right key: ${right}`)
  })
}

/** Sends by way of gateways that get each message and never answer, or hang up. */
function lostAnswers(
  title: string,
  routes: Readonly<Record<string, string>>,
  { hangsUp = false, expected = 3 } = {},
): Attack {
  return {
    title,
    async play(check) {
      let messages = 0
      using gateway = Bun.listen({
        hostname: '127.0.0.1',
        port: 0,
        socket: {
          data(socket, bytes) {
            if (/^(?:GET|POST) /.test(bytes.toString())) messages++
            if (hangsUp) socket.end()
          },
        },
      })
      const url = `http://127.0.0.1:${gateway.port}`
      await using target = await startTarget({
        ...routes,
        SMS_WEBHOOK_URL: url,
        SMS_WEBHOOK_SECRET: `whsec_${Buffer.from('a secret of the test, 32 bytes..').toString('base64')}`,
        KANNEL_URL: url,
        KANNEL_USERNAME: 'otpost',
        KANNEL_PASSWORD: 'password of the gateway',
        KANNEL_FROM: 'Otpost',
        // Long enough for a call to come through on a busy machine.
        PROVIDER_TIMEOUT_MS: '1000',
      })
      const code = { phone: '+91 98123 45678', brandId: 'dlt' }
      for (let count = 0; count < 14; count++) await target.post('/otp/send', code)
      check(messages === expected, `${messages} SMS in one minute`)
    },
  }
}

export const recipientAttacks: readonly Attack[] = [
  attack(
    'spellings of one British number, PHONE_DEFAULT_REGION=GB',
    { PHONE_DEFAULT_REGION: 'GB' },
    (target, check) => checkOneSent(target, check, 'phone', withNational),
  ),
  attack('spellings of one British number, without PHONE_DEFAULT_REGION', {}, (target, check) =>
    checkOneSent(target, check, 'phone', british),
  ),
  attack('trunk prefixes of DE, FR, IN, RU and AR, old mobile prefix of MX', {}, async (target, check) => {
    for (const spellings of Object.values(handsets)) await checkOneSent(target, check, 'phone', spellings)
  }),
  ...Object.entries(nationalNumbers).map(([region, [code, numbers]]) =>
    attack(
      `national numbers that are also in another country, PHONE_DEFAULT_REGION=${region}`,
      { ...noSendLimits, PHONE_DEFAULT_REGION: region },
      async (target, check) => {
        for (const number of numbers) await target.post('/otp/send', { phone: number })
        await target.post('/notify', { channel: 'SMS', brandId: 'acme', to: numbers, message: 'x' })
        const abroad = (await target.messages()).filter(({ to }) => !to.startsWith(code))
        check(abroad.length === 0, `sent to ${abroad.map(({ to }) => `+${to}`).join(', ')}`)
      },
    ),
  ),
  attack(
    '700 guesses at one phone in 7 spellings',
    { ...noSendLimits, PHONE_DEFAULT_REGION: 'GB' },
    async (target, check) => {
      let wrong = 0
      for (const spelling of withNational) wrong += await guesses(target, { phone: spelling })
      check(wrong === 100, `${wrong} wrong codes were compared`)
    },
  ),
  attack('300 guesses at one phone over 3 brands', noSendLimits, async (target, check) => {
    let wrong = 0
    for (const brandId of ['acme', 'second', 'third']) wrong += await guesses(target, { phone, brandId })
    check(wrong === 100, `${wrong} wrong codes were compared`)
  }),
  attack(
    'sends after the failure budget is used up',
    { ...noSendLimits, FAILURE_BUDGET_PER_DAY: '3' },
    async (target, check) => {
      await guesses(target, { phone })
      const before = (await target.messages()).length
      for (const [path, brandId] of [
        ['/otp/send', 'acme'],
        ['/otp/resend', 'second'],
      ] as const) {
        const answer = await target.post(path, { phone, brandId })
        const retryAfter = Number(answer.headers.get('retry-after'))
        check(verdict(answer) === '429 rate_limited' && retryAfter > 3600, `${path}: ${verdict(answer)}`)
      }
      const sent = (await target.messages()).length - before
      check(sent === 0, `${sent} SMS that no code can verify`)
    },
  ),
  attack('100 fullwidth spellings of one mail domain', {}, async (target, check) => {
    const answers = Array.from({ length: 100 }, (_, spelling) => {
      const domain = Array.from('example', (letter, index) =>
        (spelling >> index) & 1 ? String.fromCodePoint(letter.charCodeAt(0) + 0xfee0) : letter,
      )
      return target.post('/otp/send', { channel: 'EMAIL', email: `victim@${domain.join('')}.com` })
    })
    const sent = (await Promise.all(answers)).filter(({ status }) => status === 200).length
    check(sent === 30, `${sent} mails to one mailbox in an hour`)
  }),
  ...Object.entries(mailboxes).map(([what, spellings]) =>
    attack(`mails to one mailbox: ${what}`, { EMAIL_LIMIT_PER_HOUR: '1' }, (target, check) =>
      checkOneSent(target, check, 'email', spellings),
    ),
  ),
  attack('mail addresses that no mail server accepts', {}, async (target, check) => {
    for (const email of invalidAddresses) {
      const answer = verdict(await target.post('/otp/send', { channel: 'EMAIL', email }))
      check(answer === '400 validation_error', `${email}: ${answer}`)
    }
  }),
  lostAnswers('a provider that sends and then stalls', { SMS_PLAIN: 'webhook' }),
  lostAnswers('a provider that sends and then hangs up', { SMS_PLAIN: 'webhook' }, { hangsUp: true }),
  // Each attempt counts: the second send is the third and the fourth.
  lostAnswers('two providers that send and then stall', { SMS_PLAIN: 'webhook,kannel' }, { expected: 4 }),
  lostAnswers(
    'two routes that send and then stall',
    { OTP_SMS_MODE: 'hybrid', SMS_TEMPLATE: 'webhook', SMS_PLAIN: 'kannel' },
    { expected: 4 },
  ),
  badCredentials('400 wrong keys, so that the right key is refused', 400, { apiKey: 'wrong' }),
  badCredentials('306 calls without a key, so that the right key is refused', 306, { apiKey: '' }),
  badCredentials(
    'wrong keys from 400 IPv6 addresses of one /64',
    400,
    { apiKey: 'wrong' },
    (host) => `2001:db8:1:2::${host.toString(16)}`,
  ),
  attack(
    '1,001 pending integration requests from as many IP addresses',
    behindProxy,
    async ({ postFrom }, check) => {
      const answers = Array.from({ length: 1001 }, (_, index) =>
        postFrom(`10.1.${index >> 8}.${index & 255}`, '/integrations/requests', request),
      )
      const stored = (await Promise.all(answers)).filter(({ status }) => status === 201).length
      check(stored === 1000, `${stored} were stored`)
    },
  ),
]
