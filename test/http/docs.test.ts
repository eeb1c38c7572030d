import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createTestApp, type TestApp } from '../support/app.ts'

const files = [
  ['/docs', 'text/html'],
  ['/docs/page.css', 'text/css'],
  ['/docs/page.js', 'text/javascript'],
  ['/docs/swagger-ui.css', 'text/css'],
  ['/docs/swagger-ui-bundle.js', 'text/javascript'],
  ['/openapi.json', 'application/json'],
] as const

let app: TestApp

beforeAll(async () => {
  app = await createTestApp({ PORT: '0' })
})
afterAll(() => app.close())

/** The body of a file as text. */
async function textOf(path: string): Promise<string> {
  const { body } = await app.get(path)
  return typeof body === 'string' ? body : JSON.stringify(body)
}

describe.each(files)('%s', (path, type) => {
  test(`is served as ${type} with nosniff`, async () => {
    const { status, headers, body } = await app.get(path)
    expect(status).toBe(200)
    expect(headers.get('content-type')?.split(';')[0]).toBe(type)
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
    expect(body).not.toBeEmpty()
  })

  test('has a policy that allows content from this server only, and no inline script or style', async () => {
    const { headers } = await app.get(path)
    const policy = new Map(
      headers
        .get('content-security-policy')
        ?.split(';')
        .map((directive) => {
          const [name = '', ...sources] = directive.trim().split(' ')
          return [name, sources.join(' ')] as const
        }),
    )
    expect(Object.fromEntries(policy)).toEqual({
      'default-src': "'none'",
      'script-src': "'self'",
      'style-src': "'self'",
      'connect-src': "'self'",
      'img-src': "'self' data:",
      'base-uri': "'none'",
      'form-action': "'none'",
      'frame-ancestors': "'none'",
      'frame-src': "'self'",
    })
  })

  test('is revalidated each time, and unchanged content returns 304', async () => {
    const first = await app.get(path)
    const etag = first.headers.get('etag') ?? ''
    expect(first.headers.get('cache-control')).toBe('no-cache')

    const again = await app.request('GET', path, { headers: { 'if-none-match': `"other", W/${etag}` } })
    expect(again.status).toBe(304)
    expect(again.body).toBe('')
    expect(again.headers.get('etag')).toBe(etag)

    const changed = await app.request('GET', path, { headers: { 'if-none-match': '"other"' } })
    expect(changed.status).toBe(200)
  })
})

test('the page, its style and its script contain no URL of another server', async () => {
  const page = await textOf('/docs')
  const named = [...page.matchAll(/(?:src|href)=["']([^"]*?)["'][\s>]/g)].map(([, url = '']) => url)
  expect(named.filter((url) => !url.startsWith('data:')).sort()).toEqual(
    [
      '/docs/page.css',
      '/docs/page.js',
      '/docs/swagger-ui-bundle.js',
      '/docs/swagger-ui.css',
      '/openapi.json',
    ].sort(),
  )
  expect(page).not.toMatch(/<script[^>]*>[^<]|<style|\sstyle=|\son\w+=/)
  for (const path of ['/docs/page.css', '/docs/page.js']) {
    expect(await textOf(path)).not.toMatch(/\/\/[a-z0-9.-]+\.[a-z]{2,}|url\(|@import/i)
  }
})

test('the Swagger UI style loads only embedded data', async () => {
  const styles = await textOf('/docs/swagger-ui.css')
  const loaded = [...styles.matchAll(/url\(["']?([^)]{0,16})|@import[^;]*/g)].map(
    ([, url = 'an import']) => url,
  )
  expect(loaded.filter((url) => !url.startsWith('data:'))).toEqual([])
})
