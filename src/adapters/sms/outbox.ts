import type { SmsProviderSpec } from './provider.ts'

/** Stores each SMS for developers. */
export const outbox: SmsProviderSpec = {
  name: 'outbox',
  routes: ['plain', 'template'],
  settings: {},
  developmentOnly: true,
  configure:
    () =>
    ({ outbox }) => ({
      name: 'outbox',
      async send({ to, route, text, template, brandSlug: brandId, brandName, requestId }) {
        const { key: templateKey = null, variables = null } = template ?? {}
        const about = { channel: 'SMS', to, route, brandId, brandName, requestId } as const
        await outbox.add({ ...about, subject: null, text, html: null, templateKey, variables })
        return { kind: 'accepted' }
      },
    }),
}
