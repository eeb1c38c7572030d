import { type FailedCall, isCode, isRecipient, type RelayKind, textOr, verified } from './kind.ts'

/** The Messages API of Twilio, for programs that can be pointed at another host. */
export const twilio: RelayKind = {
  proof: 'authorization',
  waitsMs: 9000,
  routes: {
    '/2010-04-01/Accounts/:sid/Messages.json': {
      isForm: true,
      read: ({ body: { To: to, Body: text } }) => textOr({ to, code: isCode(text) ? text : undefined, text }),
      done: ({ body, account }, requestId) => ({
        status: 201,
        body: {
          sid: `SM${requestId.replaceAll('-', '')}`,
          account_sid: account,
          status: 'queued',
          to: body.To ?? null,
          from: body.From ?? null,
          body: null,
          error_code: null,
          error_message: null,
        },
      }),
    },
    '/verified': verified,
  },
  failed: (failed) => {
    const code = codeOf(failed)
    const { status, failure } = failed
    const more_info = `https://www.twilio.com/docs/errors/${code}`
    const message = failure.message.replace(/`(phone|to\[0\])`/, '`To`').replace('`message`', '`Body`')
    return { status, body: { code, message, more_info, status } }
  },
}

/** Of https://www.twilio.com/docs/api/errors */
function codeOf({ failure: { kind, details }, attempts }: FailedCall): number {
  if (kind === 'unauthorized') return 20003
  if (kind === 'rate_limited') return 20429
  if (details.reason === 'destination') return 21408
  if (isRecipient(details.field)) return 21211
  if (details.field === 'message') return 21602
  if (attempts.at(-1)?.errorClass === 'recipient') return 21614
  return kind === 'sms_failed' || kind === 'notification_failed'
    ? 30008
    : kind === 'internal_error'
      ? 20500
      : 20001
}
