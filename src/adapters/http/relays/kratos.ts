import { type RelayKind, sent, textOr, verified } from './kind.ts'

/** A channel of the courier of Ory Kratos, with the body of examples/kratos.jsonnet. The courier repeats what fails. */
export const kratos: RelayKind = {
  proof: 'authorization',
  waitsMs: 9000,
  routes: {
    '': {
      // Messages about an attempt that is not valid have no code.
      read: ({ body }) => textOr({ to: body.recipient, code: body.code, text: body.body, lang: body.lang }),
      done: sent,
    },
    '/verified': verified,
  },
}
