import type { Recipient } from '../../domain/contact.ts'
import type { Actor } from '../../domain/operator/audit.ts'
import { auditRow } from '../store/audit.ts'
import { forgetRecipient } from '../store/forget.ts'
import type { Forgotten } from '../store/store.ts'
import { type Database, ormOn } from './database.ts'
import { attempts, audit, deliveryReports, integrationRequests, ledgers, outbox, requests } from './schema.ts'
import { changedBy } from './sweep.ts'

/** Erases a person from event log and records, beside servers that go on (`Storage.forget`). */
export async function forget(
  { orm, pool }: Pick<Database, 'orm' | 'pool'>,
  recipient: Recipient,
  subjects: readonly string[],
  by: { readonly now: number; readonly actor: Actor },
): Promise<Forgotten> {
  const forgotten = await forgetRecipient(
    {
      requests,
      attempts,
      deliveryReports,
      ledgers,
      outbox,
      integrationRequests,
      read: async (query) => {
        const rows: unknown = await orm.execute(query)
        return Array.isArray(rows) ? rows : []
      },
      change: (...statements) =>
        pool.transaction(async (connection) => {
          const changed: number[] = []
          for (const statement of statements) changed.push(await changedBy(ormOn(connection), statement))
          return changed
        }),
      audit: async (entry) => {
        await orm.insert(audit).values(auditRow(entry))
      },
    },
    recipient,
    subjects,
    by,
  )
  return { ...forgotten, traces: 'server' }
}
