import { type SQL, sql } from 'drizzle-orm'

// PostgreSQL stores neither NUL nor unpaired surrogates: each becomes U+FFFD.

export function asJson(value: unknown): string {
  const text = JSON.stringify(value)
  return /\\u(?:0000|d[89a-f])/i.test(text)
    ? JSON.stringify(JSON.parse(text), (_, part) => storable(part))
    : text
}

export function storable<T>(value: T): T | string {
  return typeof value === 'string' ? value.toWellFormed().replaceAll('\0', '\ufffd') : value
}

export function storableRow<Row extends object>(row: Row): Row {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name,
      value !== null && typeof value === 'object' ? JSON.parse(asJson(value)) : storable(value),
    ]),
  ) as Row
}

/** As in `StoreDatabase`. */
export function jsonElements(json: string): SQL {
  return sql`jsonb_array_elements(${json}::jsonb) AS given (value)`
}
