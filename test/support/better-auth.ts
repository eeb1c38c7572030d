import { betterAuth } from 'better-auth'
import { memoryAdapter } from 'better-auth/adapters/memory'
import { type PhoneNumberOptions, phoneNumber } from 'better-auth/plugins'
import { type OtpostPhoneOptions, otpostPhone } from 'otpost/better-auth'

const origin = 'http://localhost:3000'

/** An application with better-auth, its memory adapter, and the codes of an otpost. */
export function authWith(otpost: OtpostPhoneOptions, plugin: Partial<PhoneNumberOptions> = {}) {
  const user: { phoneNumber?: string | null; phoneNumberVerified?: boolean }[] = []
  const database = { user, session: [], account: [], verification: [] }
  const log: unknown[] = []
  const auth = betterAuth({
    baseURL: origin,
    secret: 'a secret of the test, of 32 bytes and more',
    database: memoryAdapter(database),
    emailAndPassword: { enabled: true },
    telemetry: { enabled: false },
    logger: { log: (...line) => void log.push(line) },
    plugins: [
      phoneNumber({
        ...otpostPhone(otpost),
        signUpOnVerification: { getTempEmail: (phone) => `${phone.slice(1)}@phone.invalid` },
        ...plugin,
      }),
    ],
  })

  async function post(path: string, fields: object, headers: Readonly<Record<string, string>> = {}) {
    const request = new Request(`${origin}/api/auth${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin, ...headers },
      body: JSON.stringify(fields),
    })
    const response = await auth.handler(request)
    return { status: response.status, headers: response.headers, body: await response.json() }
  }
  return {
    log,
    /** The rows of its users. A transaction of the memory adapter replaces the list. */
    users: () => database.user,
    post,
    send: (phone: string, headers = {}) => post('/phone-number/send-otp', { phoneNumber: phone }, headers),
    verify: (phone: string, code: string, fields = {}, headers = {}) =>
      post('/phone-number/verify', { phoneNumber: phone, code, ...fields }, headers),
  }
}
