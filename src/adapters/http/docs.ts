import { createHash } from 'node:crypto'
import { Elysia } from 'elysia'
import stylesPath from 'swagger-ui-dist/swagger-ui.css' with { type: 'file' }
import bundlePath from 'swagger-ui-dist/swagger-ui-bundle.js' with { type: 'file' }
import pageCss from './docs/page.css' with { type: 'text' }
import pageHtml from './docs/page.html' with { type: 'text' }
import pageJs from './docs/page.js' with { type: 'text' }
import { openApi } from './openapi.ts'

/**
 * The description of the interface for machines (/openapi.json) and for people (/docs). The page and all it loads come
 * from this process, so that it works where the Internet does not, and tells nobody who reads it.
 */
export function docsRoutes(version: string) {
  const files: Readonly<Record<string, Asset>> = {
    '/openapi.json': asset('application/json', JSON.stringify(openApi(version))),
    // Bun types an imported page as a bundle; as text it is a string.
    '/docs': asset('text/html; charset=utf-8', pageHtml as unknown as string),
    '/docs/page.css': asset('text/css; charset=utf-8', pageCss),
    '/docs/page.js': asset('text/javascript; charset=utf-8', pageJs),
    '/docs/swagger-ui.css': asset('text/css; charset=utf-8', Bun.file(stylesPath)),
    '/docs/swagger-ui-bundle.js': asset('text/javascript; charset=utf-8', Bun.file(bundlePath)),
  }
  const routes = new Elysia({ strictPath: true, normalize: false })
  for (const [path, file] of Object.entries(files)) {
    routes.get(path, ({ request }) => file(request.headers.get('if-none-match')))
  }
  return routes
}

/** Answers a request for a file, given the tags of the copies that the reader has. */
type Asset = (ifNoneMatch: string | null) => Promise<Response>

// Swagger UI sets its styles by script, which a policy allows, and has its icons in data: URLs.
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** A file that readers keep and ask about each time: after an upgrade nobody sees the old one. */
function asset(type: string, content: string | Bun.BunFile): Asset {
  let tag: Promise<string> | undefined
  return async (ifNoneMatch) => {
    tag ??= tagOf(content)
    const headers = {
      'content-security-policy': policy,
      'cache-control': 'no-cache',
      etag: await tag,
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
    }
    if (ifNoneMatch?.includes(headers.etag)) return new Response(null, { status: 304, headers })
    return new Response(content, { headers: { ...headers, 'content-type': type } })
  }
}

async function tagOf(content: string | Bun.BunFile): Promise<string> {
  const bytes = typeof content === 'string' ? content : await content.bytes()
  return `"${createHash('sha256').update(bytes).digest('base64url')}"`
}
