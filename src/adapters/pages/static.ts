import { createHash } from 'node:crypto'
import { Elysia } from 'elysia'
import agoJs from './ago.js' with { type: 'text' }
import pageCss from './page.css' with { type: 'text' }
import pageJs from './page.js' with { type: 'text' }
import paletteCss from './palette.css' with { type: 'text' }

/** What a page of ours may load: its own files from this process, and nothing from elsewhere. */
export const pagePolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** A file of a page: its content, or where that lies, and what it is. */
export interface StaticFile {
  readonly content: string | Bun.BunFile
  readonly type: 'text/html' | 'text/css' | 'text/javascript' | 'application/json'
}

/** What every page loads, below the path at which a proxy may open or close its pages. */
export function pageFiles(base: '' | '/admin' | '/outbox'): Readonly<Record<string, StaticFile>> {
  return {
    [`${base}/page.css`]: { type: 'text/css', content: paletteCss + pageCss },
    [`${base}/page.js`]: { type: 'text/javascript', content: pageJs },
    [`${base}/ago.js`]: { type: 'text/javascript', content: agoJs },
  }
}

/** Serves files by path. Readers keep them and ask each time whether they still hold: after an upgrade nobody sees an old one. */
export function staticRoutes(files: Readonly<Record<string, StaticFile>>) {
  const routes = new Elysia({ strictPath: true, normalize: false })
  for (const [path, file] of Object.entries(files)) {
    let tag: Promise<string> | undefined
    routes.get(path, async ({ request }) => {
      tag ??= tagOf(file.content)
      const headers = { ...headersOf(file.type, pagePolicy), etag: await tag, 'cache-control': 'no-cache' }
      if (request.headers.get('if-none-match')?.includes(headers.etag)) {
        return new Response(null, { status: 304, headers })
      }
      return new Response(file.content, { headers })
    })
  }
  return routes
}

/** The headers of a document that is shown under a policy, as what it is and nothing else. */
export function headersOf(type: StaticFile['type'], policy: string): Record<string, string> {
  return {
    'content-type': type === 'application/json' ? type : `${type}; charset=utf-8`,
    'content-security-policy': policy,
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
  }
}

async function tagOf(content: StaticFile['content']): Promise<string> {
  const bytes = typeof content === 'string' ? content : await content.bytes()
  return `"${createHash('sha256').update(bytes).digest('base64url')}"`
}

/** The URL by which a browser reached this server; Bun gives a path alone where the Host is malformed. */
export function originOf({ url }: Request): string {
  return new URL(url, 'http://localhost').origin
}
