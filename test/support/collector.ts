/** A span as a collector got it. */
export interface CollectedSpan {
  /** Lower-case hexadecimal, as in a traceparent. */
  readonly traceId: string
  readonly spanId: string
  /** Empty where there is none. */
  readonly parentId: string
  readonly name: string
  /** Of the words below. */
  readonly kind: string
  /** Nanoseconds of the epoch. */
  readonly startedAt: bigint
  readonly endedAt: bigint
  readonly attributes: Readonly<Record<string, string | number | boolean>>
  readonly isError: boolean
  readonly statusMessage: string
  readonly events: number
  /** What the whole server says of itself. */
  readonly resource: Readonly<Record<string, string | number | boolean>>
}

/** A batch of spans as it came. */
export interface Batch {
  readonly path: string
  readonly headers: Headers
  readonly bytes: Buffer
  readonly spans: readonly CollectedSpan[]
}

type Reply = () => Response | Promise<Response>

/** A real HTTP server as an operator's collector of traces: decodes and keeps what it gets, answers as the test says. */
export function startCollector(reply: Reply = () => new Response(null, { status: 200 })) {
  const batches: Batch[] = []
  const arrivals: { count: number; resolve: () => void }[] = []
  const spans = () => batches.flatMap((batch) => batch.spans)
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const bytes = Buffer.from(await request.arrayBuffer())
      const { pathname: path } = new URL(request.url)
      batches.push({ path, headers: request.headers, bytes, spans: spansIn(bytes) })
      for (const { count, resolve } of arrivals) if (spans().length >= count) resolve()
      return reply()
    },
  })
  return {
    /** What OTEL_EXPORTER_OTLP_ENDPOINT is to be. */
    url: `http://127.0.0.1:${server.port}`,
    batches,
    spans,
    /** Resolves when so many spans have come. */
    arrived(count: number): Promise<void> {
      if (spans().length >= count) return Promise.resolve()
      return new Promise((resolve) => arrivals.push({ count, resolve }))
    },
    stop: () => server.stop(true),
  }
}

// --- OTLP in protobuf (opentelemetry-proto, trace.proto and its imports) ----------------------------------------------

/** The spans of an ExportTraceServiceRequest. */
function spansIn(bytes: Buffer): CollectedSpan[] {
  return all(bytes, 1).flatMap((resourceSpans) => {
    const resource = attributesIn(all(resourceSpans, 1).flatMap((it) => all(it, 1)))
    return all(resourceSpans, 2)
      .flatMap((scopeSpans) => all(scopeSpans, 2))
      .map((span) => spanIn(span, resource))
  })
}

const kinds = ['UNSPECIFIED', 'INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER']

function spanIn(span: Buffer, resource: CollectedSpan['resource']): CollectedSpan {
  const [status] = all(span, 15)
  return {
    traceId: one(span, 1).toString('hex'),
    spanId: one(span, 2).toString('hex'),
    parentId: one(span, 4).toString('hex'),
    name: one(span, 5).toString(),
    kind: kinds[Number(numberOf(span, 6))] ?? 'unknown',
    startedAt: numberOf(span, 7),
    endedAt: numberOf(span, 8),
    attributes: attributesIn(all(span, 9)),
    isError: status !== undefined && numberOf(status, 3) === 2n,
    statusMessage: status ? one(status, 2).toString() : '',
    events: all(span, 11).length,
    resource,
  }
}

function attributesIn(pairs: readonly Buffer[]): CollectedSpan['attributes'] {
  return Object.fromEntries(pairs.map((pair) => [one(pair, 1).toString(), valueIn(one(pair, 2))]))
}

function valueIn(value: Buffer): string | number | boolean {
  const [field] = fieldsOf(value)
  if (!field) return ''
  if (field.number === 1) return field.bytes.toString()
  if (field.number === 2) return field.value === 1n
  if (field.number === 3) return Number(BigInt.asIntN(64, field.value))
  throw new Error(`an attribute of a kind that is not read here: ${field.number}`)
}

interface Field {
  readonly number: number
  readonly bytes: Buffer
  readonly value: bigint
}

/** The fields of a message, in their order. */
function fieldsOf(message: Buffer): Field[] {
  const fields: Field[] = []
  let at = 0
  const varint = (): bigint => {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = message.readUInt8(at++)
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
  }
  while (at < message.length) {
    const tag = Number(varint())
    const [number, type] = [tag >>> 3, tag & 7]
    let [bytes, value]: [Buffer, bigint] = [Buffer.alloc(0), 0n]
    if (type === 0) value = varint()
    else if (type === 1) {
      value = message.readBigUInt64LE(at)
      at += 8
    } else if (type === 5) {
      value = BigInt(message.readUInt32LE(at))
      at += 4
    } else if (type === 2) {
      const length = Number(varint())
      if (at + length > message.length) throw new Error('a field ends after its message')
      bytes = message.subarray(at, at + length)
      at += length
    } else throw new Error(`no type of protobuf: ${type}`)
    fields.push({ number, bytes, value })
  }
  return fields
}

function all(message: Buffer, number: number): Buffer[] {
  return fieldsOf(message)
    .filter((field) => field.number === number)
    .map(({ bytes }) => bytes)
}

/** A field that is there once at most; empty where it is not. */
function one(message: Buffer, number: number): Buffer {
  return all(message, number)[0] ?? Buffer.alloc(0)
}

function numberOf(message: Buffer, number: number): bigint {
  return fieldsOf(message).find((field) => field.number === number)?.value ?? 0n
}
