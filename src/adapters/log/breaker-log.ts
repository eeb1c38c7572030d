import type { BreakerChange } from '../../domain/delivery/breaker.ts'
import type { Log } from '../../domain/ground/ports.ts'

export function breakerLog(log: Log): (change: BreakerChange) => void {
  return ({ provider, state, ...details }) => {
    if (state === 'closed') log.info({ provider }, 'circuit closed: the provider accepts messages again')
    else
      log.warn(
        { provider, ...details },
        'circuit open: the provider keeps failing; the other providers of its route are tried first',
      )
  }
}
