/** The interface as OpenAPI 3.1. */
export function openApi(version: string) {
  return { openapi: '3.1.0', info: { title: 'otpost', version }, paths: {} }
}
