import { type Finding, fail, found, ok } from './finding.ts'

/** @param problems each the name of a variable and what is wrong with it */
export function settingsFindings(problems: readonly string[]): readonly Finding[] {
  if (problems.length === 0) return [ok('settings', 'every variable can be used')]
  return problems.map((problem) => {
    const name = /^\w+/.exec(problem)?.[0] ?? 'it'
    return fail(
      'settings',
      problem,
      `correct ${name} where the server has its environment from; docs/settings.md lists all settings`,
    )
  })
}

/** @param isHere whether a server can listen at HOST */
export function hostFindings(host: string, isHere: boolean): readonly Finding[] {
  return found(
    !isHere &&
      fail(
        'HOST',
        `is ${host}, but this machine has no such address`,
        'set HOST to an address of this machine, 127.0.0.1 where a proxy is in front, or 0.0.0.0 for all',
      ),
  )
}

/** Whether a server can listen at a host: tried for a moment, at any free port. */
export function hasAddress(hostname: string): boolean {
  try {
    Bun.serve({ hostname, port: 0, fetch: () => new Response() }).stop(true)
    return true
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    return !['EADDRNOTAVAIL', 'EINVAL', 'ENOTFOUND'].includes(code)
  }
}
