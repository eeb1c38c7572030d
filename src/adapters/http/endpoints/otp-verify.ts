import { Type } from '@sinclair/typebox'
import { verifyOtp } from '../../../domain/otp/verify.ts'
import { maxCodeBodyBytes } from '../body.ts'
import { branded, idempotencyKey, keyed, protectedCall, protectedPost, success } from '../endpoint.ts'
import { binding, brandId, credentials, demo, email, phone, somePayment, somePhone } from '../fields.ts'
import { confirmed, optional, without } from '../schema.ts'

const otp = Type.String({
  pattern: '^[0-9]{6}$',
  description: 'The code that the recipient entered: six digits.',
})

const description =
  'True: the answer has a proof of the verification, for another service. It has the full phone number or e-mail address.'
const proof = optional(Type.Boolean({ description }))

export const otpVerifyRequest = Type.Union(
  [
    Type.Object(
      { ...credentials, brandId, phone, otp, ...binding, proof, ...without('email') },
      { title: 'PhoneOtpVerifyRequest', description: 'A code that was sent by SMS.' },
    ),
    Type.Object(
      { ...credentials, brandId, email, otp, ...binding, proof, ...without('phone') },
      { title: 'EmailOtpVerifyRequest', description: 'A code that was sent by e-mail.' },
    ),
  ],
  {
    title: 'OtpVerifyRequest',
    description: 'A code to verify, with the phone or the email that it was sent to.',
  },
)

const signedProof = Type.String({
  description:
    'Only with proof: true. A JWS (EdDSA with Ed25519) with the claims iss, aud (appId), iat, exp (10 minutes), jti (requestId), brandId, channel and to. It has purpose and transaction if the verify had them, and review: true for a review number. GET /.well-known/jwks.json has the public keys.',
})

const verified = { proof: Type.Optional(signedProof) }
export const otpVerified = confirmed('OtpVerified', verified, 'The code was correct and is consumed.')

const message = 'OTP verified successfully'

export const otpVerify = protectedPost({
  path: '/otp/verify',
  tag: 'OTP',
  id: 'verifyOtp',
  client: 'verify',
  summary: 'Verify a code',
  description:
    'Verifies the code that the recipient entered. A correct code is consumed. The third wrong attempt locks the code. The limits of the phone and the cooldown do not apply. For an expired code the answer is not_found.',
  maxBytes: maxCodeBodyBytes,
  parameters: [idempotencyKey],
  body: {
    schema: otpVerifyRequest,
    examples: {
      phone: ['Sent by SMS', { ...demo, phone: somePhone, otp: '123456' }],
      email: ['Sent by e-mail', { ...demo, email: 'pat@example.com', otp: '123456' }],
      payment: ['For a payment', { ...demo, phone: somePhone, otp: '123456', ...somePayment }],
    },
  },
  answers: { 200: success(otpVerified, { message }) },
  failures: {
    ...protectedCall,
    ...branded,
    ...keyed,
    validation_error:
      'otp is missing, not exactly one of phone and email is given, proof is not a boolean, or purpose or transaction is invalid. Also: the body is not a JSON object, or Idempotency-Key is not 1 to 255 visible ASCII characters.',
    invalid_input: 'otp is not a string.',
    invalid_otp_format: 'otp is not six digits.',
    invalid_contact: 'The phone or email is invalid.',
    invalid_app_id: 'appId has a colon, or is not 1 to 64 visible ASCII characters.',
    mismatch:
      'The code is wrong, or it was sent with another purpose or transaction. The third wrong attempt has this answer too.',
    not_found: 'There is no active code: never sent, expired, consumed or replaced.',
    max_attempts: 'The code is locked after three wrong attempts, also for the correct code. Resend.',
    rate_limited:
      'A limit of the application or the IP address is exhausted, or the recipient had too many wrong codes within a day.',
  },
  reasons: ['field', 'app_minute', 'wrong_codes', 'credentials'],
  answer: async ({ ports, context, body }) => {
    const proof = await verifyOtp(ports, context, body)
    return { success: true, message, ...(proof !== undefined && { proof }) }
  },
})
