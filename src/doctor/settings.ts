import { allSettings } from '../config/all-settings.ts'
import type { Env } from '../config/setting-source.ts'
import { unreadFile, useOfServersUser, variablesOfFiles } from '../config/setting-source.ts'
import { docsAt } from '../domain/ground/docs.ts'
import { nearest } from '../domain/ground/near-name.ts'
import { type Finding, fail, found, ok, warn } from '../domain/health/problem.ts'

/** @param problems each begins with the name of the variable */
export function settingsFindings(problems: readonly string[]): readonly Finding[] {
  if (problems.length === 0) return [ok('settings', 'All settings are valid.')]
  return problems.map((problem) => {
    const name = /^\w+/.exec(problem)?.[0] ?? 'it'
    return fail(
      'settings',
      problem,
      `Correct ${name} in the environment of the server. ${docsAt('settings.md')} lists all settings.`,
    )
  })
}

/** About the file of the settings. */
export function settingsFileFindings(env: Env): readonly Finding[] {
  const unread = unreadFile(env)
  return [
    ...found(
      unread !== undefined &&
        warn('settings', `This user cannot read ${unread}, so otpost ignores it.`, useOfServersUser),
    ),
    ...misspelledFindings(env),
  ]
}

/** A file may also have variables of other programs, such as HTTPS_PROXY. */
function misspelledFindings(env: Env): readonly Finding[] {
  const names = allSettings.map(({ name }) => name)
  return [...variablesOfFiles(env)].flatMap(([name, file]) => {
    const near = names.includes(name) ? undefined : nearest(name, names)
    if (near === undefined) return []
    return [
      warn(
        'settings',
        `${name} in ${file} is not a setting of otpost, and has no effect.`,
        `If you mean ${near}, correct the name. ${docsAt('settings.md')} lists all settings.`,
      ),
    ]
  })
}

export function hostFindings(host: string, isHere: boolean): readonly Finding[] {
  return found(
    !isHere &&
      fail(
        'HOST',
        `HOST is ${host}, but this machine has no such IP address.`,
        'Set HOST to an IP address of this machine: 127.0.0.1 behind a proxy, or 0.0.0.0 for all.',
      ),
  )
}

/** Listens for a moment on any free port. */
export function hasAddress(hostname: string): boolean {
  try {
    Bun.serve({ hostname, port: 0, fetch: () => new Response() }).stop(true)
    return true
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    return !['EADDRNOTAVAIL', 'EINVAL', 'ENOTFOUND'].includes(code)
  }
}
