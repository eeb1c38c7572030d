/** An action of operators or a list for them, by its name, with what is known of its fields. */
export interface Reference {
  readonly to: string
  readonly fields: Readonly<Record<string, string>>
}

/** What an operator can do next. Each adapter words the references: as a command, or as a link. */
export type Advice = readonly (string | Reference)[]

export function see(to: string, fields: Reference['fields'] = {}): Reference {
  return { to, fields }
}

/** A sentence with references. */
export function advice(texts: TemplateStringsArray, ...references: readonly (string | Reference)[]): Advice {
  return texts.flatMap((text, index) => [text, references[index] ?? ''])
}
