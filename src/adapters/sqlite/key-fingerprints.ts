import type { Database } from './database.ts'
import { keyFingerprints } from './schema.ts'

/** By which secrets the server works with this database, as a hash of each; empty where none has yet. */
export function notedFingerprints({ orm }: Pick<Database, 'orm'>): readonly string[] {
  return orm
    .select()
    .from(keyFingerprints)
    .all()
    .map(({ mark }) => mark)
}

/** Notes the secrets that a server works with, former ones included; whatever was noted before is no more. */
export function noteFingerprints(
  { orm, writer }: Pick<Database, 'orm' | 'writer'>,
  fingerprints: readonly string[],
) {
  return writer.write(() => {
    orm.delete(keyFingerprints).run()
    orm
      .insert(keyFingerprints)
      .values(fingerprints.map((mark) => ({ mark })))
      .run()
  })
}
