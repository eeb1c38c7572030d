import { join, resolve } from 'node:path'

const root = join(import.meta.dir, '../..')

/** The compiled program that OTPOST_BINARY names; undefined where the source is under test. */
export const binary: string | undefined = process.env.OTPOST_BINARY
  ? resolve(root, process.env.OTPOST_BINARY)
  : undefined

/** The command line of the program under test, for any working directory. */
export function programLine(args: readonly string[]): string[] {
  return binary ? [binary, ...args] : sourceLine(args)
}

/** The same for the source, also where a binary is under test: a binary's modules can not be replaced or watched. */
export function sourceLine(args: readonly string[]): string[] {
  return [process.execPath, join(root, 'src/main.ts'), ...args]
}

/** An environment with these settings and nothing of the developer's own. */
export function programEnv(settings: Readonly<Record<string, string>> = {}): Record<string, string> {
  const { PATH = '', HOME = '', TMPDIR = '' } = process.env
  return {
    PATH,
    HOME,
    // Not the settings of this machine's own server.
    OTPOST_ENV_FILE: '/dev/null',
    ...(TMPDIR ? { TMPDIR } : {}),
    // A binary runs in production mode by default.
    ...(binary && settings.NODE_ENV === undefined ? { OUTBOX_IN_PRODUCTION: '1' } : {}),
    ...settings,
  }
}
