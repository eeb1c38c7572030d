import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { gunzipSync } from 'node:zlib'
import { type PagePart, partsOf } from '../../src/adapters/console/page-changes.ts'
import { createTestApp, type TestApp } from '../support/app.ts'
import { signedIn, type Visitor } from '../support/console.ts'
import { livePast, setUp } from '../support/past.ts'

// What pages cost to load and to keep open.

const hourMs = 3_600_000
let app: TestApp
let visitor: Visitor

beforeAll(async () => {
  app = await createTestApp()
  await setUp(app.app.context)
  const until = app.clock.now
  await livePast(app.app.context, { from: until - 24 * hourMs, until, sends: 400 })
  visitor = await signedIn(app)
})
afterAll(() => app.close())

async function load(path: string, headers: Readonly<Record<string, string>> = {}) {
  const cookie = Array.from(visitor.cookies, ([name, value]) => `${name}=${value}`).join('; ')
  const response = await app.app.handle(
    new Request(`http://localhost${path}`, {
      headers: { cookie, 'accept-encoding': 'gzip, br', ...headers },
    }),
  )
  const body = await response.bytes()
  const isCompressed = response.headers.get('content-encoding') === 'gzip'
  const head = Array.from(response.headers, ([name, value]) => `${name}: ${value}\r\n`).join('')
  return {
    headers: response.headers,
    bytes: `HTTP/1.1 200 OK\r\n${head}\r\n`.length + body.length,
    isCompressed,
    text: Buffer.from(isCompressed ? gunzipSync(body) : body).toString(),
  }
}

/** An open page, as console.js keeps it. */
function openPage(path: string) {
  let known = { digest: '', html: '' }
  return async () => {
    const { headers, text, bytes } = await load(path, {
      'x-otpost-refresh': '1',
      'x-otpost-page': known.digest,
    })
    const html = headers.get('content-type')?.includes('json') ? joined(known.html, JSON.parse(text)) : text
    known = { digest: headers.get('x-otpost-page') ?? '', html }
    return { bytes, html }
  }
}

function joined(earlier: string, parts: readonly PagePart[]): string {
  return parts
    .map((part) => (typeof part === 'string' ? part : earlier.slice(part[0], part[0] + part[1])))
    .join('')
}

test('an overview that is open for an hour costs less than 5 MB at one call a second', async () => {
  const update = openPage('/admin')
  const first = (await update()).bytes
  const seconds = 5
  let bytes = 0
  for (let second = 1; second <= seconds; second++) {
    app.advance(1)
    await app.eventsOf(await app.post('/otp/send', { phone: `1202555${1000 + second}` }))
    await app.app.context.eventLog.flush()
    const updated = await update()
    bytes += updated.bytes + 'data: changed\n\n'.length
    if (second % 5 === 0) expect(updated.html).toBe((await load('/admin')).text)
  }
  expect(first + (bytes / seconds) * 3600).toBeLessThan(5_000_000)
})

test('a server that does not have the page of the browser sends the whole page', async () => {
  const { headers, text } = await load('/admin', {
    'x-otpost-refresh': '1',
    'x-otpost-page': 'of-another-node',
  })
  expect(headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(text).toStartWith('<!doctype html>')
})

describe('the changed parts of a page', () => {
  const row = (name: string, count: number) => `<tr data-key="${name}"><th>${name}</th><td>${count}</td></tr>`
  const table = (...rows: readonly string[]) => `<table><tbody>${rows.join('')}</tbody></table>`
  const [acme, globex] = [row('acme', 12), row('globex', 7)]
  test.each([
    ['nothing', table(acme, globex), table(acme, globex)],
    ['a figure', table(acme, globex), table(row('acme', 13), globex)],
    ['a new row', table(acme, globex), table(row('initech', 1), acme, globex)],
    ['a row that is gone', table(acme, globex), table(globex)],
    ['rows in another order', table(acme, globex), table(globex, acme)],
    ['everything', 'a'.repeat(100), 'b'.repeat(90)],
    ['a short page', '<p>1</p>', '<p>2</p>'],
    ['an empty page', '', table(acme)],
    ['characters outside the BMP', `${acme}😀${globex}`, `${acme}😁${globex}`],
  ])('%s: give the new page', (_, earlier, page) => {
    expect(joined(earlier, partsOf(earlier, page))).toBe(page)
  })

  test('of a figure are the figure', () => {
    const rows = Array.from({ length: 50 }, (_, index) => row(`brand-${index}`, index))
    const page = table(...rows.with(20, row('brand-20', 999)))
    const parts = partsOf(table(...rows), page)
    expect(parts.filter((part) => typeof part === 'string')).toEqual(['999'])
    expect(parts).toHaveLength(3)
  })
})

describe('styles and scripts', () => {
  const urlsIn = (page: string) =>
    [...page.matchAll(/(?:src|href)="(\/admin\/[\w.]+\.(?:css|js)\?v=[\w-]+)"/g)].map(([, url = '']) => url)

  test('are compressed, and browsers keep them until a release changes them', async () => {
    const urls = urlsIn((await load('/admin')).text)
    expect(urls.length).toBeGreaterThan(4)
    for (const url of urls) {
      const { headers, isCompressed, text } = await load(url)
      expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
      expect(isCompressed).toBe(true)
      // A module has one URL: under another one it would run again.
      const imported = [...text.matchAll(/from '([\w./-]+\.js)(\?v=[\w-]+)?'/g)]
      expect(imported.filter(([, , version]) => version !== `?${url.split('?')[1]}`)).toEqual([])
    }
  })

  test('of another release, or without one, are checked each time', async () => {
    for (const query of ['', '?v=earlier']) {
      expect((await load(`/admin/console.js${query}`)).headers.get('cache-control')).toBe('no-cache')
    }
  })

  test('and CSV files are compressed', async () => {
    for (const file of ['deliveries', 'calls', 'audit']) {
      const { isCompressed, text, bytes } = await load(`/admin/${file}.csv`)
      expect(isCompressed).toBe(true)
      expect(text).toMatch(/^[a-z_]*(?:,[a-z_]*)+\r\n.*\r\n$/s)
      if (file === 'calls') expect(bytes).toBeLessThan(text.length / 3)
    }
  })

  test('and pages are not compressed for clients that do not accept it', async () => {
    for (const encoding of ['identity', 'br', 'gzip;q=0']) {
      for (const path of ['/admin', '/admin/console.js', '/docs', '/admin/calls.csv']) {
        const { isCompressed, headers } = await load(path, { 'accept-encoding': encoding })
        expect([isCompressed, headers.get('vary')]).toEqual([false, 'accept-encoding'])
      }
    }
  })
})
