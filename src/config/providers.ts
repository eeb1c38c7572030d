import { ProviderCatalog } from '../adapters/sms/catalog.ts'
import type { TakenNames } from '../adapters/sms/file/check.ts'
import { fileProvider } from '../adapters/sms/file/file-provider.ts'
import type { ProviderFile } from '../adapters/sms/file/format.ts'
import { providerNames } from '../adapters/sms/index.ts'
import { allSettings } from './all-settings.ts'
import { messageSettings } from './server-settings.ts'
import type { Env } from './setting-source.ts'
import { type SettingInForce, Settings } from './settings.ts'

/** What provider files cannot use. */
export const takenNames: TakenNames = {
  providers: new Set([...providerNames, 'smtp']),
  settings: new Set(allSettings.map(({ name }) => name)),
}

/** The providers of this server and of the files of PROVIDER_FILES, whose faults matter only where one is used. */
export function readCatalog(settings: Settings): ProviderCatalog {
  const { PROVIDER_FILES } = messageSettings
  const folder = settings.optional(PROVIDER_FILES)?.trim()
  try {
    return new ProviderCatalog(folder, takenNames)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? ` (${error.code})` : ''
    settings.refuse(PROVIDER_FILES.name, `names a folder that cannot be read${code}`)
    return new ProviderCatalog(undefined, takenNames)
  }
}

/** @throws ConfigError if the folder cannot be read */
export function catalogOf(env: Env): ProviderCatalog {
  const settings = new Settings(env)
  return settings.checked(readCatalog(settings))
}

/** Those of a file, as a server that used it would have them. */
export function settingsOfFile(env: Env, file: ProviderFile): readonly SettingInForce[] {
  const settings = new Settings(env)
  fileProvider(file).configure(settings, 'plain')
  return settings.inForce()
}
