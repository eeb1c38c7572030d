import { existsSync } from 'node:fs'
import { join } from 'node:path'
import packageJson from '../package.json'

/** Defined by release/build.ts; undefined when run from source. */
declare const OTPOST_COMMIT: string | undefined

export const version: string = packageJson.version

export function versionLine(): string {
  const commit = typeof OTPOST_COMMIT === 'string' ? OTPOST_COMMIT : commitOf(join(import.meta.dir, '..'))
  return `otpost ${version} (commit ${commit}, Bun ${Bun.version})`
}

/** The commit of a checkout, with `-dirty` if files differ; `unknown` without git. */
export function commitOf(root: string): string {
  // A copy without its history may be inside another project's repository.
  if (!existsSync(join(root, '.git')) || Bun.which('git') === null) return 'unknown'
  const { success, stdout } = Bun.spawnSync(
    ['git', '-C', root, 'describe', '--always', '--dirty', '--abbrev=10', '--exclude=*'],
    { stderr: 'ignore' },
  )
  return success ? stdout.toString().trim() : 'unknown'
}
