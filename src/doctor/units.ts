export function inSeconds(milliseconds: number): string {
  return `${Math.round(milliseconds / 1000)} s`
}
