import type { Vendor } from './vendor.ts'

/** Accepts every SMS and drops it, for load tests. */
export const discard: Vendor = {
  name: 'discard',
  routes: ['plain', 'template'],
  developmentOnly: true,
  configure: () => () => ({ name: 'discard', send: async () => ({ kind: 'accepted' }) }),
}
