import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { ConfigError } from '../settings.ts'

/**
 * Adds the settings of a file to an environment, whose own go before them unless they are set to nothing. Lines are
 * NAME=value, `#` begins a comment, and a value in quotes may have several lines, as in systemd's EnvironmentFile.
 *
 * @throws ConfigError naming the lines that say nothing, and never a value: it may be a secret
 */
export function readEnvFile(file: string, env: Record<string, string | undefined>): void {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw new ConfigError([`--env-file ${file} can not be read: ${(error as NodeJS.ErrnoException).code}`])
  }
  const lost = linesThatSayNothing(text)
  if (lost.length > 0) {
    throw new ConfigError(
      lost.map((line) => `line ${line} of ${file} must be NAME=value, or a comment behind #`),
    )
  }
  for (const [name, value] of Object.entries(parseEnv(text))) env[name] ||= value
}

/** The lines that a parser would pass over, by number. */
function linesThatSayNothing(text: string): number[] {
  // What stands in quotes keeps its place, so that the lines keep their numbers.
  const lines = text
    .replace(
      /(=[ \t]*)(["'`])[\s\S]*?\2/g,
      (quoted, sign: string) => sign + quoted.replace(/[^\n]/g, '').replaceAll('\n', '\n#'),
    )
    .split(/\r?\n/)
  return lines.flatMap((line, index) =>
    // A quote that is left was never closed.
    /^\s*(#|$)/.test(line) || /^\s*(export\s+)?[A-Za-z_][A-Za-z0-9_]*\s*=(?!\s*["'`])/.test(line)
      ? []
      : [index + 1],
  )
}
