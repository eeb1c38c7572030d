import { type RelayKind, sent, verified } from './kind.ts'

/** The SMS authenticator stage of authentik, provider Generic: the body is the code. */
export const authentik: RelayKind = {
  proof: 'authorization',
  waitsMs: 9000,
  routes: {
    '': {
      read: ({ body: { To: phone, Body: code } }) => ({ asks: 'code', phone, code: code ?? null }),
      done: sent,
    },
    '/verified': verified,
  },
}
