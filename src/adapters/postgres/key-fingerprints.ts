import type { KeyFingerprints } from '../store/store.ts'
import { raiseRevision } from './changes.ts'
import { type Database, type Orm, ormOn } from './database.ts'
import type { Queryable } from './pool.ts'
import { tables } from './schema.ts'

const { keyFingerprints } = tables

export function createKeyFingerprints({ orm, pool }: Pick<Database, 'orm' | 'pool'>): KeyFingerprints {
  return {
    noted: () => noted(orm),
    replace: (own, check) => pool.transaction((connection) => replaceFingerprints(connection, own, check)),
  }
}

export async function replaceFingerprints(
  connection: Queryable,
  own: readonly string[],
  check?: (noted: readonly string[]) => void,
): Promise<void> {
  const inside = ormOn(connection)
  // Serializes this with operators' changes.
  await raiseRevision(inside)
  check?.(await noted(inside))
  await inside.delete(keyFingerprints)
  await inside.insert(keyFingerprints).values(own.map((fingerprint) => ({ fingerprint })))
}

async function noted(orm: Orm): Promise<readonly string[]> {
  const rows = await orm.select().from(keyFingerprints)
  return rows.map(({ fingerprint }) => fingerprint)
}
