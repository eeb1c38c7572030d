import { partOf, type RelayKind, sent, verified } from './kind.ts'

/** The HTTP providers of ZITADEL for SMS and e-mail. It signs with a key that it makes, and reads the status alone. */
export const zitadel: RelayKind = {
  proof: 'zitadel',
  waitsMs: 4500,
  routes: {
    '': {
      read: ({ body }) => {
        const { recipientPhoneNumber, recipientEmailAddress } = partOf(body, 'contextInfo')
        const { oTP, code, lastPhone, lastEmail } = partOf(body, 'args')
        const email = recipientEmailAddress ?? (recipientPhoneNumber || lastPhone ? undefined : lastEmail)
        const to = email === undefined ? { phone: recipientPhoneNumber ?? lastPhone } : { email }
        // `oTP` of a sign-in, `code` of the verification of a phone number or an e-mail address.
        return { asks: 'code', ...to, code: oTP ?? code ?? null }
      },
      done: sent,
    },
    '/verified': verified,
  },
}
