import { brandId, credentials } from '../workloads.ts'

/** What came back for a request. */
export interface Answer {
  readonly status: number
  /** The machine code of an error, else an empty text. */
  readonly error: string
  readonly requestId: string
}

/** The service as its callers know it, over all its restarts. */
export interface Service {
  readonly url: URL
  /** False while it is being stopped or started: then it may hang up. */
  isUp: boolean
  /** How often it was started. */
  starts: number
}

/** Requests to the service, with what they took and everything that an answer must not be. */
export class Client {
  requests = 0
  lost = 0
  /** What requests took that wait for no provider, in milliseconds, since this was emptied last. */
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
