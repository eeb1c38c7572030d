import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { readVariable } from '../../src/domain/operator/texts.ts'
import { root } from '../docs/pages.ts'
import { type Answer, createTestApp, type TestApp } from '../support/app.ts'
import { setText, tester } from '../support/operator.ts'

const files = [
  ['/docs', 'text/html'],
  ['/docs/docs.css', 'text/css'],
  ['/docs/docs.js', 'text/javascript'],
  ['/docs/page.css', 'text/css'],
  ['/docs/page.js', 'text/javascript'],
  ['/docs/times.js', 'text/javascript'],
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
  const named = [...page.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, url = '']) => url)
  const others = named
    .filter((url) => !url.startsWith('data:') && !url.startsWith('#'))
    .map((url) => url.replace(/\?v=[\w-]{12}$/, ''))
  expect(others.sort()).toEqual([
    '/',
    '/docs/docs.css',
    '/docs/docs.js',
    '/docs/page.css',
    '/docs/page.js',
    '/openapi.json',
  ])
  expect(page).not.toMatch(/<script[^>]*>[^<]|<style|\sstyle=|\son\w+=/)
  for (const [path, type] of files) {
    if (/css|javascript/.test(type)) {
      expect(await textOf(path)).not.toMatch(/\/\/[a-z0-9.-]+\.[a-z]{2,}|url\(|@import/i)
    }
  }
})

describe('the page', () => {
  test('has each operation, event, parameter, field, example and error of the API description', async () => {
    const page = wordsOf(await textOf('/docs'))
    const { paths, webhooks, components } = (await app.get('/openapi.json')).body
    const expected = [...Object.keys(paths), ...Object.keys(webhooks), ...describedIn(components.schemas)]
    for (const item of [...Object.values(paths), ...Object.values(webhooks)]) {
      for (const {
        summary,
        description,
        parameters = [],
        requestBody,
        responses,
      } of Object.values<Description>(item as object)) {
        expected.push(summary, description)
        for (const parameter of parameters) expected.push(parameter.name, parameter.description)
        const examples = Object.values<Description>(requestBody?.content['application/json'].examples ?? {})
        for (const example of examples) {
          expected.push(example.summary, JSON.stringify(example.value, null, 2).replaceAll("'", `'\\''`))
        }
        for (const response of Object.values<Description>(responses)) {
          const causes = response.description.split('\n\n')
          expected.push(...causes.map((cause: string) => cause.replace(/^`(\w+)`: /, '')))
          const answers = Object.values<Description>(response.content?.['application/json']?.examples ?? {})
          for (const { value } of answers)
            if (value.success === false) expected.push(value.error, value.message)
        }
      }
    }
    expect(expected.length).toBeGreaterThan(500)
    expect(expected.filter((each) => !page.includes(plain(each)))).toEqual([])
  })

  test('has a first call, and the tested samples', async () => {
    const page = wordsOf(await textOf('/docs'))
    expect(page.indexOf('/otp/send')).toBeLessThan(page.indexOf('Rules of all calls'))
    const files = [...new Bun.Glob('docs/api/[Ss]end*').scanSync({ cwd: root, absolute: true })]
    expect(files.length).toBeGreaterThan(6)
    for (const file of files) expect(page).toContain(plain(readFileSync(file, 'utf8')))
  })

  test('is below 60 KiB compressed', async () => {
    expect(gzipSync(await textOf('/docs')).length).toBeLessThan(60 * 1024)
  })

  test('has the limits of fields', async () => {
    const page = wordsOf(await textOf('/docs'))
    expect(page).toContain('loginId string The login of the recipient.')
    for (const limit of [
      '1 to 64 characters',
      '1 to 100 elements · ^[ +().-]*([0-9][ +().-]*){7,20}$',
      '0 to 500 · default 500',
      '^[0-9]{6}$',
    ]) {
      expect(page).toContain(limit)
    }
    expect(page).toContain('Must be absent or null: subject, html, template, data, templateKey')
    expect(page).toContain('Required, one of: brandId, variables.businessName')
  })

  test('has links to existing parts, each with its own id', async () => {
    const page = await textOf('/docs')
    const ids = [...page.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id)
    const targets = [...page.matchAll(/ href="#([^"]*)"/g)].map(([, id]) => id)
    expect(ids).toEqual([...new Set(ids)])
    expect(targets.filter((id) => !ids.includes(id))).toEqual([])
    expect(targets).toContain('sendOtp')
  })

  test("has an example of each brand's own template, and follows changes", async () => {
    const before = (await app.get('/docs')).headers.get('etag')
    await app.brand('bikes', { displayName: 'Bikes', notifyTemplates: ['RIDE_READY'] })
    await setText(app.app.context.acting(tester), {
      brand: 'bikes',
      channel: 'SMS',
      key: 'RIDE_READY',
      text: '{{rider}}: your bike is ready.',
      variables: [readVariable('rider:text:40')],
    })
    const { headers, body } = await app.get('/docs')
    expect(headers.get('etag')).not.toBe(before)
    const page = wordsOf(body)
    expect(page).toContain('SMS, template RIDE_READY of bikes')
    expect(page).toContain('"brandId": "bikes", "channel": "SMS"')
  })

  test('has examples with the URL of PUBLIC_URL', async () => {
    const published = await createTestApp({ PUBLIC_URL: 'https://otp.example.com' })
    try {
      expect((await published.get('/docs')).body).toContain('curl -s https://otp.example.com/otp/send')
    } finally {
      await published.close()
    }
  })
})

type Description = Answer['body']

/** The names and descriptions of the fields in a schema. */
function describedIn(schema: unknown): string[] {
  if (typeof schema !== 'object' || schema === null) return []
  const fields = 'properties' in schema ? Object.entries<Description>(schema.properties ?? {}) : []
  return [
    ...fields.flatMap(([name, { description = '', items }]) => [
      name,
      description.replace(/^Must be .*/, ''),
      items?.description ?? '',
    ]),
    ...Object.values(schema).flatMap(describedIn),
  ]
}

/** What a reader sees of HTML. */
function wordsOf(text: string): string {
  return plain(
    text
      .replace(/<[^>]*>/g, '')
      .replaceAll('&lt;', '<')
      .replaceAll('&gt;', '>')
      .replaceAll('&quot;', '"')
      .replaceAll('&#39;', "'")
      .replaceAll('&amp;', '&'),
  )
}

function plain(text: string): string {
  return text.replaceAll('`', '').replace(/\s+/g, ' ').trim()
}
