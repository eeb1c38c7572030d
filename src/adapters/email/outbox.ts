import type { Mailer } from '../../domain/messages/providers.ts'
import type { Outbox } from '../../domain/ports.ts'

export function createOutboxMailer(outbox: Outbox): Mailer {
  return {
    name: 'outbox',
    async send({ to, subject, html, text, brandSlug, brandName, requestId }) {
      await outbox.add({
        channel: 'EMAIL',
        to,
        route: null,
        brandId: brandSlug,
        brandName,
        subject,
        text,
        html,
        templateKey: null,
        variables: null,
        requestId,
      })
      return { kind: 'accepted' }
    },
  }
}
