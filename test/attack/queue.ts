import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Answer, credentials, verdict } from '../support/app.ts'
import { startReceiver } from '../support/receiver.ts'
import { otpost } from '../support/server.ts'
import { type Attack, attack, startTarget } from './attack.ts'

/** A provider that cannot be reached, so that jobs stay in the queue. */
const unreachable = {
  SMS_PLAIN: 'webhook',
  SMS_WEBHOOK_URL: 'http://127.0.0.1:1',
  SMS_WEBHOOK_SECRET: 'whsec_a2V5IG9mIHRoZSB3ZWJob29rLCAzMiBieXRlcy4u',
  SMTP_URL: 'smtp://127.0.0.1:1',
  MAIL_FROM: 'shop@example.com',
}

/** A gateway that takes nearly half of the time-out for each message, and an app that floods it. */
async function slowGateway() {
  const receiver = startReceiver()
  receiver.answer(async () => {
    await Bun.sleep(900)
    return new Response(null, { status: 204 })
  })
  return {
    received: receiver.received,
    settings: {
      ...receiver.env,
      SMS_PLAIN: 'webhook',
      PROVIDER_TIMEOUT_MS: '2000',
      APP_CREDENTIALS: JSON.stringify({ [credentials.appId]: credentials.apiKey, flood: 'key-of-flood' }),
    },
    flood: { appId: 'flood', apiKey: 'key-of-flood', channel: 'SMS', brandId: 'acme', message: 'Sale' },
    [Symbol.asyncDispose]: () => receiver.stop(),
  }
}

const phones = (from: number, count: number) =>
  Array.from({ length: count }, (_, index) => String(12_025_550_000 + from + index))

export const queueAttacks: readonly Attack[] = [
  {
    title: '21,000 asynchronous messages of an app, to fill the queue of all',
    async play(check) {
      await using gateway = await slowGateway()
      await using target = await startTarget(gateway.settings)
      const requests = Array.from({ length: 210 }, (_, request) => ({
        ...gateway.flood,
        to: phones(100 * (request % 90), 100),
        async: true,
      })).values()
      const answers: Answer[] = []
      const work = async () => {
        for (const request of requests) answers.push(await target.post('/notify', request))
      }
      await Promise.all(Array.from({ length: 10 }, work))
      // Jobs that ended meanwhile made room.
      const stored = answers.filter(({ status }) => status === 202).length
      check(100 * stored - gateway.received.length <= 20_000, `${stored} requests were accepted`)
      const isFull = ({ status, body }: Answer) => status === 429 && body.reason === 'queue'
      check(answers.some(isFull), 'no request was rejected')
      const [phone = ''] = phones(9500, 1)
      const body = { channel: 'SMS', brandId: 'acme', message: 'Ready', to: [phone], async: true }
      const other = await target.post('/notify', body)
      check(other.status === 202, `another app: ${verdict(other)}`)
      const before = gateway.received.length
      while (!gateway.received.some((call) => call.body.to === phone)) {
        await Bun.sleep(10)
        const jobs = gateway.received.length - before
        if (jobs > 24) return check(false, `${jobs} jobs were sent before that of another app`)
      }
    },
  },
  {
    title: '60 notifications to 100 recipients each, so that the codes of another app fail',
    async play(check) {
      await using gateway = await slowGateway()
      await using target = await startTarget(gateway.settings)
      for (let request = 0; request < 60; request++) {
        const to = phones(100 * request, 100)
        // Ends with the server.
        target.post('/notify', { ...gateway.flood, to }).catch(() => undefined)
      }
      while (gateway.received.length < 80) await Bun.sleep(10)
      const codes: Promise<Answer>[] = []
      for (const phone of phones(9000, 10)) {
        codes.push(target.post('/otp/send', { brandId: 'acme', phone }))
        await Bun.sleep(200)
      }
      for (const answer of await Promise.all(codes)) check(answer.status === 200, verdict(answer))
    },
  },
  attack(
    'text and recipient of an asynchronous notification, read in the database files and a backup',
    unreachable,
    async ({ post, env }, check) => {
      const secrets = ['12025550143', 'Your lab report is ready', 'patient@clinic.example']
      const [phone, message, mailbox] = secrets
      const later = { async: true, subject: message, html: `<p>${message}</p>` }
      const answers = [
        await post('/notify', { channel: 'SMS', brandId: 'acme', to: [phone], message, async: true }),
        await post('/notify', { channel: 'EMAIL', to: [mailbox], ...later }),
      ]
      for (const answer of answers) check(answer.status === 202, verdict(answer))
      const folder = dirname(env.DATABASE_URL.replace('file:', ''))
      const { code, stderr } = await otpost(['backup', join(folder, 'stolen.db')], env)
      check(code === 0, stderr)
      for (const file of readdirSync(folder)) {
        const bytes = readFileSync(join(folder, file))
        for (const secret of secrets) check(!bytes.includes(secret), `${file} has ${secret}`)
      }
    },
  ),
]
