import type { Actor } from '../domain/ground/audit.ts'
import { mailRequester, type RequestMail } from '../domain/operator/request-mail.ts'
import { sendTest, type TestSend } from '../domain/operator/test-send.ts'
import type { RequestListener } from '../domain/request/request-ended.ts'
import type { Shared } from './shared.ts'

/** The messages that operators send: test messages, and e-mails to integrators. */
export function createOperatorSends(shared: Shared, ended: RequestListener) {
  return {
    sendTest: (actor: Actor, test: TestSend) => sendTest({ ...shared, ended }, actor, test),
    mailRequester: (actor: Actor, id: string, mail: RequestMail, after: number | null) =>
      mailRequester({ ...shared, actor }, id, mail, after),
  }
}
