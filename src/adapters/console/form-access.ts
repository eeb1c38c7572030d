import type { Role } from '../../domain/ground/role.ts'
import type { Action } from '../../domain/operator/action.ts'
import { type ActionPorts, actions } from '../../domain/operator/actions.ts'
import type { Entered } from '../../domain/operator/fields.ts'
import { field, linesOf, shownIn } from './form-fields.ts'

/** Who may submit a form. */
export interface FormAccess {
  readonly role: Role
  /** Whether it requires a password, code, passkey or link of the last 15 minutes. */
  readonly isSensitive: (form: URLSearchParams) => boolean
}

const [always, never] = [() => true, () => false]

const viewer: FormAccess = { role: 'viewer', isSensitive: never }
const ownSignIn: FormAccess = { role: 'viewer', isSensitive: always }
const sensitive: FormAccess = { role: 'operator', isSensitive: always }

/** The forms that no action declares. */
export const codeForms = {
  '/admin/health': viewer,
  '/admin/search': viewer,
  '/admin/preview': viewer,
  '/admin/logout': viewer,
  '/admin/sessions/:id/revoke': ownSignIn,
  '/admin/account/password': ownSignIn,
  '/admin/account/app': ownSignIn,
  '/admin/account/recovery-codes': ownSignIn,
  '/admin/account/passkey': ownSignIn,
  '/admin/account/passkey/remove': ownSignIn,
  '/admin/brands/:slug/texts/preview': viewer,
  '/admin/brands/:slug/texts/mail': viewer,
  '/admin/destinations/check': viewer,
  '/admin/providers/:name/try': viewer,
  '/admin/test': sensitive,
} as const satisfies Readonly<Record<string, FormAccess>>

export type CodeForm = keyof typeof codeForms

type FormAction = Action<ActionPorts>

/** By the pattern of the path, such as `/admin/brands/:slug/status`. */
export const actionsByPath: ReadonlyMap<string, readonly FormAction[]> = Map.groupBy(
  actions.filter(({ form }) => form !== undefined),
  ({ form }) => patternOf(form?.path ?? ''),
)

/** Of a path as actions have it. */
export function patternOf(path: string): string {
  return placeOf(path.replace(/\{(\w+)\}/g, ':$1'))
}

/** The overview has an empty path. */
function placeOf(path: string): string {
  return path === '' ? '/admin' : `/admin/${path}`
}

/** With fields in the place of `{name}`. */
export function filled(path: string, fields: Readonly<Record<string, unknown>>): string {
  const written = (_: string, name: string) => encodeURIComponent(String(fields[name] ?? ''))
  return placeOf(path.replace(/\{(\w+)\}/g, written))
}

/** The one that the field `action` of the form names, if several share the path. */
export function actionIn(sharing: readonly FormAction[], form: URLSearchParams): FormAction | undefined {
  return sharing.length === 1 ? sharing[0] : sharing.find(({ verb }) => verb === form.get('action'))
}

/** As the controls have it. */
export function enteredIn(
  { fields }: Pick<FormAction, 'fields'>,
  form: URLSearchParams,
  params: Readonly<Record<string, string>> = {},
): Entered {
  return Object.fromEntries(
    Object.entries(fields).map(([name, { kind, isFile, rows }]) => {
      if (kind === 'flag') return [name, form.has(name)]
      // Line numbers count from the first line of the file.
      if (isFile) return [name, form.get(name) ?? '']
      if (kind === 'list') return [name, rows ? linesOf(form, name) : form.getAll(name)]
      return [name, params[name] ?? field(form, name)]
    }),
  )
}

/** Whether the form asks what the change would do, and changes nothing. */
export function isQuestion(form: URLSearchParams): boolean {
  return form.has('foretell')
}

/** Without the fields that are as the form showed them: those of a legend change together. */
export function changedIn(
  { fields, form: declared }: Pick<FormAction, 'fields' | 'form'>,
  entered: Entered,
  form: URLSearchParams,
): Entered {
  if (!declared?.isPartial) return entered
  if (!form.has('was')) return Object.fromEntries(Object.entries(entered).filter(([name]) => form.has(name)))
  const shown = shownIn<Entered>(form)
  const isSame = (name: string) => JSON.stringify(entered[name]) === JSON.stringify(shown[name])
  const together = Map.groupBy(Object.keys(fields), (name) => fields[name]?.legend ?? name)
  const unchanged = new Set([...together.values()].filter((names) => names.every(isSame)).flat())
  return Object.fromEntries(Object.entries(entered).filter(([name]) => !unchanged.has(name)))
}

/** Whether a partial form came back as it was shown. What its path names is no change. */
export function isUnchanged(action: FormAction, changed: Entered, form: URLSearchParams): boolean {
  if (!action.form?.isPartial || !form.has('was')) return false
  const named = new Set([...(action.form.page ?? '').matchAll(/\{(\w+)\}/g)].map(([, name]) => name))
  return Object.keys(changed).every((name) => named.has(name))
}

const access: ReadonlyMap<string, FormAccess> = new Map<string, FormAccess>([
  ...Object.entries(codeForms),
  ...Array.from(actionsByPath, ([path, sharing]): [string, FormAccess] => [path, accessOf(sharing)]),
])

function accessOf(sharing: readonly FormAction[]): FormAccess {
  const [{ role = 'owner' } = {}] = sharing
  return {
    role,
    isSensitive: (form) => {
      const action = actionIn(sharing, form)
      return !isQuestion(form) && (action?.isSensitive(enteredIn(action, form)) ?? false)
    },
  }
}

/** @param path of a form, or the pattern of its route */
export function accessTo(path: string): FormAccess {
  const found =
    access.get(path) ?? access.get([...access.keys()].find((pattern) => matches(pattern, path)) ?? '')
  if (found) return found
  throw new Error(`The form ${path} has no role.`)
}

function matches(pattern: string, path: string): boolean {
  const [parts, words] = [pattern.split('/'), path.split('/')]
  return (
    parts.length === words.length && parts.every((part, at) => part.startsWith(':') || part === words[at])
  )
}
