export function inMebibytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`
}

export function inSeconds(milliseconds: number): string {
  return `${Math.round(milliseconds / 1000)} s`
}
