// The parts of prom-client's default metrics that are used one by one: together they start observers too, and tell
// of V8, which Bun is not made of.

declare module 'prom-client/lib/metrics/*.js' {
  import type { Registry } from 'prom-client'

  const register: (registry: Registry) => void
  export default register
}
