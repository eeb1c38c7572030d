import { createHash } from 'node:crypto'

/** In the order of the new page: text, or where the earlier page has it and how long it is. */
export type PagePart = string | readonly [start: number, length: number]

const mostPages = 30

/**
 * What changed in a live page since the browser last got it. The browser names that page by its digest; a server that does not have it,
 * such as another node, sends the whole page.
 */
export class PageChanges {
  /** By digest, the longest unused first. */
  private readonly pages = new Map<string, string>()

  /** @param response a page, which stays as it is unless the request is an update */
  async since({ headers }: Request, response: Response): Promise<Response> {
    if (!headers.has('x-otpost-refresh') || response.status !== 200) return response
    const page = await response.text()
    const digest = createHash('sha256').update(page).digest('base64url')
    const known = headers.get('x-otpost-page') ?? ''
    const earlier = this.pages.get(known)
    for (const old of [known, digest]) this.pages.delete(old)
    this.pages.set(digest, page)
    for (const old of this.pages.keys()) if (this.pages.size > mostPages) this.pages.delete(old)
    const own = { 'x-otpost-page': digest, 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' }
    return earlier === undefined
      ? new Response(page, { headers: { 'content-type': 'text/html; charset=utf-8', ...own } })
      : Response.json(partsOf(earlier, page), { headers: own })
  }
}

const blockLength = 24

/** In characters. A change is mostly of a figure, so the texts agree again soon after it. */
const nearby = 512

export function partsOf(earlier: string, page: string): PagePart[] {
  const blocks = new Map<string, number>()
  for (let at = 0; at + blockLength <= earlier.length; at += blockLength) {
    blocks.getOrInsertComputed(earlier.slice(at, at + blockLength), () => at)
  }
  const parts: PagePart[] = []
  let written = 0
  let expected = 0
  for (let at = 0; at < page.length; ) {
    const block = page.slice(at, at + blockLength)
    const near = earlier.slice(expected, expected + nearby).indexOf(block)
    let start = near >= 0 ? expected + near : blocks.get(block)
    if (start === undefined || block.length < blockLength) {
      at++
      continue
    }
    while (at > written && start > 0 && page[at - 1] === earlier[start - 1]) {
      at--
      start--
    }
    let length = blockLength
    while (at + length < page.length && page[at + length] === earlier[start + length]) length++
    if (at > written) parts.push(page.slice(written, at))
    parts.push([start, length])
    written = at += length
    expected = start + length
  }
  if (written < page.length) parts.push(page.slice(written))
  return parts
}
