import { expect } from 'bun:test'

// Runs programs of other projects with the examples in deploy/.

/** Replaces every pattern in a text. Each must match, or the example differs from what the test expects. */
export function replaced(text: string, changes: readonly (readonly [RegExp, string])[]): string {
  return changes.reduce((changed, [pattern, replacement]) => {
    expect(changed).toMatch(new RegExp(pattern.source, pattern.flags.replace('g', '')))
    return changed.replace(pattern, replacement)
  }, text)
}

/**
 * Starts a program and waits for a text on its standard error. Returns a function that ends it.
 *
 * @param home the folder for its state
 * @param onOutput gets all of its standard error so far
 */
export async function started(
  command: string[],
  words: string,
  home: string,
  onOutput: (text: string) => void = () => {},
): Promise<() => Promise<unknown>> {
  const child = Bun.spawn(command, {
    env: { HOME: home, PATH: process.env.PATH ?? '' },
    stdout: 'ignore',
    stderr: 'pipe',
  })
  const said = Promise.withResolvers<void>()
  void (async () => {
    const decoder = new TextDecoder()
    let all = ''
    // Read to the end: the program would block on a full pipe.
    for await (const chunk of child.stderr) {
      all += decoder.decode(chunk, { stream: true })
      onOutput(all)
      if (all.includes(words)) said.resolve()
    }
    said.reject(new Error(`it ended: ${all}`))
  })()
  await said.promise
  return () => {
    child.kill()
    return child.exited
  }
}
