// Single default metrics of prom-client: all together also start observers and report V8 values, which Bun
// lacks.

declare module 'prom-client/lib/metrics/*.js' {
  import type { Registry } from 'prom-client'

  const register: (registry: Registry) => void
  export default register
}
