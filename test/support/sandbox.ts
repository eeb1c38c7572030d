import { join } from 'node:path'
import { type StartOptions, startOtpost, type TestOtpost } from '../../client/testing.ts'

/** What `startOtpost` is to start here: the program that OTPOST_BINARY names, which it finds by itself, or the source. */
export const program: Pick<StartOptions, 'command'> = process.env.OTPOST_BINARY
  ? {}
  : { command: [process.execPath, join(import.meta.dir, '../../src/main.ts')] }

/** A sandbox of the test's own, by the helpers that integrators have. */
export function startSandbox(options: Omit<StartOptions, 'command'> = {}): Promise<TestOtpost> {
  return startOtpost({ ...program, ...options })
}

/** What an application that calls it has in its environment. */
export function environmentFor(otpost: TestOtpost): Record<string, string> {
  return {
    OTPOST_URL: otpost.url,
    OTPOST_APP_ID: otpost.appId,
    OTPOST_API_KEY: otpost.apiKey,
    OTPOST_BRAND_ID: otpost.brandId,
  }
}
