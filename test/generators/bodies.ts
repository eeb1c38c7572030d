const credentials = { appId: 'demo', apiKey: 'otp_example_key' }
const caller = { ...credentials, brandId: 'acme' }
const phone = '+1 202 555 0143'
const email = 'pat@example.com'
const order = { customerName: 'Pat', orderId: 'A-1042', orderDate: '2026-03-14' }
const text = { ...caller, channel: 'SMS', to: [phone], message: 'Hello' }
const template = { ...caller, channel: 'SMS', to: [phone], templateKey: 'ORDER_PLACED', variables: order }
const html = { ...credentials, channel: 'EMAIL', to: [email], subject: 'Hello', html: '<p>Hello' }
const payment = { amount: '1250.00', currency: 'inr', payee: 'City Water' }
const { message: __, ...empty } = text
const { subject: ___, ...withoutSubject } = html
const { brandId: ____, ...withoutBrand } = text

const send: Readonly<Record<string, object>> = {
  'no recipient': caller,
  'no brand': { ...credentials, phone },
  'no such channel': { ...caller, channel: 'FAX', phone },
  'the recipient of the other channel': { ...caller, channel: 'EMAIL', phone },
  'a phone that is a number': { ...caller, phone: 12025550143 },
  'a reference that is a number': { ...caller, phone, reference: 7 },
  'a device that is a number': { ...caller, phone, deviceId: 7 },
  'trust that is text': { ...caller, phone, trustedUser: 'true' },
  'an amount that is a number': { ...caller, phone, transaction: { ...payment, amount: 1250 } },
  'a transaction without a payee': { ...caller, phone, transaction: { ...payment, payee: undefined } },
}

const request = { companyName: 'Acme', contactName: 'Sam', contactEmail: email, brandName: 'Acme' }

const withNull = {
  ...caller,
  channel: 'SMS',
  phone,
  loginId: null,
  lang: null,
  reference: null,
  purpose: null,
  transaction: null,
}

/** Bodies that the service accepts, beside the examples of the description: with null for absent fields, and with credentials in a header. */
export const rightBodies: Readonly<Record<string, readonly object[]>> = {
  sendOtp: [
    withNull,
    { ...caller, channel: 'EMAIL', email, clientIp: null, deviceId: null, trustedUser: null },
  ],
  resendOtp: [
    { ...withNull, via: null },
    { brandId: 'acme', phone },
    { ...caller, channel: null, phone },
  ],
  verifyOtp: [
    { ...caller, phone, email: null, otp: '123456', proof: null },
    { ...caller, email, otp: '123456', proof: true, purpose: 'payment', transaction: payment },
  ],
  notify: [
    { ...text, reference: null, html: null, variables: null },
    { ...withoutBrand, brandId: null, variables: { businessName: 'Acme' } },
    { ...template, variables: { ...order, businessName: null }, message: null },
    { ...template, templateKey: 'PARCEL_READY', variables: { points: 7, shop: 'Mitte' } },
    { ...template, templateKey: 'PARCEL_READY', variables: { points: '7', shop: 'Mitte' } },
    { ...html, template: null, brandId: null, lang: null },
    { ...text, async: true, expiresAt: '2026-03-14T15:09Z' },
    { ...html, async: false, expiresAt: null },
    { ...withoutSubject, subject: 'Hello', html: null, template: 'Hi', data: null },
  ],
  getMessageStatus: [{ messageRequestId: '3f2b8f0e-6c1d-4a53-9f57-0d6a2c9e41b7' }],
  requestIntegration: [{ ...request, channels: ['SMS', 'EMAIL'], website: null, useCase: null }],
}

/** Bodies that the service rejects and a generated type must reject too, by operation and reason. */
export const wrongBodies: Readonly<Record<string, Readonly<Record<string, object>>>> = {
  sendOtp: send,
  resendOtp: { ...send, 'an unknown way': { ...caller, phone, via: 'fax' } },
  verifyOtp: {
    'no recipient': { ...caller, otp: '123456' },
    'both recipients': { ...caller, phone, email, otp: '123456' },
    'no code': { ...caller, phone },
    'a code that is a number': { ...caller, phone, otp: 123456 },
    'a proof that is text': { ...caller, phone, otp: '123456', proof: 'yes' },
    'a purpose that is a number': { ...caller, phone, otp: '123456', purpose: 7 },
  },
  notify: {
    'no mode': empty,
    'two modes of SMS': { ...text, templateKey: 'ORDER_PLACED', variables: order },
    'two modes of e-mail': { ...html, template: 'Hello' },
    'a mode of the other channel': { ...html, message: 'Hello' },
    'no brand for an SMS': withoutBrand,
    'no list of recipients': { ...text, to: phone },
    'no variables': { ...template, variables: null },
    'a template without one of its variables': { ...template, variables: { ...order, orderDate: undefined } },
    'a template of codes': { ...template, templateKey: 'LOGIN_OTP', variables: {} },
    'a template that no brand has': { ...template, templateKey: 'PARCEL_LOST', variables: {} },
    'an e-mail without a subject': withoutSubject,
    'data that is no object': {
      ...withoutSubject,
      subject: 'Hello',
      html: null,
      template: 'Hi',
      data: 'Pat',
    },
    'a code': { ...text, otp: '123456' },
    'async that is text': { ...text, async: 'true' },
    'a time that is a number': { ...text, async: true, expiresAt: 1_773_500_000 },
  },
  getMessageStatus: {
    'no id': credentials,
    'an id that is a number': { ...credentials, messageRequestId: 1 },
  },
  requestIntegration: {
    'no e-mail address': { ...request, contactEmail: undefined },
    'no such channel': { ...request, channels: ['FAX'] },
    'a website that is a number': { ...request, website: 7 },
  },
}
