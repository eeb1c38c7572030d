import { spyOn } from 'bun:test'
import { createProgram } from '../../src/commands/program.ts'
import type { Action } from '../../src/domain/operator/action.ts'
import type { ActionPorts } from '../../src/domain/operator/actions.ts'
import type { Entered, Written } from '../../src/domain/operator/fields.ts'

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

/** The words of an action's command line. */
export function wordsOf(
  { name, fields }: Action<ActionPorts>,
  entered: Entered,
  fileOf: (text: Written) => string,
): readonly string[] {
  const options = Object.entries(fields).flatMap(([field, { as = '', isFile, hasNoOption }]) => {
    if (hasNoOption) return []
    const written = isFile && field in entered ? fileOf(entered[field]) : entered[field]
    if (typeof written === 'boolean') return written === as.startsWith('--no-') ? [] : [as]
    const texts = [written ?? []].flat()
    const [long = ''] = as.split(' ')
    return as.startsWith('-') ? texts.flatMap((text) => [long, text]) : texts
  })
  return [...name.split(' '), ...options]
}
