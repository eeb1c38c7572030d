export type Finding =
  | { readonly level: 'ok'; readonly what: string; readonly message: string }
  | {
      readonly level: 'warn' | 'fail'
      readonly what: string
      readonly message: string
      readonly remedy: string
    }

export function ok(what: string, message: string): Finding {
  return { level: 'ok', what, message }
}

export function warn(what: string, message: string, remedy: string): Finding {
  return { level: 'warn', what, message, remedy }
}

export function fail(what: string, message: string, remedy: string): Finding {
  return { level: 'fail', what, message, remedy }
}

export function found(...findings: readonly (Finding | false | undefined)[]): Finding[] {
  return findings.filter((finding) => finding !== undefined && finding !== false)
}

export function inMebibytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`
}

export function inSeconds(milliseconds: number): string {
  return `${Math.round(milliseconds / 1000)} s`
}
