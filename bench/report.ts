import { median } from './statistics.ts'

/** One line of the result. */
export interface Figure {
  readonly name: string
  readonly measured: string
  /** What it should be, in words; and whether it is. */
  readonly aim?: { readonly text: string; readonly holds: boolean } | undefined
}

/** What one part of the bench found. */
export interface PartResult {
  readonly title: string
  readonly figures: readonly Figure[]
  /** A Markdown table of its own, below the others. */
  readonly table?: string
}

/** The results as one Markdown table, under what they were measured on. */
export function markdown(machine: readonly string[], results: readonly PartResult[]): string {
  const rows = results.flatMap(({ title, figures }) => [
    `| **${title}** | | | |`,
    ...figures.map(({ name, measured, aim }) => {
      return `| ${name} | ${measured} | ${aim?.text ?? ''} | ${aim ? (aim.holds ? 'yes' : '**no**') : ''} |`
    }),
  ])
  return [
    ...machine.map((line) => `- ${line}`),
    '',
    '| | measured | aim | holds |',
    '| --- | --- | --- | --- |',
    ...rows,
    '',
    ...results.flatMap(({ title, table }) => (table === undefined ? [] : [`**${title}**`, '', table])),
  ].join('\n')
}

/** A whole number with its thousands apart. */
export function whole(value: number): string {
  return Math.round(value).toLocaleString('en-US')
}

export function milliseconds(value: number): string {
  return `${value.toFixed(value < 10 ? 1 : 0)} ms`
}

export function megabytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(bytes < 10 * 2 ** 20 ? 1 : 0)} MiB`
}

/** The medians of some loads in words. */
export function loadText(
  loads: readonly { cpuUs: number; perSecond: number; p50Ms: number; p99Ms: number }[],
): string {
  const middle = (name: 'cpuUs' | 'perSecond' | 'p50Ms' | 'p99Ms') => median(loads.map((load) => load[name]))
  return `${whole(middle('cpuUs'))} µs; ${whole(middle('perSecond'))} requests/s, p50 ${milliseconds(middle('p50Ms'))}, p99 ${milliseconds(middle('p99Ms'))}`
}

/** The median of some numbers with the least and the greatest. */
export function spread(middle: number, numbers: readonly number[]): string {
  return `${middle.toFixed(2)} (${Math.min(...numbers).toFixed(2)}–${Math.max(...numbers).toFixed(2)})`
}
