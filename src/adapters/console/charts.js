// @ts-check

// Draws the overview's charts. Each `figure[data-chart]` has its figures as JSON.

import { localTimes } from '/admin/page.js'
import { timesIn } from '/admin/times.js'
import uPlot from '/admin/uplot.js'

/**
 * Times are in seconds. `rows`: the list of the event log that has the rows of a line. `page`: shows the time that is chosen.
 * `isOfUtcDays`: days of UTC in every time zone.
 *
 * @typedef {{ label: string, kind: 'area' | 'gold' | 'bad', values: number[], rows?: string }} Line
 * @typedef {{ stepSeconds: number, at: number[], isUnfinished: boolean, isOfUtcDays?: boolean, page?: string, lines: Line[],
 *   tops: { counts: number, failures: number }, before?: number[], incidents?: [from: number, until: number][], changes?: number[] }} Data
 */

/** By their element, which console.js moves into a refreshed page. @type {Map<Element, uPlot>} */
const charts = new Map()

const numbers = new Intl.NumberFormat('en')
const sums = new Intl.NumberFormat('en', { minimumFractionDigits: 2, maximumFractionDigits: 4 })
const dark = matchMedia('(prefers-color-scheme: dark)')
const hasMouse = matchMedia('(hover: hover)')

/** @param {Element} plot @returns {Data} */
function dataOf(plot) {
  const figure = plot.closest('figure')
  return JSON.parse(figure?.dataset.chart ?? '')
}

/** A colour that a canvas accepts. @param {string} name @param {string} [opacity] */
function colour(name, opacity = '100%') {
  // An element resolves light-dark().
  const probe = document.createElement('i')
  probe.style.color = `color-mix(in srgb, var(${name}) ${opacity}, transparent)`
  document.body.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}

/** @param {Line} line @returns {uPlot.Series} */
function seriesOf({ kind, label }) {
  const looks = {
    area: { stroke: colour('--accent'), fill: colour('--accent', '14%'), width: 1.75 },
    gold: { stroke: colour('--gold'), width: 2 },
    bad: { stroke: colour('--bad'), width: 1.75, scale: 'failures' },
  }
  return { label, points: { show: false }, ...looks[kind] }
}

/** The unfinished step as an open point: its count is still growing. @param {Line} line @returns {uPlot.Series} */
function openSeriesOf(line) {
  const { fill: _, points, ...looks } = seriesOf(line)
  return { ...looks, points: { ...points, show: true, size: 8, fill: colour('--raised') } }
}

/** @param {Data} data @returns {uPlot.AlignedData} */
function table({ at, lines, before, isUnfinished }) {
  const last = at.length - 1
  const isOpen = (/** @type {number} */ step) => isUnfinished && step === last
  return [
    at,
    ...lines.map(({ values }) => values.map((value, step) => (isOpen(step) ? null : value))),
    ...lines.map(({ values }) => values.map((value, step) => (isOpen(step) ? value : null))),
    before ?? at.map(() => null),
  ]
}

const utcTimes = timesIn('UTC')

/** @param {Data} data */
const timesOf = ({ isOfUtcDays }) => (isOfUtcDays ? utcTimes : localTimes)

/** On an axis: the time, or the day at its start. @param {Data} data @param {number} seconds */
function tickLabel(data, seconds) {
  const { date, time } = timesOf(data).read(seconds * 1000)
  return time.startsWith('00:00') ? date.slice(5) : time.slice(0, 5)
}

/** @param {Data} data @param {number} seconds */
function stepLabel(data, seconds) {
  const times = timesOf(data)
  const time = times.full(seconds * 1000).slice(5, data.isOfUtcDays ? 10 : 16)
  return times.isUtc ? `${time} UTC` : time
}

/** Without a step, the sums. @param {Element} plot @param {number | null | undefined} step */
function showValues(plot, step) {
  const figure = plot.closest('figure')
  if (!figure) return
  const data = dataOf(plot)
  const { at, lines, before, isUnfinished } = data
  const slots = figure.querySelectorAll('[data-legend]')
  for (const [line, values] of [...lines.map(({ values }) => values), before ?? []].entries()) {
    const value = step == null ? 0 : (values[step] ?? 0)
    const slot = slots[line]
    const words = (Number.isInteger(value) ? numbers : sums).format(value)
    if (slot instanceof HTMLElement) slot.textContent = step == null ? (slot.dataset.legend ?? '') : words
  }
  const time = step == null ? undefined : at[step]
  const soFar = isUnfinished && step === at.length - 1 ? ', so far' : ''
  const words = figure.querySelector('[data-legend-at]')
  const idle = data.page && hasMouse.matches ? 'Drag: zoom in. Click: rows' : ''
  if (words) words.textContent = time === undefined ? idle : stepLabel(data, time) + soFar
}

/** @param {string} path @param {number} from @param {number} until in seconds */
function urlOf(path, from, until) {
  const url = new URL(path, location.href)
  const minute = (/** @type {number} */ seconds) => `${new Date(seconds * 1000).toISOString().slice(0, 16)}Z`
  url.searchParams.set('from', minute(from))
  url.searchParams.set('until', minute(until))
  return url.href
}

/** Less is a click. */
const leastDrag = 8

/** The rows of the nearest line. @param {MouseEvent} event @param {uPlot} chart @param {Data} data */
function openRows({ clientX, clientY }, { over, posToIdx, valToPos }, { at, lines, stepSeconds }) {
  const { left, top } = over.getBoundingClientRect()
  const step = posToIdx(clientX - left)
  const from = at[step] ?? 0
  const distance = (/** @type {Line} */ { kind, values }) =>
    Math.abs(valToPos(values[step] ?? 0, kind === 'bad' ? 'failures' : 'y') - (clientY - top))
  const [nearest] = lines
    .filter(({ values }) => values[step])
    .sort((one, other) => distance(one) - distance(other))
  if (nearest?.rows) location.href = urlOf(nearest.rows, from, from + stepSeconds)
}

/** The chosen time becomes that of the page. @param {uPlot} chart @param {Data} data */
function zoom({ select, posToVal }, { stepSeconds, page }) {
  if (select.width < leastDrag || !page) return
  const stepAt = (/** @type {number} */ left) => Math.round(posToVal(left, 'x') / stepSeconds) * stepSeconds
  location.href = urlOf(page, stepAt(select.left), stepAt(select.left + select.width) + stepSeconds)
}

/** Incidents as areas, changes as lines, behind the curves. @param {uPlot} chart @param {Data} data */
function drawMarks({ ctx, bbox, valToPos }, { incidents = [], changes = [] }) {
  const { left, top, width, height } = bbox
  const placed = (/** @type {number} */ at) => Math.min(Math.max(valToPos(at, 'x', true), left), left + width)
  ctx.save()
  ctx.fillStyle = colour('--bad', '12%')
  for (const [from, until] of incidents)
    ctx.fillRect(placed(from), top, Math.max(3, placed(until) - placed(from)), height)
  ctx.fillStyle = colour('--edge')
  for (const at of changes) ctx.fillRect(placed(at), top, 1.5, height)
  ctx.restore()
}

/** The values above the top of the axis: the highest of steps that follow each other. @param {uPlot} chart @param {Data} data */
function drawPeaks({ ctx, bbox, valToPos }, { at, lines, tops }) {
  const counts = lines.filter(({ kind }) => kind !== 'bad')
  const highest = at.map((_, step) => Math.max(...counts.map(({ values }) => values[step] ?? 0)))
  const isPeak = (/** @type {number} */ step) => (highest[step] ?? 0) > tops.counts
  ctx.save()
  const height = 12 * uPlot.pxRatio
  ctx.font = `600 ${height}px ${getComputedStyle(document.body).fontFamily}`
  ctx.textBaseline = 'top'
  for (let step = 0; step < at.length; step++) {
    if (!isPeak(step)) continue
    let peak = step
    while (isPeak(++step)) if ((highest[step] ?? 0) > (highest[peak] ?? 0)) peak = step
    const words = `▲ ${numbers.format(highest[peak] ?? 0)}`
    const { width } = ctx.measureText(words)
    const middle = valToPos(at[peak] ?? 0, 'x', true) - width / 2
    const left = Math.max(bbox.left, Math.min(middle, bbox.left + bbox.width - width))
    ctx.fillStyle = colour('--raised')
    ctx.fillRect(left - height / 3, 0, width + (2 * height) / 3, bbox.top + 1.25 * height)
    ctx.fillStyle = colour('--ink')
    ctx.fillText(words, left, bbox.top)
  }
  ctx.restore()
}

/** @param {HTMLElement} plot */
function draw(plot) {
  const data = dataOf(plot)
  const ink = colour('--muted')
  const font = `12px ${getComputedStyle(document.body).fontFamily}`
  const grid = { stroke: colour('--line'), width: 1 }
  const axis = { stroke: ink, font, ticks: { show: false } }
  /** @type {uPlot.Axis} */
  const counts = {
    ...axis,
    size: (_, words) => 18 + 7 * Math.max(1, ...(words ?? []).map(({ length }) => length)),
    space: 40,
    incrs: [
      0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5,
      2e5, 5e5, 1e6, 1e7, 1e8,
    ],
    values: (_, splits) => splits.map((value) => (value === 0 ? '' : numbers.format(value))),
  }
  const hasFailures = data.lines.some(({ kind }) => kind === 'bad')
  const chart = new uPlot(
    {
      ...sizeOf(plot),
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), timesOf(data).name),
      legend: { show: false },
      // Half of the last label is to the right of its step.
      padding: [8, hasFailures ? 0 : 20, 0, 0],
      cursor: {
        y: false,
        drag: { x: data.page !== undefined, y: false, setScale: false, click: () => undefined },
        move: (chart, left, top) => {
          const at = left < 0 ? undefined : chart.data[0][chart.posToIdx(left)]
          return [at === undefined ? left : chart.valToPos(at, 'x'), top]
        },
        points: { size: 7 },
      },
      scales: {
        y: { range: () => [0, dataOf(plot).tops.counts] },
        failures: { range: () => [0, dataOf(plot).tops.failures] },
      },
      series: [
        {},
        ...data.lines.map(seriesOf),
        ...data.lines.map(openSeriesOf),
        { stroke: colour('--accent', '45%'), width: 1, points: { show: false } },
      ],
      axes: [
        {
          ...axis,
          grid: { show: false },
          size: 28,
          space: 64,
          values: (_, splits) => splits.map((at) => tickLabel(data, at)),
        },
        { ...counts, grid },
        {
          ...counts,
          show: hasFailures,
          scale: 'failures',
          side: 1,
          stroke: colour('--bad'),
          grid: { show: false },
        },
      ],
      hooks: {
        setCursor: [({ cursor }) => showValues(plot, cursor.idx)],
        setSelect: [(chart) => zoom(chart, dataOf(plot))],
        drawAxes: [(chart) => drawMarks(chart, dataOf(plot))],
        draw: [(chart) => drawPeaks(chart, dataOf(plot))],
      },
    },
    table(data),
    plot,
  )
  chart.over.addEventListener('click', (event) => {
    if (chart.select.width < leastDrag) openRows(event, chart, dataOf(plot))
  })
  showValues(plot, null)
  return chart
}

/** @param {HTMLElement} plot */
const sizeOf = (plot) => ({ width: plot.clientWidth, height: plot.clientHeight })

const resizing = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const chart = charts.get(target)
    if (chart && target instanceof HTMLElement && target.clientWidth > 0) chart.setSize(sizeOf(target))
  }
})

function drawAll() {
  for (const [plot, chart] of charts) {
    resizing.unobserve(plot)
    chart.destroy()
  }
  charts.clear()
  for (const plot of document.querySelectorAll('[data-plot]')) {
    if (!(plot instanceof HTMLElement)) continue
    // Without this attribute the plot has no size.
    plot.dataset.drawn = ''
    charts.set(plot, draw(plot))
    resizing.observe(plot)
  }
}

drawAll()
dark.addEventListener('change', drawAll)
document.addEventListener('otpost:refreshed', () => {
  for (const [plot, chart] of charts) {
    chart.setData(table(dataOf(plot)))
    showValues(plot, chart.cursor.idx)
  }
})

document.addEventListener('click', ({ target }) => {
  const cell = target instanceof Element ? target.closest('td') : null
  const rows = cell?.closest('tr')?.dataset.rows
  const heat = cell?.closest('[data-heat]')
  if (!cell || cell.cellIndex < 2 || !rows || !(heat instanceof HTMLElement)) return
  const [start, step] = [Number(heat.dataset.heat) / 1000, Number(heat.dataset.step) / 1000]
  const from = start + (cell.cellIndex - 2) * step
  location.href = urlOf(rows, from, from + step)
})
