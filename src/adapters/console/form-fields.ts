/** The fields as the form showed them, from its hidden field `was`. */
export function shownIn<Fields>(form: URLSearchParams): Partial<Fields> {
  try {
    return JSON.parse(form.get('was') ?? '{}')
  } catch {
    return {}
  }
}

export function field(form: URLSearchParams, name: string): string {
  return (form.get(name) ?? '').trim()
}

/** Trimmed, without empty ones. */
export function linesOf(form: URLSearchParams, name: string): string[] {
  return field(form, name)
    .split(/[\r\n]+/)
    .map((line) => line.trim())
    .filter((line) => line !== '')
}
