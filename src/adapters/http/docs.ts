import { Elysia } from 'elysia'
import stylesPath from 'swagger-ui-dist/swagger-ui.css' with { type: 'file' }
import bundlePath from 'swagger-ui-dist/swagger-ui-bundle.js' with { type: 'file' }
import type { BrandWithTexts } from '../../domain/brands/brand.ts'
import { enabledOwnTemplates } from '../../domain/messages/notify-texts.ts'
import { fileAnswer, loadFile, staticRoutes } from '../pages/static.ts'
import pageCss from './docs/page.css' with { type: 'text' }
import pageHtml from './docs/page.html' with { type: 'text' }
import pageJs from './docs/page.js' with { type: 'text' }

/** @param brands the same array until something changes */
export function docsRoutes(
  version: string,
  withOutbox: boolean,
  brands: () => Promise<readonly BrandWithTexts[]>,
) {
  let known:
    | { readonly of: readonly BrandWithTexts[]; readonly file: ReturnType<typeof loadFile> }
    | undefined
  return new Elysia({ strictPath: true, normalize: false })
    .get('/openapi.json', async ({ request }) => {
      // Without the database, the description lacks only the templates of the brands.
      const of = await brands().catch(() => known?.of ?? [])
      if (known?.of !== of) {
        // Most servers never need it, and it would take time and memory at the start.
        const content = async () =>
          JSON.stringify((await import('./openapi.ts')).openApi(version, withOutbox, enabledOwnTemplates(of)))
        known = { of, file: loadFile({ type: 'application/json', content }) }
      }
      return fileAnswer(request, 'application/json', await known.file)
    })
    .use(
      staticRoutes({
        // Bun types an imported page as a bundle; as text it is a string.
        '/docs': { type: 'text/html', content: pageHtml as unknown as string },
        '/docs/page.css': { type: 'text/css', content: pageCss },
        '/docs/page.js': { type: 'text/javascript', content: pageJs },
        '/docs/swagger-ui.css': { type: 'text/css', content: Bun.file(stylesPath) },
        '/docs/swagger-ui-bundle.js': { type: 'text/javascript', content: Bun.file(bundlePath) },
      }),
    )
}
