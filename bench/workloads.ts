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
  readonly maxUs?: number | undefined
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

/** A request whose recipient is random unless `more` says otherwise. */
export const workload = (
  name: string,
  request: string,
  status: number,
  more: Partial<Workload> = {},
): Workload => ({
  name,
  request,
  statuses: [status],
  to: 'anybody',
  ...more,
})

export const send = workload('`POST /otp/send`', post('/otp/send', {}), 200, { maxUs: 200 })

const verify = post('/otp/verify', { otp: '123456' })
export const verifyWrong = workload('`POST /otp/verify`, wrong code', verify, 401, {
  to: 'recipients',
  maxUs: 120,
})

const notification = {
  channel: 'SMS',
  to: ['PHONE_NUMBER'],
  phone: undefined,
  message: 'Your parcel is on its way.',
}

/** In the order they are measured: the wrong codes come right after the sends whose recipients they go to. */
export const workloads: readonly Workload[] = [
  send,
  verifyWrong,
  workload('`POST /otp/verify`, no live code', verify, 404, { maxUs: 120 }),
  workload('`POST /notify`, one SMS', post('/notify', notification), 200, { maxUs: 220 }),
  workload('`POST /otp/send`, unknown brand', post('/otp/send', { brandId: 'nobody' }), 403, { maxUs: 50 }),
  workload(
    '`POST /otp/send`, wrong key (429 after 300 a minute)',
    post('/otp/send', { apiKey: 'a-key-of-nobody-at-all' }),
    403,
    { statuses: [403, 429], maxUs: 50 },
  ),
  workload('`GET /health/live`', http('GET /health/live'), 200, { isLogged: false }),
]
