import type { Config } from '../config/config.ts'
import { readConfigurationFile } from '../config/configuration-file.ts'
import { InvalidInput } from '../domain/ground/operator-error.ts'
import { type Finding, fail, ok, warn } from '../domain/health/problem.ts'
import { differencesOf } from '../domain/operator/configuration.ts'
import type { StoredFacts } from './facts.ts'

/** What differs from CONFIG_FILE. */
export function configurationFindings(
  { configuration }: Pick<StoredFacts, 'configuration'>,
  { configFile, catalog }: Pick<Config, 'configFile' | 'catalog'>,
): readonly Finding[] {
  if (configFile === undefined) return []
  try {
    const all = differencesOf(readConfigurationFile(configFile, catalog.names), configuration, false)
    const differences = all.filter(({ words }) => words)
    if (differences.length === 0) return [ok('configuration', `The configuration is that of ${configFile}.`)]
    const [first] = differences
    const further = differences.length > 1 ? `, and ${differences.length - 1} more` : ''
    return [
      warn(
        'configuration',
        `The configuration differs from ${configFile}: ${first?.words}${further}.`,
        `\`otpost apply ${configFile} --dry-run\` prints each difference, and without --dry-run makes it that of the file. A restart does so too.`,
      ),
    ]
  } catch (error) {
    if (!(error instanceof InvalidInput)) throw error
    return [fail('configuration', error.message, 'Correct the file. The server does not start with it.')]
  }
}
