import { createHash, createHmac, randomBytes, randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { gzipSync } from 'node:zlib'
import { SignatureV4 } from '@smithy/signature-v4'
import { Webhook } from 'standardwebhooks'

export type ProviderName = 'twilio' | 'vonage' | 'msg91' | 'sns' | 'aws-sms' | 'webhook'

/** What a provider does with a message: a documented answer, or no answer until it is released. */
export type Fate = 'taken' | 'refused' | 'no such number' | 'held'

/** A message in a call to a provider. */
export interface Asked {
  readonly double: ProviderName
  readonly route: 'plain' | 'template'
  /** The digits. */
  readonly to: string
  /** What a handset would show. */
  readonly text: string
  /** The provider's id of the message. */
  readonly id: string
  /** The status callback URL, if each message has one. */
  readonly callbackUrl?: string
  /** Who it is from, and how it is registered, as far as it said so. */
  readonly registration: Readonly<Record<string, unknown>>
}

/** A delivery report of a provider. */
export interface ReportRequest {
  readonly method: 'GET' | 'POST'
  readonly url: string
  readonly headers?: Record<string, string>
  readonly body?: string | Uint8Array<ArrayBuffer>
}

export type ReportStatus = 'delivered' | 'failed'

interface Call {
  readonly path: string
  readonly headers: Headers
  readonly host: string
  readonly body: string
}

/** The protocol of a provider, as documented. */
interface Speech {
  /** The settings that lead to it. */
  env(url: string): Record<string, string>
  /** The message of a call; throws if the call does not match the provider's documentation. */
  read(call: Call): Omit<Asked, 'double'> | Promise<Omit<Asked, 'double'>>
  answer(asked: Asked, fate: Exclude<Fate, 'held'>): Response
  /** @param forged by a sender without the provider's secret */
  report(asked: Asked, url: string, status: ReportStatus, forged: boolean): ReportRequest
}

/** What every setting that is a secret holds. */
export const providerSecrets = {
  twilio: 'canary-twilio+auth/token=&%',
  vonage: 'canary-vonage+api/secret=&%',
  vonageSignature: 'canary-vonage+signature/secret=&%',
  msg91: 'canary-msg91+auth/key=&%',
  aws: 'canary-aws+secret/access-key=&%',
  awsSession: 'canary-aws+session/token=&%==',
  firehose: 'canary-firehose+access/key=&%',
  webhook: 'canary-webhook+signing/key=&%...',
} as const

const webhookSecret = `whsec_${btoa(providerSecrets.webhook)}`

/** What is registered for the brands of a test, in India's way. */
export const registered = {
  entity: '1101456324675322134',
  dlt: '1107457532145798767',
  msg91: '6a76c9555ae4f51bdf041782',
  sender: 'ACMEIN',
} as const

/** The template that MSG91 has under that id. */
const flow =
  '##otp## is your ##businessName## verification code. It expires in ##lifetime##. Do not share it with anyone.'

const accountSid = 'AC0123456789abcdef0123456789abcdef'
const service = 'MG0123456789abcdef0123456789abcdef'

const twilio: Speech = {
  env: (url) => ({
    TWILIO_ACCOUNT_SID: accountSid,
    TWILIO_AUTH_TOKEN: providerSecrets.twilio,
    TWILIO_FROM: service,
    TWILIO_BASE_URL: url,
  }),
  read({ path, headers, body }) {
    const fields = formOf(headers, body)
    must(path === `/2010-04-01/Accounts/${accountSid}/Messages.json`, path)
    must(headers.get('authorization') === basic(accountSid, providerSecrets.twilio), 'authorization')
    const { To, Body, StatusCallback, ValidityPeriod } = fields
    mustBe(fields, {
      To: like(To, /^\+[1-9]\d{6,14}$/),
      MessagingServiceSid: service,
      Body: like(Body, /^.{1,1600}$/s),
      StatusCallback: like(StatusCallback, /^https:\/\/\S+$/),
      ...(ValidityPeriod === undefined ? {} : { ValidityPeriod: '300' }),
    })
    return {
      route: 'plain',
      to: String(To).slice(1),
      text: String(Body),
      id: `SM${randomBytes(16).toString('hex')}`,
      callbackUrl: String(StatusCallback),
      registration: {},
    }
  },
  answer({ to, text, id }, fate) {
    if (fate === 'taken') {
      const message = {
        account_sid: accountSid,
        api_version: '2010-04-01',
        body: text,
        direction: 'outbound-api',
        error_code: null,
        error_message: null,
        messaging_service_sid: service,
        num_segments: '1',
        price: null,
        sid: id,
        status: 'accepted',
        to: `+${to}`,
        uri: `/2010-04-01/Accounts/${accountSid}/Messages/${id}.json`,
      }
      return Response.json(message, { status: 201 })
    }
    const [code, why] = fate === 'refused' ? [21606, 'From is not for'] : [21211, 'Invalid To']
    const error = { code, message: `${why} +${to}: ${text}`, more_info: `https://${code}`, status: 400 }
    return Response.json(error, { status: 400 })
  },
  report({ to, id }, url, status, forged) {
    const fields = {
      AccountSid: accountSid,
      ApiVersion: '2010-04-01',
      MessageSid: id,
      MessageStatus: status === 'delivered' ? 'delivered' : 'undelivered',
      MessagingServiceSid: service,
      To: `+${to}`,
      ...(status === 'failed' ? { ErrorCode: '30005' } : {}),
    }
    const signed = url + Object.entries(fields).sort().flat().join('')
    const signature = createHmac('sha1', forged ? 'forged' : providerSecrets.twilio).update(signed)
    return {
      method: 'POST',
      url,
      headers: {
        'content-type': 'application/x-www-form-urlencoded; charset=UTF-8',
        'x-twilio-signature': signature.digest('base64'),
      },
      body: new URLSearchParams(fields).toString(),
    }
  },
}

const vonage: Speech = {
  env: (url) => ({
    VONAGE_API_KEY: 'abcd1234',
    VONAGE_API_SECRET: providerSecrets.vonage,
    VONAGE_FROM: 'Acme',
    VONAGE_SIGNATURE_SECRET: providerSecrets.vonageSignature,
    VONAGE_BASE_URL: url,
  }),
  read({ path, headers, body }) {
    const fields = formOf(headers, body)
    must(path === '/sms/json', path)
    must(headers.get('authorization') === basic('abcd1234', providerSecrets.vonage), 'authorization')
    const { to, text = '', type, 'client-ref': reference, callback, ttl, ...registration } = fields
    mustBe(
      { to, type, callback, ttl, reference },
      {
        to: like(to, /^[1-9]\d{6,14}$/),
        type: /^[\x20-\x7e\n]*$/.test(text) ? 'text' : 'unicode',
        callback: like(callback, /^https:\/\/\S{1,92}$/),
        ttl: '300000',
        reference: like(reference, /^[0-9a-f-]{36}$/),
      },
    )
    return {
      route: 'content-id' in registration ? 'template' : 'plain',
      to: String(to),
      text,
      id: randomBytes(8).toString('hex').toUpperCase(),
      callbackUrl: String(callback),
      registration,
    }
  },
  answer({ to, text, id }, fate) {
    const error = { status: fate === 'refused' ? '15' : '7', 'error-text': `No ${to}: ${text}` }
    const message = {
      to,
      status: '0',
      'remaining-balance': '3.14',
      'message-price': '0.03',
      network: '40410',
    }
    // A long text is several messages, each with an id of its own.
    const ids = text.length > 70 && /[^\x20-\x7e\n]/.test(text) ? [id, `${id.slice(0, 14)}ZZ`] : [id]
    const messages = fate === 'taken' ? ids.map((each) => ({ ...message, 'message-id': each })) : [error]
    return Response.json({ 'message-count': String(messages.length), messages })
  },
  report({ to, id }, url, status, forged) {
    const fields: Record<string, string> = {
      'err-code': status === 'delivered' ? '0' : '50',
      'message-timestamp': '2026-11-21 12:10:29',
      messageId: id,
      msisdn: to,
      'network-code': '40410',
      price: '0.03',
      scts: '2611211310',
      status: status === 'delivered' ? status : 'rejected',
      to: 'Acme',
      'client-ref': 'a=b&c',
      timestamp: '1795262400',
    }
    const names = Object.keys(fields).sort()
    const signed = names.map((name) => `&${name}=${fields[name]?.replace(/[&=]/g, '_')}`).join('')
    const sig = createHmac('sha256', forged ? 'forged' : providerSecrets.vonageSignature).update(signed)
    const all = { ...fields, sig: sig.digest('hex') }
    return status === 'delivered'
      ? { method: 'GET', url: `${url}?${new URLSearchParams(all)}` }
      : { method: 'POST', url, headers: json, body: JSON.stringify(all) }
  },
}

const msg91: Speech = {
  env: (url) => ({ MSG91_AUTH_KEY: providerSecrets.msg91, MSG91_SENDER: 'ACMEXX', MSG91_BASE_URL: url }),
  read({ path, headers, body }) {
    must(headers.get('authkey') === providerSecrets.msg91, 'authkey')
    must(headers.get('content-type') === 'application/json', 'content-type')
    const given = JSON.parse(body)
    const id = randomBytes(12).toString('hex')
    const { sender } = given
    if (path === '/api/v2/sendsms') {
      const [{ message = '', to: [to] = [''] } = {}] = given.sms
      mustBe(given, {
        sender: like(sender, /^[A-Z]{6}$/),
        route: '4',
        country: '0',
        unicode: /^[\x20-\x7e\n]*$/.test(message) ? 0 : 1,
        sms: [{ message, to: [like(to, /^[1-9]\d{6,14}$/)] }],
      })
      return { route: 'plain', to, text: message, id, registration: { sender } }
    }
    must(path === '/api/v5/flow', path)
    const { template_id } = given
    const [variables] = given.recipients
    mustBe(given, {
      template_id: like(template_id, /^[0-9a-f]{24}$/),
      sender: like(sender, /^[A-Z]{6}$/),
      short_url: '0',
      realTimeResponse: '1',
      recipients: [{ ...variables, mobiles: like(variables.mobiles, /^[1-9]\d{6,14}$/) }],
    })
    return {
      route: 'template',
      to: variables.mobiles,
      text: flow.replace(/##(\w+)##/g, (_, name) => variables[name]),
      id,
      registration: { sender, template_id },
    }
  },
  answer({ route, to, id }, fate) {
    if (fate === 'taken') return Response.json({ type: 'success', message: id })
    const wrong =
      route === 'template' ? ['211', 'Template ID Missing or Invalid'] : ['203', 'Invalid sender ID']
    const [code, message] = fate === 'refused' ? wrong : ['202', 'Invalid mobile number']
    return Response.json({ type: 'error', message: `${message} ${to}`, code })
  },
  report({ to, id }, url, status) {
    const report = { date: '2026-11-21 10:06:20', number: to, status: status === 'delivered' ? '1' : '16' }
    const request = { senderId: 'ACMEIN', requestId: id, userId: '271234', campaignName: 'Sendhttp' }
    if (status === 'delivered') {
      return { method: 'POST', url, headers: json, body: JSON.stringify({ ...request, ...report }) }
    }
    const data = JSON.stringify([{ ...request, report: [{ ...report, desc: `REJECTED ${to}` }] }])
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    return { method: 'POST', url, headers, body: new URLSearchParams({ data }).toString() }
  },
}

const sns: Speech = {
  env: (url) => ({
    AWS_REGION: 'ap-south-1',
    AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE',
    AWS_SECRET_ACCESS_KEY: providerSecrets.aws,
    AWS_SESSION_TOKEN: providerSecrets.awsSession,
    SNS_FIREHOSE_ACCESS_KEY: providerSecrets.firehose,
    SNS_BASE_URL: url,
  }),
  async read(call) {
    must(call.path === '/', call.path)
    must(call.headers.get('authorization') === (await amazonSignature(call, 'sns')), 'authorization')
    const fields = formOf(call.headers, call.body)
    const take = (name: string) => {
      const value = fields[name]
      delete fields[name]
      return value
    }
    const registration: Record<string, unknown> = {}
    for (let index = 1; ; index++) {
      const entry = `MessageAttributes.entry.${index}`
      const name = take(`${entry}.Name`)
      if (name === undefined) break
      must(take(`${entry}.Value.DataType`) === 'String', entry)
      registration[name] = take(`${entry}.Value.StringValue`)
    }
    const { PhoneNumber, Message } = fields
    mustBe(fields, {
      Action: 'Publish',
      Version: '2010-03-31',
      PhoneNumber: like(PhoneNumber, /^\+[1-9]\d{6,14}$/),
      Message: like(Message, /^.{1,1600}$/s),
    })
    const isRegistered = 'AWS.MM.SMS.TemplateId' in registration
    return {
      route: isRegistered ? 'template' : 'plain',
      to: String(PhoneNumber).slice(1),
      text: String(Message),
      id: randomUUID(),
      registration,
    }
  },
  answer({ to, text, id }, fate) {
    const xmlns = 'xmlns="http://sns.amazonaws.com/doc/2010-03-31/"'
    const request = `<RequestId>${randomUUID()}</RequestId>`
    if (fate === 'taken') {
      return new Response(
        `<PublishResponse ${xmlns}><PublishResult><MessageId>${id}</MessageId></PublishResult><ResponseMetadata>${request}</ResponseMetadata></PublishResponse>`,
      )
    }
    const code = fate === 'refused' ? 'InvalidParameter' : 'OptedOut'
    const why = Bun.escapeHTML(`Invalid parameter: Message to +${to}: ${text}`)
    const error = `<Error><Type>Sender</Type><Code>${code}</Code><Message>${why}</Message></Error>`
    return new Response(`<ErrorResponse ${xmlns}>${error}${request}</ErrorResponse>`, { status: 400 })
  },
  report({ to, id }, url, status, forged) {
    const providerResponse =
      status === 'delivered' ? 'Message has been accepted by phone carrier' : 'Phone number is opted out'
    const log = {
      notification: { messageId: id, timestamp: '2026-11-21 00:40:34.558' },
      delivery: { phoneCarrier: 'My Phone Carrier', destination: `+${to}`, providerResponse },
      status: status === 'delivered' ? 'SUCCESS' : 'FAILURE',
    }
    const logs = {
      messageType: 'DATA_MESSAGE',
      owner: '111122223333',
      logGroup: 'sns/ap-south-1/111122223333/DirectPublishToPhoneNumber',
      logStream: 'stream',
      subscriptionFilters: ['otpost'],
      logEvents: [{ id: '0', timestamp: 1_795_262_400_000, message: JSON.stringify(log) }],
    }
    const record = { data: gzipSync(JSON.stringify(logs)).toString('base64') }
    const body = { requestId: id, timestamp: 1_795_262_400_000, records: [record] }
    const accessKey = forged ? 'forged' : providerSecrets.firehose
    const headers = { ...json, 'content-encoding': 'gzip', 'x-amz-firehose-access-key': accessKey }
    return { method: 'POST', url, headers, body: new Uint8Array(gzipSync(JSON.stringify(body))) }
  },
}

const awsSms: Speech = {
  env: (url) => ({
    AWS_REGION: 'ap-south-1',
    AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE',
    AWS_SECRET_ACCESS_KEY: providerSecrets.aws,
    AWS_SESSION_TOKEN: providerSecrets.awsSession,
    AWS_SMS_SENDER: 'pool-0123456789',
    AWS_SMS_CONFIGURATION_SET: 'otpost',
    AWS_SMS_FIREHOSE_ACCESS_KEY: providerSecrets.firehose,
    AWS_SMS_BASE_URL: url,
  }),
  async read(call) {
    must(call.path === '/', call.path)
    must(call.headers.get('authorization') === (await amazonSignature(call, 'sms-voice')), 'authorization')
    must(call.headers.get('x-amz-target') === 'PinpointSMSVoiceV2.SendTextMessage', 'x-amz-target')
    must(call.headers.get('content-type') === 'application/x-amz-json-1.0', 'content-type')
    const {
      DestinationCountryParameters: india,
      OriginationIdentity: sender,
      ...given
    } = JSON.parse(call.body)
    const { DestinationPhoneNumber, MessageBody, TimeToLive } = given
    mustBe(given, {
      DestinationPhoneNumber: like(DestinationPhoneNumber, /^\+[1-9]\d{6,14}$/),
      MessageBody: like(MessageBody, /^.{1,1600}$/s),
      MessageType: 'TRANSACTIONAL',
      ConfigurationSetName: 'otpost',
      ...(TimeToLive === undefined ? {} : { TimeToLive: 300 }),
    })
    return {
      route: india ? 'template' : 'plain',
      to: String(DestinationPhoneNumber).slice(1),
      text: String(MessageBody),
      id: randomUUID(),
      registration: { sender, ...india },
    }
  },
  answer({ to, text, id }, fate) {
    if (fate === 'taken') return Response.json({ MessageId: id })
    const Reason = fate === 'refused' ? 'SENDER_ID_NOT_REGISTERED' : 'DESTINATION_PHONE_NUMBER_OPTED_OUT'
    const __type = fate === 'refused' ? 'ValidationException' : 'ConflictException'
    return Response.json({ __type, Reason, Message: `Not to +${to}: ${text}` }, { status: 400 })
  },
  report({ to, id }, url, status, forged) {
    const event = {
      eventType: status === 'delivered' ? 'TEXT_DELIVERED' : 'TEXT_CARRIER_BLOCKED',
      eventVersion: '1.0',
      eventTimestamp: 1_795_262_400_000,
      isFinal: true,
      destinationPhoneNumber: `+${to}`,
      messageId: id,
      messageType: 'TRANSACTIONAL',
    }
    const record = { data: btoa(JSON.stringify(event)) }
    const body = { requestId: id, timestamp: 1_795_262_400_000, records: [record] }
    const accessKey = forged ? 'forged' : providerSecrets.firehose
    const headers = { ...json, 'x-amz-firehose-access-key': accessKey }
    return { method: 'POST', url, headers, body: JSON.stringify(body) }
  },
}

const webhook: Speech = {
  env: (url) => ({ SMS_WEBHOOK_URL: `${url}/sms`, SMS_WEBHOOK_SECRET: webhookSecret }),
  read({ path, headers, body }) {
    must(path === '/sms', path)
    const given = new Webhook(webhookSecret).verify(body, headers.toJSON()) as Record<string, unknown>
    const { id, to, route, text, brandId, requestId, templateKey, variables } = given
    const isTemplate = route === 'template'
    const code = /^\d{6}/.exec(String(text))?.[0]
    mustBe(given, {
      id: like(id, /^[0-9a-f-]{36}$/),
      to: like(to, /^[1-9]\d{6,14}$/),
      route: like(route, /^(plain|template)$/),
      text: like(text, /^.{1,1600}$/s),
      ...(isTemplate ? { templateKey: 'LOGIN_OTP', variables: { ...Object(variables), otp: code } } : {}),
      brandId: like(brandId, /^\w+$/),
      requestId: like(requestId, /^[0-9a-f-]{36}$/),
    })
    return {
      route: isTemplate ? 'template' : 'plain',
      to: String(to),
      text: String(text),
      id: String(id),
      registration: { templateKey },
    }
  },
  answer: ({ to }, fate) =>
    fate === 'taken' ? new Response(null, { status: 204 }) : new Response(`not to ${to}`, { status: 422 }),
  report({ id }, url, status, forged) {
    const report = { id, status, ...(status === 'failed' ? { reason: 'absent' } : {}) }
    const body = JSON.stringify(report)
    const [reportId, now] = [randomUUID(), new Date()]
    const secret = forged ? `whsec_${btoa('forged')}` : webhookSecret
    const headers = {
      ...json,
      'webhook-id': reportId,
      'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
      'webhook-signature': new Webhook(secret).sign(reportId, now, body),
    }
    return { method: 'POST', url, headers, body }
  },
}

const speeches: Readonly<Record<ProviderName, Speech>> = {
  ...{ twilio, vonage, msg91, sns, webhook },
  'aws-sms': awsSms,
}

/**
 * Stand-ins for all providers on this machine. Each parses calls as strictly as its documentation demands, and treats the
 * messages to a number as the test says. A call that it can not parse is a problem, and answered 400.
 */
export function startProviderDoubles() {
  const asked: Asked[] = []
  const problems: string[] = []
  const fates = new Map<string, Fate>()
  const held = Promise.withResolvers<void>()
  const servers: Bun.Server<undefined>[] = []

  /** Starts another server of a provider; returns the settings for it. */
  function start(double: ProviderName): Record<string, string> {
    const speech = speeches[double]
    const server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      idleTimeout: 0,
      async fetch(request) {
        const { pathname: path, search, host } = new URL(request.url)
        try {
          must(request.method === 'POST' && search === '', `${request.method} ${search}`)
          const body = await request.text()
          const message = { double, ...(await speech.read({ path, headers: request.headers, host, body })) }
          asked.push(message)
          const fate = fates.get(`${double} ${message.to}`) ?? 'taken'
          if (fate === 'held') await held.promise
          return speech.answer(message, fate === 'held' ? 'taken' : fate)
        } catch (error) {
          problems.push(`${double}: ${error}`)
          return new Response(null, { status: 400 })
        }
      },
    })
    servers.push(server)
    return speech.env(server.url.origin)
  }

  const env = Object.assign({}, ...providerNames.map((double) => start(double))) as Record<string, string>
  return {
    /** The settings that lead to all of them. */
    env,
    problems,
    /** What a provider does with messages to a number from now on. */
    decide(double: ProviderName, to: string, fate: Fate): void {
      fates.set(`${double} ${to}`, fate)
    },
    /** The calls for a number, in order. */
    askedFor: (to: string): readonly Asked[] => asked.filter((message) => message.to === to),
    /** All calls. */
    asked: asked as readonly Asked[],
    report: (message: Asked, url: string, status: ReportStatus, forged = false) =>
      speeches[message.double].report(message, url, status, forged),
    async stop(): Promise<void> {
      held.resolve()
      await Promise.all(servers.map((server) => server.stop(true)))
    },
  }
}

export const providerNames = ['twilio', 'vonage', 'msg91', 'sns', 'aws-sms', 'webhook'] as const

const json = { 'content-type': 'application/json' }

function must(isTrue: boolean, what: string): void {
  if (!isTrue) throw new Error(`wrong: ${what}`)
}

function mustBe(given: unknown, expected: object): void {
  const left = JSON.stringify(given)
  must(isDeepStrictEqual(JSON.parse(left), expected), `${left}, not ${JSON.stringify(expected)}`)
}

/** A value if it looks like this, else what it should look like. */
function like(value: unknown, pattern: RegExp): unknown {
  return typeof value === 'string' && pattern.test(value) ? value : String(pattern)
}

function basic(user: string, password: string): string {
  return `Basic ${btoa(`${user}:${password}`)}`
}

function formOf(headers: Headers, body: string): Record<string, string | undefined> {
  const type = headers.get('content-type') ?? ''
  must(type.startsWith('application/x-www-form-urlencoded'), type)
  const fields = [...new URLSearchParams(body)]
  must(new Set(fields.map(([name]) => name)).size === fields.length, 'a field that comes twice')
  return Object.fromEntries(fields)
}

/** What Amazon's own software would have signed the call with. */
async function amazonSignature(
  { headers, host, body }: Call,
  service: 'sns' | 'sms-voice',
): Promise<string | undefined> {
  const [, year, month, day, hour, minute, second] =
    /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(headers.get('x-amz-date') ?? '') ?? []
  const at = new Date(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`)
  must(Math.abs(Date.now() - at.getTime()) < 300_000, 'x-amz-date')
  const signer = new SignatureV4({
    credentials: {
      accessKeyId: 'AKIDEXAMPLE',
      secretAccessKey: providerSecrets.aws,
      sessionToken: providerSecrets.awsSession,
    },
    region: 'ap-south-1',
    service,
    sha256: Sha256 as never,
    applyChecksum: false,
  })
  const [hostname = '', port] = host.split(':')
  const names = service === 'sns' ? ['content-type'] : ['content-type', 'x-amz-target']
  const signedHeaders = Object.fromEntries(names.map((name) => [name, headers.get(name) ?? '']))
  const request = {
    method: 'POST',
    protocol: 'http:',
    hostname,
    port: Number(port),
    path: '/',
    query: {},
    headers: { host, ...signedHeaders },
    body,
  }
  const signed = await signer.sign(request, { signingDate: at })
  return signed.headers.authorization
}

/** SHA-256, in the form that Amazon's signer requires. */
export class Sha256 {
  private readonly hash
  constructor(key?: string | ArrayBuffer | ArrayBufferView) {
    this.hash = key === undefined ? createHash('sha256') : createHmac('sha256', key as string)
  }
  update(data: string | ArrayBufferView): void {
    this.hash.update(data as string)
  }
  async digest(): Promise<Uint8Array> {
    return this.hash.digest()
  }
}
