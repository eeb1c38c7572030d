import type { Database } from './database.ts'
import { secretMarks } from './schema.ts'

/** By which secrets the server works with this database, as a hash of each; empty where none has yet. */
export function notedMarks({ orm }: Pick<Database, 'orm'>): readonly string[] {
  return orm
    .select()
    .from(secretMarks)
    .all()
    .map(({ mark }) => mark)
}

/** Notes the secrets that a server works with, former ones included; whatever was noted before is no more. */
export function noteMarks({ orm, writer }: Pick<Database, 'orm' | 'writer'>, marks: readonly string[]) {
  return writer.write(() => {
    orm.delete(secretMarks).run()
    orm
      .insert(secretMarks)
      .values(marks.map((mark) => ({ mark })))
      .run()
  })
}
