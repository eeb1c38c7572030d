import { Elysia } from 'elysia'
import { openApi } from './openapi.ts'

/** The description of the interface for machines and for people; it loads nothing from elsewhere. */
export function docsRoutes(version: string) {
  const description = openApi(version)
  return new Elysia({ strictPath: true, normalize: false }).get('/openapi.json', () => description)
}
