import type { Visit } from './access.ts'

const consolePolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

export function seeOther(location: string, cookies: readonly string[] = []): Response {
  return withCookies(new Response(null, { status: 303, headers: { location, ...pageHeaders } }), cookies)
}

export function html(page: string, status = 200, cookies: readonly string[] = []): Response {
  const headers = { 'content-type': 'text/html; charset=utf-8', ...pageHeaders }
  return withCookies(new Response(page, { status, headers }), cookies)
}

/** Reads each part when the client has taken the one before. */
export function csvDownload(name: string, parts: AsyncGenerator<string>): Response {
  const encoder = new TextEncoder()
  const body = new ReadableStream({
    async pull(controller) {
      const { value, done: isDone } = await parts.next()
      if (isDone) controller.close()
      else controller.enqueue(encoder.encode(value))
    },
    cancel: async () => void (await parts.return(undefined)),
  })
  const headers = {
    'content-type': 'text/csv; charset=utf-8',
    'content-disposition': `attachment; filename="otpost-${name}.csv"`,
    ...pageHeaders,
  }
  return new Response(body, { headers })
}

export function eventStream(events: ReadableStream<Uint8Array>): Response {
  const headers = {
    'content-type': 'text/event-stream',
    // nginx sends each event at once.
    'x-accel-buffering': 'no',
    ...pageHeaders,
  }
  return new Response(events, { headers })
}

const pageHeaders = {
  'cache-control': 'no-store',
  'content-security-policy': consolePolicy,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
}

function withCookies(response: Response, cookies: readonly string[]): Response {
  for (const cookie of cookies) response.headers.append('set-cookie', cookie)
  return response
}

export function done(visit: Visit, location: string, text: string): Response {
  return seeOther(location, [visit.flashCookie({ tone: 'good', text })])
}
