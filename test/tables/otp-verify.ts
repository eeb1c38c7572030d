import { credentials } from '../support/app.ts'
import { type Row, row } from '../support/rows.ts'
import { bindingRows } from './binding.ts'

/** An app with an id that a code record cannot have: its credentials are valid, but verify rejects it. */
export const colon = { appId: 'shop:1', apiKey: 'key-of-the-colon' } as const

/** The apps of the rows, as APP_CREDENTIALS. */
export const verifyCredentials = JSON.stringify({
  [credentials.appId]: credentials.apiKey,
  [colon.appId]: colon.apiKey,
  second: 'key-of-the-second',
})

/** Brands of the rows, beside acme. */
export const verifyBrands = {
  other: {},
  waiting: { status: 'pending' },
  halted: { status: 'suspended' },
} as const

const phone = '15559200001'
const email = 'unknown@example.com'
const otp = '123456'
/** The responses of /otp/verify that depend on its fields only. */
export const verifyRows: readonly Row[] = [
  // Spec 4.3, 400 validation_error.
  row('400 validation_error otp', 'no otp', { phone }),
  row('400 validation_error none', 'neither phone nor email', { otp }),
  row('400 validation_error none', 'phone and email', { phone, email, otp }),
  row('400 validation_error none', 'null phone and email', { phone: null, email: null, otp }),
  // Spec 4.3, 400 invalid_input.
  row('400 invalid_input', 'otp as a number', { phone, otp: 123456 }),
  row('400 invalid_input', 'otp as an array', { phone, otp: ['123456'] }),
  row('400 invalid_input', 'otp as an object', { phone, otp: {} }),
  row('400 invalid_input', 'otp as true', { phone, otp: true }),
  // Spec 4.3, 400 invalid_otp_format.
  row('400 invalid_otp_format', 'five digits', { phone, otp: '12345' }),
  row('400 invalid_otp_format', 'seven digits', { phone, otp: '1234567' }),
  row('400 invalid_otp_format', 'letters', { phone, otp: 'abcdef' }),
  row('400 invalid_otp_format', 'a blank in the code', { phone, otp: '123 456' }),
  row('400 invalid_otp_format', 'a line end after the code', { phone, otp: '123456\n' }),
  row('400 invalid_otp_format', 'a sign', { phone, otp: '+12345' }),
  row('400 invalid_otp_format', 'an exponent', { phone, otp: '1234e5' }),
  row('400 invalid_otp_format', 'NUL', { phone, otp: '12345\u0000' }),
  row('400 invalid_otp_format', 'digits of another script', {
    phone,
    otp: '\u0661\u0662\u0663\u0664\u0665\u0666',
  }),
  // Spec 4.3, 400 invalid_contact.
  row('400 invalid_contact', 'a phone that is too short', { phone: '123456', otp }),
  row('400 invalid_contact', 'a phone that is too long', { phone: '1234567890123456', otp }),
  row('400 invalid_contact', 'a phone of letters', { phone: 'call me', otp }),
  row('400 invalid_contact', 'an email without @', { email: 'nobody', otp }),
  row('400 invalid_contact', 'an email with two @', { email: 'a@b@example.com', otp }),
  row('400 invalid_contact', 'an email with a blank', { email: 'a b@example.com', otp }),
  // Design D55.
  row('400 validation_error proof', 'proof as text', { phone, otp, proof: 'true' }),
  row('400 validation_error proof', 'proof as a number', { email, otp, proof: 1 }),
  row('400 validation_error proof', 'proof as an array', { phone, otp, proof: [true] }),
  row('404 not_found', 'proof, without a code', { phone, otp, proof: true }),
  row('404 not_found', 'proof as null', { phone, otp, proof: null }),
  ...bindingRows.map(([field, name, fields]) =>
    row(field === null ? '404 not_found' : `400 validation_error ${field}`, name, { phone, otp, ...fields }),
  ),
  // Spec 4.3, 400 invalid_app_id.
  row('400 invalid_app_id', 'an appId with a colon', { ...colon, phone, otp }),
  // Spec 4.3, 400 brand_id_required.
  row('400 brand_id_required', 'no brandId', { brandId: undefined, phone, otp }),
  // Spec 4.3, 401 unauthorized; an appId that is not a string counts as missing (spec 5).
  row('401 unauthorized', 'no appId', { appId: undefined, phone, otp }),
  row('401 unauthorized', 'appId as a number', { appId: 5, phone, otp }),
  row('401 unauthorized', 'no apiKey', { apiKey: undefined, phone, otp }),
  // Spec 4.3, 403.
  row('403 forbidden', 'a wrong apiKey', { apiKey: 'wrong', phone, otp }),
  row('403 brand_not_approved', 'an unknown brand', { brandId: 'nobody', phone, otp }),
  row('403 brand_not_approved', 'a pending brand', { brandId: 'waiting', phone, otp }),
  row('403 brand_suspended', 'a suspended brand', { brandId: 'halted', phone, otp }),
  // Spec 4.3, 404 not_found.
  row('404 not_found', 'a phone without a code', { phone, otp }),
  row('404 not_found', 'a mailbox without a code', { email, otp }),
  // D27: a null field counts as absent.
  row('404 not_found', 'a phone with a null email', { phone, email: null, otp }),
  row('404 not_found', 'an email with a null phone', { email, phone: null, otp }),
]
