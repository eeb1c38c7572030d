import { join } from 'node:path'

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
  const listening = Promise.withResolvers<string>()
  const ended = (async () => {
    const decoder = new TextDecoder()
    let said = ''
    for await (const chunk of child.stdout) {
      said += decoder.decode(chunk, { stream: true })
      const url = /Prism is listening on (\S+)/.exec(said)?.[1]
      if (url) listening.resolve(url)
    }
    const complaints = await new Response(child.stderr).text()
    listening.reject(new Error(`Prism ended with ${await child.exited}: ${said}${complaints}`))
  })()
  return {
    url: await listening.promise,
    async stop(): Promise<void> {
      child.kill()
      await ended
    },
  }
}
