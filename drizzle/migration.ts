export interface Migration {
  readonly tag: string
  /** Epoch milliseconds; strictly increasing. */
  readonly when: number
  readonly statements: readonly string[]
}

/** @param list the file to name in the error about a missing text */
export function listed(
  list: string,
  journal: { readonly entries: readonly { readonly tag: string; readonly when: number }[] },
  texts: Readonly<Record<string, string>>,
): readonly Migration[] {
  return journal.entries.map(({ tag, when }) => {
    const text = texts[tag]
    if (text === undefined) throw new Error(`${list} does not list ${tag}`)
    return { tag, when, statements: text.split('--> statement-breakpoint') }
  })
}
