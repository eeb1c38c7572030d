import fc from 'fast-check'

export interface ApiRequest {
  readonly method: 'GET' | 'POST'
  readonly path: string
  body?: Readonly<Record<string, unknown>>
  /** The header Idempotency-Key. */
  readonly key?: string
  /** The setting whose value the request has as bearer token. */
  readonly token?: 'METRICS_TOKEN' | 'OUTBOX_TOKEN'
}

// The requests match the description. The server accepts most; the others have a wrong key, a brand that may not send,
// a wrong code, an exhausted limit or a template that the brand has not enabled, or
// the Idempotency-Key of another request.

const phone = fc
  .tuple(
    fc.integer({ min: 100, max: 111 }),
    fc.constantFrom('+1 202 555 0', '001 (202) 555-0', '1.202.555.0'),
  )
  .map(([last, start]) => `${start}${last}`)
const email = fc.constantFrom('pat@example.com', ' Sam@Example.com ', 'jürgen@bücher.example')

/** Of ten values, one is of the others. */
function mostly<T>(usual: fc.Arbitrary<T>, ...others: readonly T[]): fc.Arbitrary<T> {
  return fc.oneof({ weight: 9, arbitrary: usual }, { weight: 1, arbitrary: fc.constantFrom(...others) })
}

const credentials = { appId: fc.constant('shop'), apiKey: mostly(fc.constant('key-of-the-shop'), 'wrong') }
const brandId = mostly(fc.constantFrom('acme', ' ACME '), 'closed', 'unknown')
const smsChannel = fc.constant('SMS')
const emailChannel = fc.constant('EMAIL')
const text = fc.constantFrom(
  'Your table is ready.',
  'ご注文の品が届きました',
  'तैयार है 👍🏽',
  '{{name}} & <b>',
)
const reference = fc.constantFrom('login-1042', 'ref:Ü', 'a'.repeat(64))

type Fields = Readonly<Record<string, fc.Arbitrary<unknown>>>

/** Optional fields are absent, null or given. */
function post(path: string, required: Fields, optional: Fields = {}): fc.Arbitrary<ApiRequest> {
  const nullable = Object.entries(optional).map(([name, field]) => [name, fc.option(field, { freq: 3 })])
  return fc
    .record<Record<string, unknown>, string>(
      { ...required, ...Object.fromEntries(nullable) },
      { requiredKeys: Object.keys(required) },
    )
    .map((body) => ({ method: 'POST', path, body }))
}

/** The same requests, some of which have an Idempotency-Key. Another request may have the same one. */
function keyed(request: fc.Arbitrary<ApiRequest>): fc.Arbitrary<ApiRequest> {
  const key = fc.option(fc.integer({ min: 1, max: 20 }), { nil: undefined })
  return fc
    .tuple(request, key)
    .map(([one, number]) => (number === undefined ? one : { ...one, key: `key-${number}` }))
}

function get(path: string, token?: 'METRICS_TOKEN' | 'OUTBOX_TOKEN'): ApiRequest {
  return { method: 'GET', path, ...(token ? { token } : {}) }
}

const binding = {
  purpose: fc.constantFrom('payment', 'a'.repeat(40)),
  transaction: fc.record({
    amount: fc.constantFrom('1250.00', '1250'),
    currency: fc.constantFrom('INR', 'jpy'),
    payee: fc.constantFrom('City Water', 'जल बोर्ड'),
  }),
}
const ofCode = {
  ...binding,
  loginId: fc.constantFrom('pat-07', 'pat@example.com'),
  businessName: fc.constantFrom('Acme Bikes', 'Акме'),
  reference,
  clientIp: fc.constantFrom('198.51.100.7', '2001:db8::1'),
  deviceId: fc.constantFrom('device-1', '~'.repeat(128)),
  trustedUser: fc.boolean(),
  lang: fc.constantFrom('hi', 'pt-BR', 'ar', 'not a tag'),
}
const sends = ['/otp/send', '/otp/resend'].flatMap((path) => [
  post(path, { ...credentials, brandId, phone }, { channel: smsChannel, ...ofCode }),
  post(path, { ...credentials, brandId, channel: emailChannel, email }, ofCode),
])

/** `latest` is replaced by the code in the latest message. */
const otp = fc.constantFrom('latest', '000000')
const verifications = [
  post('/otp/verify', { ...credentials, brandId, phone, otp }, { ...binding, email: fc.constant(null) }),
  post('/otp/verify', { ...credentials, brandId, email, otp }, { ...binding, phone: fc.constant(null) }),
]

const sms = {
  ...credentials,
  brandId,
  channel: smsChannel,
  to: fc.array(phone, { minLength: 1, maxLength: 3 }),
}
const order = {
  customerName: fc.constantFrom('Pat', 'Zoë 日本'),
  orderId: fc.constantFrom('A-1042', '7/3#b'),
  orderDate: fc.constantFrom('2026-03-14', '2024-02-29'),
}
const businessName = fc.constantFrom('Acme', 'acme')
const mail = {
  ...credentials,
  channel: emailChannel,
  to: fc.array(email, { minLength: 1, maxLength: 3 }),
  subject: text,
}
const notifications = [
  post(
    '/notify',
    { ...sms, message: text },
    { reference, lang: fc.constant('hi'), async: fc.boolean(), variables: fc.record({ businessName }) },
  ),
  post('/notify', {
    ...sms,
    templateKey: fc.constant('ORDER_PLACED'),
    variables: fc.record(
      { ...order, businessName },
      { requiredKeys: ['customerName', 'orderId', 'orderDate'] },
    ),
  }),
  post('/notify', {
    ...sms,
    templateKey: fc.constant('ORDER_DELIVERED'),
    variables: fc.record({ ...order, deliveryDateTime: fc.constant('2026-03-14T15:09Z') }),
  }),
  post(
    '/notify',
    { ...mail, html: fc.constant('<p>We open at nine.</p>') },
    { reference, brandId, async: fc.boolean() },
  ),
  post(
    '/notify',
    { ...mail, template: fc.constantFrom('Hi {{name}}', 'Hi') },
    { data: fc.constantFrom({ name: 'Pat', items: [1, 2], total: null }, {}), brandId },
  ),
]

/** `latest` is replaced by the requestId of the latest answer. */
const status = post('/messages/status', {
  ...credentials,
  messageRequestId: fc.constantFrom('latest', '3f2b8f0e-6c1d-4a53-9f57-0d6a2c9e41b7'),
})

const integration = post(
  '/integrations/requests',
  {
    companyName: text,
    contactName: fc.constant('Sam Rider'),
    contactEmail: email,
    brandName: fc.constant('Acme Bikes'),
  },
  {
    channels: fc.array(fc.oneof(smsChannel, emailChannel)),
    website: fc.constantFrom('https://bücher.example/x', 'HTTP://shop.example'),
    useCase: fc.constant('Codes.\nAnd news.'),
  },
)

const queries = [
  get('/'),
  get('/health'),
  get('/health/live'),
  get('/health/ready'),
  get('/integrations/catalog'),
  get('/platform/brands'),
  get('/.well-known/jwks.json'),
  get('/metrics', 'METRICS_TOKEN'),
  get('/outbox/messages?limit=5', 'OUTBOX_TOKEN'),
  get(`/outbox/messages?to=${encodeURIComponent('+1 202 555 0100')}&after=3&wait=0`, 'OUTBOX_TOKEN'),
]

const any = fc.oneof(
  { weight: 8, arbitrary: keyed(fc.oneof(...sends)) },
  { weight: 6, arbitrary: keyed(fc.oneof(...verifications)) },
  { weight: 8, arbitrary: keyed(fc.oneof(...notifications)) },
  { weight: 2, arbitrary: status },
  { weight: 2, arbitrary: integration },
)

/** The same 200 requests in each run. */
export const requests: readonly ApiRequest[] = [
  ...fc.sample(any, { seed: 20, numRuns: 200 - queries.length }),
  ...queries,
]
