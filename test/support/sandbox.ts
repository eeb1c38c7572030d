import { type StartOptions, startOtpost, type TestOtpost } from '../../client/testing.ts'
import { programLine } from './program.ts'

/** A sandbox of the test's own, by the helpers that integrators have; on a machine that others use too it may start late. */
export function startSandbox(options: Omit<StartOptions, 'command'> = {}): Promise<TestOtpost> {
  return startOtpost({ startTimeoutMs: 100_000, ...options, command: programLine([]) })
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
