import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import Ajv from 'ajv'
import { type Answer, codeIn, otherThan } from './support/app.ts'
import { temporaryFolder } from './support/folder.ts'
import { otpost, startServer, type TestServer } from './support/server.ts'

// Design D53: what the 32 scenarios of CAMARA for one-time-password-sms 1.1.1 require, of a real server. Its files are not part of this
// repository. With CAMARA_REPOSITORY, the folder of a copy of camaraproject/OTPValidation at release r3.2, they run here unchanged, and
// its API description checks each answer.

const repository = process.env.CAMARA_REPOSITORY

const folder = temporaryFolder()
const ending = new AsyncDisposableStack()
let server: TestServer
/** The same, at a time when all codes have expired. */
let token = ''
/** Of a relay with the same name, which was removed. */
let expiredToken = ''

beforeAll(async () => {
  ending.defer(() => folder.remove())
  const command = async (...args: string[]) => {
    const { code, stdout, stderr } = await otpost(args, env())
    expect([code, stderr]).toEqual([0, expect.any(String)])
    return /^secret: (.*)$/m.exec(stdout)?.[1] ?? ''
  }
  await command('migrate')
  await command('brand', 'put', 'acme', '--name', 'Acme')
  await command('destination', 'set', landlines, 'block')
  await command('destination', 'set', magicNumbers, 'allow')
  expiredToken = await command('relay', 'add', 'otp', '--kind', 'camara', '--brand', 'acme')
  await command('relay', 'remove', 'otp')
  token = await command('relay', 'add', 'otp', '--kind', 'camara', '--brand', 'acme')
  server = await startServer(env())
  ending.defer(async () => void (await server.stop()))
})
afterAll(() => ending.disposeAsync())

const env = () => ({ DATABASE_URL: `file:${join(folder.path, 'otpost.db')}` })

/** The operator blocks this range. */
const landlines = '+4420'

/** Of no country, so that they need a rule beside another rule. */
const magicNumbers = '+1500555'

const phones = {
  landline: `${landlines}71838750`,
  premiumRate: '+449098790000',
  /** The outbox rejects it, as a provider rejects a number with a barring. */
  barred: `${magicNumbers}0001`,
  /** In no numbering plan. */
  ofNoOperator: '+21012345678',
} as const

const message = '{{code}} is your code for Acme'
/** The first that is too many: PHONE_LIMIT_PER_MINUTE is 3, and three wrong codes lock a code. */
const limits = { max_send: 4, max_try: 4 } as const

let people = 0
const freshPhone = () => `+1202555${String(++people).padStart(4, '0')}`

type Operation = 'send-code' | 'validate-code'

/** The request of a scenario, which its steps prepare. */
class Call {
  readonly phone = freshPhone()
  readonly headers = new Headers({
    'content-type': 'application/json',
    authorization: `Bearer ${token}`,
    'x-correlator': crypto.randomUUID(),
  })
  /** Undefined: none. */
  body: Record<string, unknown> | undefined
  /** What people got. */
  readonly sent: { readonly authenticationId: string; readonly code: string }[] = []
  isLater = false

  constructor(readonly operation: Operation) {
    const own = { authenticationId: crypto.randomUUID(), code: '482913' }
    this.body = operation === 'send-code' ? { phoneNumber: this.phone, message } : own
  }

  set(name: string, value: unknown): void {
    this.body = { ...this.body, [name]: value }
  }

  async send(): Promise<Answer> {
    const { operation, body, headers } = this
    if (!this.isLater) return post(operation, body, headers, server)
    // It ends at once, since its cleanup deletes what is not expired for the others.
    const later = await startServer(
      { ...env(), CLOCK_AHEAD_MS: '301000' },
      join(import.meta.dir, 'postgres/other-clock.ts'),
    )
    try {
      return await post(operation, body, headers, later)
    } finally {
      await later.stop()
    }
  }
}

function post(
  operation: Operation,
  body: object | undefined,
  headers: Headers,
  to = server,
): Promise<Answer> {
  const path = `/relay/otp/one-time-password-sms/v1/${operation}`
  return to.request('POST', path, { headers, ...(body && { body: JSON.stringify(body) }) })
}

type Step = (call: Call) => void | Promise<void>

const set =
  (name: string, value: unknown): Step =>
  (call) =>
    call.set(name, value)
const without = (name: string) => set(name, undefined)
const authorized =
  (value: () => string | undefined): Step =>
  ({ headers }) => {
    const given = value()
    if (given === undefined) headers.delete('authorization')
    else headers.set('authorization', `Bearer ${given}`)
  }
const noBody: Step = (call) => {
  call.body = undefined
}
const emptyBody: Step = (call) => {
  call.body = {}
}
const sends =
  (count: number): Step =>
  async ({ phone, headers, sent }) => {
    for (let each = 0; each < count; each++) {
      const { status, body } = await post('send-code', { phoneNumber: phone, message }, headers)
      expect(status).toBe(200)
      const outbox = await server.get(`/outbox/messages?to=${encodeURIComponent(phone)}`)
      sent.push({ ...body, code: codeIn(outbox.body.messages.at(-1).text) })
    }
  }
const firstId: Step = (call) => call.set('authenticationId', call.sent[0]?.authenticationId)
const firstCode: Step = (call) => call.set('code', call.sent[0]?.code)
const otherCode: Step = (call) => call.set('code', otherThan(call.sent[0]?.code ?? ''))
const retrieved: Step = async (call) => {
  await sends(1)(call)
  await firstId(call)
}
const guesses =
  (count: number): Step =>
  async (call) => {
    await otherCode(call)
    for (let each = 0; each < count; each++) expect((await call.send()).body.code).toEndWith('.INVALID_OTP')
  }
const validates: Step = async (call) => {
  await firstCode(call)
  expect((await call.send()).status).toBe(204)
}
const expires: Step = (call) => {
  call.isLater = true
}

describe.each<readonly [Operation, Readonly<Record<string, readonly [expected: string, ...Step[]]>>]>([
  [
    'send-code',
    {
      'sends a code': ['200'],
      'needs no x-correlator': ['200', ({ headers }) => headers.delete('x-correlator')],
      'needs a body': ['400 INVALID_ARGUMENT', noBody],
      'needs fields': ['400 INVALID_ARGUMENT', emptyBody],
      'needs an international number': ['400 INVALID_ARGUMENT', set('phoneNumber', '3301')],
      'needs a message': ['400 INVALID_ARGUMENT', without('message')],
      'needs the place of the code': ['400 INVALID_ARGUMENT', set('message', 'no place')],
      'has a longest message': ['400 INVALID_ARGUMENT', set('message', message.padEnd(161, '!'))],
      'accepts no other field': ['400 INVALID_ARGUMENT', set('lang', 'en')],
      'needs a token': ['401 UNAUTHENTICATED', authorized(() => undefined)],
      'refuses an expired token': ['401 UNAUTHENTICATED', authorized(() => expiredToken)],
      'refuses a wrong token': ['401 UNAUTHENTICATED', authorized(() => 'wrong')],
      'has a limit for a number': ['403 MAX_OTP_CODES_EXCEEDED', sends(limits.max_send - 1)],
      'reaches no premium-rate number': [
        '403 PHONE_NUMBER_NOT_ALLOWED',
        set('phoneNumber', phones.premiumRate),
      ],
      'reaches no landline of a blocked range': [
        '403 PHONE_NUMBER_NOT_ALLOWED',
        set('phoneNumber', phones.landline),
      ],
      'reaches no number that the provider rejects': [
        '403 PHONE_NUMBER_BLOCKED',
        set('phoneNumber', phones.barred),
      ],
      'knows no number without an operator': ['404 NOT_FOUND', set('phoneNumber', phones.ofNoOperator)],
    },
  ],
  [
    'validate-code',
    {
      'accepts the code': ['204', retrieved, firstCode],
      'needs no x-correlator': ['204', retrieved, firstCode, ({ headers }) => headers.delete('x-correlator')],
      'needs a body': ['400 INVALID_ARGUMENT', noBody],
      'needs fields': ['400 INVALID_ARGUMENT', emptyBody],
      'needs an ID': ['400 INVALID_ARGUMENT', without('authenticationId')],
      'needs a code': ['400 INVALID_ARGUMENT', retrieved, without('code')],
      'has a longest code': ['400 INVALID_ARGUMENT', retrieved, set('code', '48291348291')],
      'accepts no other field': ['400 INVALID_ARGUMENT', retrieved, firstCode, set('phone', '1')],
      'refuses a wrong code': ['400 INVALID_OTP', retrieved, otherCode],
      'refuses an expired code': ['400 VERIFICATION_EXPIRED', retrieved, firstCode, expires],
      'refuses a replaced code': ['400 VERIFICATION_EXPIRED', sends(2), firstId, firstCode],
      'refuses a used code': ['400 VERIFICATION_EXPIRED', retrieved, validates],
      'has a limit for guesses': [
        '400 VERIFICATION_FAILED',
        retrieved,
        guesses(limits.max_try - 1),
        firstCode,
      ],
      'needs a token': ['401 UNAUTHENTICATED', authorized(() => undefined)],
      'refuses an expired token': ['401 UNAUTHENTICATED', authorized(() => expiredToken)],
      'refuses a wrong token': ['401 UNAUTHENTICATED', authorized(() => 'wrong')],
      'knows no other ID': ['404 NOT_FOUND'],
    },
  ],
])('%s', (operation, rows) => {
  for (const [name, [expected, ...steps]] of Object.entries(rows))
    test(`${name}: ${expected}`, async () => {
      const call = new Call(operation)
      for (const step of steps) await step(call)
      const { status, headers, body } = await call.send()
      const code = typeof body === 'object' && 'code' in body ? ` ${body.code.split('.').at(-1)}` : ''
      expect(`${status}${code}`).toBe(expected)
      expect(headers.get('x-correlator')).toBe(call.headers.get('x-correlator'))
      if (status >= 400)
        expect(body).toEqual({ status, code: expect.any(String), message: expect.any(String) })
      else
        expect(body).toEqual(status === 204 ? '' : { authenticationId: expect.stringMatching(/^.{1,36}$/) })
    })
})

/** The steps of the scenarios before the request. */
const preparations: readonly (readonly [RegExp, (...given: string[]) => Step])[] = [
  [
    /^an environment at|^the resource|^the header "Content-Type" is set|to a valid access token$/,
    () => () => {},
  ],
  [/^the header "x-correlator" complies|^the request body is set by default/, () => () => {}],
  [
    /^the header "Authorization" is set$/,
    () =>
      ({ headers }) =>
        headers.delete('x-correlator'),
  ],
  [/^the header "Authorization" is removed$/, () => authorized(() => undefined)],
  [/^the header "Authorization" is set to an expired/, () => authorized(() => expiredToken)],
  [/^the header "Authorization" is set to an invalid/, () => authorized(() => 'wrong')],
  [/^the request body is not included$/, () => noBody],
  [/^the request body is set to "\{\}"$/, () => emptyBody],
  [/"\$\.(\w+)" is not valued$/, (name) => without(name ?? '')],
  [/"\$\.(\w+)" is set to "(.*)"$/, (name, value) => set(name ?? '', value)],
  [/is set to config_var: "phone_number"$/, () => (call) => call.set('phoneNumber', call.phone)],
  [/is set to config_var: "message"$/, () => set('message', message)],
  [/is longer than config_var/, () => set('message', message.padEnd(161, '!'))],
  [/to a phone number that cannot receive SMS$/, () => set('phoneNumber', phones.premiumRate)],
  [/to a phone number that target a landline$/, () => set('phoneNumber', phones.landline)],
  [/to a phone number that that has an active SMS barring$/, () => set('phoneNumber', phones.barred)],
  [/that did not belong to the operator$/, () => set('phoneNumber', phones.ofNoOperator)],
  [/"max_send"-1\) of send-code requests/, () => sends(limits.max_send - 1)],
  [/"max_try"-1\) calls with/, () => guesses(limits.max_try - 1)],
  [/^an authenticationId has been retrieved|value from send-code request$/, () => retrieved],
  [/^Two send-code request/, () => sends(2)],
  [/valued again with this authenticationId|value got for the first send-code request$/, () => firstId],
  [
    /validate-code has been succesfully performed/,
    () => async (call) => {
      await retrieved(call)
      await validates(call)
    },
  ],
  [/"\$\.authenticationId" is set to an unknown value$/, () => set('authenticationId', crypto.randomUUID())],
  [/^the request .* to a value distinct from/, () => otherCode],
  [/to a format valid value$/, () => set('code', '482913')],
  [/"\$\.code" is set to the (?:\w+ )?received in the SMS/, () => firstCode],
  [/^the time elapsed since the send-code exceed/, () => expires],
]

const isCheck = /^the response /
const checks: readonly (readonly [RegExp, (answer: Answer, call: Call, ...given: string[]) => void])[] = [
  [
    /property "\$\.status" is (\d+)$|status code is (\d+)$/,
    ({ status, body }, _, one, other) => {
      expect(String(status)).toBe(one ?? other ?? '')
      if (status >= 400) expect(body.status).toBe(status)
    },
  ],
  [/property "\$\.code" is "(.*)"$/, ({ body }, _, code) => expect(body.code).toBe(code)],
  [/contains a user friendly text$/, ({ body }) => expect(body.message).toMatch(/^\S.*[.]$/)],
  [
    /"Content-Type" is "(.*)"$/,
    ({ headers }, _, type) => expect(headers.get('content-type')).toBe(type ?? ''),
  ],
  [
    /"x-correlator" has same value/,
    ({ headers }, call) => {
      expect(headers.get('x-correlator')).toBe(call.headers.get('x-correlator'))
    },
  ],
  // Of all answers.
  [/complies with the OAS schema/, () => {}],
]

function found<Meaning>(table: readonly (readonly [RegExp, Meaning])[], text: string) {
  const matching = table.filter(([pattern]) => pattern.test(text))
  const [only] = matching
  if (!only || matching.length > 1) throw new Error(`${matching.length} meanings of the step: ${text}`)
  return { meaning: only[1], given: only[0].exec(text)?.slice(1) ?? [] }
}

interface Scenario {
  readonly name: string
  readonly steps: readonly string[]
}

/** The files have no tables, texts in several lines, or outlines. */
function scenariosIn(feature: string): readonly Scenario[] {
  const [background, ...others] = feature.split(/^ +(?=Background:|Scenario:)/m).slice(1)
  const stepsOf = (part = '') =>
    [...part.matchAll(/^ +(?:Given|When|Then|And) +(.*)$/gm)].map(([, step = '']) => step)
  return others.map((part) => ({
    name: /: *(.*)/.exec(part)?.[1] ?? '',
    steps: [...stepsOf(background), ...stepsOf(part)],
  }))
}

interface Description {
  readonly paths: Readonly<Record<string, { readonly post: { readonly responses: Responses } }>>
}

type Responses = Readonly<Record<string, { readonly $ref?: string }>>

/** Checks answers with the API description. */
function answerCheck(file: string) {
  const description = Bun.YAML.parse(readFileSync(file, 'utf8')) as Description
  const ajv = new Ajv({ strict: false }).addSchema(description, 'api')
  return (operation: Operation, { status, body }: Answer) => {
    const response = description.paths[`/${operation}`]?.post.responses[status]
    if (!response) throw new Error(`the API description has no ${status} of ${operation}`)
    const at = response.$ref ?? `#/paths/~1${operation}/post/responses/${status}`
    if (status === 204) return expect(body).toBe('')
    const isDescribed = ajv.compile({ $ref: `api${at}/content/application~1json/schema` })
    expect([isDescribed(body), isDescribed.errors]).toEqual([true, null])
  }
}

if (repository === undefined)
  test.skip('scenarios of CAMARA: not tried, CAMARA_REPOSITORY is not set', () => {})
else
  describe('scenarios of CAMARA', () => {
    const code = join(repository, 'code')
    const check = answerCheck(join(code, 'API_definitions/one-time-password-sms.yaml'))
    const scenarios = (['send-code', 'validate-code'] as const).flatMap((operation) => {
      const name = operation.replace('-c', 'C')
      const file = join(code, `Test_definitions/one-time-password-sms-${name}.feature`)
      return scenariosIn(readFileSync(file, 'utf8')).map((scenario) => ({ operation, ...scenario }))
    })

    test('are 32', () => expect(scenarios).toHaveLength(32))

    for (const { operation, name, steps } of scenarios)
      test(`${operation}: ${name}`, async () => {
        const call = new Call(operation)
        let answer: Answer | undefined
        for (const step of steps) {
          if (step === 'the HTTP "POST" request is sent') {
            answer = await call.send()
            check(operation, answer)
          } else if (isCheck.test(step)) {
            if (!answer) throw new Error('a check precedes the request')
            const { meaning, given } = found(checks, step)
            meaning(answer, call, ...given)
          } else {
            const { meaning, given } = found(preparations, step)
            await meaning(...given)(call)
          }
        }
      })
  })
