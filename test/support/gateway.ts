import { afterAll, afterEach, describe, expect, test } from 'bun:test'
import type { Brand } from '../../src/domain/texts/brand.ts'
import { createTestApp, type TestApp } from './app.ts'
import { startReceiver } from './receiver.ts'
import { expectRow } from './rows.ts'

export const taken = () => new Response(null, { status: 204 })
export const failed = () => new Response('secret of the gateway', { status: 500 })

/** Services whose SMS go to the gateway of an operator, by webhook on both routes; each is closed after its test. */
export function overWebhook(brands: Readonly<Record<string, Partial<Brand>>>) {
  const receiver = startReceiver()
  afterAll(() => receiver.stop())
  let apps: TestApp[] = []
  afterEach(async () => {
    for (const open of apps) await open.close()
    apps = []
  })
  return {
    receiver,
    async start(env: Readonly<Record<string, string>>, reply: Parameters<typeof receiver.answer>[0]) {
      receiver.received.length = 0
      receiver.answer(reply)
      const app = await createTestApp({
        SMS_PLAIN: 'webhook',
        SMS_TEMPLATE: 'webhook',
        ...receiver.env,
        ...env,
      })
      apps.push(app)
      for (const [slug, properties] of Object.entries(brands)) await app.brand(slug, properties)
      return app
    },
  }
}

/** By which routes a message goes in a mode (D14) while some of them fail, in order, and what it is answered. */
export type RoutingRow = readonly [
  mode: string,
  name: string,
  body: Readonly<Record<string, unknown>>,
  failing: string,
  routes: string,
  answer: string,
]

export function testRouting(
  path: string,
  { receiver, start }: ReturnType<typeof overWebhook>,
  rows: readonly RoutingRow[],
) {
  describe('the routes of each mode', () => {
    test.each(rows)('mode %s, %s', async (mode, _, body, failing, routes, answer) => {
      const app = await start({ OTP_SMS_MODE: mode }, ({ body: { route } }) =>
        failing.split(' ').includes(route) ? failed() : taken(),
      )
      const answered = await app.post(path, body)
      const [status, error = null] = answer.split(' ')
      if (error === null) expect(answered.status).toBe(200)
      else expectRow(path, { status: Number(status), error }, answered)
      expect(receiver.received.map(({ body }) => body.route).join(' ')).toBe(routes)
    })
  })
}
