import type { Advice } from '../ground/advice.ts'
import { InvalidInput } from '../ground/operator-error.ts'
import type { Role } from '../ground/role.ts'
import { dryRunOf, type StoredPorts } from './dry-run.ts'
import { type Entered, type Fields, type InputOf, inputIn } from './fields.ts'

// A change that operators can make is declared once, with `action`. Its command, its form in the console with role and confirmation,
// the words of its audit entries and its documentation follow from the declaration.

/** What commands and the audit log name together. */
export interface Group {
  /** As in commands: `budget`. */
  readonly name: string
  readonly does: string
  /** Of audit entries: what they are about, in the plural. */
  readonly entries: string
  /** What their target is. */
  readonly target: string
}

/** What an operator sees after the change. */
export interface Said {
  /** A sentence; several are on a line each. */
  readonly text: string
  /** An API key, a code or a token. It is shown once, and is stored nowhere. */
  readonly secret?: string
  /** What scripts read in place of the text. */
  readonly row?: object
  readonly warnings?: readonly Warning[]
  /** The change is stored, and what follows it failed. */
  readonly failure?: unknown
}

export interface Warning {
  readonly text: string
  readonly advice?: Advice
}

interface Question {
  readonly warning: string
  /** Scripts must say that they mean it. */
  readonly cutsOffMany?: boolean
}

interface Declaration<Ports, All extends Fields, Result> {
  /** Who may do it in the console. */
  readonly role: Role
  /**
   * Whether the console requires a sign-in or a confirmation of the last 15 minutes: for keys, money, accounts, and what lets SMS
   * through. What stops an attack does not.
   */
  readonly isSensitive: boolean | ((input: InputOf<All>) => boolean)
  readonly does: string
  /** Further lines of `--help`. */
  readonly note?: string
  readonly fields: All
  /** The actions of its audit entries, and their words. */
  readonly audit: Readonly<Record<string, string>>
  /** In the console. Absent: there is no form. */
  readonly form?: Form
  /** Makes the change, and writes its audit entry in the same transaction. @throws OperatorError */
  readonly run: (ports: Ports, input: InputOf<All>) => Promise<Result>
  readonly said: (result: Result, input: InputOf<All>) => string | Said
  /** Whether it sends a message: then a command needs the settings of a server. */
  readonly sends?: (input: InputOf<All>) => boolean
  /** What a command asks before the change. */
  readonly asks?: (ports: Ports, input: InputOf<All>) => Promise<Question | undefined>
  /** What a command prints in place of the change, with --dry-run. */
  readonly foretells?: (ports: Ports, result: Result, input: InputOf<All>) => Promise<readonly string[]>
}

/** Paths are below `/admin/`; `{name}` is a field. */
export interface Form {
  /** Actions with the same path have the field `action` with their verb. */
  readonly path: string
  /** The page that has it. Default: the first word of the path. */
  readonly page?: string
  /** Only what the operator changed in the form counts, so that concurrent changes of other fields are kept. */
  readonly isPartial?: boolean
  /** The lists that show the form beside each thing: beside all, or beside those with this state. */
  readonly beside?: { readonly thing: string; readonly while?: string }
}

/** As adapters see it. */
export interface Action<Ports> {
  /** As in `budget set`. */
  readonly name: string
  readonly group: Group
  readonly verb: string
  readonly role: Role
  readonly does: string
  readonly note?: string
  readonly fields: Fields
  readonly audit: Readonly<Record<string, string>>
  readonly form?: Form
  readonly canAsk: boolean
  readonly hasDryRun: boolean
  readonly confirmation: 'yes' | 'no' | 'for some values'
  readonly isSensitive: (entered: Entered) => boolean
  readonly sends: (entered: Entered) => boolean
  /** What each field means. @throws InvalidInput */
  readonly read: (entered: Entered) => Readonly<Record<string, unknown>>
  /** Reads the fields, and makes the change. @throws OperatorError */
  readonly perform: (ports: Ports & StoredPorts, entered: Entered, how?: Performing) => Promise<Said>
}

interface Performing {
  /** Throws unless the operator confirms it. */
  readonly confirm?: (question: Question) => Promise<void>
  /** Stores nothing. */
  readonly isDryRun?: boolean
}

export function action<Ports, All extends Fields, Result>(
  group: Group,
  verb: string,
  declared: Declaration<Ports, All, Result>,
): Action<Ports> & Pick<Declaration<Ports, All, Result>, 'fields' | 'run'> {
  const { fields, isSensitive, run, said, asks, foretells, sends = () => false } = declared
  const inputOf = (entered: Entered) => inputIn(fields, entered)
  return {
    ...declared,
    name: `${group.name} ${verb}`,
    group,
    verb,
    canAsk: asks !== undefined,
    hasDryRun: foretells !== undefined,
    confirmation: typeof isSensitive === 'boolean' ? (isSensitive ? 'yes' : 'no') : 'for some values',
    isSensitive: (entered) => {
      try {
        return typeof isSensitive === 'boolean' ? isSensitive : isSensitive(inputOf(entered))
      } catch (error) {
        if (error instanceof InvalidInput) return true
        throw error
      }
    },
    sends: (entered) => sends(inputOf(entered)),
    read: inputOf,
    perform: async (ports, entered, { confirm, isDryRun = false } = {}) => {
      const input = inputOf(entered)
      if (isDryRun && foretells) {
        const result = await run(dryRunOf(ports), input)
        const lines = await foretells(ports, result, input)
        return { ...worded(said(result, input)), text: lines.join('\n') }
      }
      if (confirm && asks) {
        // A change that would be rejected needs no confirmation.
        await run(dryRunOf(ports), input)
        const question = await asks(ports, input)
        if (question) await confirm(question)
      }
      return worded(said(await run(ports, input), input))
    },
  }
}

function worded(said: string | Said): Said {
  return typeof said === 'string' ? { text: said } : said
}
