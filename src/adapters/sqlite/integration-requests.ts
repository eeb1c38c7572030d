import type { IntegrationRequests } from '../../domain/platform.ts'
import type { Database } from './database.ts'
import { integrationRequests } from './schema.ts'

/** Integration requests in SQLite, kept until the operator decides. */
export function createIntegrationRequests({ orm, writer }: Database): IntegrationRequests {
  return {
    add: (request) =>
      writer.write(() => {
        orm
          .insert(integrationRequests)
          .values({ ...request, status: 'pending' })
          .run()
      }),
  }
}
