/** Defined by release/build.ts; undefined when run from source. */
declare const DOCS_URL: string | undefined

/** Where people find a page or a folder of docs: its URL in a build with DOCS_URL, else its path in the repository. */
export function docsAt(path: string): string {
  return typeof DOCS_URL === 'string' ? `${DOCS_URL}/${path.replace(/\.md$/, '.html')}` : `docs/${path}`
}
