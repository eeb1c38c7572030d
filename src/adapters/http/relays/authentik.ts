import { isCode, type RelayKind, sent, textOr, verified } from './kind.ts'

/** The SMS authenticator stage of authentik, provider Generic: the body is the code. */
export const authentik: RelayKind = {
  proof: 'authorization',
  waitsMs: 9000,
  routes: {
    '': {
      read: ({ body: { To: to, Body: text } }) => textOr({ to, code: isCode(text) ? text : undefined, text }),
      done: sent,
    },
    '/verified': verified,
  },
}
