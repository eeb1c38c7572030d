import { inArray } from 'drizzle-orm'
import type { Database } from './database.ts'
import { secretMarks } from './schema.ts'

/**
 * Checks that a node knows the secret by which this database's hashes were made, and notes its own.
 *
 * @param marks hashes that stand for the node's secrets, the present one first
 * @throws where it knows none of them
 */
export async function requireSecret(
  { orm, now }: Pick<Database, 'orm' | 'now'>,
  marks: readonly [string, ...string[]],
): Promise<void> {
  // Before looking, so that of nodes that begin at once with different secrets no two believe to be the first.
  const noted = await orm
    .insert(secretMarks)
    .values({ mark: marks[0], since: now() })
    .onConflictDoNothing()
    .returning({ mark: secretMarks.mark })
  const all = await orm.select().from(secretMarks)
  if (noted.length === 0 || all.length === 1 || all.some(({ mark }) => marks.slice(1).includes(mark))) return
  await orm.delete(secretMarks).where(inArray(secretMarks.mark, [marks[0]]))
  throw new Error(
    'SECRET_KEY is none of those that this database was used with: codes and limits of the other servers would not be found. Set it as they have it, the new one first and the old one after a comma where it is being replaced; or, where the old one is lost, DELETE FROM secret_marks and start again',
  )
}
