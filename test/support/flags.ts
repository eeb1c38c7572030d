/** How `bun test` is run over many files. Of one file, more servers at once starve each other where there are few cores. */
export const testFlags = ['--parallel', '--timeout', '120000', '--max-concurrency', '6'] as const
