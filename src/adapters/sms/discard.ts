import type { SmsProviderSpec } from './provider.ts'

export const discard: SmsProviderSpec = {
  name: 'discard',
  routes: ['plain', 'template'],
  settings: {},
  developmentOnly: true,
  configure: () => () => ({ name: 'discard', send: async () => ({ kind: 'accepted' }) }),
}
