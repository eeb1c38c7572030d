import type { Vendor } from './vendor.ts'

/** Keeps each SMS for the developer to look at. */
export const outbox: Vendor = {
  name: 'outbox',
  developmentOnly: true,
  configure:
    () =>
    ({ outbox }) => ({
      name: 'outbox',
      async send(message, route) {
        const onTemplate = route === 'template' ? message.template : null
        await outbox.add({
          channel: 'SMS',
          to: message.to,
          route,
          brandId: message.brandSlug,
          brandName: message.brandName,
          subject: null,
          text: message.text,
          html: null,
          templateKey: onTemplate?.key ?? null,
          variables: onTemplate?.variables ?? null,
          requestId: message.requestId,
        })
        return { kind: 'accepted' }
      },
    }),
}
