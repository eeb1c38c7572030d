import MailComposer from 'nodemailer/lib/mail-composer/index.js'
import type { OutboxEntry } from '../../domain/ground/ports.ts'

/** The source of a mail, as a mail server would get it. */
export async function rawMail({
  to,
  brandName,
  subject,
  text,
  html,
  createdAt,
  requestId,
}: OutboxEntry): Promise<string> {
  const mail = new MailComposer({
    from: { name: brandName ?? '', address: 'outbox@localhost' },
    to: { name: '', address: to },
    date: new Date(createdAt),
    messageId: `<${requestId}@localhost>`,
    headers: { 'X-Request-Id': requestId },
    subject: subject ?? '',
    text,
    ...(html !== null && { html }),
  })
  return (await mail.compile().build()).toString()
}
