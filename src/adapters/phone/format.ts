import parsePhoneNumber from 'libphonenumber-js/max'

/** E.164 digits in their country's grouping, such as `+44 7911 123456`. */
export function formatPhone(digits: string): string {
  const formatted = parsePhoneNumber(`+${digits}`)?.formatInternational()
  // The parser drops a trunk prefix.
  return formatted?.replace(/\D/g, '') === digits ? formatted : `+${digits}`
}
