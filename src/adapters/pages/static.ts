import { createHash } from 'node:crypto'
import { Elysia } from 'elysia'
import pageCss from './page.css' with { type: 'text' }
import pageJs from './page.js' with { type: 'text' }
import paletteCss from './palette.css' with { type: 'text' }
import timesJs from './times.js' with { type: 'text' }

export const pagePolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** Of the HTML of an e-mail, in a frame. */
export const mailPolicy =
  "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src https: data:; frame-ancestors 'self'"

export interface StaticFile {
  /** A function is called at the first request. */
  readonly content: string | Bun.BunFile | (() => Promise<string>)
  readonly type: 'text/html' | 'text/plain' | 'text/css' | 'text/javascript' | 'application/json'
}

/** Files of every page. Each base path has its own, since a proxy may allow only one of them. */
export function pageFiles(base: '' | '/admin' | '/docs' | '/outbox'): Readonly<Record<string, StaticFile>> {
  return {
    [`${base}/page.css`]: { type: 'text/css', content: paletteCss + pageCss },
    [`${base}/page.js`]: { type: 'text/javascript', content: pageJs },
    [`${base}/times.js`]: { type: 'text/javascript', content: timesJs },
  }
}

/** Serves files by path. `no-cache`: browsers check for a new version after an upgrade. */
export function staticRoutes(files: Readonly<Record<string, StaticFile>>) {
  const routes = new Elysia({ strictPath: true, normalize: false })
  for (const [path, file] of Object.entries(files)) {
    let loading: ReturnType<typeof loadFile> | undefined
    routes.get(path, async ({ request }) => {
      loading ??= loadFile(file)
      return fileAnswer(request, file.type, await loading)
    })
  }
  return routes
}

export function fileAnswer(
  request: Request,
  type: StaticFile['type'],
  { content, etag }: Awaited<ReturnType<typeof loadFile>>,
): Response {
  const headers = { ...headersOf(type, pagePolicy), etag, 'cache-control': 'no-cache' }
  if (request.headers.get('if-none-match')?.includes(etag)) {
    return new Response(null, { status: 304, headers })
  }
  return new Response(content, { headers })
}

export function headersOf(type: StaticFile['type'], policy: string): Record<string, string> {
  return {
    'content-type': type === 'application/json' ? type : `${type}; charset=utf-8`,
    'content-security-policy': policy,
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
  }
}

export async function loadFile(file: StaticFile) {
  const content = typeof file.content === 'function' ? await file.content() : file.content
  const bytes = typeof content === 'string' ? content : await content.bytes()
  return { content, etag: `"${createHash('sha256').update(bytes).digest('base64url')}"` }
}
