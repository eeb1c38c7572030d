import { randomUUID } from 'node:crypto'
import { Elysia } from 'elysia'

/**
 * The unit of the speed of a machine: an Elysia route that parses the body, answers as a send does, and does nothing
 * else. `body` is named since Elysia leaves a body unread that no handler asks for.
 */
new Elysia()
  .get('/health', () => 'ok')
  .post('/otp/send', ({ body }) => ({
    success: typeof body === 'object' && body !== null,
    message: 'OTP sent successfully',
    expiresIn: 300,
    requestId: randomUUID(),
  }))
  .listen({ hostname: '127.0.0.1', port: Number(process.env.PORT), reusePort: false })
