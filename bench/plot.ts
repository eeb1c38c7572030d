/** One curve. */
export interface Curve {
  readonly name: string
  /** Milliseconds at a percentile. */
  at(percent: number): number
}

const [width, height, left, top, right, bottom] = [720, 390, 64, 72, 24, 56]
const colors = [
  { light: '#2f6fb7', dark: '#6ea8ea' },
  { light: '#1a7f45', dark: '#4ac27a' },
  { light: '#b35900', dark: '#f0a55a' },
  { light: '#8a3fa8', dark: '#cf9be6' },
]
const percentiles = [0, 50, 90, 99, 99.9]

/** Latencies by percentile as an SVG. The x axis is logarithmic in the share of slower requests. */
export function plot(title: string, curves: readonly Curve[]): string {
  const most = Math.max(...curves.map((curve) => curve.at(99.9)))
  const step = [0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500].find((size) => most / size <= 6) ?? most
  const topMs = Math.ceil(most / step) * step
  const x = (percent: number) => left + (-Math.log10(1 - percent / 100) / 3) * (width - left - right)
  const y = (ms: number) => height - bottom - (ms / topMs) * (height - top - bottom)
  const text = (at: readonly [number, number], anchor: string, words: string) =>
    `  <text x="${at[0].toFixed(1)}" y="${at[1].toFixed(1)}" text-anchor="${anchor}">${words}</text>`
  const line = (kind: string, points: readonly (readonly [number, number])[]) =>
    `  <path class="${kind}" d="M${points.map((point) => point.map((place) => place.toFixed(1)).join(' ')).join('L')}"/>`
  const across = Array.from({ length: 121 }, (_, index) => 100 * (1 - 10 ** (-index / 40)))
  const color = (kind: 'light' | 'dark') =>
    colors.map((color, index) => `.curve-${index} { stroke: ${color[kind]}; }`).join(' ')
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="title" font-family="system-ui, sans-serif" font-size="13">`,
    `  <title id="title">${title}</title>`,
    `  <style>.panel { fill: #ffffff; } text { fill: #1f2328; } .grid { stroke: #d0d7de; } path { fill: none; stroke-width: 2; } path.grid { stroke-width: 1; } ${color('light')}`,
    `    @media (prefers-color-scheme: dark) { .panel { fill: #0d1117; } text { fill: #e6edf3; } .grid { stroke: #30363d; } ${color('dark')} }</style>`,
    `  <rect class="panel" width="${width}" height="${height}" rx="10"/>`,
    text([left, 28], 'start', title),
    ...percentiles.flatMap((percent) => [
      line('grid', [
        [x(percent), y(0)],
        [x(percent), y(topMs)],
      ]),
      text([x(percent), height - bottom + 20], 'middle', `${percent} %`),
    ]),
    ...Array.from({ length: Math.round(topMs / step) + 1 }, (_, index) => index * step).flatMap((ms) => [
      line('grid', [
        [left, y(ms)],
        [width - right, y(ms)],
      ]),
      text([left - 8, y(ms) + 4], 'end', String(ms)),
    ]),
    text([(left + width - right) / 2, height - 12], 'middle', 'percentile of the sends'),
    `  <text transform="translate(18 ${(top + height - bottom) / 2}) rotate(-90)" text-anchor="middle">milliseconds</text>`,
    ...curves.flatMap((curve, index) => [
      line(
        `curve-${index}`,
        across.map((percent) => [x(percent), y(curve.at(percent))]),
      ),
      line(`curve-${index}`, [
        [left + index * 90, 48],
        [left + index * 90 + 24, 48],
      ]),
      text([left + index * 90 + 30, 52], 'start', curve.name),
    ]),
    '</svg>\n',
  ].join('\n')
}
