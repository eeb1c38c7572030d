import { and, desc, eq, gte, lt, or } from 'drizzle-orm'
import type { EventLogReader, NamedRequest } from '../../domain/events/event-log.ts'
import type { StoreDatabase } from './database.ts'
import { timeOfId } from './event-rows.ts'

/** Requests between two turns of the event loop. */
const partLength = 1000
const mostParts = 500
const mostFound = 20

/** The log has no index by reference or message ID. */
export function createIdSearch({
  orm,
  tables: { attempts, requests },
}: {
  readonly orm: StoreDatabase['orm']
  readonly tables: Pick<StoreDatabase['tables'], 'attempts' | 'requests'>
}): EventLogReader['named'] {
  async function part(name: string, from: string, before: string): Promise<NamedRequest[]> {
    const { requestId, app, at, reference, providerMessageId } = requests
    const [own, further] = await Promise.all([
      orm
        .select({ requestId, app, at, reference })
        .from(requests)
        .where(
          and(
            gte(requestId, from),
            lt(requestId, before),
            or(eq(reference, name), eq(providerMessageId, name)),
          ),
        )
        .orderBy(desc(requestId))
        .limit(mostFound),
      orm
        .select({ requestId: attempts.requestId, app: attempts.app, at: attempts.at })
        .from(attempts)
        .where(
          and(
            gte(attempts.requestId, from),
            lt(attempts.requestId, before),
            eq(attempts.providerMessageId, name),
          ),
        )
        .limit(mostFound),
    ])
    return [
      ...own.map((row) => ({ ...row, isReference: row.reference === name })),
      ...further.map((row) => ({ ...row, isReference: false })),
    ]
  }

  return async (name) => {
    const found: NamedRequest[] = []
    // Greater than every request ID.
    let before = 'g'
    for (let parts = 0; parts < mostParts && found.length < mostFound; parts++) {
      const [first] = await orm
        .select({ requestId: requests.requestId })
        .from(requests)
        .where(lt(requests.requestId, before))
        .orderBy(desc(requests.requestId))
        .limit(1)
        .offset(partLength - 1)
      found.push(...(await part(name, first?.requestId ?? '', before)))
      if (!first) return { found, since: null }
      before = first.requestId
      await new Promise((resolve) => setImmediate(resolve))
    }
    return { found, since: timeOfId(before) }
  }
}
