import { setTimeout as pause } from 'node:timers/promises'
import {
  type Attributes,
  DiagLogLevel,
  diag,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  type SpanOptions,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api'
import { ExportResultCode, W3CTraceContextPropagator } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { defaultResource, resourceFromAttributes } from '@opentelemetry/resources'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import { onceAMinute } from '../../domain/ground/once-a-minute.ts'
import type { Log } from '../../domain/ground/ports.ts'
import type { RequestContext } from '../../domain/request/request-context.ts'
import type { RequestEnded } from '../../domain/request/request-ended.ts'
import { type StepResult, type TracedPorts, type TracedStep, traced } from './ports.ts'
import type { TracingSettings } from './settings.ts'

export type Tracing = ReturnType<typeof createTracing>

class RequestSpan {
  private readonly epochOffsetMs = Date.now() - performance.now()
  private readonly span: Span

  /** @param start starts a span, a child of `parent` or else of the caller's span */
  constructor(
    private readonly start: (name: string, options: SpanOptions, parent?: Span) => Span,
    name: string,
    attributes: Attributes,
  ) {
    this.span = start(name, { kind: SpanKind.SERVER, attributes, startTime: this.now() })
  }

  get traceId(): string {
    return this.span.spanContext().traceId
  }

  /** Epoch milliseconds with fractions; monotonic within a request. */
  private now(): number {
    return this.epochOffsetMs + performance.now()
  }

  traced<Ports extends TracedPorts>(ports: Ports): Ports {
    return this.span.isRecording() ? traced((...step) => this.step(...step), ports) : ports
  }

  private async step<T>(
    { name, isCall = false, attributes = {} }: TracedStep,
    work: () => Promise<T>,
    resultOf?: (result: T) => StepResult,
  ): Promise<T> {
    if (!this.span.isRecording()) return work()
    const kind = isCall ? SpanKind.CLIENT : SpanKind.INTERNAL
    const span = this.start(name, { kind, attributes, startTime: this.now() }, this.span)
    try {
      const result = await work()
      const about = resultOf?.(result)
      if (about) span.setAttributes(about.attributes)
      if (about?.failure !== undefined) fail(span, about.failure)
      return result
    } catch (error) {
      fail(span, errorType(error))
      throw error
    } finally {
      span.end(this.now())
    }
  }

  end({ context, method, route, status, error }: RequestEnded): void {
    const { span } = this
    const { requestId, app, brand, channel } = context
    if (!span.isRecording()) return
    if (route !== undefined) span.updateName(`${knownMethod(method) ?? 'HTTP'} ${route}`)
    span.setAttribute('http.response.status_code', status)
    const texts = {
      'http.route': route,
      'otpost.request_id': requestId,
      'otpost.app': app,
      'otpost.brand': brand,
      'otpost.channel': channel,
      'otpost.error': error,
    }
    for (const [name, text] of Object.entries(texts)) if (text !== undefined) span.setAttribute(name, text)
    // A 4xx is not a server error (semantic conventions for HTTP spans).
    if (status >= 500) fail(span, error ?? String(status))
    span.end(this.now())
  }
}

/** Spans are sent in batches. The queue is bounded, so that a slow collector never delays requests. */
export function createTracing(
  { url, headers, serviceName, resourceAttributes, sampling }: TracingSettings,
  { version, log }: { version: string; log: Log },
) {
  const limited = onceAMinute(() => performance.now())
  const report = (lost: number, problem: string) =>
    limited(
      'spans',
      (spans) => log.warn({ spans, problem }, 'spans cannot be exported; requests are not affected'),
      lost,
    )
  // Warnings of the packages, such as a full queue. Errors are in the results of exports.
  diag.setLogger(
    {
      error: () => {},
      warn: (...words: unknown[]) => report(0, words.filter((word) => typeof word === 'string').join(' ')),
      info: () => {},
      debug: () => {},
      verbose: () => {},
    },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  )
  const provider = new TracerProvider({
    resource: defaultResource().merge(
      resourceFromAttributes({
        'service.version': version,
        'service.instance.id': crypto.randomUUID(),
        ...resourceAttributes,
        'service.name': serviceName,
      }),
    ),
    sampler: samplerOf(sampling),
    spanLimits: { attributeValueLengthLimit: 256 },
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: reporting(new OTLPTraceExporter({ url, headers, timeoutMillis: exportTimeoutMs }), report),
        maxQueueSize: 8192,
        maxExportBatchSize: 1024,
        scheduledDelayMillis: 2000,
        exportTimeoutMillis: exportTimeoutMs,
      }),
    ],
  })
  const tracer = provider.getTracer('otpost', version)
  const spans = new WeakMap<RequestContext, RequestSpan>()
  const propagator = new W3CTraceContextPropagator()

  return {
    begin(request: Request, context: RequestContext): void {
      const method = knownMethod(request.method)
      const caller = propagator.extract(ROOT_CONTEXT, request.headers, headerReader)
      const span = new RequestSpan(
        (name, options, parent) =>
          tracer.startSpan(name, options, parent ? trace.setSpan(ROOT_CONTEXT, parent) : caller),
        method ?? 'HTTP',
        {
          'http.request.method': method ?? '_OTHER',
          'url.scheme': request.url.startsWith('https:') ? 'https' : 'http',
        },
      )
      context.traceId = span.traceId
      spans.set(context, span)
    },

    /** The same ports; each use is a child of the request's span. */
    traced<Ports extends TracedPorts>(context: RequestContext, ports: Ports): Ports {
      return spans.get(context)?.traced(ports) ?? ports
    },

    ended(ended: RequestEnded): void {
      spans.get(ended.context)?.end(ended)
    },

    /** Sends the remaining spans, within `closeMs`. */
    async close(): Promise<void> {
      const done = new AbortController()
      const sent = provider.shutdown().catch(() => undefined)
      const late = pause(closeMs, 'late', { signal: done.signal }).catch(() => undefined)
      if ((await Promise.race([sent, late])) === 'late') {
        log.warn({}, 'the last spans could not be exported in time')
      }
      done.abort()
      diag.disable()
    },
  }
}

const exportTimeoutMs = 10_000

const closeMs = 2000

/** Only the type of an error, since its message may contain anything. */
function fail(span: Span, type: string): void {
  span.setStatus({ code: SpanStatusCode.ERROR })
  span.setAttribute('error.type', type)
}

function errorType(error: unknown): string {
  if (!(error instanceof Error)) return '_OTHER'
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name
}

function knownMethod(method: string): string | undefined {
  return /^(GET|HEAD|POST|PUT|DELETE|CONNECT|OPTIONS|TRACE|PATCH|QUERY)$/.test(method) ? method : undefined
}

const headerReader = {
  get: (headers: Headers, name: string) => headers.get(name) ?? undefined,
  keys: (headers: Headers) => [...headers.keys()],
}

function samplerOf({ sampler, ratio }: TracingSettings['sampling']): Sampler {
  const root = sampler.endsWith('always_on')
    ? new AlwaysOnSampler()
    : sampler.endsWith('always_off')
      ? new AlwaysOffSampler()
      : new TraceIdRatioBasedSampler(ratio)
  return sampler.startsWith('parentbased_') ? new ParentBasedSampler({ root }) : root
}

function reporting(exporter: SpanExporter, report: (spans: number, problem: string) => void): SpanExporter {
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        const { code, error } = result
        const errorCode = error && 'code' in error ? ` (${error.code})` : ''
        const problem = `${error?.message ?? 'no reason given'}${errorCode}`.slice(0, 200)
        if (code !== ExportResultCode.SUCCESS) report(spans.length, problem)
        done(result)
      }),
    shutdown: () => exporter.shutdown(),
  }
}
