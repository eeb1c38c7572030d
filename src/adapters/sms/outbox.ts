import type { SmsProviderSpec } from './provider.ts'

/** Keeps each SMS for the developer to look at. */
export const outbox: SmsProviderSpec = {
  name: 'outbox',
  routes: ['plain', 'template'],
  developmentOnly: true,
  configure:
    () =>
    ({ outbox }) => ({
      name: 'outbox',
      async send(message) {
        await outbox.add({
          channel: 'SMS',
          to: message.to,
          route: message.route,
          brandId: message.brandSlug,
          brandName: message.brandName,
          subject: null,
          text: message.text,
          html: null,
          templateKey: message.template?.key ?? null,
          variables: message.template?.variables ?? null,
          requestId: message.requestId,
        })
        return { kind: 'accepted' }
      },
    }),
}
