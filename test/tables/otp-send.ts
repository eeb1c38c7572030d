import { freshEmail, freshPhone, type Row, row } from '../support/rows.ts'
import { bindingRows } from './binding.ts'

/** Brands of the rows, beside acme. */
export const sendBrands = {
  other: { displayName: 'Other' },
  waiting: { status: 'pending' },
  halted: { status: 'suspended' },
  logins: { displayName: 'Logins', loginIdEnabled: true },
} as const

/**
 * The responses of /otp/send and /otp/resend that depend on their fields only; each call creates rows with
 * new recipients.
 */
export function sendRows(): readonly Row[] {
  const x40 = 'x'.repeat(40)
  return [
    // Spec 4.1, 200: channel defaults to SMS, and its case is ignored (D27).
    row('200', 'an SMS by default', { phone: freshPhone() }),
    row('200', 'channel SMS', { channel: 'SMS', phone: freshPhone() }),
    row('200', 'channel sms', { channel: 'sms', phone: freshPhone() }),
    row('200', 'a null channel', { channel: null, phone: freshPhone() }),
    row('200', 'channel EMAIL', { channel: 'EMAIL', email: freshEmail() }),
    row('200', 'channel Email', { channel: 'Email', email: freshEmail() }),
    row('200', 'optional fields as null', {
      phone: freshPhone(),
      email: null,
      loginId: null,
      businessName: null,
      clientIp: null,
      deviceId: null,
      trustedUser: null,
    }),
    row('200', 'a businessName of 1 character', { phone: freshPhone(), businessName: 'x' }),
    row('200', 'a businessName that is a host name, as for some brands', {
      phone: freshPhone(),
      businessName: 'Booking.com',
    }),
    row('200', 'a businessName of 40 characters', { phone: freshPhone(), businessName: x40 }),
    row('200', 'a loginId that is an e-mail address', {
      brandId: 'logins',
      phone: freshPhone(),
      loginId: 'jo.doe@example.com',
    }),
    row('200', 'a loginId of 64 characters', {
      brandId: 'logins',
      phone: freshPhone(),
      loginId: 'x'.repeat(64),
    }),
    // Design D41.
    ...['!', '~'.repeat(128), 'Zr0kTqXo1mWc7uYb'].map((deviceId) =>
      row('200', `the deviceId ${deviceId}`, { phone: freshPhone(), deviceId }),
    ),
    ...[true, false].map((trustedUser) =>
      row('200', `trustedUser ${trustedUser}`, { phone: freshPhone(), trustedUser }),
    ),
    row('200', 'the end user of an e-mail', {
      channel: 'EMAIL',
      email: freshEmail(),
      clientIp: '198.51.100.7',
      deviceId: 'device-1',
      trustedUser: true,
    }),
    ...['', ' ', 'a b', 'device\n', 'd\u00e9', '\u007f', 'x'.repeat(129), 5, true, ['device-1'], {}].map(
      (deviceId) =>
        row('400 validation_error deviceId', `the deviceId ${JSON.stringify(deviceId)}`, {
          phone: freshPhone(),
          deviceId,
        }),
    ),
    ...['true', '', 1, 0, [true], {}].map((trustedUser) =>
      row('400 validation_error trustedUser', `trustedUser ${JSON.stringify(trustedUser)}`, {
        phone: freshPhone(),
        trustedUser,
      }),
    ),
    row('400 validation_error deviceId', 'EMAIL with a wrong deviceId', {
      channel: 'EMAIL',
      email: freshEmail(),
      deviceId: '',
    }),
    row('200', 'an unknown field', { phone: freshPhone(), colour: 'red' }),
    // Spec 4.1, 400 validation_error.
    row('400 validation_error phone', 'no phone', {}),
    row('400 validation_error phone', 'a null phone', { phone: null }),
    row('400 validation_error phone', 'an empty phone', { phone: '' }),
    row('400 validation_error phone', 'phone as a number', { phone: 15550100001 }),
    row('400 validation_error phone', 'phone as an array', { phone: [freshPhone()] }),
    row('400 validation_error phone', 'an email with channel SMS', { email: freshEmail() }),
    row('400 validation_error email', 'EMAIL without email', { channel: 'EMAIL' }),
    row('400 validation_error email', 'EMAIL with a phone only', { channel: 'EMAIL', phone: freshPhone() }),
    row('400 validation_error email', 'a null email', { channel: 'EMAIL', email: null }),
    row('400 validation_error email', 'email as a number', { channel: 'EMAIL', email: 5 }),
    row('400 validation_error channel', 'an unknown channel', { channel: 'FAX', phone: freshPhone() }),
    row('400 validation_error channel', 'channel as a number', { channel: 1, phone: freshPhone() }),
    row('400 validation_error businessName', 'an empty businessName', {
      phone: freshPhone(),
      businessName: '',
    }),
    row('400 validation_error businessName', 'a businessName of 41 characters', {
      phone: freshPhone(),
      businessName: `${x40}x`,
    }),
    row('400 validation_error businessName', 'a businessName with a URL', {
      phone: freshPhone(),
      businessName: 'Win at https://evil.test',
    }),
    ...[
      'HS\u0412\u0421 Bank',
      'Acme \u03a1ay',
      'Acme \u0412\u0421\u0391',
      'HS\u200d\u0412\u0421',
      'Ac\u202eme',
      'Acme\u200b',
    ].map((businessName) =>
      row('400 validation_error businessName', `the businessName ${businessName}`, {
        phone: freshPhone(),
        businessName,
      }),
    ),
    ...[
      '\u0411\u0430\u043d\u043a Pay',
      'Caf\u00e9',
      '\u0395\u03bb\u03bb\u03ac\u03b4\u03b1',
      '\u674e\u5c0f\u9f99 Pay',
      '\u30a2\u30af\u30e1ABC',
    ].map((businessName) =>
      row('200', `the businessName ${businessName}`, { phone: freshPhone(), businessName }),
    ),
    row('400 validation_error loginId', 'a loginId of mixed scripts', {
      brandId: 'logins',
      phone: freshPhone(),
      loginId: 'p\u0430ypal',
    }),
    row('400 validation_error businessName', 'businessName as a number', {
      phone: freshPhone(),
      businessName: 5,
    }),
    row('400 validation_error loginId', 'an empty loginId', {
      brandId: 'logins',
      phone: freshPhone(),
      loginId: '',
    }),
    row('400 validation_error loginId', 'a loginId of 65 characters', {
      brandId: 'logins',
      phone: freshPhone(),
      loginId: 'x'.repeat(65),
    }),
    row('400 validation_error loginId', 'a loginId with a URL', {
      brandId: 'logins',
      phone: freshPhone(),
      loginId: 'jo. Unlock: https://evil.example/acme',
    }),
    row('400 validation_error loginId', 'loginId as a number', {
      brandId: 'logins',
      phone: freshPhone(),
      loginId: 5,
    }),
    // Design D55.
    ...bindingRows.map(([field, name, fields]) =>
      row(field === null ? '200' : `400 validation_error ${field}`, name, { phone: freshPhone(), ...fields }),
    ),
    // Spec 4.1, 400 brand_id_required; D7.
    row('400 brand_id_required', 'no brandId', { brandId: undefined, phone: freshPhone() }),
    row('400 brand_id_required', 'a null brandId', { brandId: null, phone: freshPhone() }),
    row('400 brand_id_required', 'an empty brandId', { brandId: '', phone: freshPhone() }),
    row('400 brand_id_required', 'a blank brandId', { brandId: '  ', phone: freshPhone() }),
    row('400 brand_id_required', 'brandId as a number', { brandId: 5, phone: freshPhone() }),
    row('400 brand_id_required', 'brandId as an array', { brandId: ['acme'], phone: freshPhone() }),
    // Spec 4.1, 401 and 403 of credentials.
    row('401 unauthorized', 'no appId', { appId: undefined, phone: freshPhone() }),
    row('401 unauthorized', 'no apiKey', { apiKey: undefined, phone: freshPhone() }),
    row('403 forbidden', 'a wrong apiKey', { apiKey: 'wrong', phone: freshPhone() }),
    // Spec 3.3 and 4.1, 403 of the brand.
    row('403 brand_not_approved', 'an unknown brand', { brandId: 'nobody', phone: freshPhone() }),
    row('403 brand_not_approved', 'a pending brand', { brandId: 'waiting', phone: freshPhone() }),
    row('403 brand_suspended', 'a suspended brand', { brandId: 'halted', phone: freshPhone() }),
    row('403 brand_not_approved', 'EMAIL of an unknown brand', {
      brandId: 'nobody',
      channel: 'EMAIL',
      email: freshEmail(),
    }),
    row('403 brand_suspended', 'EMAIL of a suspended brand', {
      brandId: 'halted',
      channel: 'EMAIL',
      email: freshEmail(),
    }),
  ]
}
