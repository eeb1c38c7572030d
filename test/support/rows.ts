import { expect } from 'bun:test'
import { type FailureReason, failureReasons } from '../../src/domain/ground/failures.ts'
import { type Answer, createTestApp, type TestApp } from './app.ts'

/** One line of a table of the contract: a body, and what it is answered with. */
export interface Row {
  readonly name: string
  /** The fields beside credentials and brand; one given as undefined is left out. */
  readonly body: Readonly<Record<string, unknown>>
  readonly status: number
  /** The machine code of the refusal, or null where the request succeeds. */
  readonly error: string | null
  /** Of a rate_limited the reason, of a validation_error the field at fault or `destination`. Undefined: not checked. */
  readonly detail?: string | undefined
}

/** A row that is answered with this status and, where it is refused, this code and detail: `400 validation_error phone`. */
export function row(answer: string, name: string, body: Row['body']): Row {
  const [status, error = null, detail] = answer.split(' ')
  return { name, body, status: Number(status), error, detail }
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

/** The fields of each success envelope (spec 2.4), beside `success`, `message` and `requestId`. */
export const successFields: Readonly<Record<string, readonly string[]>> = {
  '/otp/send': ['expiresIn'],
  '/otp/resend': ['expiresIn'],
  '/otp/verify': [],
  '/notify': ['channel'],
  '/messages/status': ['request', 'recipients'],
}

/** A refusal or failure: status, code, the error envelope with exactly its fields, and Retry-After on a 429. */
export function expectError(answer: Answer, status: number, error: string, detail?: string): void {
  expect({ status: answer.status, error: answer.body.error }).toEqual({ status, error })
  const { reason, field } = answer.body
  const channel = error === 'notification_failed' ? ['channel', 'recipients'] : []
  const why = [...(reason === undefined ? [] : ['reason']), ...(field === undefined ? [] : ['field'])]
  expectKeys(answer, ['success', 'error', 'message', 'requestId', ...channel, ...why])
  const known = reasonsOf[error] ?? []
  const isRequired = error === 'rate_limited' && detail !== 'none'
  expect(isRequired ? known : [undefined, ...known]).toContain(reason)
  expect(typeof field).toBe(reason === 'field' ? 'string' : 'undefined')
  if (detail !== undefined) expect({ detail: field ?? reason ?? 'none' }).toEqual({ detail })
  expect(answer.body.success).toBe(false)
  expectCommon(answer)
  if (status === 429) expect(answer.headers.get('retry-after')).toMatch(/^[1-9][0-9]*$/)
}

/** Design D50. */
const reasonsOf: Readonly<Record<string, readonly FailureReason[]>> = {
  validation_error: ['destination', 'field'],
  rate_limited: failureReasons.filter((reason) => reason !== 'destination' && reason !== 'field'),
}

/** A success: status 200 and exactly these fields beside `success`, `message` and `requestId`. */
export function expectSuccess(answer: Answer, fields: readonly string[] = [], status = 200): void {
  expect({ status: answer.status, error: answer.body.error }).toEqual({ status, error: undefined })
  expectKeys(answer, ['success', 'message', 'requestId', ...fields])
  expect(answer.body.success).toBe(true)
  expectCommon(answer)
}

/** What a row of /notify says of an answer: it names the channel, and the template of an SMS (spec 2.4). */
export function expectNotifyRow(row: Row, answer: Answer): void {
  if (row.error !== null) {
    expectError(answer, row.status, row.error, row.detail)
    return
  }
  const isTemplateSms = typeof row.body.templateKey === 'string'
  expectSuccess(answer, isTemplateSms ? ['channel', 'templateKey'] : ['channel'])
  expect(answer.body.channel).toBe(String(row.body.channel).toUpperCase())
  if (isTemplateSms) expect(answer.body.templateKey).toBe(row.body.templateKey)
}

/** What a row says of an answer of this path. */
export function expectRow(path: string, row: Pick<Row, 'status' | 'error' | 'detail'>, answer: Answer): void {
  if (row.error === null) expectSuccess(answer, successFields[path], row.status)
  else expectError(answer, row.status, row.error, row.detail)
}

/** An answer of any status except 5xx, in an envelope in any case. */
export function expectNoFault(answer: Answer): void {
  expect(answer.status).toBeLessThan(500)
  expect(answer.body.success).toBe(answer.status < 300)
  expectCommon(answer)
}

/** Seconds of Retry-After. */
export function retryAfter(answer: Answer): number {
  return Number(answer.headers.get('retry-after'))
}

let phones = 0

/** A phone that no other test of the process has used, so that no limit is shared. In India, since only its numbers get registered texts. */
export function freshPhone(): string {
  phones += 1
  return `91500${String(phones).padStart(7, '0')}`
}

/** A mail address that no other test of the process has used. */
export function freshEmail(): string {
  phones += 1
  return `user${phones}@example.com`
}

/** The service on a database whose tables have been lost under it. */
export async function createBrokenApp(env: Readonly<Record<string, string>> = {}): Promise<TestApp> {
  const app = await createTestApp(env)
  await app.database.loseTables()
  return app
}

/** Waits until the log lines of requests already answered are written: the server writes them in the next turn. */
export function logged(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

function expectKeys(answer: Answer, keys: readonly string[]): void {
  expect(Object.keys(answer.body).sort()).toEqual([...keys].sort())
}

function expectCommon(answer: Answer): void {
  expect(answer.headers.get('content-type')).toMatch(/^application\/json/)
  expect(answer.body.requestId).toMatch(uuid)
  expect(answer.headers.get('x-request-id')).toBe(answer.body.requestId)
  expect(typeof answer.body.message).toBe('string')
  expect(answer.body.message).not.toBe('')
}

/** What the health probes /health/live, /health/ready and /health answer. */
export async function probed(ask: (path: string) => Promise<Pick<Answer, 'status' | 'body'>>) {
  const answers = await Promise.all(['/health/live', '/health/ready', '/health'].map((path) => ask(path)))
  return answers.map(({ status, body }) => `${status} ${body.status}`)
}
