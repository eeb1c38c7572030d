import { credentials } from './app.ts'

/** Many applications, so that a test may take one that no global limit of its service has counted yet. */
const applications = Array.from({ length: 1000 }, (_, index) => ({
  appId: `app${index}`,
  apiKey: `key${index}`,
}))

/** The API keys of those applications by appId, and of the application that tests call as. */
export const appKeys: Readonly<Record<string, string>> = {
  ...Object.fromEntries(applications.map(({ appId, apiKey }) => [appId, apiKey])),
  [credentials.appId]: credentials.apiKey,
}

export const manyApps = { APP_CREDENTIALS: JSON.stringify(appKeys) }

let used = 0

export function freshApp(): { appId: string; apiKey: string } {
  const application = applications[used++ % applications.length]
  if (!application) throw new Error('there are no applications')
  return application
}
