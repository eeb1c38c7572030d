import { isAbsolute } from 'node:path'
import { markerOfLost } from '../adapters/sqlite/marker.ts'
import { type Env, sourceOf, sourceWords, unreadRemedy } from '../config/setting-source.ts'
import type { StoreConfig } from '../config/store.ts'

/** What a command says that may not create a database (design D51). */
export function missingDatabase(
  env: Env,
  { database }: Pick<StoreConfig, 'database'>,
): { readonly message: string; readonly remedy: string } {
  const source = sourceOf(env, 'DATABASE_URL')
  const from = `DATABASE_URL: ${sourceWords(source)}.`
  const unread = source.source === 'default' ? unreadRemedy(env) : undefined
  const use =
    "Use the server's settings: name its file with --env-file or OTPOST_ENV_FILE, or set DATABASE_URL (demo: file:data/demo.db)."
  const remedy = `${unread ?? use} To create a database, run \`otpost migrate\` or \`otpost serve\`.`
  if (database.kind === 'postgres') {
    return { message: `The database ${database.name} has no tables of otpost. ${from}`, remedy }
  }
  const place = isAbsolute(database.file) ? '' : ` in ${process.cwd()}`
  const marker = markerOfLost(database.file)
  const why =
    marker === undefined ? ', or this user cannot read its folder' : `, but ${marker} says that it existed`
  return {
    message: `There is no database at ${database.name}${place}${why}. ${from}`,
    remedy: marker === undefined ? remedy : 'Mount its disk, or restore a backup with `otpost restore FILE`.',
  }
}
