import type Driver from 'better-sqlite3'

/** More texts than the server has, since some depend on the number of values. */
const mostStatements = 200

/**
 * The statement of each text, since preparing it takes longer than running it. Use it at once, and do not keep it: others with
 * the same text get the same statement.
 */
export function statementsOf(driver: Driver.Database): (text: string) => Driver.Statement<unknown[]> {
  const known = new Map<string, Driver.Statement<unknown[]>>()
  return (text) => {
    let statement = known.get(text)
    if (!statement) {
      if (known.size >= mostStatements) known.clear()
      statement = driver.prepare<unknown[]>(text)
      known.set(text, statement)
    }
    return statement.reader ? statement.raw(false) : statement
  }
}
