import { spyOn } from 'bun:test'
import { createProgram } from '../../src/commands/program.ts'

/** What a command prints, run in this process. @throws its error */
export async function printed(
  env: Readonly<Record<string, string>>,
  words: readonly string[],
): Promise<string[]> {
  const lines: string[] = []
  const stdout = spyOn(process.stdout, 'write').mockImplementation((text) => lines.push(String(text)) > 0)
  const stderr = spyOn(process.stderr, 'write').mockImplementation(() => true)
  try {
    await createProgram({ ...env }).parseAsync(['bun', 'otpost', ...words])
  } finally {
    stdout.mockRestore()
    stderr.mockRestore()
  }
  return lines.join('').trimEnd().split('\n')
}
