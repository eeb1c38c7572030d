import { afterEach, beforeEach, describe, expect, spyOn, test } from 'bun:test'
import { createProgram } from '../../src/commands/program.ts'
import { createTestApp, type TestApp } from '../support/app.ts'
import { signedIn, type Visitor } from '../support/console.ts'
import { operate } from '../support/operator.ts'
import { policyOf } from '../support/policy.ts'
import { startReceiver } from '../support/receiver.ts'

// Apps and their webhooks, as operators see them.

const textOf = (html: string) => html.replaceAll(/<[^>]*>/g, ' ').replaceAll(/\s+/g, ' ')

let app: TestApp
let visitor: Visitor

beforeEach(async () => {
  app = await createTestApp({ PUBLIC_URL: 'http://localhost:3000' })
  visitor = await signedIn(app)
})
afterEach(() => app.close())

/** What a command prints. */
async function printed(...words: readonly string[]): Promise<string> {
  const lines: string[] = []
  const write = (text: string | Uint8Array) => lines.push(String(text)) > 0
  const spy = spyOn(process.stdout, 'write').mockImplementation(write)
  try {
    await createProgram(app.database.env).parseAsync(['bun', 'otpost', ...words])
  } finally {
    spy.mockRestore()
  }
  return lines.join('')
}

async function settle(): Promise<void> {
  app.app.events.tick()
  await app.app.events.idle()
}

describe('a webhook whose receiver fails', () => {
  test('is not on: it says since when, with which answer, and one form sends all events when the receiver is repaired', async () => {
    const receiver = startReceiver(() => new Response('no queue for ada@example.com', { status: 503 }))
    await policyOf(app).webhook(receiver.url)
    for (let index = 0; index < 5; index++) await operate(app, 'app webhook-test', { appId: 'shop' })
    await settle()
    const apps = await visitor.get('/admin/apps')
    expect(textOf(apps.html)).toContain('failing')
    expect(apps.html).not.toContain('>on<')
    const page = await visitor.get('/admin/apps/webhook?app=shop')
    const text = textOf(page.html)
    for (const words of [
      '5 events failed',
      'Oldest',
      'HTTP 503',
      'no queue for [hidden]',
      'Send all failed events now',
    ])
      expect(text).toContain(words)
    expect(page.html).not.toContain('ada@example.com')
    const [row] = JSON.parse(await printed('app', 'list', '--json'))
    expect(row.webhook).toMatchObject({
      state: 'failing',
      failing: { events: 5, error: 'HTTP 503', answer: 'no queue for [hidden]' },
    })
    expect(await printed('app', 'list')).toContain('failing: 5 events, HTTP 503')

    receiver.answer(() => new Response(null, { status: 204 }))
    const sent = await visitor.post('/admin/apps/webhook/resend-all', { appId: 'shop' })
    expect(sent.status).toBe(303)
    await settle()
    expect(receiver.received.length).toBe(10)
    const after = await visitor.get('/admin/apps/webhook?app=shop')
    expect(textOf(after.html)).not.toContain('events failed')
    expect((await visitor.get('/admin/apps')).html).toContain('>on<')
    const again = await visitor.post('/admin/apps/webhook/resend-all', { appId: 'shop' })
    expect([again.status, again.html.includes('No event of shop has failed')]).toEqual([409, true])
    receiver.stop()
  })

  test('that is switched off is set again before its events are sent', async () => {
    const receiver = startReceiver(() => new Response('gone', { status: 410 }))
    await policyOf(app).webhook(receiver.url)
    await operate(app, 'app webhook-test', { appId: 'shop' })
    await settle()
    const text = textOf((await visitor.get('/admin/apps/webhook?app=shop')).html)
    expect(text).toContain('switched off')
    expect(text).toContain('gone')
    expect(text).not.toContain('Send all failed events now')
    await expect(operate(app, 'app webhook-resend-all', { appId: 'shop' })).rejects.toThrow('switched off')
    receiver.stop()
  })
})
