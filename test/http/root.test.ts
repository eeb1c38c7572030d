import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { version } from '../../src/version.ts'
import { addAccount } from '../support/accounts.ts'
import { createTestApp, type TestApp } from '../support/app.ts'

const html = { headers: { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' } }
const hrefs = (page: string) => [...page.matchAll(/<a href="([^"]*)"/g)].map(([, href]) => href)

describe('GET /', () => {
  let app: TestApp
  let open: TestApp
  let production: TestApp

  beforeAll(async () => {
    app = await createTestApp()
    open = await createTestApp()
    await addAccount(open, 'ana@example.com', 'owner')
    production = await createTestApp({
      SMS_PLAIN: 'discard',
      SMS_TEMPLATE: 'discard',
      SMTP_URL: 'smtp://127.0.0.1:9',
      MAIL_FROM: 'a@example.com',
    })
  })
  afterAll(() => Promise.all([app, open, production].map((each) => each.close())))

  test('returns JSON with the version and the available links', async () => {
    const { status, headers, body } = await app.get('/')
    const links = { docs: '/docs', openapi: '/openapi.json', health: '/health', outbox: '/outbox' }
    expect({ status, body }).toEqual({
      status: 200,
      body: { success: true, service: 'otpost', version, links, requestId: headers.get('x-request-id') },
    })
    expect(headers.get('vary')).toBe('accept')
    for (const path of Object.values(links)) expect((await app.get(path)).status, path).toBe(200)

    expect((await open.get('/')).body.links).toEqual({ ...links, admin: '/admin' })
    const { outbox: _, ...others } = links
    expect((await production.get('/')).body.links).toEqual(others)
  })

  test('returns a page with the same links to a browser', async () => {
    const { status, headers, body } = await open.request('GET', '/', html)
    expect(status).toBe(200)
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(headers.get('content-security-policy')).toStartWith("default-src 'none'")
    expect(headers.get('x-request-id')).toBeString()
    expect(hrefs(body)).toEqual(Object.values((await open.get('/')).body.links))
    expect(hrefs((await app.request('GET', '/', html)).body)).not.toContain('/admin')
    expect(hrefs((await production.request('GET', '/', html)).body)).not.toContain('/outbox')
    for (const [, path = ''] of body.matchAll(/(?:src|href)="(\/[a-z.]+\.(?:css|js))"/g)) {
      expect((await open.get(path)).status, path).toBe(200)
    }
  })

  test.each([['text/html'], ['application/json']])(
    'HEAD with Accept: %s returns headers only',
    async (accept) => {
      const { status, headers, body } = await app.request('HEAD', '/', { headers: { accept } })
      expect(status).toBe(200)
      expect(headers.get('content-type')).toStartWith(accept)
      expect(body).toBe('')
    },
  )
})
