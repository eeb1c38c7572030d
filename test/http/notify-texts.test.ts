import { afterEach, describe, expect, test } from 'bun:test'
import { readVariable } from '../../src/domain/operator/texts.ts'
import type { Brand } from '../../src/domain/texts/brand.ts'
import { createTestApp, type TestApp } from '../support/app.ts'
import { type NewText, setText, tester } from '../support/operator.ts'
import { accepted, policyOf, temporary, testProvider } from '../support/policy.ts'
import { expectError, expectSuccess } from '../support/rows.ts'

// Design D47: notifications in a brand's own words.

const foreign = '12025550143'
const indian = '919876543210'
const values = {
  guest: 'Ann',
  points: 1250,
  day: '2026-11-21',
  at: '2026-11-21T14:30',
  link: 'https://a.example/b',
}
const declared = ['guest:text:40', 'points:number:9999', 'day:date:40', 'at:datetime:40', 'link:url:40']
const ready = {
  key: 'TABLE_READY',
  text: '{{guest}}: {{points}} on {{day}} at {{at}}, {{link}} {{points:raw}} {{day:raw}} {{businessName}}',
  variables: declared.map(readVariable),
}
const registration = { id: null, ids: {}, senderId: null, maxLength: null }

let app: TestApp
let plain: ReturnType<typeof testProvider>
let template: ReturnType<typeof testProvider>

async function start(env: Readonly<Record<string, string>> = {}, brand: Partial<Brand> = {}): Promise<void> {
  plain = testProvider('plain')
  template = testProvider('template')
  app = await createTestApp(env, { phoneRoutes: { plain: [plain], template: [template] } })
  const notifyTemplates = ['ORDER_PLACED', 'TABLE_READY']
  await app.brand('acme', { displayName: 'Acme', notifyTemplates, ...brand })
}
afterEach(() => app.close())

const write = (text: Pick<NewText, 'key' | 'text' | 'lang' | 'variables'>, brand = 'acme') =>
  setText(app.app.context.acting(tester), { brand, channel: 'SMS', ...text })

const notify = (fields: Readonly<Record<string, unknown>> = {}) =>
  app.post('/notify', {
    channel: 'SMS',
    brandId: 'acme',
    to: [foreign],
    templateKey: 'TABLE_READY',
    variables: values,
    ...fields,
  })

const lastText = () => plain.sent.at(-1)?.text

describe("a brand's own template", () => {
  test('is sent with its values in the form of the language of the text', async () => {
    await start()
    await write(ready)
    await write({ ...ready, lang: 'de' })
    const answer = await notify()
    expectSuccess(answer, ['channel', 'templateKey'])
    expect(answer.body.templateKey).toBe('TABLE_READY')
    expect(lastText()).toBe(
      'Ann: 1,250 on 21 November 2026 at 21 November 2026, 14:30, https://a.example/b 1250 2026-11-21 Acme',
    )
    expectSuccess(await notify({ brandId: undefined, variables: { ...values, businessName: 'ACME' } }), [
      'channel',
      'templateKey',
    ])
    expect(lastText()).toEndWith(' Acme')
    expectSuccess(await notify({ lang: 'de-AT', variables: { ...values, points: '19.90', extra: {} } }), [
      'channel',
      'templateKey',
    ])
    expect(lastText()).toBe(
      'Ann: 19,90 on 21. November 2026 at 21. November 2026, 14:30, https://a.example/b 19.90 2026-11-21 Acme',
    )
  })

  test('has at most 1,600 characters with its values', async () => {
    await start()
    await write({
      key: 'LONG_NOTE',
      text: '{{note}}{{note}}',
      variables: [{ name: 'note', type: 'text', max: 1000 }],
    })
    await app.brand('acme', { displayName: 'Acme', notifyTemplates: ['LONG_NOTE'] })
    const noteOf = (length: number) =>
      notify({ templateKey: 'LONG_NOTE', variables: { note: 'x'.repeat(length) } })
    expect((await noteOf(800)).status).toBe(200)
    const long = await noteOf(801)
    expectError(long, 400, 'validation_error')
    expect(long.body.message).toContain('at most 1600 characters, but with these variables it has 1602')
  })

  test('is checked in the order of design 5, and rejected with the documented code', async () => {
    await start()
    await write(ready)
    await write({ key: 'CLOSED_TODAY', text: 'Closed.' })
    await app.brand('globex', { displayName: 'Globex', notifyTemplates: ['TABLE_READY'] })
    const { guest: _, ...without } = values
    const wrong = { ...values, guest: '' }
    const rows: readonly (readonly [Readonly<Record<string, unknown>>, number, string, string])[] = [
      [{ templateKey: 'CLOSED_TODAY', to: [] }, 403, 'template_not_allowed', 'CLOSED_TODAY'],
      [{ templateKey: 'NOPE', to: [] }, 400, 'validation_error', '`to`'],
      [{ templateKey: 'LOGIN_OTP' }, 400, 'otp_template_not_supported', ''],
      [
        { templateKey: 'NOPE', variables: {} },
        400,
        'invalid_template',
        'ORDER_DELIVERED, CLOSED_TODAY, TABLE_READY',
      ],
      [{ templateKey: 'table_ready' }, 400, 'invalid_template', 'table_ready'],
      [{ brandId: 'globex' }, 400, 'invalid_template', 'TABLE_READY'],
      [{ variables: { businessName: 'Globex' } }, 400, 'unsupported_business', 'Globex'],
      [{ variables: { ...without, points: 'x', otp: '1' } }, 400, 'missing_variable', 'guest'],
      [{ variables: { ...wrong, otp: '123456' } }, 400, 'validation_error', '`variables.otp`'],
      [
        { variables: wrong, to: ['call me'] },
        400,
        'validation_error',
        '`variables.guest` must be 1 to 40 characters',
      ],
      [
        { variables: { ...values, points: 10_000 } },
        400,
        'validation_error',
        '`variables.points` must be a number of at most 9999',
      ],
      [
        { variables: { ...values, day: '2026-02-30' } },
        400,
        'validation_error',
        '`variables.day` must be a date',
      ],
      [
        { variables: { ...values, at: '2026-11-21' } },
        400,
        'validation_error',
        '`variables.at` must be an ISO 8601',
      ],
      [
        { variables: { ...values, link: 'http://a.example' } },
        400,
        'validation_error',
        '`variables.link` must be an https',
      ],
      [{ variables: values, to: ['call me'] }, 400, 'validation_error', 'to[0]'],
    ]
    for (const [fields, status, error, words] of rows) {
      const answer = await notify(fields)
      expectError(answer, status, error)
      expect(answer.body.message).toContain(words)
    }
    expect(plain.sent).toHaveLength(0)
  })

  test('is in the catalog and in the API description as long as apps can send it', async () => {
    await start({ APP_CREDENTIALS: '{"demo":"otp_example_key"}' })
    const entry = async () => {
      const { templates } = (await app.get('/integrations/catalog')).body
      return templates.find(({ brandId }: { brandId?: string }) => brandId !== undefined)
    }
    const example = async () => {
      const { paths } = (await app.get('/openapi.json')).body
      return paths['/notify'].post.requestBody.content['application/json'].examples['acme.TABLE_READY']?.value
    }
    expect([await entry(), await example()]).toEqual([undefined, undefined])
    await write(ready)
    const { variables, ...about } = await entry()
    expect(about).toEqual({ key: 'TABLE_READY', channel: 'SMS', brandId: 'acme' })
    expect(
      variables.map(({ name, type, max, required }: Record<string, unknown>) => [name, type, max, required]),
    ).toEqual([
      ['guest', 'text', 40, true],
      ['points', 'number', 9999, true],
      ['day', 'date', 40, true],
      ['at', 'datetime', 40, true],
      ['link', 'url', 40, true],
      ['businessName', 'text', undefined, false],
    ])
    expectSuccess(await app.postRaw('/notify', await example()), ['channel', 'templateKey'])
    for (const brand of [{ status: 'suspended' }, { notifyTemplates: [] }] as const) {
      await app.brand('acme', { displayName: 'Acme', notifyTemplates: ['TABLE_READY'], ...brand })
      expect([await entry(), await example()]).toEqual([undefined, undefined])
    }
  })
})

describe('the text', () => {
  test('is that of the first preferred language, else the first stored one', async () => {
    await start({}, { lang: 'hi' })
    const own = { key: 'TABLE_READY', variables: [] }
    for (const lang of ['ta', 'pt', 'sv-SE']) await write({ ...own, lang, text: lang })
    const textFor = async (lang: unknown) => {
      expectSuccess(await notify({ lang }), ['channel', 'templateKey'])
      return lastText()
    }
    // No text is in Hindi or English, so the first stored one is the last resort.
    const rows = [
      ['ta', 'ta'],
      ['TA-in', 'ta'],
      ['pt-BR', 'pt'],
      ['sv-se', 'sv-SE'],
      ['sv', 'pt'],
      [undefined, 'pt'],
      [7, 'pt'],
      ['x y', 'pt'],
    ]
    for (const [lang, text] of rows) expect([lang, await textFor(lang)]).toEqual([lang, text])
    await write({ ...own, lang: 'en', text: 'en' })
    expect(await textFor('sv')).toBe('en')
    await write({ ...own, lang: 'hi', text: 'hi' })
    expect([await textFor('sv'), await textFor('en-GB'), await textFor(null)]).toEqual(['hi', 'en', 'hi'])
  })

  test('replaces a built-in one of its language only', async () => {
    await start()
    await write({ key: 'ORDER_PLACED', lang: 'de', text: '{{customerName}} {{orderDate}} {{orderDate:raw}}' })
    const order = {
      templateKey: 'ORDER_PLACED',
      variables: { customerName: 'Ann', orderId: 'A-1', orderDate: '2026-11-21' },
    }
    await notify({ ...order, lang: 'de' })
    expect(lastText()).toBe('Ann 21. November 2026 2026-11-21')
    await notify(order)
    expect(lastText()).toBe('Hi Ann, we received your Acme order A-1 on 21 November 2026. Thank you!')
  })

  test('is sent byte for byte', async () => {
    await start()
    const guest = '{{guest}} e\u0301 $&'
    for (const text of [
      'e\u0301 and \u00e9 and \u212b',
      'क्\u200dष नमस्ते {{guest}}',
      '  two  spaces and a last one ',
      'line\nline\r\rline\t',
      '👩\u200d👩\u200d👧 \ufe0f $& $1 \\n %s <b>&amp;</b> {{guest}}',
    ]) {
      await write({ key: 'TABLE_READY', text, variables: [{ name: 'guest', type: 'text', max: 40 }] })
      expectSuccess(await notify({ variables: { guest } }), ['channel', 'templateKey'])
      expect(Buffer.from(lastText() ?? '')).toEqual(Buffer.from(text.replaceAll('{{guest}}', () => guest)))
    }
  })
})

describe('on two routes', () => {
  const dlt: Partial<Brand> = {
    dltEnabled: true,
    entityId: '1101',
    registrations: {
      TABLE_READY: { ...registration, id: '1' },
      'TABLE_READY:hi': { ...registration, id: '2', maxLength: 40 },
    },
  }
  const hindi = 'नमस्ते {{guest}}, {{day}}'

  /** Foreign numbers take the direct route. */
  async function startWithRoutes(env: Readonly<Record<string, string>> = {}): Promise<void> {
    await start({ OTP_SMS_MODE: 'template', ...env }, dlt)
    await policyOf(app).rule('US', 'allow', { route: 'plain' })
    await write({ ...ready, text: 'Hello {{guest}}, {{day}}' })
    await write({ ...ready, lang: 'hi', text: hindi })
    await write({ ...ready, lang: 'ta', text: 'தமிழ் {{guest}}, {{day}}' })
  }

  test('each recipient gets the text of its route, with its segments', async () => {
    await startWithRoutes()
    const answer = await notify({ to: [foreign, indian], lang: 'ta' })
    expectSuccess(answer, ['channel', 'templateKey'])
    expect(plain.sent.map(({ text, template }) => ({ text, template }))).toEqual([
      { text: 'தமிழ் Ann, 21 நவம்பர், 2026', template: null },
    ])
    expect(
      template.sent.map(({ text, template }) => ({
        text,
        id: template?.id,
        values: template?.values?.day,
        variables: template?.variables.day,
      })),
    ).toEqual([
      { text: 'Hello Ann, 21 November 2026', id: '1', values: '21 November 2026', variables: '2026-11-21' },
    ])
    const { deliveries } = await app.eventsOf(answer)
    expect(deliveries.map(({ route, segments }) => `${route} ${segments?.encoding}`).sort()).toEqual([
      'plain UCS-2',
      'template GSM-7',
    ])
    await notify({ to: [indian], lang: 'hi-IN' })
    expect(template.sent.at(-1)).toMatchObject({ text: 'नमस्ते Ann, 21 नवंबर 2026', template: { id: '2' } })
  })

  test('a value that is longer than the registered text allows is refused to India, and costs nothing', async () => {
    await startWithRoutes()
    const long = { ...values, guest: 'x'.repeat(31) }
    const link = `https://a.example/${'x'.repeat(20)}`
    const rows: readonly (readonly [Readonly<Record<string, unknown>>, number])[] = [
      [{ variables: { ...values, guest: 'x'.repeat(30) } }, 200],
      [{ variables: long }, 400],
      [{ variables: long, async: true }, 400],
      [{ variables: long, to: [foreign, indian] }, 400],
      [{ variables: long, to: [foreign] }, 200],
      // The registration of the Hindi text allows 40 characters.
      [{ variables: long, lang: 'hi' }, 200],
      // The registered text does not have this variable.
      [{ variables: { ...values, link } }, 200],
    ]
    await policyOf(app).prices('1 1', '91 1')
    await policyOf(app).budget('server', '100')
    for (const [fields, status] of rows) {
      const before = await policyOf(app).spent()
      const answer = await notify({ to: [indian], ...fields })
      expect(answer.status).toBe(status)
      if (status === 200) continue
      expectError(answer, 400, 'validation_error')
      expect(answer.body.message).toContain('`variables.guest` must have at most 30 characters')
      expect(await policyOf(app).spent()).toEqual(before)
    }
    expect(plain.sent.length + template.sent.length).toBe(4)
    await app.brand('acme', { ...dlt, dltEnabled: false, notifyTemplates: ['TABLE_READY'] })
    expectSuccess(await notify({ to: [indian], variables: long }), ['channel', 'templateKey'])
  })

  test('an asynchronous notification has the texts of when it was accepted', async () => {
    await startWithRoutes()
    for (const provider of [plain, template]) provider.answer(() => temporary)
    expectSuccess(
      await notify({ to: [foreign, indian], lang: 'hi', async: true }),
      ['channel', 'recipients'],
      202,
    )
    await app.app.queue.idle()
    await write({ ...ready, lang: 'hi', text: 'later' })
    for (const provider of [plain, template]) provider.answer(() => accepted)
    app.advance(5)
    app.app.queue.tick()
    await app.app.queue.idle()
    const text = 'नमस्ते Ann, 21 नवंबर 2026'
    expect(plain.sent.map((sms) => sms.text)).toEqual([text, text])
    expect(template.sent.map((sms) => [sms.text, sms.template?.id])).toEqual([
      [text, '2'],
      [text, '2'],
    ])
  })

  test('a repeated request gets the first answer, also after a change of the text', async () => {
    await startWithRoutes()
    const ask = () =>
      app.request('POST', '/notify', {
        headers: { 'content-type': 'application/json', 'idempotency-key': 'k' },
        body: JSON.stringify({
          appId: 'shop',
          apiKey: 'key-of-the-shop',
          channel: 'SMS',
          brandId: 'acme',
          to: [foreign],
          templateKey: 'TABLE_READY',
          variables: values,
        }),
      })
    const first = await ask()
    await write({ ...ready, text: 'later' })
    const again = await ask()
    expect(again.body).toEqual(first.body)
    expect(again.headers.get('idempotency-replayed')).toBe('true')
    expect(plain.sent).toHaveLength(1)
  })
})
