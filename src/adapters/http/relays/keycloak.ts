import type { RelayKind } from './kind.ts'

/** The keycloak-phone-number plugin, which has otpost make and verify its codes. `hash` is the ID of the request that sent one. */
export const keycloak: RelayKind = {
  proof: 'authorization',
  waitsMs: 9000,
  routes: {
    '/sms/send': {
      read: ({ body }) => ({ asks: 'code', phone: body.phoneNumber, clientIp: body.ipAddress }),
      done: (_, hash) => ({ status: 200, body: { status: 'SENT', hash } }),
    },
    '/sms/validate': {
      read: ({ body }) => ({
        asks: 'verification',
        phone: body.phoneNumber,
        code: body.code,
        codeId: body.hash,
      }),
      done: () => ({ status: 200, body: { valid: true } }),
    },
  },
  failed: ({ failure: { kind, message }, status, path }) => {
    // Keycloak logs these. Its user sees that the code was not sent, or is wrong.
    if (kind === 'unauthorized' || kind === 'unavailable' || kind === 'internal_error')
      return { status, body: { error: kind } }
    if (path === '/sms/validate') return { status: 200, body: { valid: false } }
    return { status: 200, body: { status: 'ERROR', description: message.slice(0, 200) } }
  },
}
