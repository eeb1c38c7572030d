import { afterAll, expect, test } from 'bun:test'
import { Webhook } from 'standardwebhooks'
import { providerPath } from '../../src/domain/delivery/delivery-reports.ts'
import { type Answer, createTestApp } from '../support/app.ts'
import { signedIn } from '../support/console.ts'
import { type Received, startReceiver } from '../support/receiver.ts'
import { freshPhone } from '../support/rows.ts'

// Carriers reject a text in delivery reports only. The overview shows that a template is rejected more than before.

const publicUrl = 'https://otp.example'
const receiver = startReceiver()
const kannelUrls: string[] = []
const kannel = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  fetch({ headers }) {
    kannelUrls.push(headers.get('x-kannel-dlr-url') ?? '')
    return kannelAnswer()
  },
})
const taken = () => new Response('0: Accepted for delivery', { status: 202 })
let kannelAnswer: () => Response | Promise<Response> = taken
afterAll(async () => {
  await Promise.all([receiver.stop(), kannel.stop(true)])
})

type App = Awaited<ReturnType<typeof createTestApp>>

interface Gateway {
  readonly env: Readonly<Record<string, string>>
  /** How it answers the next messages. */
  readonly answer: (next: () => Response | Promise<Response>) => void
  readonly reason: string
  /** Reports the last message. */
  readonly report: (app: App, status: 'delivered' | 'failed') => Promise<Answer>
}

const byAttempt: Gateway = {
  env: {
    SMS_PLAIN: 'kannel',
    KANNEL_URL: `http://127.0.0.1:${kannel.port}`,
    KANNEL_USERNAME: 'user',
    KANNEL_PASSWORD: 'password',
    KANNEL_FROM: 'ACME',
  },
  answer: (next) => {
    kannelAnswer = next
  },
  reason: 'err 633, the text differs from the registered template (kannel)',
  report: (app, status) => {
    const path = (kannelUrls.at(-1) ?? '').slice(publicUrl.length)
    const type = status === 'delivered' ? '1' : '2'
    // Network type 3, and 633 in two octets.
    return app.get(
      path
        .replace('%d', type)
        .replace('%k', '')
        .replace(/%#[^#]*#dlr_err#/, '%03%02%79'),
    )
  },
}

const byMessageId: Gateway = {
  env: { SMS_PLAIN: 'webhook', ...receiver.env },
  answer: (next) => receiver.answer(next),
  reason: 'blocked (webhook)',
  report: (app, status) => {
    const { body } = receiver.received.at(-1) as Received
    const raw = JSON.stringify({ id: body.id, status, reason: 'blocked' })
    const at = new Date(app.clock.now)
    return app.request('POST', providerPath(app.app.context.secrets, 'webhook'), {
      headers: {
        'content-type': 'application/json',
        'webhook-id': 'msg_1',
        'webhook-timestamp': String(at.getTime() / 1000),
        'webhook-signature': new Webhook(receiver.secret).sign('msg_1', at, raw),
      },
      body: raw,
    })
  },
}

const gateways = [
  ['of attempts', byAttempt],
  ["of a provider's message IDs", byMessageId],
] as const

test.each(gateways)(
  'the overview shows a template that carriers began to reject, by reports %s',
  async (_, gateway) => {
    const app = await createTestApp({
      ...gateway.env,
      PUBLIC_URL: publicUrl,
    })
    const send = async (status: 'delivered' | 'failed', times: number, brandId = 'acme') => {
      for (let done = 0; done < times; done++) {
        expect((await app.post('/otp/send', { phone: freshPhone(), brandId })).status).toBe(200)
        expect((await gateway.report(app, status)).status).toBe(200)
      }
    }
    const warning = async () => {
      // A session ends within the days between.
      const { html } = await (await signedIn(app)).get('/admin')
      return /<li class="incident bad"[^>]*>(?:(?!<\/li>).)*Carriers did.*?<\/li>/.exec(html)?.[0]
    }
    try {
      await app.brand('other', { status: 'active' })
      await send('delivered', 19)
      await send('failed', 1)
      expect(await warning()).toBeUndefined()
      app.advance(3 * 86_400)
      await send('failed', 4)
      await send('failed', 4, 'other')
      expect(await warning()).toBeUndefined()
      app.advance(3600)
      await send('failed', 2)
      const shown = await warning()
      expect(shown).toContain(
        `Carriers did not deliver 6 of 6 SMS (100%) of template LOGIN_OTP of brand acme in the last 24 hours; 5% in the 7 days before. Most frequent reason: ${gateway.reason}.`,
      )
      expect(shown).toContain('href="/admin/brands/acme/texts"')
      expect(shown).toContain(
        'href="/admin/deliveries?status=not-delivered&amp;brand=acme&amp;template=LOGIN_OTP"',
      )
      // The handset confirms a message that was reported as failed.
      await gateway.report(app, 'delivered')
      expect(await warning()).toContain('5 of 6 SMS')
      app.advance(2 * 86_400)
      expect(await warning()).toBeUndefined()
    } finally {
      await app.close()
    }
  },
)

test.each(gateways)(
  'codes that were delivered although their send failed are counted, by reports %s',
  async (_, gateway) => {
    const app = await createTestApp({
      ...gateway.env,
      PUBLIC_URL: publicUrl,
      METRICS_TOKEN: 'token-of-the-scraper',
      PROVIDER_TIMEOUT_MS: '500',
    })
    const provider = gateway.env.SMS_PLAIN ?? ''
    const sendTo = async (answer: () => Response | Promise<Response>) => {
      gateway.answer(answer)
      return (await app.post('/otp/send', { phone: freshPhone() })).status
    }
    const shown = async () => {
      const { html } = await (await signedIn(app)).get('/admin')
      return [...html.matchAll(/<li>(\w+ delivered [^<]*)/g)].map(([, text]) => text?.trim())
    }
    try {
      expect(await sendTo(taken)).toBe(200)
      expect((await gateway.report(app, 'delivered')).status).toBe(200)
      expect(await shown()).toEqual([])
      expect(await sendTo(() => new Promise(() => {}))).toBe(502)
      // A repeated report counts once.
      for (const status of ['failed', 'delivered', 'delivered'] as const)
        expect((await gateway.report(app, status)).status).toBe(200)
      expect(await sendTo(() => new Response(null, { status: 500 }))).toBe(502)
      expect((await gateway.report(app, 'delivered')).status).toBe(200)
      expect((await shown()).sort()).toEqual([
        `${provider} delivered 1 code after PROVIDER_TIMEOUT_MS (500 ms) in the last 24 hours, according to delivery reports. Their sends were answered 502 sms_failed, so the codes do not verify. Set PROVIDER_TIMEOUT_MS to more than the response time of ${provider}, or name a faster provider before it in SMS_PLAIN or SMS_TEMPLATE.`,
        `${provider} delivered 1 code after an error in the last 24 hours, according to delivery reports. Their sends were answered 502 sms_failed, so the codes do not verify. Ask the provider why ${provider} answers an error for messages that it delivers.`,
      ])
      const metrics = await app.request('GET', '/metrics', {
        headers: { authorization: 'Bearer token-of-the-scraper' },
      })
      expect(metrics.body).toContain(`otpost_late_codes_total{provider="${provider}"} 2`)
    } finally {
      await app.close()
    }
  },
)
