import { sql } from 'drizzle-orm'
import { type Database, type Orm, ormOn } from './database.ts'
import type { Queryable } from './pool.ts'
import { keyFingerprints } from './schema.ts'

/** Hashes that stand for the secrets of a process, the present one first. */
type Fingerprints = readonly [string, ...string[]]

/**
 * Checks that a process knows the secret of the server that began last, by which hashes are made; where none has yet, any
 * will do.
 *
 * @throws where it does not
 */
export async function requireSecret(
  { orm }: Pick<Database, 'orm'>,
  fingerprints: Fingerprints,
): Promise<void> {
  requireOneOf(fingerprints, await notedFingerprint(orm))
}

/**
 * The same for a server that begins, whose own secret is the one to know from then on: so one that all servers have left
 * behind is forgotten. Of those that begin at once each finds what the one before has noted.
 *
 * @throws where it does not know the one before; then nothing is changed
 */
export async function beginWithSecret(
  { orm, pool, now }: Pick<Database, 'orm' | 'pool' | 'now'>,
  fingerprints: Fingerprints,
): Promise<void> {
  // As it mostly is.
  if ((await notedFingerprint(orm)) === fingerprints[0]) return
  await pool.transaction((connection) => noteSecret(connection, fingerprints, now()))
}

/** The same within a transaction. */
export async function noteSecret(
  connection: Queryable,
  fingerprints: Fingerprints,
  now: number,
): Promise<void> {
  const inside = ormOn(connection)
  // One after another, as operators' changes go.
  await inside.execute(sql`SELECT number FROM revision WHERE id = 1 FOR UPDATE`)
  requireOneOf(fingerprints, await notedFingerprint(inside))
  await inside.delete(keyFingerprints)
  await inside.insert(keyFingerprints).values({ mark: fingerprints[0], since: now })
}

async function notedFingerprint(orm: Orm): Promise<string | undefined> {
  const [noted] = await orm.select().from(keyFingerprints)
  return noted?.mark
}

function requireOneOf(fingerprints: Fingerprints, noted: string | undefined): void {
  if (noted === undefined || fingerprints.includes(noted)) return
  throw new Error(
    'SECRET_KEY does not have the secret of the server that began last on this database: codes and limits of the others would not be found. Set it as they have it; where it is being replaced, OLD,NEW on all of them comes before NEW,OLD. Where that secret is lost or was given up, stop all servers, DELETE FROM secret_marks, and start them again',
  )
}
