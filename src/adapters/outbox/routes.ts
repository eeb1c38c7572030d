import { Elysia } from 'elysia'
import { email, type Nationalize, phone } from '../../domain/contact.ts'
import type { ContextOf } from '../../domain/events/request-context.ts'
import { Failure } from '../../domain/failures.ts'
import { escapeHtml } from '../../domain/messages/emails.ts'
import type { Outbox, OutboxQuery } from '../../domain/ports.ts'
import paletteCss from '../http/palette.css' with { type: 'text' }
import { headersOf, type StaticFile, staticRoutes } from '../http/static.ts'
import conversationJs from './conversation.js' with { type: 'text' }
import domJs from './dom.js' with { type: 'text' }
import formJs from './form.js' with { type: 'text' }
import liveJs from './live.js' with { type: 'text' }
import mailJs from './mail.js' with { type: 'text' }
import pageCss from './page.css' with { type: 'text' }
import pageHtml from './page.html' with { type: 'text' }
import pageJs from './page.js' with { type: 'text' }
import readingJs from './reading.js' with { type: 'text' }
import recipientsJs from './recipients.js' with { type: 'text' }
import selectionJs from './selection.js' with { type: 'text' }
import storeJs from './store.js' with { type: 'text' }
import tryJs from './try.js' with { type: 'text' }
import wordsJs from './words.js' with { type: 'text' }

/** The application that the page's form is filled in with when the server runs as a demo. */
export interface Demo {
  readonly appId: string
  readonly apiKey: string
  readonly brandId: string
}

export interface OutboxPorts {
  readonly messages: Outbox
  readonly demo: Demo | undefined
  /** Aborts when the server stops, so that no reader waits on. */
  readonly stopping: AbortSignal
  readonly nationalize: Nationalize | undefined
}

/** The page's scripts by name; page.js is where they start. */
const scripts = {
  conversation: conversationJs,
  dom: domJs,
  form: formJs,
  live: liveJs,
  mail: mailJs,
  page: pageJs,
  reading: readingJs,
  recipients: recipientsJs,
  selection: selectionJs,
  store: storeJs,
  try: tryJs,
  words: wordsJs,
}

/** How long a reader may wait for a message, and how many it gets at most. */
const maxWaitSeconds = 60
const maxMessages = 500

/** The developer's outbox: its page, and its messages as JSON for the page and for end-to-end tests. */
export function outboxRoutes(outbox: OutboxPorts, contextOf: ContextOf) {
  const demo = outbox.demo
    ? `<meta name="otpost-demo" content="${escapeHtml(JSON.stringify(outbox.demo))}">`
    : ''
  // Bun types an imported page as a bundle; as text it is a string. What replaces is given by a function, since a `$`
  // in a string would have a meaning.
  const page = (pageHtml as unknown as string).replace('<!--demo-->', () => demo)
  const files: Record<string, StaticFile> = {
    '/outbox': { type: 'text/html', content: page },
    '/outbox/page.css': { type: 'text/css', content: paletteCss + pageCss },
  }
  for (const [name, content] of Object.entries(scripts)) {
    files[`/outbox/${name}.js`] = { type: 'text/javascript', content }
  }

  return new Elysia({ strictPath: true, normalize: false })
    .use(staticRoutes(files))
    .get('/outbox/messages', async ({ request, query, server }) => {
      const wanted = readQuery(query, outbox.nationalize)
      server?.timeout(request, 0)
      const signal = AbortSignal.any([request.signal, outbox.stopping])
      const messages = await outbox.messages.wait(wanted, waitSeconds(query.wait) * 1000, signal)
      return { success: true, messages, requestId: contextOf(request).requestId }
    })
    .get('/outbox/messages/:id/html', async ({ params }) => {
      const id = Number(params.id)
      const entry = Number.isSafeInteger(id) ? await outbox.messages.get(id) : undefined
      if (!entry?.html) throw new Failure('route_not_found', 'No such mail')
      return new Response(entry.html, { headers: headersOf('text/html', mailPolicy) })
    })
}

/** A mail may look as it likes, show images as a mail client does, and do nothing. */
const mailPolicy =
  "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src https: data:; frame-ancestors 'self'"

type Query = Readonly<Record<string, string | undefined>>

function readQuery({ to, after, limit }: Query, nationalize: Nationalize | undefined): OutboxQuery {
  const recipient = phone(to, nationalize) ?? email(to)
  if (to !== undefined && !recipient) {
    throw new Failure('validation_error', 'to must be a phone number or a mail address')
  }
  return {
    ...(recipient ? { identity: recipient.identity } : {}),
    ...(after === undefined ? {} : { after: readNumber('after', after, Number.MAX_SAFE_INTEGER) }),
    limit: limit === undefined ? maxMessages : readNumber('limit', limit, maxMessages),
  }
}

function waitSeconds(wait: string | undefined): number {
  return wait === undefined ? 0 : readNumber('wait', wait, maxWaitSeconds)
}

function readNumber(name: string, value: string, max: number): number {
  const number = /^[0-9]{1,16}$/.test(value) ? Number(value) : Number.NaN
  if (number <= max) return number
  throw new Failure('validation_error', `${name} must be a whole number from 0 to ${max}`)
}
