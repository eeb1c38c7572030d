import type { Bench } from './servers.ts'

/** Pages of a list that an operator reads one after the other. */
const pagesInARow = 5

/** Signs in to the console of a server. The result reads its pages without a pause for some time. */
export async function signIn(
  bench: Bench,
  databaseFile: string,
  url: URL,
): Promise<(seconds: number) => Promise<void>> {
  const link = await bench.command({ DATABASE_URL: `file:${databaseFile}` }, 'admin', 'link')
  const body = new URLSearchParams({ token: link.trim().split('#')[1] ?? '' })
  const entered = await fetch(new URL('/admin/link', url), { method: 'POST', body, redirect: 'manual' })
  const cookie = entered.headers.getSetCookie().map((line) => line.split(';')[0])
  const read = async (path: string, init: RequestInit = {}) => {
    const response = await fetch(new URL(path, url), { ...init, headers: { cookie: cookie.join('; ') } })
    const text = await response.text()
    if (!response.ok) throw new Error(`${path} answered ${response.status}`)
    return text
  }

  async function* pages() {
    yield read('/admin')
    for (const list of ['deliveries', 'calls']) {
      let path: string | undefined = `/admin/${list}`
      for (let count = 0; count < pagesInARow && path !== undefined; count += 1) {
        const page: string = await read(path)
        yield page
        path = /href="([^"]*before=[^"]*)"/.exec(page)?.[1]?.replaceAll('&amp;', '&')
      }
      yield read(`/admin/${list}?country=IN&provider=discard`)
      yield read(`/admin/${list}.csv`)
    }
    const search = await read('/admin/search')
    const csrf = /name="csrf" value="([^"]*)"/.exec(search)?.[1] ?? ''
    for (const q of ['+919876543210', 'a reference of no request']) {
      yield read('/admin/search', { method: 'POST', body: new URLSearchParams({ csrf, q }) })
    }
  }

  return async (seconds) => {
    const endsAt = performance.now() + seconds * 1000
    while (performance.now() < endsAt) {
      for await (const _ of pages()) if (performance.now() >= endsAt) return
    }
  }
}
