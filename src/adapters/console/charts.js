// @ts-check

// Draws the overview's charts. Each `figure[data-chart]` has its figures as JSON.

import { localTimes } from '/admin/page.js'
import { timesIn } from '/admin/times.js'
import uPlot from '/admin/uplot.js'

/**
 * @typedef {{ label: string, kind: 'area' | 'gold' | 'bad', values: number[] }} Line
 * @typedef {{ period: 'hour' | 'day' | 'month', stepSeconds: number, at: number[], lines: Line[] }} Data
 */

/** By their element, which console.js moves into a refreshed page. @type {Map<Element, uPlot>} */
const charts = new Map()

const numbers = new Intl.NumberFormat('en')
const dark = matchMedia('(prefers-color-scheme: dark)')

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

/** @param {Line} line */
function seriesOf({ kind, label }) {
  const looks = {
    area: { stroke: colour('--accent'), fill: colour('--accent', '14%'), width: 1.75 },
    gold: { stroke: colour('--gold'), width: 2 },
    bad: { stroke: colour('--bad'), width: 1.75, dash: [5, 3] },
  }
  return { label, points: { show: false }, ...looks[kind] }
}

/** @param {Data} data @returns {uPlot.AlignedData} */
const table = ({ at, lines }) => [at, ...lines.map(({ values }) => values)]

const utcTimes = timesIn('UTC')

/** A day begins at midnight UTC in every time zone. @param {Data} data @param {number} seconds */
function timeLabel({ period }, seconds) {
  return period === 'month'
    ? utcTimes.read(seconds * 1000).date.slice(5)
    : localTimes.read(seconds * 1000).time.slice(0, 5)
}

/** Without a step, the sums. @param {Element} plot @param {number | null | undefined} step */
function showValues(plot, step) {
  const figure = plot.closest('figure')
  if (!figure) return
  const data = dataOf(plot)
  const slots = figure.querySelectorAll('[data-legend]')
  data.lines.forEach(({ values }, line) => {
    const value = step == null ? values.reduce((sum, each) => sum + each, 0) : values[step]
    const slot = slots[line]
    if (slot) slot.textContent = numbers.format(value ?? 0)
  })
  const at = step == null ? undefined : data.at[step]
  const words = figure.querySelector('[data-legend-at]')
  const note = localTimes.isUtc || data.period === 'month' ? ' UTC' : ''
  if (words) words.textContent = at === undefined ? '' : timeLabel(data, at) + note
}

/** @param {HTMLElement} plot */
function draw(plot) {
  const data = dataOf(plot)
  const ink = colour('--muted')
  const font = `12px ${getComputedStyle(document.body).fontFamily}`
  const grid = { stroke: colour('--line'), width: 1 }
  const axis = { stroke: ink, font, ticks: { show: false } }
  return new uPlot(
    {
      ...sizeOf(plot),
      tzDate: (seconds) => {
        const date = new Date(seconds * 1000)
        return data.period === 'month' ? uPlot.tzDate(date, 'Etc/UTC') : date
      },
      legend: { show: false },
      // Half of the last label is to the right of its step.
      padding: [8, 20, 0, 0],
      cursor: {
        y: false,
        drag: { x: false, y: false },
        move: (chart, left, top) => {
          const at = left < 0 ? undefined : chart.data[0][chart.posToIdx(left)]
          return [at === undefined ? left : chart.valToPos(at, 'x'), top]
        },
        points: { size: 7 },
      },
      scales: {
        y: {
          range: (_, _low, high) => [0, Math.max(4, high * 1.08)],
        },
      },
      series: [{}, ...data.lines.map(seriesOf)],
      axes: [
        {
          ...axis,
          grid: { show: false },
          size: 28,
          space: 64,
          values: (_, splits) => splits.map((at) => timeLabel(data, at)),
        },
        {
          ...axis,
          grid,
          size: (_, words) => 18 + 7 * Math.max(1, ...(words ?? []).map(({ length }) => length)),
          space: 40,
          incrs: [
            1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 1e7, 1e8,
          ],
          values: (_, splits) => splits.map((value) => (value === 0 ? '' : numbers.format(value))),
        },
      ],
      hooks: {
        setCursor: [({ cursor }) => showValues(plot, cursor.idx)],
      },
    },
    table(data),
    plot,
  )
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
  for (const [plot, chart] of charts) chart.setData(table(dataOf(plot)))
})
