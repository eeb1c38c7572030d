import type { SmsProviderSpec } from './provider.ts'

/** Accepts every SMS and drops it, for load tests. */
export const discard: SmsProviderSpec = {
  name: 'discard',
  routes: ['plain', 'template'],
  settings: {},
  developmentOnly: true,
  configure: () => () => ({ name: 'discard', send: async () => ({ kind: 'accepted' }) }),
}
