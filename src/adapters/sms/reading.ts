import { invalid } from '../../domain/ground/failures.ts'

export type JsonFields = Readonly<Record<string, unknown>>

export function fieldsOf(json: string): JsonFields {
  try {
    return Object(JSON.parse(json))
  } catch {
    return {}
  }
}

/** An integer that a number cannot have is its digits, since it may be an id. @throws SyntaxError */
export function exactJson(text: string): unknown {
  const exact = (_: string, value: unknown, context?: { readonly source?: string }) =>
    Number.isInteger(value) && !Number.isSafeInteger(value) ? (context?.source ?? value) : value
  // Slower by far.
  return /\d{16}/.test(text) ? JSON.parse(text, exact) : JSON.parse(text)
}

export function reportJson(body: Uint8Array | string): unknown {
  try {
    return exactJson(Buffer.from(body as Uint8Array).toString())
  } catch {
    throw invalid('The delivery report must be JSON.')
  }
}
