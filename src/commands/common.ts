import { createReadStream } from 'node:fs'
import { constants, setPriority, userInfo } from 'node:os'
import { InvalidArgumentError, Option } from 'commander'
import { NoDatabase } from '../adapters/store/store.ts'
import type { App } from '../app.ts'
import type { Config } from '../config/config.ts'
import type { DestinationConfig } from '../config/destinations.ts'
import type { Env } from '../config/setting-source.ts'
import type { StoreConfig } from '../config/store.ts'
import type { Context } from '../context.ts'
import { missingDatabase } from '../doctor/missing.ts'
import type { Actor } from '../domain/ground/audit.ts'
import type { Contacts } from '../domain/ground/contact.ts'
import { cellsOf, headOf, type Listing, rowOf } from '../domain/ground/listing.ts'
import { InvalidInput, OperatorError } from '../domain/ground/operator-error.ts'
import { instantIn } from '../domain/operator/fields.ts'

/** 78 is EX_CONFIG of sysexits.h. */
export const exitStatuses = {
  ok: { code: 0, meaning: 'The command succeeded, or the server stopped after SIGTERM or SIGINT.' },
  failed: {
    code: 1,
    meaning: 'The command failed or was rejected; standard error says why.',
  },
  usage: {
    code: 2,
    meaning: 'The command, an argument or an option is unknown, missing or wrong.',
  },
  config: { code: 78, meaning: 'A setting is wrong or missing; the message names each one.' },
} as const

export const exit = {
  ok: exitStatuses.ok.code,
  failed: exitStatuses.failed.code,
  usage: exitStatuses.usage.code,
  config: exitStatuses.config.code,
} as const

export type { Env }

type Work = (context: Context, config: StoreConfig) => Promise<void>

/** @param how only `otpost migrate` may create the database (design D51) */
export async function withContext(
  env: Env,
  work: Work,
  how: { readonly mustExist: boolean } = { mustExist: true },
): Promise<void> {
  const [{ openContext }, { readStoreConfig }] = await Promise.all([
    import('../context.ts'),
    import('../config/store.ts'),
  ])
  const config = readStoreConfig(env)
  if (config.database.kind === 'sqlite') requireStored(config.database.file)
  const context = await openContext(config, how).catch(inWords(env, config))
  try {
    await work(context, config)
  } finally {
    await context.close()
  }
}

/** Rethrows NoDatabase as an error for the operator. */
function inWords(env: Env, config: Pick<StoreConfig, 'database'>): (error: unknown) => never {
  return (error) => {
    throw error instanceof NoDatabase ? noDatabase(env, config) : error
  }
}

export function noDatabase(env: Env, config: Pick<StoreConfig, 'database'>): OperatorError {
  const { message, remedy } = missingDatabase(env, config)
  return new OperatorError(`${message} Nothing was created. ${remedy}`)
}

function requireStored(file: string): void {
  if (file !== ':memory:') return
  throw new OperatorError(
    "DATABASE_URL is file::memory:, which exists only inside one process. Set DATABASE_URL to the server's value.",
  )
}

export function requireFile({ database }: Pick<StoreConfig, 'database'>, instead: string): string {
  if (database.kind === 'sqlite') {
    requireStored(database.file)
    return database.file
  }
  throw new OperatorError(`${database.name} is a PostgreSQL database, not a file. ${instead}`)
}

/** For commands that need the providers. */
export async function withApp(env: Env, work: (app: App, config: Config) => Promise<void>): Promise<void> {
  const [{ createApp }, { readConfig }] = await Promise.all([
    import('../app.ts'),
    import('../config/config.ts'),
  ])
  const config = readConfig(env)
  if (config.database.kind === 'sqlite') requireStored(config.database.file)
  const app = await createApp(config, { serves: false, mustExist: true }).catch(inWords(env, config))
  try {
    await work(app, config)
  } finally {
    await app.close()
  }
}

/** @throws OperatorError */
export function phoneDigits({ phone, faultOf }: Contacts, number: string): string {
  const digits = phone(number)?.to
  if (digits !== undefined) return digits
  throw new InvalidInput(`The number ${faultOf(number, 'SMS')}`)
}

/** The operator in the audit log; with sudo, the user who called it. */
export async function commandActor(env: Env): Promise<Actor> {
  // Users in a container may have no name and no home.
  const named = (): string | undefined => {
    try {
      const { username } = userInfo()
      return username === 'unknown' ? undefined : username
    } catch {
      return undefined
    }
  }
  return { by: 'command', name: env.SUDO_USER || named() || env.USER || `uid ${process.getuid?.()}` }
}

export function wholeSeconds(text: string): number {
  if (!/^[0-9]{1,5}$/.test(text)) throw new InvalidArgumentError('It must be a whole number of seconds.')
  return Number(text)
}

export function wholeNumber(text: string): number {
  if (!/^[1-9][0-9]{0,5}$/.test(text))
    throw new InvalidArgumentError('It must be a whole number from 1 to 999999.')
  return Number(text)
}

/** The values of an option that is repeated or comma-separated. An empty text has none. */
export function list(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, ...wordsIn(text, ',')]
}

/** The same for `name=value`. A comma separates two of them only before the next `name=`. */
export function listOfPairs(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, ...wordsIn(text, /,(?=\s*\w+=)/)]
}

function wordsIn(text: string, separator: string | RegExp): readonly string[] {
  return text
    .split(separator)
    .map((word) => word.trim())
    .filter((word) => word !== '')
}

/** For the description of an option with these parsers. */
export const several = 'can be repeated or comma-separated'

export interface ConfirmOptions {
  readonly yes?: true | undefined
}

export interface DryRunOptions {
  readonly dryRun?: true
}

export function confirmOption(): Option {
  return new Option('--yes', 'do not ask for a confirmation')
}

export function dryRunOption(): Option {
  return new Option('--dry-run', 'print what the command would change, and change nothing')
}

export const nothingChanged = 'Nothing was changed (--dry-run).'

/**
 * Asks at a terminal. Elsewhere, such as in scripts, the command continues, unless it `cutsOffMany`: then it requires --yes.
 * @throws OperatorError without a confirmation
 */
export async function confirm(
  warning: string,
  { yes, cutsOffMany = false }: ConfirmOptions & { readonly cutsOffMany?: boolean },
): Promise<void> {
  if (yes) return
  const { stdin: input, stderr: output } = process
  if (!input.isTTY || !output.isTTY) {
    if (cutsOffMany) throw new InvalidInput(`${warning} Nothing was changed. To confirm this, add --yes.`)
    return
  }
  const { createInterface } = await import('node:readline/promises')
  const terminal = createInterface({ input, output })
  try {
    const answer = await terminal.question(`${warning} Continue? [y/N] `)
    if (!/^y(es)?$/i.test(answer.trim())) throw new OperatorError('Nothing was changed.')
  } finally {
    terminal.close()
  }
}

/** Lowers the priority of this process, so that it does not slow down servers. */
export function yieldToServers(): void {
  setPriority(constants.priority.PRIORITY_LOW)
}

export function yesNo(flag: boolean): string {
  return flag ? 'yes' : '-'
}

export function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

/** @param none what to say if there are no rows */
export function printListing<Row>(
  json: true | undefined,
  rows: readonly Row[],
  listing: Listing<Row>,
  none?: string,
): void {
  if (json) print(JSON.stringify(rows.map((row) => rowOf(listing, row))))
  else if (rows.length === 0 && none !== undefined) complain(none)
  else printLines([headOf(listing), ...rows.map((row) => cellsOf(listing, row))])
}

export function printTable<Row>(
  json: true | undefined,
  rows: readonly Row[],
  columns: readonly (readonly [string, (row: Row) => string])[],
): void {
  if (json) {
    print(JSON.stringify(rows))
    return
  }
  printLines([columns.map(([title]) => title), ...rows.map((row) => columns.map(([, cell]) => cell(row)))])
}

function printLines(lines: readonly (readonly string[])[]): void {
  const widths = lines[0]?.map((_, index) => Math.max(...lines.map((line) => line[index]?.length ?? 0))) ?? []
  for (const line of lines) {
    print(
      line
        .map((cell, index) => cell.padEnd(widths[index] ?? 0))
        .join('  ')
        .trimEnd(),
    )
  }
}

export function complain(message: string): void {
  process.stderr.write(`otpost: ${message}\n`)
}

/** As `instantIn`, with the option in the error. */
export function instant(text: string, now: number, option = '--since'): number {
  return instantIn(text, now, option)
}

const maxBytes = 100_000

/**
 * Of a file, or `-` for standard input. Without BOM and the newline with which editors end a file.
 * @param isLong it may be long, and is checked line by line
 * @throws OperatorError
 */
export async function fileText(file: string, isLong = false): Promise<string> {
  const name = file === '-' ? 'Standard input' : file
  const chunks: Uint8Array[] = []
  let bytes = 0
  try {
    for await (const chunk of file === '-' ? process.stdin : createReadStream(file)) {
      chunks.push(chunk)
      bytes += chunk.length
      if (!isLong && bytes > maxBytes) throw new OperatorError(`${name} has more than ${maxBytes} bytes.`)
    }
    const text = new TextDecoder('utf-8', { fatal: !isLong }).decode(Buffer.concat(chunks))
    return text.replace(/\r?\n$/, '')
  } catch (error) {
    if (error instanceof OperatorError) throw error
    if (error instanceof TypeError) throw new OperatorError(`${name} is not UTF-8. Save it as UTF-8.`)
    const code = error instanceof Error && 'code' in error ? ` (${error.code})` : ''
    throw new OperatorError(`${name} cannot be read${code}.`)
  }
}

/** Loads the numbering plans, so that `--help` does without them. */
export async function destinationConfig(env: Env): Promise<DestinationConfig> {
  return (await import('../config/destinations.ts')).readDestinationConfig(env)
}

/** PUBLIC_URL, else the URL on which a server with these settings listens. */
export async function ownUrl(env: Env): Promise<string> {
  const { readConsoleOrigins } = await import('../config/config.ts')
  const { publicUrl, local } = readConsoleOrigins(env)
  return publicUrl ?? local
}
