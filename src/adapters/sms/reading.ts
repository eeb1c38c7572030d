import { timingSafeEqual } from 'node:crypto'
import { Failure } from '../../domain/failures.ts'

// What adapters need to read of vendors, whose answers and receipts may hold anything.

export type Fields = Readonly<Record<string, unknown>>

/** The fields of a vendor's answer; none where it is no JSON, or no object. */
export function fieldsOf(json: string): Fields {
  try {
    return Object(JSON.parse(json))
  } catch {
    return {}
  }
}

/** What a vendor reports, where it does so in JSON. */
export function reportJson(body: Uint8Array | string): unknown {
  try {
    return JSON.parse(Buffer.from(body as Uint8Array).toString())
  } catch {
    throw new Failure('validation_error', 'the receipt must be JSON')
  }
}

/** Compares what a vendor gave with what it should have been, without telling by the time taken how much was right. */
export function isSame(given: Uint8Array | string, expected: Uint8Array | string): boolean {
  const [one, other] = [Buffer.from(given as Uint8Array), Buffer.from(expected as Uint8Array)]
  return one.length === other.length && timingSafeEqual(one, other)
}
