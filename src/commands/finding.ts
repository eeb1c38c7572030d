import type { Command } from 'commander'
import { type Reference, see as reference } from '../domain/ground/advice.ts'
import { docsAt } from '../domain/ground/docs.ts'
import type { Finding, LogRows, Problem } from '../domain/health/problem.ts'
import { wordOf } from '../domain/log/log-search.ts'
import { adviceWords } from './advice.ts'

/** As `doctor --json` prints it. */
export function printed(program: Command, finding: Finding): Printed {
  const { what, text: message } = finding
  if (finding.level === 'ok') return { level: 'ok', what, message }
  const level = finding.level === 'fail' ? 'fail' : 'warn'
  return { level, what, message, remedy: remedyWords(program, finding) }
}

export interface Printed {
  readonly level: 'ok' | 'warn' | 'fail'
  readonly what: string
  readonly message: string
  /** Undefined: all is well. */
  readonly remedy?: string
}

/** With a command for each list and change, and the pages of the documentation. */
function remedyWords(program: Command, { remedy, see }: Problem): string {
  const commands = see.flatMap((each) =>
    'to' in each ? [each] : 'list' in each ? [rowsReference(each)] : [],
  )
  const words = commands.map((each) => adviceWords(program, [each])).join(', ')
  return [
    remedy,
    ...(commands.length === 0 ? [] : [`${commands.length === 1 ? 'Command' : 'Commands'}: ${words}.`]),
    ...see.flatMap((each) => ('docs' in each ? [`See ${docsAt(`${each.docs}.md`)}.`] : [])),
  ]
    .filter(Boolean)
    .join(' ')
}

function rowsReference({ list, filters }: LogRows): Reference {
  const { since, until, statuses, provider, app, brand, channel, country, template, call, result } = filters
  const time = (at: number) => `${new Date(at).toISOString().slice(0, 16)}Z`
  const fields = {
    ...{ provider, app, brand, channel, country, template, call, result },
    status: statuses?.map(wordOf).join(),
    since: since === undefined ? undefined : time(since),
    until: until === undefined ? undefined : time(until),
  }
  const known = Object.entries(fields).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value]],
  )
  return reference(list === 'calls' ? 'requests' : 'deliveries', Object.fromEntries(known))
}
