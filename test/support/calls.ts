import { Breakers } from '../../src/domain/breaker.ts'
import type { Call } from '../../src/domain/call.ts'
import type { DeliveryPorts } from '../../src/domain/delivery.ts'
import type { Journal } from '../../src/domain/journal.ts'
import type { Clock } from '../../src/domain/ports.ts'

/** A request that has just come. */
export function newCall(properties: Partial<Omit<Call, 'trail'>> = {}): Call {
  return {
    requestId: 'request 1',
    at: 0,
    clientIp: '192.0.2.1',
    ...properties,
    trail: { limits: [], begun: 0, attempts: [] },
  }
}

/** A journal that nothing is kept in. */
export const noJournal: Journal = {
  note: () => {},
  end: () => {},
}

/** What a delivery needs besides its providers and clocks. */
export function deliveryBasics(
  stopwatch: Clock,
): Pick<DeliveryPorts, 'breakers' | 'journal' | 'segmentsOf' | 'receiptUrl'> {
  return {
    breakers: new Breakers(stopwatch),
    journal: noJournal,
    segmentsOf: () => ({ count: 1, encoding: 'GSM-7' }),
    receiptUrl: () => null,
  }
}
