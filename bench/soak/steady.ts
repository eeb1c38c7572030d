import { existsSync, readdirSync } from 'node:fs'

/** The files and sockets that a process has open. */
export function openFiles({ pid }: { readonly pid: number }): number {
  const folder = `/proc/${pid}/fd`
  if (!existsSync(folder)) throw new Error('the server has ended by itself')
  return readdirSync(folder).length
}

/** The slope of the straight line that fits some points best (least squares). */
export function slope(points: readonly (readonly [x: number, y: number])[]): number {
  const mean = (of: (point: readonly [number, number]) => number) =>
    points.reduce((sum, point) => sum + of(point), 0) / points.length
  const [meanX, meanY] = [mean(([x]) => x), mean(([, y]) => y)]
  const covariance = points.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0)
  const variance = points.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0)
  return variance === 0 ? 0 : covariance / variance
}
