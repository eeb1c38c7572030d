import { Elysia } from 'elysia'
import type { BrandWithTexts } from '../../domain/texts/brand.ts'
import { enabledOwnTemplates } from '../../domain/texts/notify-texts.ts'
import { fileAnswer, loadFile, staticRoutes } from '../pages/static.ts'
import { docsFiles } from './docs/files.ts'

interface DocsPorts {
  readonly version: string
  readonly hasOutbox: boolean
  /** The same array until something changes. */
  readonly brands: () => Promise<readonly BrandWithTexts[]>
  /** For the examples. Never from the Host header. */
  readonly ownUrl: () => string
}

export function docsRoutes({ version, hasOutbox, brands, ownUrl }: DocsPorts) {
  // Most servers never need them, and they would take time and memory at the start.
  const describe = async (of: readonly BrandWithTexts[]) => {
    const { openApi, openApiText } = await import('./openapi.ts')
    return { description: openApi(version, hasOutbox, enabledOwnTemplates(of)), openApiText }
  }
  return new Elysia({ strictPath: true, normalize: false })
    .use(staticRoutes(docsFiles))
    .get(
      '/openapi.json',
      untilChange('application/json', async (of) => {
        const { description, openApiText } = await describe(of)
        return openApiText(description)
      }),
    )
    .get(
      '/docs',
      untilChange('text/html', async (of) => {
        const { referencePage } = await import('./docs/page.tsx')
        return referencePage((await describe(of)).description, ownUrl())
      }),
    )

  /** Made once for each array of brands. */
  function untilChange(
    type: 'application/json' | 'text/html',
    content: (of: readonly BrandWithTexts[]) => Promise<string>,
  ) {
    let made:
      | { readonly of: readonly BrandWithTexts[]; readonly file: ReturnType<typeof loadFile> }
      | undefined
    return async ({ request }: { readonly request: Request }) => {
      // Without the database, the description lacks only the templates of the brands.
      const of = await brands().catch(() => made?.of ?? [])
      if (made?.of !== of) made = { of, file: content(of).then(loadFile) }
      return fileAnswer(request, type, await made.file)
    }
  }
}
