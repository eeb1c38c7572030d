import parsePhoneNumber, { AsYouType } from 'libphonenumber-js/max'

/** E.164 digits in their country's grouping, such as `+44 7911 123456`. */
export function formatPhone(digits: string): string {
  const formatted = parsePhoneNumber(`+${digits}`)?.formatInternational()
  // The parser drops a trunk prefix.
  return formatted?.replace(/\D/g, '') === digits ? formatted : `+${digits}`
}

/** The first digits of phone numbers, such as `+371 2000`. */
export function formatPrefix(digits: string): string {
  const typed = new AsYouType()
  typed.input(`+${digits}`)
  const code = typed.getCallingCode() ?? ''
  return [`+${code}`, digits.slice(code.length)].filter(Boolean).join(code === '' ? '' : ' ')
}
