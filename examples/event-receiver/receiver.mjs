// @ts-check

import { open, readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { EventError, verifyEvent } from 'otpost/client'

// Receives the events of an app, and stores each once. See the README beside this file.

/** Several, separated by spaces, for the webhooks of several apps. */
const secrets = required('OTPOST_WEBHOOK_SECRET').split(' ')
const file = process.env.EVENTS_FILE ?? 'events.jsonl'

/** @param {string} name */
function required(name) {
  const value = process.env[name]
  if (value) return value
  console.error(`Set ${name}.`)
  process.exit(1)
}

// --- Events that were stored ----------------------------------------------------------------------------------------

const log = await open(file, 'a')

/**
 * The storing of each event by its id, which is the same in each try of otpost.
 *
 * @type {Map<string, Promise<void>>}
 */
const stored = new Map((await idsIn(file)).map((id) => [id, Promise.resolve()]))

/** @param {string} path */
async function idsIn(path) {
  const lines = (await readFile(path, 'utf8')).split('\n')
  return lines.flatMap((line) => {
    try {
      const { id } = JSON.parse(line)
      return [String(id)]
    } catch {
      // Empty, or cut off by a crash. otpost got no answer for that event, and sends it again.
      return []
    }
  })
}

/**
 * Stores an event once, also if two requests have it at the same time.
 *
 * @param {import('otpost/client').OtpostEvent} event
 */
function store(event) {
  const earlier = stored.get(event.id)
  if (earlier) return earlier
  const storing = append(event)
  stored.set(event.id, storing)
  storing.catch(() => stored.delete(event.id))
  return storing
}

/** The end of the last write: writes follow each other. */
let written = Promise.resolve()

/** @param {import('otpost/client').OtpostEvent} event */
function append(event) {
  // The line break comes first: what a failed write left is a line of its own.
  const writing = written.then(async () => {
    await log.appendFile(`\n${JSON.stringify(event)}`)
    await log.datasync()
    console.log(event.type, event.data.reference ?? event.data.requestId)
  })
  written = writing.catch(() => {})
  return writing
}

// --- Requests -------------------------------------------------------------------------------------------------------

/** Events are much shorter. */
const maxBodyBytes = 64 * 1024

/**
 * The status that a request is answered with. otpost sends an event again after any status but 2xx.
 *
 * @param {import('node:http').IncomingMessage} request
 */
async function answer(request) {
  if (request.url !== '/otpost/events') return 404
  if (request.method !== 'POST') return 405
  const chunks = []
  let bytes = 0
  for await (const chunk of request) {
    bytes += chunk.length
    if (bytes > maxBodyBytes) return 413
    chunks.push(chunk)
  }
  try {
    // The bytes as they came: the signature covers them.
    await store(await verifyEvent(Buffer.concat(chunks), request.headers, secrets))
    return 204
  } catch (error) {
    if (!(error instanceof EventError)) throw error
    console.error(error.code)
    // A type of event that a newer server has: authentic, but of no use here.
    return error.code === 'unknown_event' ? 204 : 400
  }
}

const server = createServer((request, response) => {
  answer(request).then(
    // The rest of a body that was not read is not a request.
    (status) => response.writeHead(status, request.complete ? {} : { connection: 'close' }).end(),
    (error) => {
      console.error(error)
      response.writeHead(500).end()
    },
  )
})
server.requestTimeout = 10_000
server.listen(Number(process.env.PORT ?? 3002), '127.0.0.1', () => {
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  console.log(`http://127.0.0.1:${port}/otpost/events`)
})
