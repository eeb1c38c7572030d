import type { BarChart } from './report.ts'

const width = 760
const barLeft = 250
const barWidth = 330
const rowHeight = 26
const barHeight = 14
const titleHeight = 44
const margin = 20

/** Bar charts below each other as one SVG that is legible on light and on dark pages. */
export function svg(charts: readonly BarChart[]): string {
  const parts: string[] = []
  let top = margin
  for (const chart of charts) {
    parts.push(panel(chart, top))
    top += titleHeight + chart.bars.length * rowHeight + margin
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${top}" width="${width}" height="${top}" role="img">
<title>${charts.map(({ title }) => escaped(title)).join('. ')}</title>
<style>
  svg { color-scheme: light dark }
  text { font: 13px system-ui, sans-serif; fill: #1f2328 }
  .title { font-weight: 600 }
  .page { fill: #ffffff }
  .bar { fill: #2f6fb5 }
  .aim { stroke: #b5352f; stroke-width: 2 }
  .aim-text { fill: #b5352f; font-size: 12px }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .page { fill: #0d1117 }
    .bar { fill: #6aa5e8 }
    .aim { stroke: #ff8b82 }
    .aim-text { fill: #ff8b82 }
  }
</style>
<rect class="page" width="${width}" height="${top}" rx="6"/>
${parts.join('\n')}
</svg>
`
}

function panel({ title, bars }: BarChart, top: number): string {
  const greatest = Math.max(...bars.flatMap(({ value, aim = 0 }) => [value, aim]))
  const lengthOf = (value: number) => ((value / greatest) * barWidth).toFixed(1)
  const rows = bars.flatMap(({ label, value, text, aim }, index) => {
    const y = top + titleHeight + index * rowHeight
    const middle = y + barHeight - 2
    const end = Math.max(value, aim ?? 0)
    const row = [
      `<text x="${barLeft - 10}" y="${middle}" text-anchor="end">${escaped(label)}</text>`,
      `<rect class="bar" x="${barLeft}" y="${y}" width="${lengthOf(value)}" height="${barHeight}" rx="2"/>`,
      `<text x="${barLeft + Number(lengthOf(end)) + 8}" y="${middle}">${escaped(text)}</text>`,
    ]
    if (aim !== undefined) {
      const x = barLeft + Number(lengthOf(aim))
      row.push(`<line class="aim" x1="${x}" x2="${x}" y1="${y - 4}" y2="${y + barHeight + 4}"/>`)
    }
    return row
  })
  const hasAim = bars.some(({ aim }) => aim !== undefined)
  return [
    `<text class="title" x="${margin}" y="${top + 16}">${escaped(title)}</text>`,
    ...(hasAim
      ? [
          `<text class="aim-text" x="${width - margin}" y="${top + 16}" text-anchor="end">| aim: at least</text>`,
        ]
      : []),
    ...rows,
  ].join('\n')
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
