import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { codeIn, credentials, otherThan } from './support/app.ts'
import { type CollectedSpan, startCollector } from './support/collector.ts'
import { sourceLine } from './support/program.ts'
import { held } from './support/receiver.ts'
import type { TestServer } from './support/server.ts'
import { serverScene } from './support/server-scene.ts'

const phone = '12025550143'
const email = 'pat.traced@example.com'

/** The tolerance for a stop beyond the time for the collector, on a busy machine. */
const stopMarginMs = 30_000

/** A database with brand `acme`, a gateway and a collector of traces; all end with the scene. */
async function scene(collector = startCollector()) {
  const base = await serverScene({
    // Then each send has another step, not only those with a slow delivery.
    SMS_COOLDOWN_SECONDS: '0',
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
  })
  base.ending.defer(() => collector.stop())
  return {
    ...base,
    collector,
    start: (env: Readonly<Record<string, string>> = {}, preload?: string) =>
      base.start(env, preload, preload ? sourceLine(['serve']) : undefined),
  }
}

/** The traces of spans: for each, the span of the request and its children by start time. */
function tracesIn(spans: readonly CollectedSpan[]) {
  return [...Map.groupBy(spans, ({ traceId }) => traceId).values()].map((trace) => {
    const requests = trace.filter(({ kind }) => kind === 'SERVER')
    const [request] = requests
    if (!request || requests.length > 1) throw new Error(`${requests.length} requests in one trace`)
    const children = trace
      .filter((span) => span !== request)
      .sort((a, b) => Number(a.startedAt - b.startedAt))
    return { request, children }
  })
}

/** The only trace. */
function onlyTrace(spans: readonly CollectedSpan[]) {
  const [trace, ...others] = tracesIn(spans)
  if (!trace || others.length > 0) throw new Error(`${others.length + (trace ? 1 : 0)} traces`)
  return trace
}

function names(spans: readonly CollectedSpan[]): string[] {
  return spans.map(({ name }) => name)
}

function ask(server: TestServer, path: string, fields: object, headers: Readonly<Record<string, string>>) {
  return server.request('POST', path, {
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ ...credentials, brandId: 'acme', ...fields }),
  })
}

test.concurrent('a request is a span; the steps of the store and the call of the provider are its children', async () => {
  await using trace = await scene()
  const server = await trace.start({ OTEL_SERVICE_NAME: 'codes', OTEL_RESOURCE_ATTRIBUTES: 'team=a%20b' })
  const { status, body } = await server.post('/otp/send', { phone })
  expect(status).toBe(200)
  expect(await server.stop()).toBe(0)

  const { request, children } = onlyTrace(trace.collector.spans())
  expect(request).toMatchObject({ name: 'POST /otp/send', kind: 'SERVER', parentId: '', isError: false })
  expect(request.attributes).toEqual({
    'http.request.method': 'POST',
    'http.route': '/otp/send',
    'http.response.status_code': 200,
    'url.scheme': 'http',
    'otpost.request_id': body.requestId,
    'otpost.app': credentials.appId,
    'otpost.brand': 'acme',
    'otpost.channel': 'SMS',
  })
  expect(request.resource).toMatchObject({ 'service.name': 'codes', team: 'a b' })
  expect(children.map(({ name, kind }) => `${kind} ${name}`)).toEqual([
    'INTERNAL store beginSend',
    'CLIENT send webhook',
    'INTERNAL store reschedule',
  ])
  expect(children.at(1)?.attributes).toEqual({
    'otpost.provider': 'webhook',
    'otpost.route': 'plain',
    'otpost.outcome': 'accepted',
  })
  for (const child of children) {
    expect(child.parentId).toBe(request.spanId)
    expect(child.startedAt).toBeGreaterThanOrEqual(request.startedAt)
    expect(child.endedAt).toBeGreaterThanOrEqual(child.startedAt)
    expect(child.endedAt).toBeLessThanOrEqual(request.endedAt)
  }
  const line = server.lines
    .map((line) => JSON.parse(line))
    .find(({ requestId }) => requestId === body.requestId)
  expect(line.traceId).toBe(request.traceId)
})

test.concurrent('mails, resends and integration requests are traced too', async () => {
  await using trace = await scene()
  const server = await trace.start({ SMS_PLAIN: 'webhook,outbox' })
  await server.post('/otp/send', { channel: 'EMAIL', email })
  await server.post('/otp/resend', { phone })
  await server.post('/integrations/requests', {
    companyName: 'Bikes',
    contactName: 'Pat',
    contactEmail: email,
    brandName: 'Bikes',
  })
  expect(await server.stop()).toBe(0)
  const traces = tracesIn(trace.collector.spans())
  expect(traces.map(({ request }) => request.attributes['http.response.status_code'])).toEqual([
    200, 200, 201,
  ])
  expect(traces.map(({ children }) => names(children))).toEqual([
    ['store beginSend', 'send outbox'],
    ['store beginSend', 'send webhook', 'store reschedule'],
    ['store pendingCount', 'store admit', 'store saveRequest'],
  ])
  expect(traces[0]?.children.at(1)?.attributes).toEqual({
    'otpost.provider': 'outbox',
    'otpost.outcome': 'accepted',
  })
})

test.concurrent("a caller's trace is continued, and its sampling decision is respected", async () => {
  await using trace = await scene()
  const server = await trace.start()
  const [traceId, parentId] = ['0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331']
  const unrecorded = '4bf92f3577b34da6a3ce929d0e0e4736'
  await ask(server, '/otp/verify', { phone, otp: '123456' }, { traceparent: `00-${traceId}-${parentId}-01` })
  await ask(
    server,
    '/otp/verify',
    { phone, otp: '123456' },
    { traceparent: `00-${unrecorded}-${parentId}-00` },
  )
  await ask(server, '/otp/verify', { phone, otp: '123456' }, { traceparent: 'nonsense' })
  expect(await server.stop()).toBe(0)

  const traces = tracesIn(trace.collector.spans())
  expect(traces.map(({ children }) => names(children))).toEqual([['store guess'], ['store guess']])
  const [continued, begun] = traces.map(({ request }) => request)
  expect(continued).toMatchObject({ traceId, parentId })
  expect(begun?.parentId).toBe('')
  expect(begun?.traceId).toMatch(/^[0-9a-f]{32}$/)
  // The log has the trace id also of a trace that otpost does not record.
  const logged = server.lines.flatMap((line) => JSON.parse(line).traceId ?? [])
  expect(logged).toEqual([traceId, unrecorded, begun?.traceId])
})

test.concurrent('every child has the right parent with many requests under way', async () => {
  await using trace = await scene()
  const { receiver, collector } = trace
  const server = await trace.start()
  // The gateway delays all answers until every request is under way, and answers in another order.
  const replies: ReturnType<typeof held>[] = []
  const sends = 100
  const all = Promise.withResolvers<void>()
  receiver.answer(() => {
    const reply = held()
    replies.push(reply)
    if (replies.length === sends) all.resolve()
    return reply.promise
  })
  /** The body of each kind of request, and its required children. */
  const kinds = [
    {
      ask: (index: number, headers: Readonly<Record<string, string>>) =>
        ask(server, '/otp/send', { phone: `1202${5_550_000 + index}` }, headers),
      children: ['store beginSend', 'send webhook', 'store reschedule'],
    },
    {
      ask: (index: number, headers: Readonly<Record<string, string>>) =>
        ask(server, '/otp/verify', { phone: `1303${5_550_000 + index}`, otp: '123456' }, headers),
      children: ['store guess'],
    },
    {
      ask: (_: number, headers: Readonly<Record<string, string>>) =>
        server.request('GET', '/health', { headers }),
      children: ['store checkDatabase'],
    },
    {
      ask: (_: number, headers: Readonly<Record<string, string>>) =>
        ask(server, '/otp/send', { phone: 'none' }, headers),
      children: ['store admit'],
    },
  ] as const
  const asked = Array.from({ length: sends * kinds.length }, (_, index) => {
    const kind = kinds[index % kinds.length] ?? kinds[0]
    const traceId = `a0${(index + 1).toString(16).padStart(30, '0')}`
    const parentId = `b0${(index + 1).toString(16).padStart(14, '0')}`
    const answer = kind.ask(index, { traceparent: `00-${traceId}-${parentId}-01` })
    return { answer, traceId, parentId, children: kind.children }
  })
  await all.promise
  for (const { release } of replies.reverse()) release(new Response(null, { status: 204 }))
  const requestIds = await Promise.all(asked.map(async ({ answer }) => (await answer).body.requestId))
  expect(await server.stop()).toBe(0)

  const found = new Map(tracesIn(collector.spans()).map((trace) => [trace.request.traceId, trace]))
  expect(found.size).toBe(asked.length)
  const wrong = asked.filter(({ traceId, parentId, children }, index) => {
    const trace = found.get(traceId)
    return !(
      trace &&
      trace.request.parentId === parentId &&
      trace.request.attributes['otpost.request_id'] === requestIds[index] &&
      names(trace.children).join() === children.join() &&
      trace.children.every(
        (child) =>
          child.parentId === trace.request.spanId &&
          child.startedAt >= trace.request.startedAt &&
          child.endedAt <= trace.request.endedAt,
      )
    )
  })
  // One of them is enough.
  expect(wrong.slice(0, 1).map(({ traceId }) => found.get(traceId))).toEqual([])
})

test.concurrent('failures are exported by their kind: a provider, a step of the store, a request', async () => {
  await using trace = await scene()
  const { receiver, collector } = trace
  const server = await trace.start()
  receiver.answer(() => new Response('out of credit', { status: 402 }))
  expect((await server.post('/otp/send', { phone })).status).toBe(502)
  expect((await server.post('/otp/verify', { phone, otp: '12' })).status).toBe(400)
  await trace.database.loseTables('codes_and_limits')
  expect((await server.post('/otp/verify', { phone, otp: '123456' })).status).toBe(500)
  expect(await server.stop()).toBe(0)

  const [failed, refused, broken] = tracesIn(collector.spans()).sort((a, b) =>
    Number(a.request.startedAt - b.request.startedAt),
  )
  expect(failed?.request).toMatchObject({ isError: true, statusMessage: '', events: 0 })
  expect(failed?.request.attributes).toMatchObject({
    'http.response.status_code': 502,
    'error.type': 'sms_failed',
    'otpost.error': 'sms_failed',
  })
  const call = failed?.children.find(({ kind }) => kind === 'CLIENT')
  expect(call).toMatchObject({ name: 'send webhook', isError: true, statusMessage: '', events: 0 })
  expect(Object.keys(call?.attributes ?? {})).toContain('otpost.reason')
  expect(call?.attributes['otpost.outcome']).toBe(call?.attributes['error.type'])
  expect(names(failed?.children ?? [])).toEqual(['store beginSend', 'send webhook', 'store abandonSend'])
  // An error of the caller is no error of the server.
  expect(refused?.request).toMatchObject({ isError: false })
  expect(refused?.request.attributes).toMatchObject({ 'otpost.error': 'invalid_otp_format' })
  expect(refused?.request.attributes).not.toHaveProperty('error.type')
  expect(broken?.request).toMatchObject({ isError: true })
  expect(broken?.request.attributes).toMatchObject({ 'error.type': 'internal_error' })
  expect(broken?.children).toHaveLength(1)
  expect(broken?.children[0]).toMatchObject({
    name: 'store guess',
    isError: true,
    statusMessage: '',
    events: 0,
  })
  expect(broken?.children[0]?.attributes['error.type']).toMatch(/^[A-Za-z0-9_]+$/)
})

test.concurrent('no exported byte contains a code, a key, a recipient or a text', async () => {
  await using trace = await scene()
  const { receiver, collector } = trace
  const server = await trace.start({ OTEL_EXPORTER_OTLP_HEADERS: 'api-key=the%20collectors%20key' })
  const words = 'a text for one pair of eyes'
  const sent = await server.post('/otp/send', { phone })
  const code = codeIn(receiver.received[0]?.body.text)
  await server.post('/otp/verify', { phone, otp: otherThan(code) })
  await server.post('/otp/verify', { phone, otp: code })
  await server.post('/otp/send', { channel: 'EMAIL', email })
  await server.post('/notify', { channel: 'SMS', brandId: 'acme', to: [phone], message: words })
  await server.post('/otp/send', { apiKey: 'a-wrong-key', phone })
  await server.post('/otp/send', { appId: 'unknown-app', phone })
  // A gateway that repeats its input.
  receiver.answer(
    ({ raw }) => new Response(raw, { status: 500, statusText: words, headers: { 'x-raw': phone } }),
  )
  await server.post('/notify', { channel: 'SMS', brandId: 'acme', to: [phone], message: words })
  // Texts of a stranger in unexpected places.
  await server.get(`/${phone}/${code}?to=${email}`)
  await server.get(`/outbox/messages?to=${phone}`)
  await server.request('DELETE', `/otp/send/${phone}`, {
    headers: { 'user-agent': words, 'x-request-id': phone },
  })
  await server.post('/otp/send', { brandId: phone, phone })
  const [mail] = (await server.get(`/outbox/messages?to=${email}`)).body.messages
  expect(await server.stop()).toBe(0)

  const bytes = Buffer.concat(collector.batches.map((batch) => batch.bytes))
  const secrets = [
    code,
    codeIn(mail.text),
    otherThan(code),
    phone,
    phone.slice(1),
    '2*******43',
    email,
    words,
    credentials.apiKey,
    'a-wrong-key',
    'unknown-app',
    'collectors key',
    receiver.secret,
  ]
  expect(secrets.filter((secret) => bytes.includes(secret))).toEqual([])
  // The search works, and all of these requests were traced.
  expect(bytes.includes(sent.body.requestId)).toBe(true)
  expect(tracesIn(collector.spans())).toHaveLength(13)
  expect(collector.batches[0]?.path).toBe('/v1/traces')
  expect(collector.batches[0]?.headers.get('api-key')).toBe('the collectors key')
  expect(names(tracesIn(collector.spans()).map(({ request }) => request)).slice(8, 11)).toEqual([
    'GET',
    'GET /outbox/messages',
    'DELETE',
  ])
})

test.concurrent('the server exports spans while it runs, to the traces endpoint without a change to its URL', async () => {
  await using trace = await scene()
  const { collector } = trace
  const server = await trace.start({
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1',
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/of/traces`,
  })
  await server.get('/health/live')
  await collector.arrived(1)
  expect(collector.batches.map(({ path }) => path)).toEqual(['/of/traces'])
  expect(names(collector.spans())).toEqual(['GET /health/live'])
  expect(await server.stop()).toBe(0)
  expect(collector.batches).toHaveLength(1)
})

test.concurrent('spans that the sampler drops are not sent', async () => {
  await using trace = await scene()
  for (const env of [
    { OTEL_TRACES_SAMPLER: 'always_off' },
    { OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0' },
  ]) {
    const server = await trace.start(env)
    await server.post('/otp/verify', { phone, otp: '123456' })
    expect(await server.stop()).toBe(0)
    const logged = server.lines.flatMap((line) => JSON.parse(line).traceId ?? [])
    expect(logged).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/)])
  }
  expect(trace.collector.batches).toEqual([])
})

describe('a collector', () => {
  test.concurrent.each<[string, () => ReturnType<typeof startCollector>]>([
    [
      'that is not there',
      () => {
        const collector = startCollector()
        collector.stop()
        return collector
      },
    ],
    ['that never answers', () => startCollector(() => new Promise<Response>(() => {}))],
  ])('%s slows neither requests nor the stop', async (_, start) => {
    await using trace = await scene(start())
    const server = await trace.start()
    // As many spans as start an export at once, while requests continue.
    for (let round = 0; round < 12; round++) {
      const answers = await Promise.all(Array.from({ length: 100 }, () => server.get('/health/live')))
      expect(answers.filter(({ status }) => status !== 200)).toEqual([])
    }
    expect((await server.post('/otp/send', { phone })).status).toBe(200)
    const startedAt = performance.now()
    expect(await server.stop()).toBe(0)
    expect(performance.now() - startedAt).toBeLessThan(2000 + stopMarginMs)
    const collectorLines = server.lines
      .map((line) => JSON.parse(line))
      .filter(({ msg }) => msg.includes('spans'))
    const logged = collectorLines.map(({ level, msg }) => `${level} ${msg}`)
    // On a busy machine the export that began meanwhile may have failed before. The server logs that once a minute.
    const before = '40 spans cannot be exported; requests are not affected'
    expect(logged.filter((line) => line !== before)).toEqual([
      '40 the last spans could not be exported in time',
    ])
    expect(JSON.parse(server.lines.at(-1) ?? '').msg).toBe('stopped')
    expect(await server.stderr).toBe('')
  })

  test.concurrent('that rejects spans is logged once a minute, with the number of spans', async () => {
    const words = 'what a collector answers'
    await using trace = await scene(startCollector(() => new Response(words, { status: 400 })))
    const { collector } = trace
    const server = await trace.start()
    for (let round = 0; round < 12; round++) {
      await Promise.all(Array.from({ length: 100 }, () => server.get('/health/live')))
    }
    await server.logged('spans cannot be exported')
    expect(await server.stop()).toBe(0)
    expect(collector.batches.length).toBeGreaterThan(1)
    const told = server.lines.filter((line) => line.includes('spans cannot be exported'))
    expect(told.map((line) => JSON.parse(line))).toEqual([
      {
        level: 40,
        time: expect.any(String),
        spans: collector.batches[0]?.spans.length,
        problem: 'Bad Request (400)',
        msg: 'spans cannot be exported; requests are not affected',
      },
    ])
    expect(told.join()).not.toContain(words)
    expect(await server.stderr).toBe('')
  })
})

// From source: a binary has all modules in one file.
test.concurrent('without an endpoint the tracing modules are not loaded', async () => {
  await using trace = await scene()
  const preload = join(import.meta.dir, 'support/loaded.ts')
  const loadedBy = async (env: Readonly<Record<string, string>>) => {
    const server = await trace.start(env, preload)
    expect((await server.post('/otp/send', { phone })).status).toBe(200)
    expect(await server.stop()).toBe(0)
    expect(server.lines.some((line) => line.includes('traceId'))).toBe(env.OTEL_EXPORTER_OTLP_ENDPOINT !== '')
    const lines = (await server.stderr).split('\n').filter((line) => line.startsWith('loaded '))
    return lines.map((line) => line.replace(/^loaded .*(?=src\/adapters\/|@opentelemetry\/)/, ''))
  }
  // These settings are for other programs.
  const off = {
    OTEL_EXPORTER_OTLP_ENDPOINT: '',
    OTEL_TRACES_SAMPLER: 'always_on',
    OTEL_SERVICE_NAME: 'other',
  }
  expect(await loadedBy(off)).toEqual(['src/adapters/tracing/settings.ts'])
  const on = await loadedBy({ OTEL_EXPORTER_OTLP_ENDPOINT: trace.collector.url })
  expect(on).toContain('src/adapters/tracing/tracing.ts')
  expect(on.some((path) => path.startsWith('@opentelemetry/sdk-trace/'))).toBe(true)
})
