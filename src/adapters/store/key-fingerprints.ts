import type { StoreDatabase, Tables } from './database.ts'
import { type Orm, run, type StatementSteps } from './statements.ts'
import type { KeyFingerprints } from './store.ts'

export function createKeyFingerprints({
  orm,
  tables: { keyFingerprints },
  serialTransaction,
}: Pick<StoreDatabase, 'orm' | 'tables' | 'serialTransaction'>): KeyFingerprints {
  return {
    noted: async () => (await orm.select().from(keyFingerprints)).map(({ fingerprint }) => fingerprint),
    replace: (own, check) =>
      serialTransaction((inside) => replaceFingerprints(inside, keyFingerprints, own, check)),
  }
}

/** For a transaction that is serial with operators' changes. */
export function* replaceFingerprints(
  inside: Orm,
  table: Tables['keyFingerprints'],
  own: readonly string[],
  check?: (noted: readonly string[]) => void,
): StatementSteps<void> {
  const noted = yield* run(inside.select().from(table))
  check?.(noted.map(({ fingerprint }) => fingerprint))
  yield* run<unknown>(inside.delete(table))
  for (const fingerprint of own) yield* run<unknown>(inside.insert(table).values({ fingerprint }))
}
