import type { Outbox } from '../../domain/ground/ports.ts'
import type { Mailer } from '../../domain/ground/providers.ts'

export function createOutboxMailer(outbox: Outbox): Mailer {
  return {
    name: 'outbox',
    async send({ to, subject, html, text, brandSlug: brandId, brandName, requestId }) {
      const about = { channel: 'EMAIL', to, route: null, brandId, brandName, requestId } as const
      await outbox.add({ ...about, subject, text, html, templateKey: null, variables: null })
      return { kind: 'accepted' }
    },
  }
}
