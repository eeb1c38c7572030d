import { existsSync } from 'node:fs'
import { join } from 'node:path'
import packageJson from '../package.json'

/** Put in by release/build.ts; a program that runs from its source has none. */
declare const OTPOST_COMMIT: string | undefined

/** The version, by SemVer. */
export const version: string = packageJson.version

/** What `otpost --version` tells. */
export function versionLine(): string {
  const commit = typeof OTPOST_COMMIT === 'string' ? OTPOST_COMMIT : commitOf(join(import.meta.dir, '..'))
  return `otpost ${version} (commit ${commit}, Bun ${Bun.version})`
}

/** The commit that a checkout stands at, with `-dirty` where files differ from it; `unknown` where git can not tell. */
export function commitOf(root: string): string {
  // A copy without its history may lie inside another project's.
  if (!existsSync(join(root, '.git')) || Bun.which('git') === null) return 'unknown'
  const { success, stdout } = Bun.spawnSync(
    ['git', '-C', root, 'describe', '--always', '--dirty', '--abbrev=10', '--exclude=*'],
    { stderr: 'ignore' },
  )
  return success ? stdout.toString().trim() : 'unknown'
}
