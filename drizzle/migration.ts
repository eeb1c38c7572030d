/** One schema change, as drizzle-kit numbered it. */
export interface Migration {
  readonly tag: string
  /** Epoch milliseconds at which it was generated; strictly increasing. */
  readonly when: number
  readonly statements: readonly string[]
}

/**
 * The migrations of a journal of drizzle-kit, in its order.
 *
 * @param list the module that lists them, for who forgets one
 * @param texts the text of each, by its tag
 */
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
