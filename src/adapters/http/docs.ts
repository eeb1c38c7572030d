import stylesPath from 'swagger-ui-dist/swagger-ui.css' with { type: 'file' }
import bundlePath from 'swagger-ui-dist/swagger-ui-bundle.js' with { type: 'file' }
import { staticRoutes } from '../pages/static.ts'
import pageCss from './docs/page.css' with { type: 'text' }
import pageHtml from './docs/page.html' with { type: 'text' }
import pageJs from './docs/page.js' with { type: 'text' }

export function docsRoutes(version: string, withOutbox: boolean) {
  return staticRoutes({
    '/openapi.json': {
      type: 'application/json',
      // Most servers never need it, and it would take time and memory at the start.
      content: async () => JSON.stringify((await import('./openapi.ts')).openApi(version, withOutbox)),
    },
    // Bun types an imported page as a bundle; as text it is a string.
    '/docs': { type: 'text/html', content: pageHtml as unknown as string },
    '/docs/page.css': { type: 'text/css', content: pageCss },
    '/docs/page.js': { type: 'text/javascript', content: pageJs },
    '/docs/swagger-ui.css': { type: 'text/css', content: Bun.file(stylesPath) },
    '/docs/swagger-ui-bundle.js': { type: 'text/javascript', content: Bun.file(bundlePath) },
  })
}
