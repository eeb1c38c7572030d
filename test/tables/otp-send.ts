import { freshEmail, freshPhone, type Row } from '../support/rows.ts'

/** Brands that the rows name, beside acme. */
export const sendBrands = {
  other: { displayName: 'Other' },
  waiting: { status: 'pending' },
  halted: { status: 'suspended' },
  logins: { displayName: 'Logins', loginIdEnabled: true },
} as const

/** What /otp/send and /otp/resend answer by their fields alone; each call makes rows with recipients of their own. */
export function sendRows(): readonly Row[] {
  const x40 = 'x'.repeat(40)
  return [
    // Spec 4.1, 200: channel is SMS unless said otherwise, and in any case of letters (D27).
    { name: 'an SMS by default', body: { phone: freshPhone() }, status: 200, error: null },
    { name: 'channel SMS', body: { channel: 'SMS', phone: freshPhone() }, status: 200, error: null },
    { name: 'channel sms', body: { channel: 'sms', phone: freshPhone() }, status: 200, error: null },
    { name: 'channel null', body: { channel: null, phone: freshPhone() }, status: 200, error: null },
    { name: 'channel EMAIL', body: { channel: 'EMAIL', email: freshEmail() }, status: 200, error: null },
    { name: 'channel Email', body: { channel: 'Email', email: freshEmail() }, status: 200, error: null },
    {
      name: 'optional fields as null',
      body: { phone: freshPhone(), email: null, loginId: null, businessName: null },
      status: 200,
      error: null,
    },
    {
      name: 'a businessName of 1 character',
      body: { phone: freshPhone(), businessName: 'x' },
      status: 200,
      error: null,
    },
    {
      name: 'a businessName that is a host, as some brands are',
      body: { phone: freshPhone(), businessName: 'Booking.com' },
      status: 200,
      error: null,
    },
    {
      name: 'a businessName of 40',
      body: { phone: freshPhone(), businessName: x40 },
      status: 200,
      error: null,
    },
    {
      name: 'a loginId that is an address',
      body: { brandId: 'logins', phone: freshPhone(), loginId: 'jo.doe@example.com' },
      status: 200,
      error: null,
    },
    {
      name: 'a loginId of 64 characters',
      body: { brandId: 'logins', phone: freshPhone(), loginId: 'x'.repeat(64) },
      status: 200,
      error: null,
    },
    { name: 'an unknown field', body: { phone: freshPhone(), colour: 'red' }, status: 200, error: null },
    // Spec 4.1, 400 validation_error.
    { name: 'no phone', body: {}, status: 400, error: 'validation_error' },
    { name: 'phone null', body: { phone: null }, status: 400, error: 'validation_error' },
    { name: 'phone empty', body: { phone: '' }, status: 400, error: 'validation_error' },
    { name: 'phone a number', body: { phone: 15550100001 }, status: 400, error: 'validation_error' },
    { name: 'phone an array', body: { phone: [freshPhone()] }, status: 400, error: 'validation_error' },
    {
      name: 'an e-mail but channel SMS',
      body: { email: freshEmail() },
      status: 400,
      error: 'validation_error',
    },
    { name: 'EMAIL without email', body: { channel: 'EMAIL' }, status: 400, error: 'validation_error' },
    {
      name: 'EMAIL with a phone only',
      body: { channel: 'EMAIL', phone: freshPhone() },
      status: 400,
      error: 'validation_error',
    },
    { name: 'email null', body: { channel: 'EMAIL', email: null }, status: 400, error: 'validation_error' },
    { name: 'email a number', body: { channel: 'EMAIL', email: 5 }, status: 400, error: 'validation_error' },
    {
      name: 'an unknown channel',
      body: { channel: 'FAX', phone: freshPhone() },
      status: 400,
      error: 'validation_error',
    },
    {
      name: 'channel a number',
      body: { channel: 1, phone: freshPhone() },
      status: 400,
      error: 'validation_error',
    },
    {
      name: 'an empty businessName',
      body: { phone: freshPhone(), businessName: '' },
      status: 400,
      error: 'validation_error',
    },
    {
      name: 'a businessName of 41',
      body: { phone: freshPhone(), businessName: `${x40}x` },
      status: 400,
      error: 'validation_error',
    },
    {
      name: 'a businessName with an address to open',
      body: { phone: freshPhone(), businessName: 'Win at https://evil.test' },
      status: 400,
      error: 'validation_error',
    },
    {
      name: 'businessName a number',
      body: { phone: freshPhone(), businessName: 5 },
      status: 400,
      error: 'validation_error',
    },
    {
      name: 'an empty loginId',
      body: { brandId: 'logins', phone: freshPhone(), loginId: '' },
      status: 400,
      error: 'validation_error',
    },
    {
      name: 'a loginId of 65 characters',
      body: { brandId: 'logins', phone: freshPhone(), loginId: 'x'.repeat(65) },
      status: 400,
      error: 'validation_error',
    },
    {
      name: 'a loginId that leads somewhere',
      body: { brandId: 'logins', phone: freshPhone(), loginId: 'jo. Unlock: https://evil.example/acme' },
      status: 400,
      error: 'validation_error',
    },
    {
      name: 'loginId a number',
      body: { brandId: 'logins', phone: freshPhone(), loginId: 5 },
      status: 400,
      error: 'validation_error',
    },
    // Spec 4.1, 400 brand_id_required; D7.
    {
      name: 'no brandId',
      body: { brandId: undefined, phone: freshPhone() },
      status: 400,
      error: 'brand_id_required',
    },
    {
      name: 'brandId null',
      body: { brandId: null, phone: freshPhone() },
      status: 400,
      error: 'brand_id_required',
    },
    {
      name: 'brandId empty',
      body: { brandId: '', phone: freshPhone() },
      status: 400,
      error: 'brand_id_required',
    },
    {
      name: 'brandId blank',
      body: { brandId: '  ', phone: freshPhone() },
      status: 400,
      error: 'brand_id_required',
    },
    {
      name: 'brandId a number',
      body: { brandId: 5, phone: freshPhone() },
      status: 400,
      error: 'brand_id_required',
    },
    {
      name: 'brandId an array',
      body: { brandId: ['acme'], phone: freshPhone() },
      status: 400,
      error: 'brand_id_required',
    },
    // Spec 4.1, 401 and 403 of credentials.
    { name: 'no appId', body: { appId: undefined, phone: freshPhone() }, status: 401, error: 'unauthorized' },
    {
      name: 'no apiKey',
      body: { apiKey: undefined, phone: freshPhone() },
      status: 401,
      error: 'unauthorized',
    },
    {
      name: 'a wrong apiKey',
      body: { apiKey: 'wrong', phone: freshPhone() },
      status: 403,
      error: 'forbidden',
    },
    // Spec 3.3 and 4.1, 403 of the brand.
    {
      name: 'an unknown brand',
      body: { brandId: 'nobody', phone: freshPhone() },
      status: 403,
      error: 'brand_not_approved',
    },
    {
      name: 'a pending brand',
      body: { brandId: 'waiting', phone: freshPhone() },
      status: 403,
      error: 'brand_not_approved',
    },
    {
      name: 'a suspended brand',
      body: { brandId: 'halted', phone: freshPhone() },
      status: 403,
      error: 'brand_suspended',
    },
    {
      name: 'EMAIL of an unknown brand',
      body: { brandId: 'nobody', channel: 'EMAIL', email: freshEmail() },
      status: 403,
      error: 'brand_not_approved',
    },
    {
      name: 'EMAIL of a suspended brand',
      body: { brandId: 'halted', channel: 'EMAIL', email: freshEmail() },
      status: 403,
      error: 'brand_suspended',
    },
  ]
}
