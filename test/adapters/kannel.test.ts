import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { kannel } from '../../src/adapters/sms/kannel.ts'
import { failure } from '../../src/adapters/sms/provider.ts'
import { Settings } from '../../src/config/settings.ts'
import type { CallbackRequest, Outcome, Sms } from '../../src/domain/ground/providers.ts'
import {
  anySms,
  patienceMs,
  providerTools,
  type Reply,
  startProviderDouble,
} from '../support/provider-server.ts'

const sms: Sms = { ...anySms, text: '123456 is your Acme code.\n\n@shop.example #123456' }

const template = {
  key: 'OTP',
  variables: { otp: '123456' },
  id: '1107457532145798767',
  entityId: '1101456324675322134',
}

/** The response of Kannel's smsbox. */
function says(status: number, text: string): Reply {
  return () => new Response(text, { status, headers: { 'content-type': 'text/html' } })
}

let smsbox: ReturnType<typeof startProviderDouble>

beforeEach(() => {
  smsbox = startProviderDouble(says(202, '0: Accepted for delivery'))
})

afterEach(async () => {
  await smsbox.stop()
})

function environment(): Record<string, string> {
  return {
    KANNEL_URL: smsbox.url,
    KANNEL_USERNAME: 'otpost',
    KANNEL_PASSWORD: 'canary-secret',
    KANNEL_FROM: 'ACMEIN',
  }
}

function provider(env: Readonly<Record<string, string>> = {}) {
  const settings = new Settings({ ...environment(), ...env })
  const make = kannel.configure(settings, 'plain')
  expect(settings.problems).toEqual([])
  return make(providerTools)
}

/** Sends one SMS and checks that the outcome reveals nothing confidential. */
async function send(
  fields: Partial<Sms> = {},
  { env = {}, timeoutMs = patienceMs }: { env?: Readonly<Record<string, string>>; timeoutMs?: number } = {},
): Promise<Outcome> {
  const outcome = await provider(env).send({ ...sms, ...fields }, timeoutMs)
  expect(JSON.stringify(outcome)).not.toMatch(/canary|123456|9198|Acme|otpost/)
  return outcome
}

/** The X-Kannel headers of the only call. */
function kannelHeaders(): Record<string, string> {
  const headers = [...smsbox.onlyCall().headers].filter(([name]) => name.startsWith('x-kannel-'))
  return Object.fromEntries(headers.map(([name, value]) => [name.slice('x-kannel-'.length), value]))
}

describe('the request', () => {
  test('is a POST of the text, with all other fields in headers', async () => {
    expect(await send()).toEqual({ kind: 'accepted' })
    const { method, path, headers, body } = smsbox.onlyCall()
    expect(method).toBe('POST')
    expect(path).toBe('/cgi-bin/sendsms')
    expect(headers.get('content-type')).toBe('text/plain; charset=utf-8')
    expect(body).toBe(sms.text)
    expect(kannelHeaders()).toEqual({
      username: 'otpost',
      password: 'canary-secret',
      from: 'ACMEIN',
      to: '919812345678',
      coding: '0',
    })
  })

  test('has the path of KANNEL_URL, if it has one', async () => {
    await send({}, { env: { KANNEL_URL: `${smsbox.url}/sms/send` } })
    expect(smsbox.onlyCall().path).toBe('/sms/send')
  })

  test.each([
    ['GSM-7', 'Grüße: 5 €', '0'],
    ['UCS-2', 'आपका कोड 123456', '2'],
    ['UCS-2', 'your gift 🎁', '2'],
  ])('has the coding of a text that is %s', async (_, text, coding) => {
    await send({ text })
    expect(smsbox.onlyCall().body).toBe(text)
    expect(kannelHeaders().coding).toBe(coding)
  })

  test.each([
    [60, '1'],
    [61, '2'],
    [300, '5'],
    [1, '1'],
  ])('has %i seconds of validity as minutes: %s', async (validitySeconds, minutes) => {
    await send({ validitySeconds })
    expect(kannelHeaders().validity).toBe(minutes)
  })

  test('has the sender of the template and the SMSC of the settings', async () => {
    await send({ senderId: 'ACMEOT' }, { env: { KANNEL_SMSC: 'dlt-operator' } })
    expect(kannelHeaders()).toMatchObject({ from: 'ACMEOT', smsc: 'dlt-operator' })
  })

  test("requests all delivery reports at the attempt's callback URL, with its percent signs doubled", async () => {
    await send({ callbackUrl: 'https://otp.example/a%20b/callbacks/kannel/x.1.token' })
    expect(kannelHeaders()).toMatchObject({
      'dlr-mask': '31',
      'dlr-url':
        'https://otp.example/a%%20b/callbacks/kannel/x.1.token?type=%d&answer=%k&error=%#smpp#dlr_err#',
    })
  })

  test.each([
    [{ ...template }, '?smpp?PE_ID=1101456324675322134&TEMPLATE_ID=1107457532145798767'],
    [{ ...template, entityId: null }, '?smpp?TEMPLATE_ID=1107457532145798767'],
    [{ ...template, id: null }, '?smpp?PE_ID=1101456324675322134'],
    [{ ...template, id: null, entityId: null }, undefined],
    [
      { ...template, entityId: '1&x=2?smpp?y=3\r\nX-Kannel-To: 1', id: null },
      '?smpp?PE_ID=1%26x%3D2%3Fsmpp%3Fy%3D3%0D%0AX-Kannel-To%3A+1',
    ],
  ])('on the template route has the DLT ids as TLVs (%#)', async (given, metaData) => {
    await send({ route: 'template', template: given })
    expect(kannelHeaders()['meta-data']).toBe(metaData as string)
  })

  test('has the TLV names of the settings', async () => {
    await send(
      { route: 'template', template },
      { env: { KANNEL_ENTITY_TLV: 'dlt-pe', KANNEL_TEMPLATE_TLV: 'dlt-te' } },
    )
    expect(kannelHeaders()['meta-data']).toBe('?smpp?dlt-pe=1101456324675322134&dlt-te=1107457532145798767')
  })

  test.each([
    ['a line break', 'ACME\r\nX-Kannel-To: 1'],
    ['a line feed', 'ACME\nIN'],
    ['another alphabet', 'АСМЕ'],
    ['a NUL', 'ACME\0'],
  ])('is not sent for a sender with %s', async (_, senderId) => {
    expect(await send({ senderId })).toEqual(failure('content', 'unprintable header'))
    expect(smsbox.received).toEqual([])
  })

  // Kannel splits receivers at spaces.
  test.each(['919812345678 919812345679', '+919812345678', '', '919812345678\r\nX-Kannel-From: EVIL'])(
    'is not sent to %p',
    async (to) => {
      expect(await send({ to })).toEqual(failure('recipient', 'not digits'))
      expect(smsbox.received).toEqual([])
    },
  )
})

describe('the response', () => {
  test.each<[number, string, Outcome]>([
    [202, '0: Accepted for delivery', { kind: 'accepted' }],
    [202, '0: Accepted for delivery\n', { kind: 'accepted' }],
    [202, '3: Queued for later delivery', failure('unknown', 'queued')],
    [202, 'Sent.', failure('unknown', 'not confirmed')],
    [202, 'Sent. Message splits: 2', failure('unknown', 'HTTP 202')],
    [202, '0: Accepted', failure('unknown', 'HTTP 202')],
    [202, '0: Accepted for delivery, or not', failure('unknown', 'HTTP 202')],
    [202, '', failure('unknown', 'HTTP 202')],
    [202, '{"error":"canary 919812345678"}', failure('unknown', 'HTTP 202')],
    [200, '0: Accepted for delivery', failure('unknown', 'HTTP 200')],
    [
      400,
      'Number(s) has/have been denied by white- and/or black-lists.',
      failure('recipient', 'denied number'),
    ],
    [400, 'Sender missing and no global set, rejected', failure('content', 'no sender')],
    [400, 'Charset or body misformed, rejected', failure('content', 'misformed body')],
    [400, 'DLR-URL field misformed, rejected', failure('content', 'misformed DLR-URL')],
    [400, 'Missing receiver(s) number(s), rejected', failure('content', 'HTTP 400')],
    [400, 'Coding field misformed, rejected', failure('content', 'HTTP 400')],
    [400, 'Invalid content-type', failure('content', 'HTTP 400')],
    [400, 'canary 919812345678', failure('content', 'HTTP 400')],
    [415, 'Unsupported content-type, rejected', failure('content', 'HTTP 415')],
    [403, 'Authorization failed for sendsms', failure('account', 'authorization failed')],
    [403, 'Not routable. Do not try again.', failure('content', 'not routable')],
    [403, 'canary', failure('account', 'HTTP 403')],
    [404, 'Unknown request.', failure('account', 'HTTP 404')],
    [302, '', failure('account', 'HTTP 302')],
    [429, '', failure('retryable', 'HTTP 429')],
    [500, 'Sending failed.', failure('unknown', 'HTTP 500')],
    [502, '<html>canary</html>', failure('unknown', 'HTTP 502')],
    [503, 'Temporal failure, try again later.', failure('retryable', 'HTTP 503')],
    [503, '0: Accepted for delivery', failure('retryable', 'HTTP 503')],
  ])('%i %p has the right outcome', async (status, text, outcome) => {
    smsbox.answer(says(status, text))
    expect(await send()).toEqual(outcome)
    expect(smsbox.received).toHaveLength(1)
  })

  test.each<[string, Outcome]>([
    ['202 Accepted', failure('unknown', 'HTTP 202')],
    ['401 Unauthorized', failure('account', 'HTTP 401')],
    ['503 Service Unavailable', failure('retryable', 'HTTP 503')],
  ])('of %s with an incomplete body is classified by its status alone', async (status, outcome) => {
    for (const [header, begun] of [
      ['content-length: 24', '0: Accep'],
      ['transfer-encoding: chunked', '8\r\n0: Accep\r\n'],
    ]) {
      const broken = Bun.listen({
        hostname: '127.0.0.1',
        port: 0,
        socket: {
          data: (socket) => {
            socket.end(`HTTP/1.1 ${status}\r\n${header}\r\n\r\n${begun}`)
          },
        },
      })
      expect(await send({}, { env: { KANNEL_URL: `http://127.0.0.1:${broken.port}` } })).toEqual(outcome)
      broken.stop(true)
    }
  })
})

describe('a delivery report', () => {
  const read = (query: string) => {
    const url = `https://otp.example/callbacks/kannel/x.1.token?${query}`
    const call: CallbackRequest = {
      url,
      fields: Object.fromEntries(new URL(url).searchParams),
      headers: {},
      body: new Uint8Array(),
    }
    return provider().deliveryReports?.read(call)
  }

  test('comes to a callback URL that only its message had', () => {
    expect(provider().deliveryReports?.namedBy).toBe('attempt')
  })

  test.each<[string, string, string | null]>([
    ['type=1&answer=id%3A0000efc1&error=%03%00%00', 'delivered', null],
    ['type=1&answer=id%3A0000efc1&error=%03%02d', 'delivered', null],
    ['type=4&answer=id%3A0000efc1&error=%03%00%00', 'pending', null],
    ['type=8&answer=ACK%2F&error=', 'pending', null],
    ['type=2&answer=id%3A0000efc1&error=%03%00%00', 'failed', 'type 2'],
    ['type=2&answer=id%3A0000efc1&error=', 'failed', 'type 2'],
    ['type=2&answer=id%3A0000efc1&error=%03%02d', 'failed', 'err 612'],
    ['type=2&answer=id%3A0000efc1&error=%03%02%80', 'failed', 'err 640'],
    ['type=2&answer=id%3A0000efc1&error=%03%00+', 'failed', 'err 32'],
    ['type=2&answer=id%3A0000efc1&error=canary', 'failed', 'type 2'],
    ['type=34&answer=id%3A0000efc1&error=%03%00%00', 'failed', 'expired'],
    ['type=66&answer=id%3A0000efc1&error=', 'failed', 'type 66'],
    ['type=16&answer=NACK%2F0x0000000b%2FInvalid&error=', 'failed', '0x0000000b'],
    ['type=16&answer=NACK%2FRetries&error=', 'failed', 'retries exceeded'],
    ['type=16&answer=NACK%2Fvalidity&error=', 'failed', 'expired'],
    ['type=16&answer=NACK%2F919812345678&error=', 'failed', 'type 16'],
    ['type=16&answer=canary&error=', 'failed', 'type 16'],
    ['type=16', 'failed', 'type 16'],
  ])('of %s is %s, with the reason %p', (query, status, reason) => {
    expect(read(query)).toEqual([{ status: status as 'failed', reason }])
  })

  test.each(['', 'type=', 'type=0', 'type=3', 'type=%25d', 'type=delivered', 'type=1e0', 'type=01'])(
    'with %p is rejected',
    (query) => {
      expect(() => read(query)).toThrow(expect.objectContaining({ kind: 'validation_error' }))
    },
  )
})
