// Parts of generated Markdown pages.

export const generated = '<!--Generated-->'

/** As the formatter would align it. */
export function table(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [titles, ...rows].map((row) => row.map((cell) => cell.replaceAll('|', '\\|').trim()))
  const widths = titles.map((_, at) => Math.max(3, ...all.map((row) => row[at]?.length ?? 0)))
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(' | ')} |`
  const [head = [], ...others] = all
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...others.map(line)].join('\n')
}

export function page(...blocks: readonly string[]): string {
  return `${blocks.join('\n\n')}\n`
}
