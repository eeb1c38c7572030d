/** @jsxImportSource preact */
import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { ContextOf } from '../../../domain/request/request-context.ts'
import { singlePage } from '../../pages/components.tsx'
import { headersOf, PageFiles, pagePolicy, staticRoutes } from '../../pages/static.ts'
import { anyCall, type EndpointOperation, success } from '../endpoint.ts'
import { succeeded } from '../schema.ts'

const path = Type.String({ description: 'A path of this server.' })
const root = succeeded(
  'Root',
  {
    service: Type.Literal('otpost'),
    version: Type.String({ description: 'The version of the service.' }),
    links: Type.Object({
      docs: path,
      openapi: path,
      health: path,
      outbox: Type.Optional({ ...path, description: 'Present if this server has an outbox.' }),
      admin: Type.Optional({ ...path, description: 'Present if the console is enabled.' }),
    }),
  },
  'The version and the links of this server.',
)

export const getRoot: EndpointOperation = {
  method: 'GET',
  path: '/',
  tag: 'Operation',
  id: 'getRoot',
  summary: 'Version and links',
  description: 'Returns an HTML page with the same links to a browser (`Accept: text/html`).',
  answers: {
    200: success(root, {
      service: 'otpost',
      version: '0.1.0',
      links: {
        docs: '/docs',
        openapi: '/openapi.json',
        health: '/health',
        outbox: '/outbox',
        admin: '/admin',
      },
    }),
  },
  failures: anyCall,
}

export interface RootPorts {
  readonly version: string
  readonly hasOutbox: boolean
  /** Whether anyone can sign in to it. */
  readonly hasConsole: () => Promise<boolean>
}

const files = new PageFiles('')

const titles = {
  docs: 'API documentation',
  openapi: 'API description (OpenAPI)',
  health: 'Health',
  outbox: 'Outbox',
  admin: 'Console',
} as const

type Links = Readonly<Partial<Record<keyof typeof titles, string>>>

export function rootRoutes({ version, hasOutbox, hasConsole }: RootPorts, contextOf: ContextOf) {
  return new Elysia({ strictPath: true, normalize: false })
    .use(staticRoutes(files))
    .get('/', async ({ request, set }) => {
      const links: Links = {
        docs: '/docs',
        openapi: '/openapi.json',
        health: '/health',
        ...(hasOutbox ? { outbox: '/outbox' } : {}),
        ...((await hasConsole()) ? { admin: '/admin' } : {}),
      }
      if (/\btext\/html\b/i.test(request.headers.get('accept') ?? '')) {
        const headers = { ...headersOf('text/html', pagePolicy), 'cache-control': 'no-store', vary: 'accept' }
        return new Response(rootPage(version, links), { headers })
      }
      set.headers.vary = 'accept'
      return { success: true, service: 'otpost', version, links, requestId: contextOf(request).requestId }
    })
}

function rootPage(version: string, links: Links): string {
  const entries = (Object.keys(titles) as (keyof typeof titles)[]).flatMap((name) => {
    const href = links[name]
    return href === undefined ? [] : [{ href, title: titles[name] }]
  })
  return singlePage(
    { title: 'Verification codes and notifications', files },
    <>
      <ul class="links">
        {entries.map(({ href, title }) => (
          <li key={href}>
            <a href={href}>{title}</a> <code>{href}</code>
          </li>
        ))}
      </ul>
      <p class="hint">otpost {version}</p>
    </>,
  )
}
