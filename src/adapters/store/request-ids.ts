/** The lowest ID that a request at this time may have: 48 bits of time. */
export function firstIdOf(epochMs: number): string {
  const hex = Math.max(0, Math.floor(epochMs)).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-`
}

export function timeOfId(requestId: string): number {
  return Number.parseInt(requestId.replace('-', '').slice(0, 12), 16)
}
