import { type MagicNumber, magicNumbers } from '../../domain/delivery/magic-numbers.ts'
import type { SmsProviderSpec } from './provider.ts'

/** Between a message to a magic number and its delivery report. */
export const reportAfterMs = 10_000

/** Stores each SMS for developers. Magic numbers fail as with a real provider. */
export const outbox: SmsProviderSpec = {
  name: 'outbox',
  routes: ['plain', 'template'],
  settings: {},
  developmentOnly: true,
  configure:
    (_, route) =>
    ({ outbox, reportLater }) => ({
      name: 'outbox',
      reportsItself: true,
      async send({ id, to, text, template, brandSlug: brandId, brandName, requestId }) {
        const magic: MagicNumber | undefined = magicNumbers[to]
        const { outcome = { kind: 'accepted' }, report } = magic ?? {}
        if (outcome.kind === 'rejected' || outcome.kind === 'retryable') return outcome
        const { key: templateKey = null, variables = null } = template ?? {}
        const about = {
          channel: 'SMS',
          to,
          route: route === 'template' ? route : 'plain',
          brandId,
          brandName,
          requestId,
        } as const
        await outbox.add({ ...about, subject: null, text, html: null, templateKey, variables })
        if (!report) return outcome
        reportLater('outbox', { ...report, providerMessageId: id }, reportAfterMs)
        return { kind: 'accepted', providerMessageId: id }
      },
    }),
}
