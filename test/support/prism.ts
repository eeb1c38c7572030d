import { join } from 'node:path'
import { outputLog } from './run.ts'

/**
 * Starts Prism with `--errors` on a free port.
 *
 * @param packages the folder whose node_modules has it
 */
export async function startPrism(packages: string, command: 'mock' | 'proxy', args: readonly string[]) {
  const program = join(packages, 'node_modules/@stoplight/prism-cli/dist/index.js')
  const { PATH = '', HOME = '', TMPDIR } = process.env
  const child = Bun.spawn(
    [process.execPath, '--bun', program, command, '--host', '127.0.0.1', '--port', '0', '--errors', ...args],
    { env: { PATH, HOME, ...(TMPDIR ? { TMPDIR } : {}) }, stdout: 'pipe', stderr: 'pipe' },
  )
  const { said, ended } = outputLog(child.stdout, child.stderr)
  const [, url = ''] = await said(/Prism is listening on (\S+)/)
  return {
    url,
    async stop(): Promise<void> {
      child.kill()
      await ended
    },
  }
}
