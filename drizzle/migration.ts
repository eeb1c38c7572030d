export interface Migration {
  readonly tag: string
  /** Epoch milliseconds; strictly increasing. */
  readonly when: number
  readonly statements: readonly string[]
}

/** @param text of the SQL file with this name */
export function migration(tag: string, when: number, text: string): Migration {
  return { tag, when, statements: text.split('--> statement-breakpoint') }
}
