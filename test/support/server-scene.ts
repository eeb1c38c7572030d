import { readConfig } from '../../src/config/config.ts'
import { openContext } from '../../src/context.ts'
import { putBrand } from '../../src/domain/operator/brands.ts'
import { migratedTestDatabase } from './database.ts'
import { tester } from './operator.ts'
import { startReceiver } from './receiver.ts'
import { startServer, type TestServer } from './server.ts'

/** A database with active brands, a gateway, and servers on them one after another. All end with the scene. */
export async function serverScene(
  env: Readonly<Record<string, string>> = {},
  brands: readonly string[] = ['acme'],
) {
  const ending = new AsyncDisposableStack()
  const database = await migratedTestDatabase()
  ending.defer(() => database.remove())
  const receiver = startReceiver()
  ending.defer(() => receiver.stop())
  const settings = {
    ...database.env,
    PROVIDER_TIMEOUT_MS: '30000',
    SMS_PLAIN: 'webhook',
    ...receiver.env,
    ...env,
  }
  const context = await openContext(readConfig(settings))
  for (const slug of brands) await putBrand(context.acting(tester), slug, { displayName: slug })
  await context.close()
  return {
    database,
    receiver,
    settings,
    /** What else ends with the scene. */
    ending,
    async start(
      more: Readonly<Record<string, string>> = {},
      ...how: [preload?: string, line?: string[]]
    ): Promise<TestServer> {
      const server = await startServer({ ...settings, ...more }, ...how)
      ending.defer(async () => void (await server.stop('SIGKILL')))
      return server
    },
    [Symbol.asyncDispose]: () => ending.disposeAsync(),
  }
}
