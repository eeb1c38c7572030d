import { join } from 'node:path'

const root = join(import.meta.dir, '..')

/**
 * Runs a tool to its end. Returns its output. The time of files in packages is constant, so that the same binary gives the same bytes.
 *
 * @throws with the output of a tool that fails
 */
export function run(command: readonly string[], cwd = root): string {
  const { success, stdout, stderr } = Bun.spawnSync([...command], {
    cwd,
    env: { ...process.env, SOURCE_DATE_EPOCH: '315532800', LC_ALL: 'C', TZ: 'UTC' },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  if (!success) throw new Error(`${command.join(' ')}: ${stderr}${stdout}`)
  return stdout.toString()
}
