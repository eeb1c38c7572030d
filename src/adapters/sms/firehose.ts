import { gunzipSync } from 'node:zlib'
import { Failure, invalid } from '../../domain/ground/failures.ts'
import type { CallbackRequest, DeliveryReport, DeliveryReportReader } from '../../domain/ground/providers.ts'
import { isSame } from '../crypto/secrets.ts'

/** The setting. */
export const firehoseAccessKey = {
  unset: 'unset: the access key is not checked',
  format: 'text',
  secret: true,
  meaning: 'The access key of the Firehose stream. otpost then rejects delivery reports without it.',
} as const

const maxUnpackedBytes = 16 * 1024 * 1024

/**
 * Delivery reports that Amazon Data Firehose sends to its HTTP endpoint.
 * @param reportsOf the reports in one JSON object of a record
 */
export function firehoseReader(
  accessKey: string | undefined,
  reportsOf: (object: unknown) => readonly DeliveryReport[],
): DeliveryReportReader {
  return {
    namedBy: 'providerMessageId',
    read: (call) => readReports(call, accessKey, reportsOf),
    // After any other response Firehose retries.
    answer: (call, at) => ({ requestId: deliveryOf(call).requestId, timestamp: at }),
  }
}

function readReports(
  call: CallbackRequest,
  accessKey: string | undefined,
  reportsOf: (object: unknown) => readonly DeliveryReport[],
): readonly DeliveryReport[] {
  if (accessKey !== undefined && !isSame(call.headers['x-amz-firehose-access-key'] ?? '', accessKey)) {
    throw new Failure('forbidden', 'The access key is wrong.')
  }
  let left = maxUnpackedBytes
  return deliveryOf(call).records.flatMap((record) => {
    const { data } = Object(record)
    if (typeof data !== 'string') throw noDelivery()
    const message = unpacked(Buffer.from(data, 'base64'), left)
    left -= message.byteLength
    return objectsOf(message.toString()).flatMap(reportsOf)
  })
}

/** "HTTP endpoint delivery request and response specifications" of Firehose. */
function deliveryOf({ body }: CallbackRequest): { requestId: string; records: readonly unknown[] } {
  const text = unpacked(body, maxUnpackedBytes).toString()
  const { requestId, records } = Object(parsed(text))
  if (typeof requestId !== 'string' || !Array.isArray(records)) throw noDelivery()
  return { requestId, records }
}

/** CloudWatch Logs always compresses; Firehose only if its stream is configured so. */
function unpacked(bytes: Uint8Array, maxBytes: number): Buffer {
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return Buffer.from(bytes)
  try {
    return gunzipSync(bytes, { maxOutputLength: Math.max(1, maxBytes) })
  } catch {
    throw noDelivery()
  }
}

function objectsOf(text: string): readonly unknown[] {
  const objects: unknown[] = []
  let [start, depth, inString] = [0, 0, false]
  for (let index = 0; index < text.length; index++) {
    const character = text[index]
    if (character === '\\') index++
    else if (character === '"') inString = !inString
    else if (inString) continue
    else if (character === '{') depth++
    else if (character === '}' && --depth === 0) {
      objects.push(parsed(text.slice(start, index + 1)))
      start = index + 1
    }
  }
  if (text.slice(start).trim() !== '') throw noDelivery()
  return objects
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    throw noDelivery()
  }
}

function noDelivery(): Failure {
  return invalid('The request is not a delivery of Amazon Data Firehose.')
}
