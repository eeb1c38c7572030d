/** One kind of request of a load. */
export interface Workload {
  readonly name: string
  /** The whole HTTP request. The word PHONE_NUMBER in it becomes a number of twelve digits, which is as long. */
  readonly request: string
  /** The status of nearly every answer. */
  readonly statuses: readonly number[]
  /** What the answer has, if other answers have the same status. */
  readonly says?: string
  /** Whether it uses the recipients of the previous sends, or random ones. */
  readonly to: 'recipients' | 'anybody'
  /** The most microseconds of processor time that are aimed at. */
  readonly maxUs?: number
  /** False if otpost does not log it. */
  readonly isLogged?: false
}

export const credentials = { appId: 'bench', apiKey: 'key-of-the-benchmark' } as const
export const brandId = 'acme'

const caller = { ...credentials, brandId }

/** A request with a body in ASCII. */
export function http(
  line: string,
  body = '',
  type = 'application/json',
  headers: Readonly<Record<string, string>> = {},
): string {
  const fields = Object.entries({
    Host: 'localhost',
    ...(body === '' ? {} : { 'Content-Type': type, 'Content-Length': String(body.length) }),
    ...headers,
  })
  return `${line} HTTP/1.1\r\n${fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body}`
}

const post = (path: string, fields: object) =>
  http(`POST ${path}`, JSON.stringify({ ...caller, phone: 'PHONE_NUMBER', ...fields }))

export const send: Workload = {
  name: '`POST /otp/send`',
  request: post('/otp/send', {}),
  statuses: [200],
  to: 'anybody',
  maxUs: 200,
}

export const verifyWrong: Workload = {
  name: '`POST /otp/verify`, wrong code',
  request: post('/otp/verify', { otp: '123456' }),
  statuses: [401],
  to: 'recipients',
  maxUs: 120,
}

const verifyAbsent: Workload = {
  name: '`POST /otp/verify`, no live code',
  request: post('/otp/verify', { otp: '123456' }),
  statuses: [404],
  to: 'anybody',
  maxUs: 120,
}

const notify: Workload = {
  name: '`POST /notify`, one SMS',
  request: post('/notify', {
    channel: 'SMS',
    to: ['PHONE_NUMBER'],
    phone: undefined,
    message: 'Your parcel is on its way.',
  }),
  statuses: [200],
  to: 'anybody',
  maxUs: 220,
}

const unknownBrand: Workload = {
  name: '`POST /otp/send`, unknown brand',
  request: post('/otp/send', { brandId: 'nobody' }),
  statuses: [403],
  to: 'anybody',
  maxUs: 50,
}

const wrongKey: Workload = {
  name: '`POST /otp/send`, wrong key (429 after 300 a minute)',
  request: post('/otp/send', { apiKey: 'a-key-of-nobody-at-all' }),
  statuses: [403, 429],
  to: 'anybody',
  maxUs: 50,
}

const healthLive: Workload = {
  name: '`GET /health/live`',
  request: http('GET /health/live'),
  statuses: [200],
  to: 'anybody',
  isLogged: false,
}

/** In the order they are measured: the wrong codes come right after the sends whose recipients they go to. */
export const workloads: readonly Workload[] = [
  send,
  verifyWrong,
  verifyAbsent,
  notify,
  unknownBrand,
  wrongKey,
  healthLive,
]
