import fc from 'fast-check'
import type { Received } from './receiver.ts'
import type { ReceivedMail } from './smtp.ts'

// Random requests, most of them wrong in one place, and checks on every answer, log line and byte of the database for
// any request.
//
// FUZZ_SEED=<integer> plays the requests of a seed again, FUZZ_SEED=random draws one; FUZZ_RUNS=<count> sets how many
// requests each run makes. By default seed and number are fixed, so that a failure is due to the change under test. Codes,
// salts and ids come from the system's randomness all the same; no check depends on their values.

/** The seed of this process, told by every failure. */
export const fuzzSeed = readSeed(process.env.FUZZ_SEED)

/** How many requests a run makes. */
export function fuzzRuns(usual: number): number {
  return Number(process.env.FUZZ_RUNS ?? usual)
}

/** The words of a text, such as values to choose from. */
function words(text: string): string[] {
  return text.trim().split(/\s+/)
}

function readSeed(text: string | undefined): number {
  if (text === 'random') return crypto.getRandomValues(new Int32Array(1))[0] ?? 0
  return Number(text ?? 20_260_101)
}

// ---------------------------------------------------------------------------------------------------------------------
// Canaries: words in everything secret, so that one search finds any leak
// ---------------------------------------------------------------------------------------------------------------------

/** In values that belong only in a message: keys, e-mail addresses, texts. */
export const keyFingerprint = 'qz7canary'
/** In what an error message may repeat to its caller (spec 7: the business, the template key, the variable's name). */
const echoMark = 'qz7echo'
/** In what is kept for the operator: integration requests. */
const storedFingerprint = 'qz7stored'
/** At the end of every phone number; a mask shows two digits at either end, and the guard stores all but the last four. */
const phoneMark = '70815926'

/** Applications that may call: appId and API key. */
export const fuzzApps: Readonly<Record<string, string>> = {
  shop: `${keyFingerprint}-key-of-the-shop`,
  kiosk: `${keyFingerprint}-key-of-the-kiosk`,
  // Not in normal form: verify refuses it with invalid_app_id.
  'old:shop': `${keyFingerprint}-key-of-the-old-shop`,
}

export const fuzzSecretKey = `${keyFingerprint}-secret-key-of-the-server`

/** What a server of either run is set to: real providers, secrets that can be searched for, all that can be logged. */
export function fuzzEnv(receiver: { env: Record<string, string> }, smtp: { url: string }) {
  return {
    APP_CREDENTIALS: JSON.stringify(fuzzApps),
    SECRET_KEY: fuzzSecretKey,
    OTP_SMS_MODE: 'hybrid',
    SMS_PLAIN: 'webhook',
    SMS_TEMPLATE: 'webhook',
    ...receiver.env,
    SMTP_URL: smtp.url,
    MAIL_FROM: 'Codes <codes@shop.example>',
    PROVIDER_TIMEOUT_MS: '30000',
    LOG_LEVEL: 'trace',
  }
}

/** The brands of both runs, as `brand put` takes them. */
export const fuzzBrands = {
  acme: {
    displayName: 'Acme',
    notifyTemplates: ['ORDER_PLACED', 'OUT_FOR_DELIVERY', 'ORDER_DELIVERED'],
    loginIdEnabled: true,
  },
  delta: {
    displayName: 'Delta Stores',
    notifyTemplates: ['ORDER_PLACED'],
    dltEnabled: true,
    domain: 'delta.example',
  },
  waiting: { displayName: 'Waiting', status: 'pending' },
  closed: { displayName: 'Closed', status: 'suspended' },
} as const
const activeBrands = ['acme', 'delta'] as const

// ---------------------------------------------------------------------------------------------------------------------
// The contract: what may be answered where (spec 4 and 7, design 5 and 6)
// ---------------------------------------------------------------------------------------------------------------------

const credentialCodes = ['401 unauthorized', '403 forbidden']
const brandCodes = ['400 brand_id_required', '403 brand_not_approved', '403 brand_suspended']
const bodyCodes = ['400 validation_error', '413 validation_error']
const gate = [...bodyCodes, ...credentialCodes, ...brandCodes, '429 rate_limited']

interface Route {
  readonly method: 'GET' | 'POST'
  /** Status and code of each documented answer; a success has the code `ok`. */
  readonly codes: ReadonlySet<string>
  /** The keys of a success, `templateKey` of /notify and `proof` of /otp/verify aside. */
  readonly keys: readonly string[]
}

function route(method: Route['method'], keys: readonly string[], codes: readonly string[]): Route {
  return { method, keys: [...keys, 'requestId'].sort(), codes: new Set(codes) }
}

const send = route('POST', ['success', 'message', 'expiresIn'], ['200 ok', ...gate, '429 cooldown_active'])
const routes: ReadonlyMap<string, Route> = new Map([
  ['/otp/send', send],
  ['/otp/resend', send],
  [
    '/otp/verify',
    route(
      'POST',
      ['success', 'message'],
      [
        ...['200 ok', ...gate, '400 invalid_input', '400 invalid_otp_format', '400 invalid_contact'],
        ...['400 invalid_app_id', '401 mismatch', '404 not_found', '429 max_attempts'],
      ],
    ),
  ],
  [
    '/notify',
    route(
      'POST',
      ['success', 'message', 'channel'],
      [
        ...[
          '200 ok',
          ...gate,
          '400 invalid_channel',
          '400 otp_template_not_supported',
          '400 invalid_template',
        ],
        ...['400 unsupported_business', '400 missing_variable', '403 template_not_allowed'],
      ],
    ),
  ],
  [
    '/messages/status',
    route(
      'POST',
      ['success', 'message', 'request', 'recipients'],
      ['200 ok', ...bodyCodes, ...credentialCodes, '404 not_found', '429 rate_limited'],
    ),
  ],
  [
    '/integrations/requests',
    route(
      'POST',
      ['success', 'message', 'integrationRequestId', 'status'],
      ['201 ok', ...bodyCodes, '429 rate_limited'],
    ),
  ],
  ['/', route('GET', ['success', 'service', 'version', 'links'], ['200 ok'])],
  ['/health', route('GET', ['status', 'version', 'checks'], ['200 ok'])],
  ['/integrations/catalog', route('GET', ['success', 'channels', 'templates', 'limits'], ['200 ok'])],
  ['/platform/brands', route('GET', ['success', 'brands'], ['200 ok'])],
])
const apiPaths = [...routes.keys()].filter((path) => path !== '/')
const getPaths = apiPaths.filter((path) => routes.get(path)?.method === 'GET')

/** Each path with each of its answers, such as `/otp/send 200 ok`, and the answers to unknown paths and methods. */
export const documentedAnswers: readonly string[] = [
  ...[...routes].flatMap(([path, { codes }]) => [...codes].map((code) => `${path} ${code}`)),
  'elsewhere 404 not_found',
  'elsewhere 405 method_not_allowed',
]

/** The ways to read a target as a path: unchanged, with dot segments resolved, percent-decoded. */
function pathsOf(target: string): Set<string> {
  const asked = target.replace(/^https?:\/\/[^/?#]*/i, '').replace(/[?#].*$/s, '')
  const paths = [asked]
  if (URL.canParse(`http://localhost${asked}`)) paths.push(new URL(`http://localhost${asked}`).pathname)
  for (const path of [...paths]) {
    try {
      paths.push(decodeURIComponent(path))
    } catch {
      // Percent signs that encode nothing have one reading only.
    }
  }
  return new Set(paths)
}

/** Every answer that a method and a target may get. */
function documented(method: string, target: string): ReadonlySet<string> {
  return new Set(
    [...pathsOf(target)].flatMap((path) => {
      const known = routes.get(path)
      if (!known) return ['404 not_found']
      if (known.method !== method && !(known.method === 'GET' && method === 'HEAD')) {
        return ['405 method_not_allowed']
      }
      return [...known.codes]
    }),
  )
}

// ---------------------------------------------------------------------------------------------------------------------
// Requests
// ---------------------------------------------------------------------------------------------------------------------

/** A request as it was drawn; what only the run knows, such as a code that was sent, is filled in by `Run.load`. */
export interface Shot {
  readonly kind: string
  readonly method: string
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Uint8Array<ArrayBuffer> | undefined
  /** Which of the last codes the body is about, where it is about one. */
  readonly recent: number
  /** The size of the body, through the text that replaces %PADDING%. */
  readonly bytes?: number
  /** The only answers it may get, where the contract leaves fewer than those of its route. */
  readonly only?: readonly string[]
  /** Answers it must not get, since what they complain of is right in it. */
  readonly never?: readonly string[]
}

/** The shots of a seed. */
export function drawShots(count: number, seed = fuzzSeed): Shot[] {
  return fc.sample(
    fc.gen().map((generate) => drawShot(new Draw(generate))),
    { numRuns: count, seed },
  )
}

/** Random values by name of what they are. */
export class Draw {
  constructor(private readonly generate: fc.GeneratorValue) {}

  of<Value>(arbitrary: fc.Arbitrary<Value>): Value {
    return this.generate(() => arbitrary)
  }

  integer(min: number, max: number): number {
    return this.of(fc.noBias(fc.integer({ min, max })))
  }

  percent(chance: number): boolean {
    return this.integer(1, 100) <= chance
  }

  pick<const Value>(values: readonly Value[]): Value {
    const value = values[this.integer(0, values.length - 1)]
    return value as Value
  }

  /** One of the names, each as often as its weight says. */
  weighted<Name extends string>(weights: Readonly<Record<Name, number>>): Name {
    const entries = Object.entries(weights) as [Name, number][]
    let left = this.integer(
      1,
      entries.reduce((sum, [, weight]) => sum + weight, 0),
    )
    const found = entries.find(([, weight]) => {
      left -= weight
      return left <= 0
    })
    return (found ?? (entries[0] as [Name, number]))[0]
  }
}

const json = 'application/json'

function drawShot(draw: Draw): Shot {
  const what = draw.weighted({ post: 84, get: 4, target: 8, method: 4 })
  if (what === 'post') return drawPost(draw)
  if (what === 'get') {
    return {
      ...bare(),
      kind: 'get',
      target: withQuery(draw, draw.pick(getPaths)),
      headers: drawHeaders(draw),
    }
  }
  if (what === 'method') {
    const path = draw.pick(apiPaths)
    const method = draw.pick(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
    return { ...bare(), kind: 'method', method, target: path, headers: drawHeaders(draw) }
  }
  const post = drawPost(draw)
  const { only: _, never: __, ...shot } = post
  if (draw.percent(50)) return { ...shot, kind: 'target', target: drawTarget(draw) }
  return { ...bare(), kind: 'target', target: drawTarget(draw), headers: drawHeaders(draw) }
}

function bare(): Shot {
  return { kind: '', method: 'GET', target: '/', headers: {}, body: undefined, recent: 0 }
}

function withQuery(draw: Draw, path: string): string {
  return draw.percent(20) ? `${path}?apiKey=${keyFingerprint}&phone=449001${phoneMark}` : path
}

/** A path that is none, or one in disguise. */
function drawTarget(draw: Draw): string {
  const path = draw.pick(apiPaths)
  const at = draw.integer(1, path.length - 1)
  const [before, hex, after] = [path.slice(0, at), path.charCodeAt(at).toString(16), path.slice(at + 1)]
  const near = words(`${path}/ /${path} ${path}s ${path};v=1 ${path}/${keyFingerprint} /v1${path} ${path}.json
    ${path.toUpperCase()} ${path.slice(0, -1)} ${path.replaceAll('/', '//')}`)
  const encoded =
    words(`${before}%${hex}${after} ${before}%25${hex}${after} ${path}%00 ${path}%2f /%2e%2e${path}
    ${path}%0d%0aX-Injected:%20${keyFingerprint} ${path}% ${path}%E0%A4%A /%C0%AF${path.slice(1)}`)
  const dots = words(`/..${path} /.${path} /x/..${path} ${path}/.. ${path}/. ${path}/../../docs.ts
    /..%2f..%2f..%2fetc/passwd /../../../../etc/passwd`)
  const hostile = words(`/ /__proto__ /constructor /toString /otp/__proto__ /:name /* /? // /outbox /.env
    /${keyFingerprint}?${keyFingerprint}=449001${phoneMark} /otp/send?brandId=acme&__proto__[x]=1 /{"level":60}`)
  const long = `${path}/${'x'.repeat(draw.integer(1000, 8000))}`
  return draw.pick([...near, ...encoded, ...dots, ...hostile, `${path} `, '/<script>alert(1)</script>', long])
}

const strangeHeaders: readonly (readonly [name: string, chance: number, values: readonly string[]])[] = [
  ['accept', 15, ['', 'x'.repeat(2000), ...words(`text/html */*;q=0 application/xml ,,, ${keyFingerprint}`)]],
  ['x-request-id', 10, ['mine', keyFingerprint, 'a\tb', '{"level":60}', '']],
  // An Authorization header has credentials (design D49).
  ['proxy-authorization', 5, [`Bearer ${keyFingerprint}`]],
  ['cookie', 5, [`${keyFingerprint}=1; __proto__=1`]],
  ['user-agent', 5, [keyFingerprint, '', '\u00e9\u00ff', `\${jndi:ldap://${keyFingerprint}}`]],
  ['if-none-match', 3, ['*', '"x"']],
  ['origin', 3, ['https://evil.example']],
]
const strangeForwards = [
  ...words('999.1.1.1 unknown ,,, 2001:db8::%eth0 0x7f.1 1.2.3.4:99999 -1.0.0.0 [2001:db8::1]:80'),
  ...['::1, 192.0.2.7', '127.0.0.1, 127.0.0.1', '10.0.0.1,'.repeat(400), `192.0.2.1 ${keyFingerprint}`],
]

function drawHeaders(draw: Draw): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const [name, chance, values] of strangeHeaders) {
    if (draw.percent(chance)) headers[name] = draw.pick(values)
  }
  headers['x-forwarded-for'] = draw.percent(90)
    ? `198.${draw.integer(18, 19)}.${draw.integer(0, 255)}.${draw.integer(0, 255)}`
    : draw.pick(strangeForwards)
  return headers
}

/** A body as pairs of a key and the JSON of its value, which need not be what JSON.stringify makes. */
type Fields = (readonly [key: string, value: string])[]

function textOf(fields: Fields): string {
  return `{${fields.map(([key, value]) => `${JSON.stringify(key)}:${value}`).join(',')}}`
}

function fieldsOf(body: Readonly<Record<string, unknown>>): Fields {
  return Object.entries(body)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => [key, JSON.stringify(value)])
}

/** A POST that is right but for what its kind says. */
export function drawPost(draw: Draw): Shot {
  const shot = drawCall(draw)
  if (!shot.target.startsWith('/integrations') || typeof shot.body !== 'string') return shot
  // What an integrator asks for is kept.
  return { ...shot, body: shot.body.replaceAll(keyFingerprint, storedFingerprint) }
}

function drawCall(draw: Draw): Shot {
  const target = draw.weighted({
    '/otp/send': 26,
    '/otp/resend': 12,
    '/otp/verify': 28,
    '/notify': 30,
    '/messages/status': 3,
    '/integrations/requests': 4,
  })
  const fields = rightFields(draw, target)
  const guarded = target !== '/integrations/requests'
  const kind = draw.weighted({
    right: 30,
    field: 32,
    credentials: guarded ? 8 : 0,
    brand: guarded && target !== '/messages/status' ? 8 : 0,
    missing: 6,
    extra: 5,
    duplicate: 4,
    broken: 6,
    type: 4,
    size: 2,
  })
  const shot = {
    kind,
    method: 'POST',
    target: withQuery(draw, target),
    headers: { ...drawHeaders(draw), 'content-type': json },
    // Often the same one, so that wrong guesses add up.
    recent: draw.pick([0, 0, 0, 0, 0, 1, 2, 9]),
  }
  const past = [...credentialCodes, ...(target === '/notify' ? [] : brandCodes)]
  const at = draw.integer(0, fields.length - 1)
  switch (kind) {
    case 'right':
      return { ...shot, body: textOf(fields), never: [...past, ...brandCodes, ...bodyCodes] }
    case 'field': {
      const changed = draw.percent(80) ? 1 : 2
      let wrong = fields
      for (let count = 0; count < changed; count++) wrong = withWrongField(draw, target, wrong)
      return { ...shot, body: textOf(wrong), never: [...past, '413 validation_error'] }
    }
    case 'credentials': {
      const only = [...credentialCodes, '429 rate_limited']
      return { ...shot, body: textOf(withWrongCredentials(draw, fields)), only }
    }
    case 'brand': {
      const { fields: wrong, isSpelling } = withWrongBrand(draw, fields)
      const only = [...brandCodes, '429 rate_limited']
      return { ...shot, body: textOf(wrong), ...(isSpelling || target === '/notify' ? {} : { only }) }
    }
    case 'missing':
      return { ...shot, body: textOf(fields.toSpliced(at, 1)) }
    case 'extra': {
      const key = draw.pick([...words('otp code attempts expiresAt requestId success'), ...hostileNames, ''])
      const value = draw.pick([JSON.stringify(fuzzApps), '{"channel":"SMS"}', '"123456"', '1', 'null', '[]'])
      const extra: Fields[number] = [key, value]
      return { ...shot, body: textOf(fields.toSpliced(at, 0, extra)), never: past }
    }
    case 'duplicate': {
      const [key = ''] = fields[at] ?? []
      const first = draw.percent(50)
      const value = ['templateKey', 'template', 'variables'].includes(key)
        ? weird(draw).replaceAll(keyFingerprint, echoMark)
        : weird(draw)
      const twice = fields.toSpliced(first ? 0 : fields.length, 0, [key, value])
      return { ...shot, body: textOf(twice), ...(first ? { never: past } : {}) }
    }
    case 'broken': {
      const made = broken(draw, textOf(fields))
      // Some have tens of thousands of brackets.
      const isLarge = Buffer.byteLength(made.body ?? '') > bodyLimitOf(target)
      return { ...shot, ...made, ...(isLarge ? { only: ['413 validation_error'] } : {}) }
    }
    case 'type': {
      const type = draw.pick([
        ...words(`text/plain application/x-www-form-urlencoded multipart/form-data text/html
        application/xml application/octet-stream text/json application/javascript */* ;`),
        '',
        'multipart/form-data; boundary=x',
        'x'.repeat(3000),
      ])
      const body = draw.percent(50)
        ? textOf(fields)
        : `--x\r\nContent-Disposition: form-data; name="apiKey"\r\n\r\n${keyFingerprint}\r\n--x--\r\n`
      return {
        ...shot,
        headers: { ...shot.headers, 'content-type': type },
        body,
        only: ['400 validation_error'],
      }
    }
    case 'size': {
      const over = draw.percent(40)
      const bytes = bodyLimitOf(target) + (over ? draw.pick([1, 2, 50_000, 400_000]) : draw.pick([0, -1, -2]))
      const body = textOf([...fields, ['padding', '"%PADDING%"']])
      const code = ['413 validation_error']
      return { ...shot, body, bytes, ...(over ? { only: code } : { never: code }) }
    }
  }
}

/** The largest body that is read (design D4). */
function bodyLimitOf(target: string): number {
  return (target.startsWith('/otp/') ? 16 : 256) * 1024
}

const phones = 120
const mailboxes = 60

/** A phone in one of its spellings; the mark stays in one piece, so that any copy of it is found. */
function phone(draw: Draw): string {
  const last = String(draw.integer(0, phones - 1)).padStart(3, '0')
  return draw.pick([`449${last}${phoneMark}`, `+44 9${last} ${phoneMark}`, `44 (9${last}) ${phoneMark}.`])
}

function mailbox(draw: Draw): string {
  const address = `${keyFingerprint}${draw.integer(0, mailboxes - 1)}@mail.example`
  return draw.percent(80) ? address : ` ${address.toUpperCase()} `
}

function rightFields(draw: Draw, target: string): Fields {
  const appId = draw.pick(['shop', 'shop', 'kiosk'])
  const caller = { appId, apiKey: fuzzApps[appId] }
  const brandId = draw.pick(activeBrands)
  switch (target) {
    case '/otp/send':
    case '/otp/resend': {
      const isMail = draw.percent(25)
      return fieldsOf({
        ...caller,
        brandId,
        ...(isMail
          ? { channel: draw.pick(['EMAIL', 'email']), email: mailbox(draw) }
          : {
              ...(draw.percent(50) ? { channel: draw.pick(['SMS', 'sms', null]) } : {}),
              phone: phone(draw),
            }),
        ...(draw.percent(20) ? { businessName: `${keyFingerprint} Store` } : {}),
        ...(draw.percent(20) ? { loginId: `${keyFingerprint}-login` } : {}),
        ...(draw.percent(20) ? { deviceId: `${keyFingerprint}-device` } : {}),
        ...(draw.percent(20) ? { trustedUser: draw.percent(50) } : {}),
        ...(draw.percent(10)
          ? { transaction: { amount: '1250.00', currency: 'inr', payee: keyFingerprint } }
          : {}),
      })
    }
    case '/otp/verify':
      return rightVerification(draw, caller, brandId)
    case '/notify':
      return rightNotification(draw, { ...caller, brandId })
    case '/messages/status':
      return fieldsOf({ ...caller, messageRequestId: '0f2b8f0e-6c1d-4a53-9f57-0d6a2c9e41b7' })
    default:
      return fieldsOf({
        companyName: `${storedFingerprint} Ltd`,
        contactName: storedFingerprint,
        contactEmail: `${storedFingerprint}@mail.example`,
        brandName: storedFingerprint,
        ...(draw.percent(50)
          ? { channels: ['SMS', 'email'], website: `https://${storedFingerprint}.example` }
          : {}),
        ...(draw.percent(50) ? { useCase: `${storedFingerprint}\nand more` } : {}),
      })
  }
}

function rightVerification(draw: Draw, caller: Readonly<Record<string, unknown>>, brandId: string): Fields {
  switch (draw.weighted({ sent: 22, wrong: 58, absent: 10, appId: 10 })) {
    case 'sent':
      return [
        ...fieldsOf({ ...caller, brandId: '%BRAND%', ...(draw.percent(50) ? { proof: true } : {}) }),
        ['%FIELD%', '"%CONTACT%"'],
        ['otp', '"%CODE%"'],
      ]
    case 'wrong':
      return [
        ...fieldsOf({ ...caller, brandId: '%BRAND%' }),
        ['%FIELD%', '"%CONTACT%"'],
        ['otp', '"%WRONG%"'],
      ]
    case 'absent':
      return fieldsOf({ ...caller, brandId, email: `${keyFingerprint}-unknown@mail.example`, otp: '482915' })
    case 'appId': {
      const old = { appId: 'old:shop', apiKey: fuzzApps['old:shop'] }
      return fieldsOf({ ...old, brandId, phone: phone(draw), otp: '482915' })
    }
  }
}

function rightNotification(draw: Draw, caller: Readonly<Record<string, unknown>>): Fields {
  const count = draw.pick([1, 1, 1, 1, 1, 1, 2, 3, 9])
  const sms = { channel: draw.pick(['SMS', 'Sms']), to: Array.from({ length: count }, () => phone(draw)) }
  const mail = {
    channel: 'EMAIL',
    to: Array.from({ length: count }, () => mailbox(draw)),
    subject: keyFingerprint,
  }
  switch (draw.weighted({ text: 30, template: 35, html: 15, frame: 20 })) {
    case 'text':
      return fieldsOf({ ...caller, ...sms, message: `${keyFingerprint} says hello, 123456 of them` })
    case 'template': {
      const variables = {
        customerName: keyFingerprint,
        orderId: `A/${keyFingerprint}`,
        orderDate: '2026-02-28',
      }
      const templateKey = 'ORDER_PLACED'
      return fieldsOf({ ...caller, ...sms, templateKey, variables })
    }
    case 'html':
      return fieldsOf({ ...caller, ...mail, html: `<p>${keyFingerprint}</p>` })
    case 'frame': {
      const template = `${keyFingerprint} {{name}}`
      return fieldsOf({ ...caller, ...mail, template, data: { name: keyFingerprint, [keyFingerprint]: 1 } })
    }
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// What is wrong in them
// ---------------------------------------------------------------------------------------------------------------------

const hostileNames =
  words(`__proto__ constructor prototype toString valueOf hasOwnProperty __defineGetter__ then
        toJSON length`)

const hostileTexts: readonly string[] = [
  ...hostileNames,
  '',
  ' ',
  '\r\n',
  '\u0000',
  `a\u0000${keyFingerprint}`,
  `${keyFingerprint}\n{"level":60,"msg":"forged"}`,
  `${keyFingerprint}\r\nBcc: evil@mail.example`,
  `${keyFingerprint}\u2028{"level":60}\u2029`,
  `\u001b[2J${keyFingerprint}`,
  `\u202e${keyFingerprint}\u202c`,
  `\u2066${keyFingerprint}\u2069`,
  `\u200b${keyFingerprint}\ufeff`,
  `\ud800${keyFingerprint}`,
  `${keyFingerprint}\udc00`,
  '\ud83d\ude80\ud83d\ude80',
  '\u0130\u0131\u017f\u00df',
  '\uff10\uff11\uff12\uff13\uff14\uff15',
  '\u0661\u0662\u0663\u0664\u0665\u0666',
  'e\u0301',
  'null',
  'undefined',
  'NaN',
  '[object Object]',
  "'; DROP TABLE otps; --",
  `<script>${keyFingerprint}</script>`,
  '{{7*7}}%s%n$&$1$`',
  '../../../../etc/passwd',
  `http://${keyFingerprint}.example/x`,
  `=cmd|' /C calc'!A0`,
]

/** Lengths at which a rule of design D4 to D10 turns. */
const edges = [
  1, 6, 15, 16, 39, 40, 41, 63, 64, 65, 254, 255, 256, 320, 1023, 1025, 1599, 1600, 1601, 9999, 10_001,
]

const anyText = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...hostileTexts) },
  { weight: 2, arbitrary: fc.string({ unit: 'binary', maxLength: 24 }) },
  { weight: 2, arbitrary: fc.string({ unit: 'grapheme', maxLength: 24 }) },
  {
    weight: 2,
    arbitrary: fc
      .tuple(
        fc.constantFrom(...edges),
        fc.constantFrom('x', '5', ' ', '\u00e9', '\ud83d\ude80', '.', '@', '{', 'a.'),
      )
      .map(
        ([length, unit]) => `${keyFingerprint}${unit.repeat(Math.max(0, length - keyFingerprint.length))}`,
      ),
  },
)

const anyJson = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.constantFrom(
      'null',
      'true',
      'false',
      '0',
      '-0',
      '1',
      '-1',
      '0.1',
      '1e999',
      '-1e999',
      '1e-999',
      '9007199254740993',
      '-9223372036854775809',
      '4294967296',
      '9'.repeat(400),
      '123456',
      '[]',
      '{}',
      '[[]]',
      '[null]',
      '[""]',
      '{"length":3}',
      '{"toString":1,"valueOf":1}',
      '{"__proto__":{"phone":"1"},"constructor":{"prototype":{"x":1}}}',
      `["${keyFingerprint}"]`,
      `{"${keyFingerprint}":"${keyFingerprint}"}`,
      '"\\ud800"',
      '"\\u0000"',
      `${'['.repeat(1000)}${']'.repeat(1000)}`,
      `${'{"a":'.repeat(500)}1${'}'.repeat(500)}`,
      `[${'"x",'.repeat(100)}"x"]`,
    ),
  },
  { weight: 6, arbitrary: anyText.map((text) => JSON.stringify(text)) },
  { weight: 2, arbitrary: fc.json({ maxDepth: 2 }) },
)

/** The JSON of a value of any type. */
function weird(draw: Draw): string {
  return draw.of(anyJson)
}

/** Text that an answer may repeat to its caller, with its own mark. */
function echoable(draw: Draw): string {
  return draw.of(anyText).replaceAll(keyFingerprint, echoMark)
}

/** One field that is neither credentials nor brand, made wrong or strange. */
function withWrongField(draw: Draw, target: string, fields: Fields): Fields {
  const free = fields.filter(([key]) => !['appId', 'apiKey', 'brandId'].includes(key)).map(([key]) => key)
  const key = draw.pick([...free, ...free, ...(optional[target] ?? [])])
  const value = strange(draw, key)
  // A message beside it would be what is complained of.
  const alone = key === 'templateKey' && draw.percent(80)
  const rest = fields.filter(([name]) => name !== key && !(alone && name === 'message'))
  const variables: Fields = alone && !free.includes('variables') ? [['variables', '{}']] : []
  return [...rest, ...variables, [key, value]]
}

const optional: Readonly<Record<string, readonly string[]>> = {
  '/otp/send': words(
    'channel phone email loginId businessName clientIp deviceId trustedUser purpose transaction',
  ),
  '/otp/resend': words(
    'channel phone email loginId businessName clientIp deviceId trustedUser purpose transaction via',
  ),
  '/otp/verify': words('phone email otp proof purpose transaction'),
  '/notify': words(`channel to message templateKey templateKey variables variables variables variables
        subject template data otp`),
}

function strange(draw: Draw, key: string): string {
  if (draw.percent(30) && key !== 'templateKey' && key !== 'template') return weird(draw)
  const text = () => JSON.stringify(draw.of(anyText))
  const list = (...values: readonly unknown[]) => JSON.stringify(values)
  switch (key) {
    case 'phone':
      return JSON.stringify(strangePhone(draw))
    case 'email':
    case 'contactEmail':
      return JSON.stringify(strangeAddress(draw))
    case 'otp':
      return draw.pick([
        '" 23456"',
        '"000000\\n"',
        ...words('"12345" "1234567" "12345a" "１２３４５６" 123456 ""'),
      ])
    case 'channel':
      return draw.pick(['" SMS"', '"SMS\\u0000"', ...words('"FAX" "sms" "EMAIL" "ſms" ["SMS"] "emaıl" ""')])
    case 'to':
      return draw.pick([
        ...words('[] "x" {"0":"x","length":1} [null]'),
        list(...Array(101).fill(`449001${phoneMark}`)),
        list(...Array(20_000).fill('x')),
        list(strangePhone(draw)),
        list(`449001${phoneMark}`, strangePhone(draw)),
        list(strangeAddress(draw)),
        list(mailbox(draw), strangeAddress(draw)),
        list([phone(draw)]),
        `[${weird(draw)}]`,
        `["449001${phoneMark}",${weird(draw)}]`,
      ])
    case 'templateKey': {
      const keys = words(
        'LOGIN_OTP LOGIN_OTP_WITH_ID ORDER_DELIVERED OUT_FOR_DELIVERY OUT_FOR_DELIVERY order_placed',
      )
      const hostile = [draw.pick(hostileNames), draw.pick(hostileNames), echoable(draw)]
      return draw.pick([...[...keys, ...hostile].map((each) => JSON.stringify(each)), '{}', '1'])
    }
    case 'variables':
      return strangeVariables(draw)
    case 'template': {
      const deep = ['{'.repeat(9000), `${'{{'.repeat(2000)}${'}}'.repeat(2000)}`, `${'\n \n'.repeat(3000)}x`]
      const names = [`{{${echoable(draw)}}}`, '{{constructor}}', '{{ name }}{{name}}{{name']
      return JSON.stringify(draw.pick([...deep, ...names, `{{__proto__}}${keyFingerprint}`]))
    }
    case 'data':
      return `{"name":${weird(draw)},${text()}:${weird(draw)},"__proto__":${weird(draw)}}`
    case 'html': {
      const deep = [`${'<div>'.repeat(2000)}${keyFingerprint}`, '<'.repeat(5000), '<table>'.repeat(300)]
      const marked = [`<script>${keyFingerprint}</script>`, `<a href="javascript:x">${keyFingerprint}</a>`]
      return JSON.stringify(draw.pick([...deep, ...marked, draw.of(anyText)]))
    }
    default:
      return text()
  }
}

function strangePhone(draw: Draw): string {
  const right = `449${String(draw.integer(0, phones - 1)).padStart(3, '0')}${phoneMark}`
  return draw.pick([
    ...words(`${right}x12 +${right}+ 00${right} ${right}000 tel:${right} ------ 123456 1234567
      ${'1'.repeat(15)} ${'1'.repeat(16)} ${right.replaceAll('4', '\uff14')} ${right}\u0665 \u202a${right}`),
    `${right}\n`,
    `${right}${' '.repeat(5000)}`,
  ])
}

/** Of the longest, 253 and 255 characters: 254 are allowed here, but the mail server of these tests takes 253. */
function strangeAddress(draw: Draw): string {
  const own = keyFingerprint
  const right = `${own}${draw.integer(0, mailboxes - 1)}@mail.example`
  return draw.pick([
    ...words(`"${own}"@mail.example ${own}(x)@mail.example <${right}> group:${right}; ${own}@mail.example@mail.example
      ${own}@[127.0.0.1] @mail.example ${own}@ ${own}@mail..example ${own}@.mail.example ${own}@mail.example.
      ${own}@localhost ${own}\uff20mail.example ${own}\u0000@mail.example ${own}\u200b@mail.example
      ${own}\ud800@mail.example ${own}+tag_%'$\`{|}~!#=?^&*/@mail.example
      ${own}${'x'.repeat(draw.pick([40, 231, 233, 5000]))}@mail.example`),
    `${right}, evil@mail.example`,
    `${right}\r\nBcc: evil@mail.example`,
    `${right}\r\nRCPT TO:<evil@mail.example>`,
  ])
}

function strangeVariables(draw: Draw): string {
  const variables = {
    customerName: `"${keyFingerprint}"`,
    orderId: `"${keyFingerprint}"`,
    orderDate: '"2026-02-28"',
    deliveryDateTime: '"2026-02-28T10:00"',
  }
  const names = [...Object.keys(variables), 'otp', ...hostileNames, draw.of(anyText)]
  const name = draw.percent(30) ? 'businessName' : draw.pick(names)
  const businesses = [...words('"acme" "ACME" "waiting" "unknown" 1 null'), '" Delta Stores "']
  const values = words(`"2026-02-30" "2026-2-3" "0000-00-00" "9999-99-99" "2026-02-28T25:00" "-000001-01-01"
    "https://x.example/y" "{{otp}}{{customerName}}" "x.com" "St.John"`)
  const value =
    name === 'businessName'
      ? draw.pick([...businesses, JSON.stringify(echoable(draw))])
      : draw.percent(50)
        ? weird(draw)
        : draw.pick(values)
  const rest = Object.entries(variables).filter(([key]) => key !== name)
  const given: Fields = draw.percent(20) ? rest.slice(draw.integer(1, 3)) : rest
  return textOf([...given, [name, value]])
}

function withWrongCredentials(draw: Draw, fields: Fields): Fields {
  const rest = fields.filter(([key]) => key !== 'appId' && key !== 'apiKey')
  const { shop = '', kiosk = '' } = fuzzApps
  const key = JSON.stringify(shop)
  const hostile = [...hostileNames, draw.of(anyText)]
  const keys = [kiosk, ` ${shop}`, shop.toUpperCase(), shop.slice(0, -1), `${shop}\u0000`, ...hostile]
  const apps = ['SHOP', ' shop', 'shop\u0000', ...hostile]
  // Text may be a pair that is right; no other type is.
  const value = draw.pick([...words('null "" 1 true ["shop"] {"toString":"shop"}'), `[${key}]`])
  const [appId, apiKey] = draw.pick<readonly [appId?: string | undefined, apiKey?: string]>([
    ['"shop"', JSON.stringify(draw.pick(keys))],
    [JSON.stringify(draw.pick(apps)), key],
    [undefined, key],
    ['"shop"'],
    [],
    [value, key],
    ['"shop"', value],
    [key, '"shop"'],
  ])
  return [
    ...(appId === undefined ? [] : ([['appId', appId]] as const)),
    ...(apiKey === undefined ? [] : ([['apiKey', apiKey]] as const)),
    ...rest,
  ]
}

function withWrongBrand(draw: Draw, fields: Fields): { fields: Fields; isSpelling: boolean } {
  const rest = fields.filter(([key]) => key !== 'brandId')
  const spellings = ['"ACME"', '" acme "', '"Delta\\n"']
  if (draw.percent(15)) return { fields: [...rest, ['brandId', draw.pick(spellings)]], isSpelling: true }
  const names = ['unknown', 'Acme Inc', 'acme\u0000', 'delta stores', ...hostileNames, draw.of(anyText)]
  const absent = [undefined, 'null', '""', '1', '["acme"]', '{"toString":"acme"}']
  const value = draw.pick(['"waiting"', '"closed"', JSON.stringify(draw.pick(names)), draw.pick(absent)])
  return { fields: value === undefined ? rest : [...rest, ['brandId', value]], isSpelling: false }
}

/** Bytes that are no JSON object, or a strange one. */
function broken(draw: Draw, text: string): Pick<Shot, 'body' | 'only'> {
  const only = ['400 validation_error']
  const bytes = (encoding: 'utf16le' | 'latin1') => new Uint8Array(Buffer.from(text, encoding))
  switch (
    draw.weighted({
      cut: 4,
      more: 2,
      whole: 4,
      utf16: 2,
      utf8: 3,
      mark: 1,
      deep: 2,
      noise: 2,
      empty: 1,
      comma: 1,
    })
  ) {
    case 'cut':
      return { body: text.slice(0, draw.integer(0, text.length - 1)), only }
    case 'more':
      return { body: text + draw.pick(['{}', ',', '\u0000', ' x', ']', '\n{"level":60}']), only }
    case 'whole': {
      // None of these is an object with credentials.
      const value = draw.pick([...words('null true 5 -0 1e999 "x" []'), `[${text}]`, JSON.stringify(text)])
      return { body: value, only }
    }
    case 'utf16':
      return {
        body: draw.percent(50) ? bytes('utf16le') : new Uint8Array([0xff, 0xfe, ...bytes('utf16le')]),
        only,
      }
    case 'utf8': {
      const wrong = draw.pick([[0xff], [0xc3], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80]])
      const plain = new TextEncoder().encode(text.slice(0, -1))
      return {
        body: new Uint8Array([...plain, ...new TextEncoder().encode(',"x":"'), ...wrong, 0x22, 0x7d]),
        only,
      }
    }
    case 'mark':
      return { body: `\ufeff${text}` }
    case 'deep': {
      const depth = 100_000
      return draw.pick<Pick<Shot, 'body' | 'only'>>([
        { body: `${'['.repeat(depth)}${']'.repeat(depth)}`, only },
        { body: '{"a":'.repeat(50_000), only },
        { body: `${text.slice(0, -1)},"x":${'['.repeat(depth)}${']'.repeat(depth)}}` },
        { body: `{"appId":${'['.repeat(depth)}${']'.repeat(depth)}}` },
        { body: `${'{"a":'.repeat(40_000)}1${'}'.repeat(40_000)}` },
      ])
    }
    case 'noise':
      return { body: draw.of(fc.uint8Array({ minLength: 1, maxLength: 64 })) as Uint8Array<ArrayBuffer> }
    case 'empty':
      return { body: draw.pick(['', ' ', '\r\n\r\n']), only }
    case 'comma':
      return { body: draw.pick([text.replace(/}$/, ',}'), text.replaceAll('"', "'"), `//x\n${text}`]), only }
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// The run and its judge
// ---------------------------------------------------------------------------------------------------------------------

/** A shot with everything filled in, as it goes out. */
export interface Sent {
  readonly shot: Shot
  readonly number: number
  readonly body: string | Uint8Array<ArrayBuffer> | undefined
}

/** The raw answer. */
export interface Reply {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

interface Delivered {
  readonly to: string
  readonly text: string
}

interface SentCode {
  readonly brandId: string
  readonly field: 'phone' | 'email'
  readonly contact: string
  readonly code: string
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

/**
 * One run: knows what was sent and delivered, judges what is answered, logged and stored, and collects what is wrong, so
 * that a failure shows more than its first sign.
 */
export class Run {
  /** Status and code of every answer, by path. */
  private readonly reached = new Set<string>()
  private answered = 0
  /** Answers of protected routes that were neither a matter of the body's form, nor of credentials, nor of the brand. */
  private deep = 0
  private readonly ids = new Set<string>()
  private readonly delivered = new Map<string, Delivered[]>()
  private readonly codes: SentCode[] = []
  /** Six digits that belong to a request, sent by it or given to it, by its id. */
  private readonly digits = new Map<string, ReadonlySet<string>>()
  private readonly accepted = new Set<string>()
  private readonly problems: string[] = []
  private seen = { sms: 0, mail: 0 }

  constructor(
    private readonly receiver: { readonly received: readonly Received[] },
    private readonly smtp: { readonly received: readonly ReceivedMail[] },
    /** Keys and secrets without a mark in them. */
    private readonly otherSecrets: readonly string[],
  ) {}

  /** Fills in what the run knows. */
  load(shot: Shot, number: number): Sent {
    if (typeof shot.body !== 'string' || !shot.body.includes('%')) return { shot, number, body: shot.body }
    // One code stays the target for a while.
    const target = Math.floor((this.codes.length - 1) / 24) * 24 - shot.recent
    const about = this.codes[Math.max(0, target)] ?? {
      brandId: 'acme',
      field: 'phone',
      contact: `449000${phoneMark}`,
      code: '482915',
    }
    const wrong = about.code === '111111' ? '222222' : '111111'
    const body = shot.body
      .replaceAll('%BRAND%', () => about.brandId)
      .replaceAll('%FIELD%', () => about.field)
      .replaceAll('%CONTACT%', () => about.contact)
      .replaceAll('%CODE%', () => about.code)
      .replaceAll('%WRONG%', () => wrong)
    const padding = (shot.bytes ?? 0) - Buffer.byteLength(body) + '%PADDING%'.length
    return { shot, number, body: body.replace('%PADDING%', () => 'p'.repeat(Math.max(0, padding))) }
  }

  /**
   * An answer that has to be in an envelope, and one that its request may get.
   *
   * @param story the details of a failure beside the request and its answer
   */
  judge(sent: Sent, reply: Reply, trace = ''): void {
    this.collect()
    this.answered++
    const { shot } = sent
    const wrong = (what: string) =>
      this.problem(`${what}\n    ${described(sent)}\n    ${answerOf(reply)}${trace}`)
    const requestId = reply.headers.get('x-request-id') ?? ''
    if (!uuid.test(requestId)) wrong('X-Request-Id is no UUID')
    if (this.ids.has(requestId)) wrong('a request id came twice')
    this.ids.add(requestId)
    this.judgeSecrets(
      `${[...reply.headers].flat().join('\n')}\n${reply.text}`,
      [keyFingerprint, storedFingerprint],
      wrong,
    )

    if (shot.method === 'HEAD' && reply.text === '') return
    // For a browser it is a page.
    if (reply.status === 200 && pathsOf(shot.target).has('/') && shot.headers.accept === 'text/html') return
    if (!/^application\/json/.test(reply.headers.get('content-type') ?? '')) wrong('the answer is no JSON')
    const answer = objectOf(reply.text)
    if (!answer) {
      wrong('the body is no JSON object')
      return
    }
    if (answer.requestId !== requestId) wrong('requestId is not that of X-Request-Id')

    const code = `${reply.status} ${typeof answer.error === 'string' ? answer.error : 'ok'}`
    const paths = [...pathsOf(shot.target)]
    const path = paths.find((candidate) => routes.get(candidate)?.codes.has(code)) ?? 'elsewhere'
    this.reached.add(`${path} ${code}`)
    if (!documented(shot.method, shot.target).has(code)) wrong(`${code} is not documented here`)
    if (shot.only && !shot.only.includes(code)) wrong(`${code} is none of ${shot.only.join(', ')}`)
    if (shot.never?.includes(code)) wrong(`${code}, but what it complains of is right`)
    if (this.isDeep(path, code, shot)) this.deep++

    const body = typeof sent.body === 'string' ? objectOf(sent.body.replace(/^\ufeff/, '')) : undefined
    this.judgeEnvelope(answer, reply, path, body, wrong)
    this.judgeDelivery(requestId, code, path, body, shot.kind !== 'right', wrong)
    this.judgeDigits(requestId, answer, body, wrong)
  }

  private isDeep(path: string, code: string, shot: Shot): boolean {
    const guarded = path.startsWith('/otp/') || path === '/notify'
    const shallow = [...credentialCodes, ...brandCodes, '413 validation_error']
    return guarded && !shallow.includes(code) && !['broken', 'type'].includes(shot.kind)
  }

  private judgeEnvelope(
    answer: Answered,
    { status, headers }: Reply,
    path: string,
    body: Answered | undefined,
    wrong: (what: string) => void,
  ): void {
    const keys = Object.keys(answer).sort().join()
    if (status < 400) {
      const expected = [...(routes.get(path)?.keys ?? [])]
      if (path === '/notify' && isGiven(body?.templateKey) && answer.channel === 'SMS')
        expected.push('templateKey')
      if (path === '/otp/verify' && body?.proof === true) expected.push('proof')
      if (keys !== expected.sort().join()) wrong(`the success has the keys ${keys}`)
      if (path !== '/health' && answer.success !== true) wrong('success is not true')
    } else {
      const { error, reason } = answer
      const hasReason = reason !== undefined && (error === 'rate_limited' || error === 'validation_error')
      const optional = [...(hasReason ? ['reason'] : []), ...(reason === 'field' ? ['field'] : [])]
      const expected = ['error', 'message', 'requestId', 'success', ...optional]
      if (keys !== expected.sort().join()) wrong(`the error has the keys ${keys}`)
      if (answer.success !== false) wrong('success is not false')
      if (typeof answer.message !== 'string' || answer.message === '') wrong('an error without a message')
      if (/\n\s+at |node_modules|\.ts:\d|sqlite/i.test(String(answer.message)))
        wrong('a message of the inside')
    }
    const retryAfter = headers.get('retry-after')
    if (status === 429 ? !/^[1-9]\d*$/.test(retryAfter ?? '') : retryAfter !== null) {
      wrong(`Retry-After is ${retryAfter}`)
    }
    if (status === 405 && !headers.get('allow')) wrong('a 405 that does not say what is allowed')
  }

  /** A success delivered what it says, and nothing else delivered anything. */
  private judgeDelivery(
    requestId: string,
    code: string,
    path: string,
    body: Answered | undefined,
    isStrange: boolean,
    wrong: (what: string) => void,
  ): void {
    const messages = this.delivered.get(requestId) ?? []
    const isSend = path === '/otp/send' || path === '/otp/resend'
    if (code !== '200 ok' || !(isSend || path === '/notify')) {
      if (messages.length > 0) wrong(`refused, and yet ${messages.length} messages were delivered`)
      return
    }
    this.accepted.add(requestId)
    const given: readonly unknown[] = isSend ? [''] : Array.isArray(body?.to) ? body.to : []
    if (given.length < 1 || given.length > 100) wrong(`a success with ${given.length} recipients`)
    // Only the digits of a phone number count, and not the case of an e-mail address; strange ones may match more.
    const { size } = new Set(
      given.map((to) =>
        String(to)
          .trim()
          .replace(/[ +().-]/g, '')
          .toLowerCase(),
      ),
    )
    const isRight = messages.length === size || (isStrange && messages.length > 0 && messages.length < size)
    if (!isRight) wrong(`${messages.length} messages in the place of ${size}`)
    if (new Set(messages.map(({ to }) => to)).size < messages.length) wrong('a recipient got two messages')
    if (!isSend || !body || messages.length === 0) return
    const isMail = typeof body.channel === 'string' && body.channel.toLowerCase() === 'email'
    const digits = messages.flatMap(({ text }) => text.match(/(?<!\d)\d{6}(?!\d)/g) ?? [])
    const [sentCode] = digits
    if (sentCode === undefined) {
      wrong('a message without a code')
      return
    }
    this.digits.set(requestId, new Set(digits))
    this.codes.push({
      brandId: String(body.brandId).trim().toLowerCase(),
      field: isMail ? 'email' : 'phone',
      contact: String(isMail ? body.email : body.phone).trim(),
      code: sentCode,
    })
  }

  private judgeDigits(
    requestId: string,
    answer: Answered,
    body: Answered | undefined,
    wrong: (what: string) => void,
  ): void {
    const digits = new Set(this.digits.get(requestId))
    if (typeof body?.otp === 'string' && /^\d{6}$/.test(body.otp)) digits.add(body.otp)
    if (digits.size === 0) return
    this.digits.set(requestId, digits)
    const { requestId: _, ...rest } = answer
    const text = JSON.stringify(rest)
    for (const code of digits) if (text.includes(code)) wrong(`the answer holds the code ${code}`)
  }

  /**
   * The log: each line one JSON object and none an error; each answered request has exactly one line, and there is no
   * line that no request has, such as one that was smuggled in.
   *
   * @param complete whether every request was answered; requests that were hung up on have a line and no answer
   */
  judgeLog(lines: readonly string[], complete: boolean): void {
    const logged = new Set<string>()
    for (const line of lines) {
      const wrong = (what: string) => this.problem(`${what}\n    log: ${line.slice(0, 1000)}`)
      this.judgeSecrets(line, [keyFingerprint, echoMark, storedFingerprint], wrong)
      const entry = objectOf(line)
      if (!entry) {
        wrong('a log line that is no JSON object')
        continue
      }
      if (typeof entry.level !== 'number' || typeof entry.msg !== 'string')
        wrong('a log line of another form')
      // The codes of these requests are seldom verified.
      const isOfAttack = String(entry.message).startsWith('Possible SMS pumping')
      if (Number(entry.level) >= 50 && !isOfAttack) wrong('a log line of an error')
      if (entry.requestId === undefined) {
        const isOfProcess = /^(?:listening$|stopped$|This server is not protected)/.test(String(entry.msg))
        if (
          !isOfProcess &&
          !isOfAttack &&
          // The notifications of these requests go to countries without a history.
          entry.countries === undefined &&
          entry.signal === undefined &&
          entry.setting === undefined &&
          entry.network === undefined &&
          entry.alertAt === undefined
        ) {
          wrong('a log line of no request')
        }
        continue
      }
      const requestId = String(entry.requestId)
      if (logged.has(requestId)) wrong('a second line of a request')
      logged.add(requestId)
      if (complete && !this.ids.has(requestId)) wrong('a line of a request that was never answered')
      // Times and ids are digits by chance.
      const { requestId: _, time: __, durationMs: ___, attempts, ...facts } = entry
      const tries = (Array.isArray(attempts) ? attempts : []).map((attempt) => ({
        ...attempt,
        durationMs: 0,
      }))
      const text = JSON.stringify([facts, tries])
      for (const code of this.digits.get(requestId) ?? []) {
        if (text.includes(code)) wrong(`the log holds the code ${code}`)
      }
    }
    for (const id of this.ids) if (!logged.has(id)) this.problem(`no log line of ${id}`)
  }

  /** The bytes of the database and its log, which hold no message, recipient or secret. */
  judgeDatabase(contents: Buffer): void {
    const bytes = contents.toString('latin1').toLowerCase()
    this.judgeSecrets(bytes, [keyFingerprint, echoMark], (what) =>
      this.problem(`${what}\n    in the database`),
    )
  }

  /** Every value of the database: none is a code that was sent. */
  judgeValues(values: Iterable<unknown>): void {
    const codes = new Set(this.codes.map(({ code }) => code))
    for (const value of values) {
      for (const word of String(value).split(/[^0-9A-Za-z_-]+/)) {
        if (codes.has(word)) this.problem(`the database holds the code ${word}: ${String(value)}`)
      }
    }
  }

  /** Everything that was delivered belongs to a request that was accepted; for a run in which each was answered. */
  judgeDeliveries(): void {
    this.collect()
    for (const [requestId, { length }] of this.delivered) {
      if (!this.accepted.has(requestId))
        this.problem(`${length} messages for ${requestId}, without such a request`)
    }
  }

  /**
   * A run that never gets past the first checks proves nothing.
   *
   * @param expected answers that the usual seed must have met, such as `/otp/send 200 ok`; another may miss a rare one
   */
  judgeReach(expected: readonly string[]): void {
    const missed =
      process.env.FUZZ_SEED === undefined ? expected.filter((code) => !this.reached.has(code)) : []
    for (const code of missed) this.problem(`never met: ${code}`)
    if (this.deep < 0.4 * this.answered)
      this.problem(`only ${this.deep} answers came from behind the first checks`)
  }

  problem(what: string): void {
    this.problems.push(what)
  }

  /** Fails with everything that was found. */
  conclude(): void {
    if (this.problems.length === 0) return
    const shown = this.problems.slice(0, 8).map((problem, index) => `  ${index + 1}. ${problem}`)
    const runs = process.env.FUZZ_RUNS === undefined ? '' : ` FUZZ_RUNS=${process.env.FUZZ_RUNS}`
    const count = `${this.problems.length} problems in ${this.answered} answers`
    throw new Error(`FUZZ_SEED=${fuzzSeed}${runs}: ${count}\n${shown.join('\n')}`)
  }

  private judgeSecrets(text: string, fingerprints: readonly string[], wrong: (what: string) => void): void {
    const lower = text.toLowerCase()
    for (const mark of [...fingerprints, phoneMark, ...this.otherSecrets]) {
      if (lower.includes(mark.toLowerCase())) wrong(`${mark} got out`)
    }
  }

  /** Reads what the gateway and the mail server got since it was last asked. */
  private collect(): void {
    for (const { body } of this.receiver.received.slice(this.seen.sms)) this.add(body.requestId, body)
    this.seen.sms = this.receiver.received.length
    for (const { mail, to } of this.smtp.received.slice(this.seen.mail)) {
      const requestId = mail.headers.find(({ key }) => key === 'x-request-id')?.value ?? ''
      if (to.length !== 1) this.problem(`a mail to ${to.length} recipients: ${to.join()}`)
      this.add(requestId, { to: to.join(), text: mail.text ?? '' })
    }
    this.seen.mail = this.smtp.received.length
  }

  private add(requestId: string, { to, text }: Delivered): void {
    const messages = this.delivered.get(requestId)
    if (messages) messages.push({ to, text })
    else this.delivered.set(requestId, [{ to, text }])
  }
}

type Answered = Readonly<Record<string, unknown>>

function objectOf(text: string): Answered | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Answered)
      : undefined
  } catch {
    return undefined
  }
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null
}

function described({ shot, number, body }: Sent): string {
  const text = typeof body === 'string' ? body : JSON.stringify(Buffer.from(body ?? '').toString('latin1'))
  const excerpt = text.length > 1500 ? `${text.slice(0, 1000)} … ${text.length} … ${text.slice(-400)}` : text
  const headers = JSON.stringify(shot.headers)
  return `request ${number} (${shot.kind}): ${shot.method} ${shot.target.slice(0, 300)} ${headers.slice(0, 600)} ${excerpt}`
}

function answerOf({ status, headers, text }: Reply): string {
  return `answer: ${status} ${JSON.stringify(Object.fromEntries(headers))} ${text.slice(0, 600)}`
}
