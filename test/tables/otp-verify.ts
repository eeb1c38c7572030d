import { credentials } from '../support/app.ts'
import type { Row } from '../support/rows.ts'

/** An application whose id a code record can't name: credentials are valid, yet verify refuses it. */
export const colon = { appId: 'shop:1', apiKey: 'key-of-the-colon' } as const

/** The applications that the rows name, as APP_CREDENTIALS. */
export const verifyCredentials = JSON.stringify({
  [credentials.appId]: credentials.apiKey,
  [colon.appId]: colon.apiKey,
  second: 'key-of-the-second',
})

/** Brands that the rows name, beside acme. */
export const verifyBrands = {
  other: {},
  waiting: { status: 'pending' },
  halted: { status: 'suspended' },
} as const

const phone = '15559200001'
const email = 'nobody@example.com'
const otp = '123456'
/** What /otp/verify answers by its fields alone. */
export const verifyRows: readonly Row[] = [
  // Spec 4.3, 400 validation_error.
  { name: 'no otp', body: { phone }, status: 400, error: 'validation_error' },
  { name: 'neither phone nor email', body: { otp }, status: 400, error: 'validation_error' },
  { name: 'phone and email', body: { phone, email, otp }, status: 400, error: 'validation_error' },
  {
    name: 'phone and email null',
    body: { phone: null, email: null, otp },
    status: 400,
    error: 'validation_error',
  },
  // Spec 4.3, 400 invalid_input.
  { name: 'otp a number', body: { phone, otp: 123456 }, status: 400, error: 'invalid_input' },
  { name: 'otp an array', body: { phone, otp: ['123456'] }, status: 400, error: 'invalid_input' },
  { name: 'otp an object', body: { phone, otp: {} }, status: 400, error: 'invalid_input' },
  { name: 'otp true', body: { phone, otp: true }, status: 400, error: 'invalid_input' },
  // Spec 4.3, 400 invalid_otp_format.
  { name: 'five digits', body: { phone, otp: '12345' }, status: 400, error: 'invalid_otp_format' },
  { name: 'seven digits', body: { phone, otp: '1234567' }, status: 400, error: 'invalid_otp_format' },
  { name: 'letters', body: { phone, otp: 'abcdef' }, status: 400, error: 'invalid_otp_format' },
  {
    name: 'a blank in the code',
    body: { phone, otp: '123 456' },
    status: 400,
    error: 'invalid_otp_format',
  },
  { name: 'a line end', body: { phone, otp: '123456\n' }, status: 400, error: 'invalid_otp_format' },
  { name: 'a sign', body: { phone, otp: '+12345' }, status: 400, error: 'invalid_otp_format' },
  { name: 'an exponent', body: { phone, otp: '1234e5' }, status: 400, error: 'invalid_otp_format' },
  { name: 'NUL', body: { phone, otp: '12345\u0000' }, status: 400, error: 'invalid_otp_format' },
  {
    name: 'digits of another script',
    body: { phone, otp: '\u0661\u0662\u0663\u0664\u0665\u0666' },
    status: 400,
    error: 'invalid_otp_format',
  },
  // Spec 4.3, 400 invalid_contact.
  { name: 'a phone too short', body: { phone: '123456', otp }, status: 400, error: 'invalid_contact' },
  {
    name: 'a phone too long',
    body: { phone: '1234567890123456', otp },
    status: 400,
    error: 'invalid_contact',
  },
  { name: 'a phone of letters', body: { phone: 'call me', otp }, status: 400, error: 'invalid_contact' },
  { name: 'a mail without @', body: { email: 'nobody', otp }, status: 400, error: 'invalid_contact' },
  {
    name: 'a mail with two',
    body: { email: 'a@b@example.com', otp },
    status: 400,
    error: 'invalid_contact',
  },
  {
    name: 'a mail with a blank',
    body: { email: 'a b@example.com', otp },
    status: 400,
    error: 'invalid_contact',
  },
  // Spec 4.3, 400 invalid_app_id.
  { name: 'an appId with a colon', body: { ...colon, phone, otp }, status: 400, error: 'invalid_app_id' },
  // Spec 4.3, 400 brand_id_required.
  { name: 'no brandId', body: { brandId: undefined, phone, otp }, status: 400, error: 'brand_id_required' },
  // Spec 4.3, 401 unauthorized; an appId that is not a string is a missing one (spec 5).
  { name: 'no appId', body: { appId: undefined, phone, otp }, status: 401, error: 'unauthorized' },
  { name: 'appId a number', body: { appId: 5, phone, otp }, status: 401, error: 'unauthorized' },
  { name: 'no apiKey', body: { apiKey: undefined, phone, otp }, status: 401, error: 'unauthorized' },
  // Spec 4.3, 403.
  { name: 'a wrong apiKey', body: { apiKey: 'wrong', phone, otp }, status: 403, error: 'forbidden' },
  {
    name: 'an unknown brand',
    body: { brandId: 'nobody', phone, otp },
    status: 403,
    error: 'brand_not_approved',
  },
  {
    name: 'a pending brand',
    body: { brandId: 'waiting', phone, otp },
    status: 403,
    error: 'brand_not_approved',
  },
  {
    name: 'a suspended brand',
    body: { brandId: 'halted', phone, otp },
    status: 403,
    error: 'brand_suspended',
  },
  // Spec 4.3, 404 not_found.
  { name: 'a phone without a code', body: { phone, otp }, status: 404, error: 'not_found' },
  { name: 'a mailbox without a code', body: { email, otp }, status: 404, error: 'not_found' },
  // D27: a field that is null counts as absent.
  { name: 'a phone, and email null', body: { phone, email: null, otp }, status: 404, error: 'not_found' },
  { name: 'an email, and phone null', body: { email, phone: null, otp }, status: 404, error: 'not_found' },
]
