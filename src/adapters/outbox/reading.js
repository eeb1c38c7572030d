// @ts-check

// Values of unknown origin, read without trusting their shape.

/** @param {unknown} value @returns {Record<string, unknown>} */
export const asRecord = (value) =>
  typeof value === 'object' && value !== null ? /** @type {Record<string, unknown>} */ (value) : {}

/** @param {unknown} value */
export const asText = (value) => (typeof value === 'string' && value !== '' ? value : null)

/** What a function returns, or null if it throws. @template T @param {() => T} read */
export const attempt = (read) => {
  try {
    return read()
  } catch {
    return null
  }
}
