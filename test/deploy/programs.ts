import { expect } from 'bun:test'
import { outputLog } from '../support/run.ts'

// Runs programs of other projects with the examples in deploy/.

/** Replaces every pattern in a text. Each must match, or the example differs from what the test expects. */
export function replaced(text: string, changes: readonly (readonly [RegExp, string])[]): string {
  return changes.reduce((changed, [pattern, replacement]) => {
    expect(changed).toMatch(new RegExp(pattern.source, pattern.flags.replace('g', '')))
    return changed.replace(pattern, replacement)
  }, text)
}

/** Starts a program, and waits for a text on its standard error. `home` is the folder for its state. */
export async function started(command: string[], words: RegExp, home: string) {
  const child = Bun.spawn(command, {
    env: { HOME: home, PATH: process.env.PATH ?? '' },
    stdout: 'ignore',
    stderr: 'pipe',
  })
  const { said, text } = outputLog(child.stderr)
  await said(words)
  const stop = () => {
    child.kill()
    return child.exited
  }
  return { stop, log: text }
}
