import type { Command } from 'commander'
import { examine } from '../doctor/examine.ts'
import { type Env, exit, print } from './common.ts'
import { type Printed, printed } from './finding.ts'

export async function runDoctor(
  program: Command,
  env: Env,
  { full, json }: { readonly full: boolean; readonly json: boolean },
): Promise<number> {
  const findings = (await examine(env, full ? 'full' : 'quick')).map((finding) => printed(program, finding))
  if (json) print(JSON.stringify(findings))
  else for (const line of listed(findings)) print(line)
  return findings.some(({ level }) => level === 'fail') ? exit.failed : exit.ok
}

function listed(findings: readonly Printed[]): readonly string[] {
  const width = Math.max(...findings.map(({ what }) => what.length))
  return findings.flatMap(({ level, what, message, remedy }) => {
    const line = `${(level === 'fail' ? 'FAIL' : level).padEnd(4)}  ${what.padEnd(width)}  ${message}`
    return remedy === undefined ? [line] : [line, `      ${' '.repeat(width)}  → ${remedy}`]
  })
}
