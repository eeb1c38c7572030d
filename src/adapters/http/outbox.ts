import { Elysia } from 'elysia'
import { email, type Nationalize, phone } from '../../domain/contact.ts'
import { escapeHtml } from '../../domain/emails.ts'
import { Failure } from '../../domain/failures.ts'
import type { Outbox, OutboxQuery } from '../../domain/ports.ts'
import type { Exchanges } from './exchange.ts'
import conversationJs from './outbox/conversation.js' with { type: 'text' }
import domJs from './outbox/dom.js' with { type: 'text' }
import formJs from './outbox/form.js' with { type: 'text' }
import liveJs from './outbox/live.js' with { type: 'text' }
import mailJs from './outbox/mail.js' with { type: 'text' }
import pageCss from './outbox/page.css' with { type: 'text' }
import pageHtml from './outbox/page.html' with { type: 'text' }
import pageJs from './outbox/page.js' with { type: 'text' }
import readingJs from './outbox/reading.js' with { type: 'text' }
import recipientsJs from './outbox/recipients.js' with { type: 'text' }
import selectionJs from './outbox/selection.js' with { type: 'text' }
import storeJs from './outbox/store.js' with { type: 'text' }
import tryJs from './outbox/try.js' with { type: 'text' }
import wordsJs from './outbox/words.js' with { type: 'text' }

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

/** What the page loads, by path; page.js is where its scripts start. */
const assets: readonly (readonly [path: string, content: string, type: string])[] = [
  ['/outbox/page.css', pageCss, 'text/css'],
  ['/outbox/page.js', pageJs, 'text/javascript'],
  ['/outbox/conversation.js', conversationJs, 'text/javascript'],
  ['/outbox/dom.js', domJs, 'text/javascript'],
  ['/outbox/form.js', formJs, 'text/javascript'],
  ['/outbox/live.js', liveJs, 'text/javascript'],
  ['/outbox/mail.js', mailJs, 'text/javascript'],
  ['/outbox/reading.js', readingJs, 'text/javascript'],
  ['/outbox/recipients.js', recipientsJs, 'text/javascript'],
  ['/outbox/selection.js', selectionJs, 'text/javascript'],
  ['/outbox/store.js', storeJs, 'text/javascript'],
  ['/outbox/try.js', tryJs, 'text/javascript'],
  ['/outbox/words.js', wordsJs, 'text/javascript'],
]

/** How long a reader may wait for a message, and how many it gets at most. */
const maxWaitSeconds = 60
const maxMessages = 500

/** The developer's outbox: its page, and its messages as JSON for the page and for end-to-end tests. */
export function outboxRoutes(outbox: OutboxPorts, exchanges: Exchanges) {
  const demo = outbox.demo
    ? `<meta name="otpost-demo" content="${escapeHtml(JSON.stringify(outbox.demo))}">`
    : ''
  // Bun types an imported page as a bundle; as text it is a string. A function, since a string as replacement would give `$` in it a meaning.
  const page = (pageHtml as unknown as string).replace('<!--demo-->', () => demo)

  const app = new Elysia({ strictPath: true, normalize: false })
  for (const [path, content, type] of assets) app.get(path, () => file(content, type))
  return app
    .get('/outbox', () => file(page, 'text/html'))
    .get('/outbox/messages', async ({ request, query, server }) => {
      const wanted = readQuery(query, outbox.nationalize)
      server?.timeout(request, 0)
      const signal = AbortSignal.any([request.signal, outbox.stopping])
      const messages = await outbox.messages.wait(wanted, waitSeconds(query.wait) * 1000, signal)
      return { success: true, messages, requestId: exchanges.of(request).requestId }
    })
    .get('/outbox/messages/:id/html', async ({ params }) => {
      const id = Number(params.id)
      const entry = Number.isSafeInteger(id) ? await outbox.messages.get(id) : undefined
      if (!entry?.html) throw new Failure('route_not_found', 'No such mail')
      // The mail comes from whoever called /notify: it is shown as a document that can do nothing.
      return file(entry.html, 'text/html', mailPolicy)
    })
}

const pagePolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
const mailPolicy =
  "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src https: data:; frame-ancestors 'self'"

function file(content: string, type: string, policy = pagePolicy): Response {
  return new Response(content, {
    headers: {
      'content-type': `${type}; charset=utf-8`,
      'content-security-policy': policy,
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
    },
  })
}

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
