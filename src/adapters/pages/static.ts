import { createHash } from 'node:crypto'
import { Elysia } from 'elysia'
import { acceptsGzip, gzipped } from './compression.ts'
import pageCss from './page.css' with { type: 'text' }
import pageJs from './page.js' with { type: 'text' }
import paletteCss from './palette.css' with { type: 'text' }
import timesJs from './times.js' with { type: 'text' }

export const pagePolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** Of the HTML of an e-mail, in a frame. */
export const mailPolicy =
  "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src https: data:; frame-ancestors 'self'"

type FileType = 'text/html' | 'text/plain' | 'text/css' | 'text/javascript' | 'application/json'

/** Styles and scripts of the pages below a path. Each path has its own, since a proxy may allow only one of them. */
export class PageFiles {
  /** By name. */
  readonly contents: Readonly<Record<string, string>>
  /** Changes with the content of any file: all are of one release. */
  readonly version: string

  /** @param own by name, beside those of every page */
  constructor(
    readonly base: '' | '/admin' | '/docs' | '/outbox',
    own: Readonly<Record<string, string>> = {},
  ) {
    const contents = { 'page.css': paletteCss + pageCss, 'page.js': pageJs, 'times.js': timesJs, ...own }
    this.version = digestOf(JSON.stringify(contents)).slice(0, 12)
    // A script that a page and a module load under two URLs would run twice.
    const versioned = (text: string) => text.replace(/(\bfrom '[\w./-]+\.js)'/g, `$1?v=${this.version}'`)
    this.contents = Object.fromEntries(
      Object.entries(contents).map(([name, text]) => [name, name.endsWith('.js') ? versioned(text) : text]),
    )
  }

  url(name: string): string {
    return `${this.base}/${name}?v=${this.version}`
  }
}

/** With the version in the URL, a file never changes. Without it, browsers check for a new one each time. */
export function staticRoutes({ base, contents, version }: PageFiles) {
  const routes = new Elysia({ strictPath: true, normalize: false })
  for (const [name, content] of Object.entries(contents)) {
    const type = name.endsWith('.css') ? 'text/css' : 'text/javascript'
    let loading: ReturnType<typeof loadFile> | undefined
    routes.get(`${base}/${name}`, async ({ request }) => {
      loading ??= loadFile(content)
      const response = fileAnswer(request, type, await loading)
      if (request.url.endsWith(`?v=${version}`)) response.headers.set('cache-control', forever)
      return response
    })
  }
  return routes
}

const forever = 'public, max-age=31536000, immutable'

export function fileAnswer(
  request: Request,
  type: FileType,
  { content, compressed, etag }: Awaited<ReturnType<typeof loadFile>>,
): Response {
  const headers = {
    ...headersOf(type, pagePolicy),
    etag,
    'cache-control': 'no-cache',
    vary: 'accept-encoding',
  }
  if (request.headers.get('if-none-match')?.includes(etag)) {
    return new Response(null, { status: 304, headers })
  }
  return acceptsGzip(request)
    ? new Response(compressed, { headers: { ...headers, 'content-encoding': 'gzip' } })
    : new Response(content, { headers })
}

export function headersOf(type: FileType, policy: string): Record<string, string> {
  return {
    'content-type': type === 'application/json' ? type : `${type}; charset=utf-8`,
    'content-security-policy': policy,
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
  }
}

export async function loadFile(content: string) {
  return { content, compressed: await gzipped(content), etag: `"${digestOf(content)}"` }
}

function digestOf(content: string): string {
  return createHash('sha256').update(content).digest('base64url')
}
