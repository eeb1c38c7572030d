const currencies: ReadonlySet<string> = new Set(Intl.supportedValuesOf('currency'))

/** @param code of ISO 4217, in upper case */
export function isCurrency(code: string): boolean {
  return currencies.has(code)
}
