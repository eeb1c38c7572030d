import { isAddress, partOf, type RelayKind, sent, verified } from './kind.ts'

/** The HTTP SMS connector of Logto, and its HTTP e-mail connector with the same body. */
export const logto: RelayKind = {
  proof: 'authorization',
  waitsMs: 9000,
  routes: {
    '': {
      read: ({ body }) => {
        const { code, locale } = partOf(body, 'payload')
        const to = isAddress(body.to) ? { email: body.to } : { phone: body.to }
        return { asks: 'code', ...to, code: code ?? null, lang: locale, clientIp: body.ip }
      },
      done: sent,
    },
    '/verified': verified,
  },
}
