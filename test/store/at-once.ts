import { join } from 'node:path'

/**
 * Runs the same script in several processes and returns what each wrote. All processes have started before
 * any of them runs its work. Imports in it are relative to the repository root.
 *
 * @param prepare statements that run before the start, such as imports
 * @param work statements that contend
 */
export function inProcesses(count: number, prepare: string, work: string): Promise<string[]> {
  const script = `${prepare}
    process.stdout.write('ready')
    for await (const _ of process.stdin) break
    ${work}
    process.exit(0)`
  const children = Array.from({ length: count }, () => {
    const child = Bun.spawn([process.execPath, '-e', script], {
      cwd: join(import.meta.dir, '../..'),
      stdin: 'pipe',
      stdout: 'pipe',
      stderr: 'pipe',
    })
    return { child, stderr: new Response(child.stderr).text(), output: child.stdout.getReader() }
  })
  const ready = Promise.all(children.map(({ output }) => output.read()))
  return Promise.all(
    children.map(async ({ child, output, stderr }) => {
      await ready
      child.stdin.write('go\n')
      child.stdin.end()
      const decoder = new TextDecoder()
      let text = ''
      for (let part = await output.read(); !part.done; part = await output.read()) {
        text += decoder.decode(part.value, { stream: true })
      }
      return text + (await stderr)
    }),
  )
}
