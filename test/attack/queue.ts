import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { otpost } from '../support/server.ts'
import { type Attack, attack, verdict } from './attack.ts'

/** A provider that cannot be reached, so that jobs stay in the queue. */
const unreachable = {
  SMS_PLAIN: 'webhook',
  SMS_WEBHOOK_URL: 'http://127.0.0.1:1',
  SMS_WEBHOOK_SECRET: 'whsec_a2V5IG9mIHRoZSB3ZWJob29rLCAzMiBieXRlcy4u',
  SMTP_URL: 'smtp://127.0.0.1:1',
  MAIL_FROM: 'shop@example.com',
}

export const queueAttacks: readonly Attack[] = [
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
