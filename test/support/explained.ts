import { adviceWords } from '../../src/commands/advice.ts'
import { createProgram } from '../../src/commands/program.ts'
import type { Advice } from '../../src/domain/ground/advice.ts'
import { explain, explanationLines } from '../../src/domain/log/explain.ts'

const program = createProgram({})

/** As commands print it. */
export function worded(advice: Advice): string {
  return adviceWords(program, advice)
}

type Explained = Parameters<typeof explain>

/** As `otpost explain` prints it. */
export function explained(
  trace: Explained[0],
  deliveries: Explained[1],
  jobs: Explained[2] = [],
  rules: Explained[3] = [],
): readonly string[] {
  return explanationLines(explain(trace, deliveries, jobs, rules), worded)
}
