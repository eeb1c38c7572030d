import type { KeyFingerprints } from '../store/store.ts'
import type { Database } from './database.ts'
import { tables } from './schema.ts'

const { keyFingerprints } = tables

export function createKeyFingerprints({ orm, writer }: Pick<Database, 'orm' | 'writer'>): KeyFingerprints {
  const noted = () =>
    orm
      .select()
      .from(keyFingerprints)
      .all()
      .map(({ fingerprint }) => fingerprint)
  return {
    noted: async () => noted(),
    replace: (own, check) =>
      writer.write(() => {
        check?.(noted())
        orm.delete(keyFingerprints).run()
        orm
          .insert(keyFingerprints)
          .values(own.map((fingerprint) => ({ fingerprint })))
          .run()
      }),
  }
}
