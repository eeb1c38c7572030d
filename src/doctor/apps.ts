import { codeSettings } from '../config/server-settings.ts'
import { type Finding, found, ok, warn } from '../domain/health/problem.ts'
import type { StoredFacts } from './facts.ts'

/**
 * Design D38.
 * @param configured the apps in APP_CREDENTIALS
 * @param globalPerMinute GLOBAL_LIMIT_PER_MINUTE
 */
export function appFindings(
  { apps: stored, scopes, brands }: Pick<StoredFacts, 'apps' | 'scopes' | 'brands'>,
  configured: readonly string[],
  globalPerMinute: number,
): readonly Finding[] {
  const issued = stored.filter(({ revokedAt }) => revokedAt === null).map(({ appId }) => appId)
  const apps = [...new Set([...issued, ...configured])].sort()
  const scopeOf = new Map(scopes.map((scope) => [scope.appId, scope]))
  const ofAnyBrand = apps.filter((appId) => !scopeOf.get(appId)?.brands.length)
  const atDefault = apps.filter((appId) => scopeOf.get(appId)?.perMinute == null)
  const which = `${ofAnyBrand.length === 1 ? 'This app may' : 'These apps may'} use every brand: ${ofAnyBrand.join(', ')}.`
  const limit = `${globalPerMinute} calls a minute, by GLOBAL_LIMIT_PER_MINUTE: ${atDefault.join(', ')}.`
  return found(
    ofAnyBrand.length > 0 &&
      (brands.length > 1
        ? warn('app scopes', which, 'Run `otpost app set APPID --brand SLUG` with every brand of the app.')
        : ok('app scopes', which)),
    apps.length > 0 && ofAnyBrand.length === 0 && ok('app scopes', 'Each app is limited to its brands.'),
    atDefault.length > 0 &&
      (globalPerMinute === codeSettings.GLOBAL_LIMIT_PER_MINUTE.default
        ? warn(
            'app limits',
            `The default of ${limit}`,
            'Run `otpost app set APPID --per-minute N` with 3 times the busiest minute of logins. One login takes two calls.',
          )
        : ok('app limits', limit)),
    apps.length > 0 && atDefault.length === 0 && ok('app limits', 'Each app has its own calls per minute.'),
  )
}
