import { expect } from 'bun:test'

// Programs of others, run with the examples in deploy/.

/** A text with every pattern replaced; each must be there, or the example has another line than the test thinks. */
export function replaced(text: string, changes: readonly (readonly [RegExp, string])[]): string {
  return changes.reduce((changed, [pattern, replacement]) => {
    expect(changed).toMatch(new RegExp(pattern.source, pattern.flags.replace('g', '')))
    return changed.replace(pattern, replacement)
  }, text)
}

/**
 * Starts a program and waits for words on its standard error; returns what ends it.
 *
 * @param home where it may keep what it has learnt
 */
export async function started(
  command: string[],
  words: string,
  home: string,
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
    // Read to the end: a full pipe would hold it up.
    for await (const chunk of child.stderr) {
      all += decoder.decode(chunk, { stream: true })
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
