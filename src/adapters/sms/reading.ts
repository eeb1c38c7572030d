import { invalid } from '../../domain/ground/failures.ts'

export type JsonFields = Readonly<Record<string, unknown>>

export function fieldsOf(json: string): JsonFields {
  try {
    return Object(JSON.parse(json))
  } catch {
    return {}
  }
}

export function reportJson(body: Uint8Array | string): unknown {
  try {
    return JSON.parse(Buffer.from(body as Uint8Array).toString())
  } catch {
    throw invalid('The delivery report must be JSON.')
  }
}
