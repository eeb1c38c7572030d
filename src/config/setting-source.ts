export type Env = Readonly<Record<string, string | undefined>>

/** Where the value of a setting comes from. */
export type SettingSource =
  | { readonly source: 'default' | 'environment' }
  | { readonly source: 'file'; readonly file: string }

/** The file that a variable came from, by environment and name. */
const files = new WeakMap<object, Map<string, string>>()

export function noteFile(env: object, name: string, file: string): void {
  const known = files.get(env) ?? new Map<string, string>()
  files.set(env, known.set(name, file))
}

/** The variables that came from a file, with that file. */
export function variablesOfFiles(env: object): ReadonlyMap<string, string> {
  return files.get(env) ?? new Map()
}

/** By environment: the usual file, if it exists and this user cannot read it. */
const unread = new WeakMap<object, string>()

export function noteUnread(env: object, file: string): void {
  unread.set(env, file)
}

export const useOfServersUser =
  'To use the settings of the server, run the command as its user, such as with `sudo -u otpost`.'

export function unreadFile(env: object): string | undefined {
  return unread.get(env)
}

/** What to do if the settings of the server are in a file that this user cannot read. */
export function unreadRemedy(env: object): string | undefined {
  const file = unread.get(env)
  return file === undefined ? undefined : `This user cannot read ${file}. ${useOfServersUser}`
}

/** Where to correct settings that are wrong. Empty: the environment. */
export function placesOfSettings(env: object): readonly string[] {
  const read = [...new Set(variablesOfFiles(env).values())].map(
    (file) => `These settings come from the environment and ${file}.`,
  )
  const remedy = unreadRemedy(env)
  return remedy === undefined ? read : [...read, remedy]
}

/** The environment with this value of a variable. The others keep their source. */
export function withVariable(env: Env, name: string, value: string): Env {
  const changed = { ...env, [name]: value }
  const known = new Map(files.get(env))
  known.delete(name)
  files.set(changed, known)
  return changed
}

/** An empty variable counts as unset. */
export function sourceOf(env: Env, name: string): SettingSource {
  if ((env[name] ?? '').trim() === '') return { source: 'default' }
  const file = files.get(env)?.get(name)
  return file === undefined ? { source: 'environment' } : { source: 'file', file }
}

/** Such as `environment` or `env file /etc/otpost/otpost.env`. */
export function sourceWords(from: SettingSource): string {
  return from.source === 'file' ? `env file ${from.file}` : from.source
}
