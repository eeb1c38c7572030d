import { randomUUID } from 'node:crypto'
import { Elysia } from 'elysia'

/**
 * What the service is measured against: Elysia routes that parse the body and answer what the service would, and do
 * nothing else. `body` is named since Elysia leaves a body unread that no handler asks for.
 */
const parsed = (body: unknown) => typeof body === 'object' && body !== null

new Elysia()
  .get('/health', () => 'ok')
  .post('/otp/send', ({ body }) => ({
    success: parsed(body),
    message: 'OTP sent successfully',
    expiresIn: 300,
    requestId: randomUUID(),
  }))
  .post('/otp/verify/absent', ({ body, set }) => {
    set.status = 404
    return {
      success: !parsed(body),
      error: 'not_found',
      message: 'No active OTP for this contact. Request a new code.',
      requestId: randomUUID(),
    }
  })
  .post('/otp/verify/wrong', ({ body, set }) => {
    set.status = 401
    return { success: !parsed(body), error: 'mismatch', message: 'Invalid OTP', requestId: randomUUID() }
  })
  .post('/notify', ({ body }) => ({
    success: parsed(body),
    message: 'Notification sent successfully',
    channel: 'SMS',
    requestId: randomUUID(),
  }))
  .listen({ hostname: '127.0.0.1', port: Number(process.env.PORT), reusePort: false })
