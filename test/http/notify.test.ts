import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import type { Attempt } from '../../src/domain/call.ts'
import { createTestApp, type TestApp } from '../support/app.ts'
import { startReceiver } from '../support/receiver.ts'
import {
  expectError,
  expectRow,
  expectSuccess,
  freshEmail,
  freshPhone,
  logged,
  type Row,
} from '../support/rows.ts'

const templates = ['ORDER_PLACED', 'OUT_FOR_DELIVERY', 'ORDER_DELIVERED'] as const

/** Variables that satisfy each template (D10). */
const variablesOf = {
  ORDER_PLACED: { customerName: 'Jane', orderId: 'A-1', orderDate: '2026-01-01' },
  OUT_FOR_DELIVERY: { customerName: 'Jane', orderId: 'A-1' },
  ORDER_DELIVERED: { customerName: 'Jane', orderId: 'A-1', deliveryDateTime: '2026-01-01T12:30' },
} as const

let app: TestApp

beforeAll(async () => {
  app = await createTestApp()
  await app.brand('store', { displayName: 'The Store', notifyTemplates: [...templates] })
  await app.brand('waiting', { displayName: 'Waiting Room', status: 'pending' })
  await app.brand('halted', { displayName: 'Halted', status: 'suspended' })
})
afterAll(() => app.close())

const to = ['+1 (555) 930-0001']
const legacy = { channel: 'SMS', brandId: 'store', to, message: 'Hello' }
const placed = {
  channel: 'SMS',
  brandId: 'store',
  to,
  templateKey: 'ORDER_PLACED',
  variables: variablesOf.ORDER_PLACED,
}
const delivered = {
  ...placed,
  templateKey: 'ORDER_DELIVERED',
  variables: variablesOf.ORDER_DELIVERED,
}
const html = { channel: 'EMAIL', to: ['jane@example.com'], subject: 'News', html: '<p>Hello</p>' }
const template = { channel: 'EMAIL', to: ['jane@example.com'], subject: 'News', template: 'Hello' }
const without = <Body extends object>(body: Body, field: keyof Body) => ({ ...body, [field]: undefined })
const withVariable = (name: string, value: unknown) => ({
  ...placed,
  variables: { ...placed.variables, [name]: value },
})

const tables: Readonly<Record<string, readonly Row[]>> = {
  'the channel (rules 4 and 12, D27)': [
    { name: 'missing', body: without(legacy, 'channel'), status: 400, error: 'validation_error' },
    { name: 'null', body: { ...legacy, channel: null }, status: 400, error: 'validation_error' },
    { name: 'FAX', body: { ...legacy, channel: 'FAX' }, status: 400, error: 'invalid_channel' },
    { name: 'SMS in lower case', body: { ...legacy, channel: 'sms' }, status: 200, error: null },
    { name: 'EMAIL in mixed case', body: { ...html, channel: 'eMail' }, status: 200, error: null },
  ],
  'the recipients (rule 12, D4, D5, D6)': [
    { name: 'SMS without to', body: without(legacy, 'to'), status: 400, error: 'validation_error' },
    { name: 'SMS to null', body: { ...legacy, to: null }, status: 400, error: 'validation_error' },
    {
      name: 'SMS to a string',
      body: { ...legacy, to: '15559300001' },
      status: 400,
      error: 'validation_error',
    },
    {
      name: 'SMS to an object',
      body: { ...legacy, to: { 0: '15559300001' } },
      status: 400,
      error: 'validation_error',
    },
    { name: 'SMS to nobody', body: { ...legacy, to: [] }, status: 400, error: 'validation_error' },
    {
      name: 'SMS to a number',
      body: { ...legacy, to: [15559300001] },
      status: 400,
      error: 'validation_error',
    },
    { name: 'SMS to [null]', body: { ...legacy, to: [null] }, status: 400, error: 'validation_error' },
    { name: 'SMS to no phone', body: { ...legacy, to: ['call me'] }, status: 400, error: 'validation_error' },
    {
      name: 'SMS to a phone and none',
      body: { ...legacy, to: [...to, '123456'] },
      status: 400,
      error: 'validation_error',
    },
    {
      name: 'SMS to 101',
      body: { ...legacy, to: Array(101).fill(to[0]) },
      status: 400,
      error: 'validation_error',
    },
    { name: 'SMS to 100', body: { ...legacy, to: Array(100).fill(to[0]) }, status: 200, error: null },
    { name: 'EMAIL without to', body: without(html, 'to'), status: 400, error: 'validation_error' },
    {
      name: 'EMAIL to a string',
      body: { ...html, to: 'jane@example.com' },
      status: 400,
      error: 'validation_error',
    },
    { name: 'EMAIL to nobody', body: { ...html, to: [] }, status: 400, error: 'validation_error' },
    {
      name: 'EMAIL to no address',
      body: { ...html, to: ['nobody'] },
      status: 400,
      error: 'validation_error',
    },
    { name: 'EMAIL to a phone', body: { ...html, to }, status: 400, error: 'validation_error' },
    {
      name: 'EMAIL to 101',
      body: { ...html, to: Array(101).fill('jane@example.com') },
      status: 400,
      error: 'validation_error',
    },
  ],
  'legacy SMS (rules 1, 2 and 8, D4)': [
    { name: 'with a message', body: legacy, status: 200, error: null },
    { name: 'with templateKey null', body: { ...legacy, templateKey: null }, status: 200, error: null },
    { name: 'of 1,600 characters', body: { ...legacy, message: 'm'.repeat(1600) }, status: 200, error: null },
    {
      name: 'of 1,601',
      body: { ...legacy, message: 'm'.repeat(1601) },
      status: 400,
      error: 'validation_error',
    },
    { name: 'without a message', body: without(legacy, 'message'), status: 400, error: 'validation_error' },
    { name: 'with an empty one', body: { ...legacy, message: '' }, status: 400, error: 'validation_error' },
    { name: 'with message null', body: { ...legacy, message: null }, status: 400, error: 'validation_error' },
    {
      name: 'with message a number',
      body: { ...legacy, message: 5 },
      status: 400,
      error: 'validation_error',
    },
    {
      name: 'with message and templateKey',
      body: { ...placed, message: 'Hello' },
      status: 400,
      error: 'validation_error',
    },
    {
      name: 'of the brand that businessName names',
      body: { ...legacy, brandId: undefined, variables: { businessName: 'the store' } },
      status: 200,
      error: null,
    },
    { name: 'with otp', body: { ...legacy, otp: '123456' }, status: 400, error: 'validation_error' },
  ],
  'the brand of an SMS (rule 8, D7, D9)': [
    {
      name: 'neither brandId nor businessName',
      body: without(legacy, 'brandId'),
      status: 400,
      error: 'brand_id_required',
    },
    {
      name: 'the same with a template',
      body: without(placed, 'brandId'),
      status: 400,
      error: 'brand_id_required',
    },
    { name: 'brandId null', body: { ...legacy, brandId: null }, status: 400, error: 'brand_id_required' },
    { name: 'brandId a number', body: { ...legacy, brandId: 5 }, status: 400, error: 'brand_id_required' },
    { name: 'brandId in other letters', body: { ...legacy, brandId: ' STORE ' }, status: 200, error: null },
    {
      name: 'an unknown brand',
      body: { ...legacy, brandId: 'nobody' },
      status: 403,
      error: 'brand_not_approved',
    },
    {
      name: 'a pending brand',
      body: { ...legacy, brandId: 'waiting' },
      status: 403,
      error: 'brand_not_approved',
    },
    {
      name: 'a suspended brand',
      body: { ...legacy, brandId: 'halted' },
      status: 403,
      error: 'brand_suspended',
    },
    {
      name: 'businessName as display name',
      body: { ...without(placed, 'brandId'), variables: { ...placed.variables, businessName: 'The Store' } },
      status: 200,
      error: null,
    },
    {
      name: 'businessName as slug, in capitals',
      body: { ...without(placed, 'brandId'), variables: { ...placed.variables, businessName: 'STORE' } },
      status: 200,
      error: null,
    },
    {
      name: 'businessName of nobody',
      body: { ...without(placed, 'brandId'), variables: { ...placed.variables, businessName: 'Nobody' } },
      status: 403,
      error: 'brand_not_approved',
    },
    {
      name: 'businessName of a pending brand',
      body: {
        ...without(placed, 'brandId'),
        variables: { ...placed.variables, businessName: 'Waiting Room' },
      },
      status: 403,
      error: 'brand_not_approved',
    },
    {
      name: 'businessName of a suspended brand',
      body: { ...without(placed, 'brandId'), variables: { ...placed.variables, businessName: 'Halted' } },
      status: 403,
      error: 'brand_suspended',
    },
    {
      name: 'brandId and its display name',
      body: withVariable('businessName', 'the STORE'),
      status: 200,
      error: null,
    },
    { name: 'brandId and its slug', body: withVariable('businessName', 'store'), status: 200, error: null },
    {
      name: 'brandId and the name of another brand',
      body: withVariable('businessName', 'Acme'),
      status: 400,
      error: 'unsupported_business',
    },
    {
      name: 'brandId and the name of nobody',
      body: withVariable('businessName', 'Nobody'),
      status: 400,
      error: 'unsupported_business',
    },
    {
      name: 'brandId, and businessName null',
      body: withVariable('businessName', null),
      status: 200,
      error: null,
    },
    {
      name: 'a template not enabled',
      body: { ...placed, brandId: 'acme' },
      status: 403,
      error: 'template_not_allowed',
    },
  ],
  'template SMS (rules 2, 5, 6 and 7)': [
    ...templates.map((templateKey) => ({
      name: templateKey,
      body: { ...placed, templateKey, variables: variablesOf[templateKey] },
      status: 200,
      error: null,
    })),
    { name: 'with message null', body: { ...placed, message: null }, status: 200, error: null },
    {
      name: 'LOGIN_OTP',
      body: { ...placed, templateKey: 'LOGIN_OTP' },
      status: 400,
      error: 'otp_template_not_supported',
    },
    {
      name: 'LOGIN_OTP_WITH_ID',
      body: { ...placed, templateKey: 'LOGIN_OTP_WITH_ID' },
      status: 400,
      error: 'otp_template_not_supported',
    },
    {
      name: 'LOGIN_OTP of a brand without templates',
      body: { ...placed, brandId: 'acme', templateKey: 'LOGIN_OTP' },
      status: 400,
      error: 'otp_template_not_supported',
    },
    {
      name: 'an unknown key',
      body: { ...placed, templateKey: 'BIRTHDAY' },
      status: 400,
      error: 'invalid_template',
    },
    {
      name: 'a key in lower case',
      body: { ...placed, templateKey: 'order_placed' },
      status: 400,
      error: 'invalid_template',
    },
    {
      name: 'the key __proto__',
      body: { ...placed, templateKey: '__proto__' },
      status: 400,
      error: 'invalid_template',
    },
    {
      name: 'the key constructor',
      body: { ...placed, templateKey: 'constructor' },
      status: 400,
      error: 'invalid_template',
    },
    {
      name: 'the key toString',
      body: { ...placed, templateKey: 'toString' },
      status: 400,
      error: 'invalid_template',
    },
    {
      name: 'a key that is a number',
      body: { ...placed, templateKey: 5 },
      status: 400,
      error: 'validation_error',
    },
    { name: 'no variables', body: without(placed, 'variables'), status: 400, error: 'validation_error' },
    { name: 'variables null', body: { ...placed, variables: null }, status: 400, error: 'validation_error' },
    {
      name: 'variables a string',
      body: { ...placed, variables: 'Jane' },
      status: 400,
      error: 'validation_error',
    },
    {
      name: 'variables an array',
      body: { ...placed, variables: ['Jane'] },
      status: 400,
      error: 'validation_error',
    },
    { name: 'otp at the top', body: { ...placed, otp: '123456' }, status: 400, error: 'validation_error' },
    {
      name: 'otp at the top of LOGIN_OTP',
      body: { ...placed, templateKey: 'LOGIN_OTP', otp: '123456' },
      status: 400,
      error: 'validation_error',
    },
    {
      name: 'otp among the variables',
      body: withVariable('otp', '123456'),
      status: 400,
      error: 'validation_error',
    },
    {
      name: 'a variable it does not know',
      body: withVariable('colour', { red: true }),
      status: 200,
      error: null,
    },
    { name: 'a variable of an object', body: withVariable('constructor', 'x'), status: 200, error: null },
  ],
  'missing variables (rule 7, D10)': templates.flatMap((templateKey) =>
    Object.keys(variablesOf[templateKey]).map((name) => ({
      name: `${templateKey} without ${name}`,
      body: { ...placed, templateKey, variables: { ...variablesOf[templateKey], [name]: undefined } },
      status: 400,
      error: 'missing_variable',
    })),
  ),
  'customerName (D10)': [
    { name: 'of 1 character', body: withVariable('customerName', 'J'), status: 200, error: null },
    { name: 'of 40', body: withVariable('customerName', 'J'.repeat(40)), status: 200, error: null },
    {
      name: 'of 41',
      body: withVariable('customerName', 'J'.repeat(41)),
      status: 400,
      error: 'validation_error',
    },
    { name: 'empty', body: withVariable('customerName', ''), status: 400, error: 'validation_error' },
    {
      name: 'of another script',
      body: withVariable('customerName', '\u0928\u0947\u0939\u093e'),
      status: 200,
      error: null,
    },
    { name: 'a number', body: withVariable('customerName', 5), status: 400, error: 'validation_error' },
    {
      name: 'an array',
      body: withVariable('customerName', ['Jane']),
      status: 400,
      error: 'validation_error',
    },
    {
      name: 'with a line end',
      body: withVariable('customerName', 'Jane\nDoe'),
      status: 400,
      error: 'validation_error',
    },
    {
      name: 'with NUL',
      body: withVariable('customerName', 'Jane\u0000'),
      status: 400,
      error: 'validation_error',
    },
    {
      name: 'with a URL',
      body: withVariable('customerName', 'http://evil.example'),
      status: 400,
      error: 'validation_error',
    },
    {
      name: 'with a URL within',
      body: withVariable('customerName', 'see HTTPS://evil.example'),
      status: 400,
      error: 'validation_error',
    },
    {
      name: 'with a URL without scheme',
      body: withVariable('customerName', 'www.evil.example'),
      status: 400,
      error: 'validation_error',
    },
  ],
  'orderId (D10)': [
    { name: 'of 1 character', body: withVariable('orderId', '7'), status: 200, error: null },
    { name: 'of 40', body: withVariable('orderId', 'a'.repeat(40)), status: 200, error: null },
    { name: 'of 41', body: withVariable('orderId', 'a'.repeat(41)), status: 400, error: 'validation_error' },
    { name: 'with every sign', body: withVariable('orderId', 'A1._/#-'), status: 200, error: null },
    { name: 'empty', body: withVariable('orderId', ''), status: 400, error: 'validation_error' },
    { name: 'a sign first', body: withVariable('orderId', '-A1'), status: 400, error: 'validation_error' },
    { name: 'a blank', body: withVariable('orderId', 'A 1'), status: 400, error: 'validation_error' },
    { name: 'a line end', body: withVariable('orderId', 'A1\n'), status: 400, error: 'validation_error' },
    {
      name: 'a letter of another script',
      body: withVariable('orderId', 'A\u00e9'),
      status: 400,
      error: 'validation_error',
    },
    { name: 'a number', body: withVariable('orderId', 1001), status: 400, error: 'validation_error' },
  ],
  'orderDate (D10)': [
    { name: 'a leap day', body: withVariable('orderDate', '2024-02-29'), status: 200, error: null },
    {
      name: 'a leap day of no leap year',
      body: withVariable('orderDate', '2026-02-29'),
      status: 400,
      error: 'validation_error',
    },
    {
      name: '31 April',
      body: withVariable('orderDate', '2026-04-31'),
      status: 400,
      error: 'validation_error',
    },
    {
      name: 'month 13',
      body: withVariable('orderDate', '2026-13-01'),
      status: 400,
      error: 'validation_error',
    },
    { name: 'day 0', body: withVariable('orderDate', '2026-01-00'), status: 400, error: 'validation_error' },
    {
      name: 'in American order',
      body: withVariable('orderDate', '01/31/2026'),
      status: 400,
      error: 'validation_error',
    },
    {
      name: 'without zeros',
      body: withVariable('orderDate', '2026-1-1'),
      status: 400,
      error: 'validation_error',
    },
    {
      name: 'with a time',
      body: withVariable('orderDate', '2026-01-01T00:00'),
      status: 400,
      error: 'validation_error',
    },
    { name: 'a number', body: withVariable('orderDate', 20260101), status: 400, error: 'validation_error' },
    { name: 'empty', body: withVariable('orderDate', ''), status: 400, error: 'validation_error' },
  ],
  'deliveryDateTime (D10)': [
    ...[
      '2026-01-01T12:30',
      '2026-01-01T12:30:15',
      '2026-01-01T12:30:15Z',
      '2026-01-01T12:30:15+05:30',
      '2026-01-01T12:30Z',
    ].map((value) => ({
      name: value,
      body: { ...delivered, variables: { ...delivered.variables, deliveryDateTime: value } },
      status: 200,
      error: null,
    })),
    ...[
      '2026-01-01',
      '2026-01-01T12',
      '2026-02-30T12:30',
      '2026-01-01T25:00',
      '2026-01-01T12:61',
      'tomorrow',
      '',
      5,
    ].map((value) => ({
      name: JSON.stringify(value),
      body: { ...delivered, variables: { ...delivered.variables, deliveryDateTime: value } },
      status: 400,
      error: 'validation_error',
    })),
  ],
  'e-mail (rule 3, D4)': [
    { name: 'with html', body: html, status: 200, error: null },
    { name: 'with a template', body: template, status: 200, error: null },
    { name: 'with html, and template null', body: { ...html, template: null }, status: 200, error: null },
    { name: 'with a template and data', body: { ...template, data: { a: 'b' } }, status: 200, error: null },
    { name: 'with a template, and data null', body: { ...template, data: null }, status: 200, error: null },
    {
      name: 'of an unknown brand, which is no matter',
      body: { ...html, brandId: 'nobody' },
      status: 200,
      error: null,
    },
    {
      name: 'of a suspended brand, which is no matter',
      body: { ...html, brandId: 'halted' },
      status: 200,
      error: null,
    },
    {
      name: 'with html and template',
      body: { ...html, template: 'Hello' },
      status: 400,
      error: 'validation_error',
    },
    { name: 'with neither', body: without(html, 'html'), status: 400, error: 'validation_error' },
    {
      name: 'with a message only',
      body: { ...without(html, 'html'), message: 'Hello' },
      status: 400,
      error: 'validation_error',
    },
    { name: 'without a subject', body: without(html, 'subject'), status: 400, error: 'validation_error' },
    { name: 'with an empty subject', body: { ...html, subject: '' }, status: 400, error: 'validation_error' },
    { name: 'with subject a number', body: { ...html, subject: 5 }, status: 400, error: 'validation_error' },
    { name: 'with a subject of 255', body: { ...html, subject: 's'.repeat(255) }, status: 200, error: null },
    {
      name: 'with a subject of 256',
      body: { ...html, subject: 's'.repeat(256) },
      status: 400,
      error: 'validation_error',
    },
    {
      name: 'with a line feed in the subject',
      body: { ...html, subject: 'a\nBcc: b@example.com' },
      status: 400,
      error: 'validation_error',
    },
    {
      name: 'with a carriage return in it',
      body: { ...html, subject: 'a\rb' },
      status: 400,
      error: 'validation_error',
    },
    { name: 'with empty html', body: { ...html, html: '' }, status: 400, error: 'validation_error' },
    { name: 'with html a number', body: { ...html, html: 5 }, status: 400, error: 'validation_error' },
    { name: 'with html of 200,000', body: { ...html, html: 'h'.repeat(200_000) }, status: 200, error: null },
    {
      name: 'with html of 200,001',
      body: { ...html, html: 'h'.repeat(200_001) },
      status: 400,
      error: 'validation_error',
    },
    {
      name: 'with a template of 10,000',
      body: { ...template, template: 't'.repeat(10_000) },
      status: 200,
      error: null,
    },
    {
      name: 'with a template of 10,001',
      body: { ...template, template: 't'.repeat(10_001) },
      status: 400,
      error: 'validation_error',
    },
    {
      name: 'with an empty template',
      body: { ...template, template: '' },
      status: 400,
      error: 'validation_error',
    },
    {
      name: 'with template a number',
      body: { ...template, template: 5 },
      status: 400,
      error: 'validation_error',
    },
    { name: 'with data a string', body: { ...template, data: 'x' }, status: 400, error: 'validation_error' },
    { name: 'with data an array', body: { ...template, data: [] }, status: 400, error: 'validation_error' },
    { name: 'with data a number', body: { ...template, data: 5 }, status: 400, error: 'validation_error' },
    { name: 'with otp', body: { ...html, otp: '123456' }, status: 400, error: 'validation_error' },
    {
      name: 'with otp as data',
      body: { ...template, template: '{{otp}}', data: { otp: 'x' } },
      status: 200,
      error: null,
    },
  ],
  'placeholders of an e-mail template (D11)': [
    {
      name: 'with data',
      body: { ...template, template: 'Hi {{name}}', data: { name: 'Jane' } },
      status: 200,
      error: null,
    },
    {
      name: 'without data',
      body: { ...template, template: 'Hi {{name}}' },
      status: 400,
      error: 'missing_variable',
    },
    {
      name: 'without theirs',
      body: { ...template, template: 'Hi {{name}}', data: { age: 3 } },
      status: 400,
      error: 'missing_variable',
    },
    {
      name: 'constructor',
      body: { ...template, template: '{{constructor}}', data: {} },
      status: 400,
      error: 'missing_variable',
    },
    {
      name: '__proto__',
      body: { ...template, template: '{{__proto__}}', data: {} },
      status: 400,
      error: 'missing_variable',
    },
    {
      name: 'toString',
      body: { ...template, template: '{{toString}}', data: {} },
      status: 400,
      error: 'missing_variable',
    },
  ],
  'credentials (spec 5)': [
    { name: 'SMS without appId', body: { ...legacy, appId: undefined }, status: 401, error: 'unauthorized' },
    {
      name: 'SMS without apiKey',
      body: { ...legacy, apiKey: undefined },
      status: 401,
      error: 'unauthorized',
    },
    { name: 'SMS with a wrong key', body: { ...legacy, apiKey: 'wrong' }, status: 403, error: 'forbidden' },
    { name: 'EMAIL without appId', body: { ...html, appId: undefined }, status: 401, error: 'unauthorized' },
    {
      name: 'EMAIL without apiKey',
      body: { ...html, apiKey: undefined },
      status: 401,
      error: 'unauthorized',
    },
    { name: 'EMAIL with a wrong key', body: { ...html, apiKey: 'wrong' }, status: 403, error: 'forbidden' },
  ],
}

for (const [table, rows] of Object.entries(tables)) {
  describe(`POST /notify: ${table}`, () => {
    for (const row of rows) {
      test(`${row.name}: ${row.status} ${row.error ?? ''}`, async () => {
        const answer = await app.post('/notify', row.body)
        if (row.error !== null) return expectError(answer, row.status, row.error)
        const isTemplateSms = typeof row.body.templateKey === 'string'
        expectSuccess(answer, isTemplateSms ? ['channel', 'templateKey'] : ['channel'])
        expect(answer.body.channel).toBe(String(row.body.channel).toUpperCase())
        if (isTemplateSms) expect(answer.body.templateKey).toBe(row.body.templateKey)
      })
    }
  })
}

describe('a refused notification', () => {
  test('reaches nobody, even where only one of its recipients is wrong', async () => {
    const phone = freshPhone()
    const email = freshEmail()
    await app.post('/notify', { ...legacy, to: [phone, 'call me'] })
    await app.post('/notify', { ...html, to: [email, 'nobody'] })
    expect(await app.outbox(phone)).toHaveLength(0)
    expect(await app.outbox(email)).toHaveLength(0)
  })
})

describe('an SMS', () => {
  test('is the message as it was given, to each recipient as digits (rule 10)', async () => {
    const [first, second] = [freshPhone(), freshPhone()]
    const message = 'Caf\u00e9 \ud83d\ude80 {{name}} <b>&amp;</b>'
    const answer = await app.post('/notify', { ...legacy, message, to: [`+${first}`, ` ${second} `] })
    expectRow('/notify', { status: 200, error: null }, answer)
    for (const phone of [first, second]) {
      const messages = await app.outbox(phone)
      expect(messages).toHaveLength(1)
      expect(messages[0]).toMatchObject({
        channel: 'SMS',
        to: phone,
        text: message,
        route: 'plain',
        brandId: 'store',
        requestId: answer.body.requestId,
      })
    }
  })

  test('goes to a phone as often as it is sent: the limits of OTP sends are not its own', async () => {
    const phone = freshPhone()
    for (let count = 0; count < 5; count++) {
      expectSuccess(await app.post('/notify', { ...legacy, to: [phone] }), ['channel'])
    }
    expect(await app.outbox(phone)).toHaveLength(5)
    expectSuccess(await app.post('/otp/send', { phone }), ['expiresIn'])
  })

  test('goes to a phone in national spelling with PHONE_DEFAULT_REGION (D5)', async () => {
    const indian = await createTestApp({ PHONE_DEFAULT_REGION: 'IN' })
    const answer = await indian.post('/notify', { ...legacy, brandId: 'acme', to: ['098765 43210'] })
    expectSuccess(answer, ['channel'])
    expect((await indian.outbox()).at(-1)?.to).toBe('919876543210')
    await indian.close()
  })

  for (const templateKey of templates) {
    test(`of ${templateKey} holds the order and the name of the brand`, async () => {
      const phone = freshPhone()
      await app.post('/notify', { ...placed, to: [phone], templateKey, variables: variablesOf[templateKey] })
      const text = (await app.outbox(phone)).at(-1)?.text
      expect(text).toContain('Jane')
      expect(text).toContain('A-1')
      expect(text).toContain('The Store')
      expect(text).not.toMatch(/[{}]|undefined/)
    })
  }

  test('holds variables as they were given, and none of them as a placeholder', async () => {
    const phone = freshPhone()
    const customerName = '{{orderId}} $& $1 {orderId}'
    await app.post('/notify', { ...withVariable('customerName', customerName), to: [phone] })
    expect((await app.outbox(phone)).at(-1)?.text).toContain(customerName)
  })
})

describe('a mail', () => {
  async function mailed(fields: Readonly<Record<string, unknown>>) {
    const email = freshEmail()
    expectSuccess(await app.post('/notify', { ...fields, to: [email] }), ['channel'])
    const messages = await app.outbox(email)
    expect(messages).toHaveLength(1)
    return messages[0]
  }

  test('is the HTML as it was given', async () => {
    const source = '<h1>Sale</h1><p>50&nbsp;% &amp; more {{name}}</p>'
    const mail = await mailed({ ...html, html: source })
    expect(mail).toMatchObject({ channel: 'EMAIL', subject: 'News', html: source })
  })

  test('has a text beside its HTML', async () => {
    const mail = await mailed({ ...html, html: '<h1>Sale</h1><p>Fish &amp; chips</p>' })
    expect(mail?.text).toMatch(/sale/i)
    expect(mail?.text).toContain('Fish & chips')
    expect(mail?.text).not.toContain('<p>')
  })

  test('of a template frames the subject as heading and the text', async () => {
    const mail = await mailed({ ...template, subject: 'Fish & <chips>', template: 'Fresh < frozen' })
    expect(mail?.subject).toBe('Fish & <chips>')
    expect(mail?.html).toMatch(/<h[1-6][^>]*>\s*Fish &amp; &lt;chips&gt;\s*<\/h[1-6]>/)
    expect(mail?.html).toContain('Fresh &lt; frozen')
    expect(mail?.text).toContain('Fresh < frozen')
  })

  test('of a template holds data in its placeholders, escaped', async () => {
    const mail = await mailed({
      ...template,
      template: 'Dear {{name}}, again {{name}}: {{count}}',
      data: { name: '<img src=x onerror="alert(1)"> & Co', count: 3 },
    })
    const escaped = '&lt;img src=x onerror=&quot;alert(1)&quot;&gt; &amp; Co'
    expect(mail?.html).toContain(`Dear ${escaped}, again ${escaped}: 3`)
    expect(mail?.html).not.toContain('<img')
    expect(mail?.text).toContain('Dear <img src=x onerror="alert(1)"> & Co')
  })

  test('of a template never takes data for a placeholder or a pattern', async () => {
    const mail = await mailed({
      ...template,
      template: '{{a}} {{b}}',
      data: { a: '{{b}}', b: '$& $1 $$' },
    })
    expect(mail?.html).toContain('{{b}} $&amp; $1 $$')
  })

  test('of a template shows the data no placeholder used as a table, escaped', async () => {
    const mail = await mailed({
      ...template,
      template: 'Dear {{name}}',
      data: { name: 'Used Once', 'order <id>': 'A&1', total: 12.5 },
    })
    const rest = mail?.html ?? ''
    expect(rest).toMatch(/<table/)
    expect(rest).toContain('order &lt;id&gt;')
    expect(rest).toContain('A&amp;1')
    expect(rest).toContain('12.5')
    expect(rest.split('Used Once')).toHaveLength(2)
  })

  test('goes to each recipient on its own: none sees another (rule 10)', async () => {
    const [first, second] = [freshEmail(), freshEmail()]
    expectSuccess(await app.post('/notify', { ...html, to: [first, second] }), ['channel'])
    for (const email of [first, second]) {
      expect((await app.outbox(email)).map((mail) => mail.to)).toEqual([email])
    }
  })
})

describe('over the webhook of an operator', () => {
  const receiver = startReceiver()
  afterAll(() => receiver.stop())
  let apps: TestApp[] = []
  afterEach(async () => {
    for (const open of apps) await open.close()
    apps = []
  })

  async function start(env: Readonly<Record<string, string>>, reply: Parameters<typeof receiver.answer>[0]) {
    receiver.received.length = 0
    receiver.answer(reply)
    const started = await createTestApp({
      SMS_PLAIN: 'webhook',
      SMS_TEMPLATE: 'webhook',
      ...receiver.env,
      ...env,
    })
    apps.push(started)
    await started.brand('store', { displayName: 'The Store', notifyTemplates: [...templates] })
    await started.brand('dlt', { displayName: 'Dlt', dltEnabled: true, notifyTemplates: [...templates] })
    return started
  }
  const taken = () => new Response(null, { status: 204 })
  const failed = () => new Response('secret of the gateway', { status: 500 })
  const routes = () => receiver.received.map(({ body }) => body.route)

  /** D14: template SMS choose their route by mode and brand, legacy text is always plain. */
  const modes: readonly {
    mode: string
    body: Readonly<Record<string, unknown>>
    failing: readonly string[]
    routes: readonly string[]
    status: number
  }[] = [
    { mode: 'plain', body: { ...placed, brandId: 'dlt' }, failing: [], routes: ['plain'], status: 200 },
    { mode: 'template', body: placed, failing: [], routes: ['plain'], status: 200 },
    { mode: 'template', body: { ...placed, brandId: 'dlt' }, failing: [], routes: ['template'], status: 200 },
    {
      mode: 'template',
      body: { ...placed, brandId: 'dlt' },
      failing: ['template'],
      routes: ['template'],
      status: 500,
    },
    { mode: 'template', body: { ...legacy, brandId: 'dlt' }, failing: [], routes: ['plain'], status: 200 },
    { mode: 'hybrid', body: { ...placed, brandId: 'dlt' }, failing: [], routes: ['template'], status: 200 },
    {
      mode: 'hybrid',
      body: { ...placed, brandId: 'dlt' },
      failing: ['template'],
      routes: ['template', 'plain'],
      status: 200,
    },
    {
      mode: 'hybrid',
      body: { ...placed, brandId: 'dlt' },
      failing: ['template', 'plain'],
      routes: ['template', 'plain'],
      status: 500,
    },
    {
      mode: 'hybrid',
      body: { ...legacy, brandId: 'dlt' },
      failing: ['plain'],
      routes: ['plain'],
      status: 500,
    },
  ]
  for (const row of modes) {
    const kind = 'message' in row.body ? 'legacy' : 'template'
    const failing = row.failing.length > 0 ? ` while ${row.failing.join(' and ')} fail` : ''
    test(`mode ${row.mode}, ${kind} of brand ${row.body.brandId}${failing}: by ${row.routes.join(', then ')}, ${row.status}`, async () => {
      const webhook = await start({ OTP_SMS_MODE: row.mode }, ({ body }) =>
        row.failing.includes(body.route) ? failed() : taken(),
      )
      const answer = await webhook.post('/notify', row.body)
      if (row.status === 500) expectError(answer, 500, 'notification_failed')
      else expectSuccess(answer, kind === 'legacy' ? ['channel'] : ['channel', 'templateKey'])
      expect(routes()).toEqual([...row.routes])
    })
  }

  test('the template route carries key and variables, the name of the brand among them', async () => {
    const webhook = await start({ OTP_SMS_MODE: 'template' }, taken)
    await webhook.post('/notify', { ...placed, brandId: 'dlt', to: ['+1 (555) 010-0001'] })
    expect(receiver.received[0]?.body).toMatchObject({
      to: '15550100001',
      route: 'template',
      templateKey: 'ORDER_PLACED',
      variables: { ...variablesOf.ORDER_PLACED, businessName: 'Dlt' },
      brandId: 'dlt',
    })
  })

  test('a failure names the channel and nothing of the provider (rule 11)', async () => {
    const webhook = await start({}, failed)
    const answer = await webhook.post('/notify', legacy)
    expectError(answer, 500, 'notification_failed')
    expect(answer.body.channel).toBe('SMS')
    expect(JSON.stringify(answer.body)).not.toMatch(/secret of the gateway|127\.0\.0\.1|webhook|HTTP 500/)
  })

  test('of several recipients all are tried, and the failed ones are counted (D12)', async () => {
    const phones = ['15550100001', '15550100002', '15550100003', '15550100004', '15550100005']
    const failing = ['15550100001', '15550100003']
    const webhook = await start({}, ({ body }) => (failing.includes(body.to) ? failed() : taken()))
    const answer = await webhook.post('/notify', { ...legacy, to: phones })
    expectError(answer, 500, 'notification_failed')
    expect(answer.body.message).toMatch(/\b2\b.*\b5\b/)
    expect(receiver.received.map(({ body }) => body.to).sort()).toEqual(phones)
    expect(new Set(receiver.received.map(({ body }) => body.id)).size).toBe(phones.length)
    await logged()
    const line = webhook.lines.find(
      (fields) => 'requestId' in fields && fields.requestId === answer.body.requestId,
    )
    const attempts = (line as { attempts?: readonly Attempt[] } | undefined)?.attempts ?? []
    const told = attempts.map(({ recipient, outcome }) => `${recipient} ${outcome}`).sort()
    expect(told).toEqual([
      '15*******01 retryable',
      '15*******02 accepted',
      '15*******03 retryable',
      '15*******04 accepted',
      '15*******05 accepted',
    ])
  })

  test('of several recipients who all get theirs: 200', async () => {
    const phones = Array.from({ length: 20 }, (_, index) => `155501000${10 + index}`)
    const webhook = await start({}, taken)
    expectSuccess(await webhook.post('/notify', { ...legacy, to: phones }), ['channel'])
    expect(receiver.received.map(({ body }) => body.to).sort()).toEqual(phones)
  })

  test('a time-out is a failure to the caller and unknown in the delivery log (D26)', async () => {
    const webhook = await start({ PROVIDER_TIMEOUT_MS: '50' }, () => new Promise<Response>(() => {}))
    const answer = await webhook.post('/notify', legacy)
    expectError(answer, 500, 'notification_failed')
    await logged()
    const line = webhook.lines.find(
      (fields) => 'requestId' in fields && fields.requestId === answer.body.requestId,
    )
    const attempts = (line as { attempts?: readonly { outcome: string }[] } | undefined)?.attempts
    expect(attempts?.map(({ outcome }) => outcome)).toEqual(['unknown'])
  })
})

test('a mail server that can not be reached: 500 notification_failed of channel EMAIL', async () => {
  // Nothing listens on port 1.
  const unreachable = await createTestApp({
    SMTP_URL: 'smtp://user:hush-hush@127.0.0.1:1',
    MAIL_FROM: 'a@example.com',
  })
  const answer = await unreachable.post('/notify', html)
  expectError(answer, 500, 'notification_failed')
  expect(answer.body.channel).toBe('EMAIL')
  expect(JSON.stringify(answer.body)).not.toMatch(/hush|127\.0\.0\.1|ECONNREFUSED/)
  await unreachable.close()
})
