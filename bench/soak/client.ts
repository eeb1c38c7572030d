import { brandId, credentials } from '../workloads.ts'

/** The answer to a request. */
export interface Answer {
  readonly status: number
  /** The machine code of an error, else an empty text. */
  readonly error: string
  readonly requestId: string
}

/** The service as its callers see it, over all its restarts. */
export interface Service {
  readonly url: URL
  /** False during a stop or a start: then the server may close connections. */
  isUp: boolean
  /** How often it was started. */
  starts: number
}

/** Requests to the service, with their latency and the violations in their answers. */
export class Client {
  requests = 0
  lost = 0
  /** The latency of requests that wait for no provider, in milliseconds, since the list was last emptied. */
  readonly latenciesMs: number[] = []
  readonly violations: string[] = []

  constructor(private readonly service: Service) {}

  post(path: string, fields: object): Promise<Answer | undefined> {
    return this.postRaw(path, JSON.stringify({ ...credentials, brandId, ...fields }))
  }

  postRaw(path: string, body: string): Promise<Answer | undefined> {
    const headers = { 'content-type': 'application/json' }
    return this.request(path, { method: 'POST', headers, body })
  }

  /**
   * One request. Undefined where its answer was lost with the server; a connection that breaks while the server was up
   * all the time is a violation.
   */
  async request(path: string, init: RequestInit = {}): Promise<Answer | undefined> {
    const { starts } = this.service
    const startedAt = performance.now()
    this.requests += 1
    try {
      const response = await fetch(new URL(path, this.service.url), init)
      const body = (await response.json()) as { error?: string; requestId?: string }
      if (path === '/otp/verify' || path === '/health') this.latenciesMs.push(performance.now() - startedAt)
      const answer = { status: response.status, error: body.error ?? '', requestId: body.requestId ?? '' }
      if (answer.requestId === '')
        this.violations.push(`${path} answered ${answer.status} without a requestId`)
      return answer
    } catch (error) {
      this.lost += 1
      if (this.service.isUp && this.service.starts === starts) {
        this.violations.push(`${path} broke off while the server was up: ${error}`)
      }
      return undefined
    }
  }
}
